#include "tests/fuzz/graphs/eager_values.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/tensor_import.h"
#include "compiler/ops/registry/onnx_dtype.h"
#include "runtime/base/status_macros.h"
#include "tests/fuzz/graphs/values.h"

namespace fusion::fuzz {
namespace {

constexpr char kOptional[] = "Optional";

using List = std::vector<Tensor>;
using IntAttributes = std::map<std::string, int64_t>;

absl::StatusOr<Tensor> RunOperator(const std::string& op, const List& operands, const IntAttributes& attributes = {}) {
  onnx::NodeProto node;
  node.set_op_type(op);
  TensorsByName values;
  for (size_t i = 0; i < operands.size(); ++i) {
    const std::string name = absl::StrCat("operand", i);
    node.add_input(name);
    values[name] = operands[i];
  }
  for (const auto& [name, value] : attributes) {
    onnx::AttributeProto* attribute = node.add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::INT);
    attribute->set_i(value);
  }
  node.add_output("result");
  ASSIGN_OR_RETURN(TensorsByName results, RunNode(node, values));
  return std::move(results.at("result"));
}

Tensor Int(int64_t value) { return Tensor::From<int64_t>(DType::kI64, {}, {value}); }
Tensor Ints(int64_t value) { return Tensor::From<int64_t>(DType::kI64, {1}, {value}); }

// Runs one node on lists and looks up its operands.
class ListNode {
 public:
  ListNode(const onnx::NodeProto& node, const EagerValues& values) : node_(node), values_(values) {}

  bool Has(int i) const { return i < node_.input_size() && !node_.input(i).empty(); }

  int64_t Attribute(const std::string& name, int64_t otherwise) const {
    for (const auto& attribute : node_.attribute()) {
      if (attribute.name() == name) return attribute.i();
    }
    return otherwise;
  }

  absl::StatusOr<Tensor> TensorAt(int i) const {
    const auto found = Has(i) ? values_.tensors.find(node_.input(i)) : values_.tensors.end();
    if (found == values_.tensors.end()) return Missing(i);
    return found->second;
  }

  absl::StatusOr<List> ListAt(int i) const {
    const auto found = Has(i) ? values_.sequences.find(node_.input(i)) : values_.sequences.end();
    if (found == values_.sequences.end()) return Missing(i);
    return found->second;
  }

  // A tensor or a sequence may stand for an optional that has a value. Models draw no sequences in that place.
  absl::StatusOr<List> OptionalAt(int i) const {
    const auto found = Has(i) ? values_.optionals.find(node_.input(i)) : values_.optionals.end();
    if (found != values_.optionals.end()) return found->second;
    ASSIGN_OR_RETURN(Tensor tensor, TensorAt(i));
    return List{std::move(tensor)};
  }

  // Returns a position in [0, limit); a negative one counts from the end.
  absl::StatusOr<int64_t> Position(int i, int64_t otherwise, int64_t length, int64_t limit) const {
    int64_t position = otherwise;
    if (Has(i)) {
      ASSIGN_OR_RETURN(const Tensor value, TensorAt(i));
      position = value.GetInt(0);
    }
    if (position < 0) position += length;
    if (position < 0 || position >= limit) return absl::InvalidArgumentError("a position is outside of its sequence");
    return position;
  }

  int inputs() const { return node_.input_size(); }

 private:
  absl::Status Missing(int i) const {
    return absl::InvalidArgumentError(absl::StrCat(node_.op_type(), ": nothing computes operand ", i));
  }

  const onnx::NodeProto& node_;
  const EagerValues& values_;
};

absl::StatusOr<List> Construct(const ListNode& node) {
  List list;
  for (int i = 0; i < node.inputs(); ++i) {
    ASSIGN_OR_RETURN(Tensor element, node.TensorAt(i));
    list.push_back(std::move(element));
  }
  return list;
}

absl::StatusOr<List> Insert(const ListNode& node) {
  ASSIGN_OR_RETURN(List list, node.ListAt(0));
  ASSIGN_OR_RETURN(const Tensor element, node.TensorAt(1));
  const auto length = static_cast<int64_t>(list.size());
  ASSIGN_OR_RETURN(const int64_t position, node.Position(2, length, length, length + 1));
  list.insert(list.begin() + position, element);
  return list;
}

absl::StatusOr<List> Erase(const ListNode& node) {
  ASSIGN_OR_RETURN(List list, node.ListAt(0));
  const auto length = static_cast<int64_t>(list.size());
  ASSIGN_OR_RETURN(const int64_t position, node.Position(1, -1, length, length));
  list.erase(list.begin() + position);
  return list;
}

absl::StatusOr<List> Split(const ListNode& node) {
  ASSIGN_OR_RETURN(const Tensor whole, node.TensorAt(0));
  int64_t axis = node.Attribute("axis", 0);
  const auto rank = static_cast<int64_t>(whole.shape().size());
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return absl::InvalidArgumentError("splits along an axis that there is not");
  const int64_t extent = whole.shape()[axis];
  std::vector<int64_t> lengths;
  if (node.Has(1)) {
    ASSIGN_OR_RETURN(const Tensor split, node.TensorAt(1));
    for (int64_t i = 0; i < split.num_elements(); ++i) lengths.push_back(split.GetInt(i));
    if (split.shape().empty()) lengths.assign((extent + lengths[0] - 1) / lengths[0], lengths[0]);
  } else {
    lengths.assign(extent, 1);
  }
  const bool squeezes = !node.Has(1) && node.Attribute("keepdims", 1) == 0;
  List pieces;
  int64_t begin = 0;
  for (const int64_t length : lengths) {
    const int64_t end = std::min(begin + length, extent);
    ASSIGN_OR_RETURN(Tensor piece, RunOperator("Slice", {whole, Ints(begin), Ints(end), Ints(axis)}));
    if (squeezes) {
      ASSIGN_OR_RETURN(piece, RunOperator("Squeeze", {piece, Ints(axis)}));
    }
    pieces.push_back(std::move(piece));
    begin = end;
  }
  return pieces;
}

absl::StatusOr<Tensor> At(const ListNode& node) {
  ASSIGN_OR_RETURN(const List list, node.ListAt(0));
  const auto length = static_cast<int64_t>(list.size());
  ASSIGN_OR_RETURN(const int64_t position, node.Position(1, 0, length, length));
  return list[position];
}

absl::StatusOr<Tensor> Length(const ListNode& node) {
  ASSIGN_OR_RETURN(const List list, node.ListAt(0));
  return Int(static_cast<int64_t>(list.size()));
}

absl::StatusOr<Tensor> Concat(const ListNode& node) {
  ASSIGN_OR_RETURN(List list, node.ListAt(0));
  const int64_t axis = node.Attribute("axis", 0);
  if (node.Attribute("new_axis", 0) != 0) {
    for (Tensor& element : list) {
      ASSIGN_OR_RETURN(element, RunOperator("Unsqueeze", {element, Ints(axis)}));
    }
  }
  return RunOperator("Concat", list, {{"axis", axis}});
}

absl::StatusOr<Tensor> HasElement(const ListNode& node) {
  List optional;
  if (node.Has(0)) {
    ASSIGN_OR_RETURN(optional, node.OptionalAt(0));
  }
  return Tensor::From<int64_t>(DType::kBool, {}, {optional.empty() ? 0 : 1});
}

absl::StatusOr<Tensor> GetElement(const ListNode& node) {
  ASSIGN_OR_RETURN(const List optional, node.OptionalAt(0));
  if (optional.empty()) return absl::InvalidArgumentError("an optional has no element");
  return optional.front();
}

// INVALID_ARGUMENT where a gather reads outside of its data. ONNX calls that an error; here the nearest element is
// read, and which one that is differs once the data have room for more than there is.
absl::Status CheckIndices(const onnx::NodeProto& node, const TensorsByName& values) {
  const bool nd = node.op_type() == "GatherND";
  if ((!nd && node.op_type() != "Gather" && node.op_type() != "GatherElements") || node.input_size() < 2) {
    return absl::OkStatus();
  }
  const auto data = values.find(node.input(0)), indices = values.find(node.input(1));
  if (data == values.end() || indices == values.end() || IsFloat(indices->second.dtype())) return absl::OkStatus();
  int64_t first = 0;  // the dimension that the first of `depth` numbers in a row counts in
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() == (nd ? "batch_dims" : "axis")) first = attribute.i();
  }
  const Shape &shape = data->second.shape(), &rows = indices->second.shape();
  const auto rank = static_cast<int64_t>(shape.size());
  if (first < 0) first += rank;
  const int64_t depth = !nd ? 1 : rows.empty() ? 0 : rows.back();
  if (first < 0 || first + depth > rank || (nd && rows.empty())) return absl::OkStatus();  // import says what is wrong
  for (int64_t i = 0; i < indices->second.num_elements(); ++i) {
    const int64_t dim = first + i % depth, index = indices->second.GetInt(i), extent = shape[dim];
    if (index >= -extent && index < extent) continue;
    return absl::InvalidArgumentError(absl::StrCat(node.op_type(), ": index ", index, " lies outside dimension ", dim,
                                                   " of its data ", ShapeToString(shape)));
  }
  return absl::OkStatus();
}

const std::map<std::string, absl::StatusOr<List> (*)(const ListNode&), std::less<>>& ListMakers() {
  static const auto* const makers = new std::map<std::string, absl::StatusOr<List> (*)(const ListNode&), std::less<>>{
      {"SequenceConstruct", Construct},
      {"SequenceEmpty", Construct},
      {"SequenceInsert", Insert},
      {"SequenceErase", Erase},
      {"SplitToSequence", Split}};
  return *makers;
}

const std::map<std::string, absl::StatusOr<Tensor> (*)(const ListNode&), std::less<>>& ListReaders() {
  static const auto* const readers =
      new std::map<std::string, absl::StatusOr<Tensor> (*)(const ListNode&), std::less<>>{
          {"SequenceAt", At},
          {"SequenceLength", Length},
          {"ConcatFromSequence", Concat},
          {"OptionalHasElement", HasElement},
          {"OptionalGetElement", GetElement}};
  return *readers;
}

}  // namespace

void EagerValues::Take(EagerValues results) {
  for (auto& [name, tensor] : results.tensors) tensors[name] = std::move(tensor);
  for (auto& [name, list] : results.sequences) sequences[name] = std::move(list);
  for (auto& [name, list] : results.optionals) optionals[name] = std::move(list);
}

std::vector<std::string> ListOperators() {
  std::vector<std::string> names = {kOptional};
  for (const auto& [name, maker] : ListMakers()) names.push_back(name);
  for (const auto& [name, reader] : ListReaders()) names.push_back(name);
  return names;
}

absl::StatusOr<EagerValues> RunOne(const onnx::NodeProto& node, const EagerValues& values) {
  EagerValues results;
  if (const auto maker = ListMakers().find(node.op_type()); maker != ListMakers().end()) {
    ASSIGN_OR_RETURN(results.sequences[node.output(0)], maker->second(ListNode(node, values)));
  } else if (node.op_type() == kOptional) {
    if (node.input_size() == 0) {
      results.optionals[node.output(0)] = {};
    } else {
      ASSIGN_OR_RETURN(results.optionals[node.output(0)], Construct(ListNode(node, values)));
    }
  } else if (const auto reader = ListReaders().find(node.op_type()); reader != ListReaders().end()) {
    ASSIGN_OR_RETURN(results.tensors[node.output(0)], reader->second(ListNode(node, values)));
  } else {
    RETURN_IF_ERROR(CheckIndices(node, values.tensors));
    ASSIGN_OR_RETURN(results.tensors, RunNode(node, values.tensors));
  }
  return results;
}

absl::StatusOr<EagerValues> RunAll(const onnx::ModelProto& model) {
  EagerValues values;
  const std::map<std::string, std::string> no_paths;
  onnx_import::ExternalFiles no_files(&no_paths);
  for (const auto& initializer : model.graph().initializer()) {
    onnx::TensorProto copy = initializer;
    ASSIGN_OR_RETURN(values.tensors[initializer.name()], onnx_import::TakeTensor(&copy, initializer.name(), &no_files));
  }
  for (const auto& input : model.graph().input()) {
    const auto& type = input.type().tensor_type();
    Shape shape;
    for (const auto& dim : type.shape().dim()) shape.push_back(dim.dim_value());
    const std::optional<DType> dtype = ops::DTypeFromOnnx(type.elem_type());
    if (!dtype) return absl::InvalidArgumentError(absl::StrCat("input '", input.name(), "' has no type"));
    values.tensors[input.name()] = DrawInput(input.name(), *dtype, shape);
  }
  for (const onnx::NodeProto& node : model.graph().node()) {
    absl::StatusOr<EagerValues> results = RunOne(node, values);
    RETURN_IF_ERROR(Annotate(results.status(), "with constant operands"));
    values.Take(*std::move(results));
  }
  return values;
}

absl::StatusOr<std::vector<Tensor>> RunEagerly(const onnx::ModelProto& model) {
  ASSIGN_OR_RETURN(const EagerValues values, RunAll(model));
  std::vector<Tensor> outputs;
  for (const auto& output : model.graph().output()) {
    const auto value = values.tensors.find(output.name());
    if (value == values.tensors.end()) {
      return absl::InvalidArgumentError(absl::StrCat("nothing computes '", output.name(), "'"));
    }
    outputs.push_back(value->second);
  }
  return outputs;
}

}  // namespace fusion::fuzz
