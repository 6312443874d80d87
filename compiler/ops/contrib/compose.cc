#include "compiler/ops/contrib/compose.h"

#include <numeric>

#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/def_parts.h"
#include "compiler/ops/registry/onnx_dtype.h"
#include "compiler/ops/registry/schema.h"
#include "compiler/ops/shared/extents.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {

absl::Status Compose::Error(const std::string& message) const {
  return OpContext(import_.node().op, import_.node().name, import_.node().attrs, {}).Error(message);
}

absl::Status Compose::Unsupported(const std::string& message) const {
  return OpContext(import_.node().op, import_.node().name, import_.node().attrs, {}).Unsupported(message);
}

absl::Status Compose::Expect(int input, const char* name, const Shape& shape) const {
  if (!Has(input)) return Error(absl::StrCat(name, " is missing"));
  const Shape& given = ShapeOf(input);
  bool fits = given.size() == shape.size();
  for (size_t d = 0; fits && d < shape.size(); ++d) fits = shape[d] < 0 || shape[d] == given[d];
  if (fits) return absl::OkStatus();
  return Error(absl::StrCat(name, " is ", ShapeToString(given), ", expected ", ShapeToString(shape)));
}

absl::Status Compose::ExpectStatic(int input, const char* name, const std::vector<int>& axes) const {
  if (!Has(input)) return absl::OkStatus();
  const int rank = static_cast<int>(ShapeOf(input).size());
  for (int axis : axes) {
    const int dim = axis < 0 ? axis + rank : axis;
    if (dim < 0 || dim >= rank || !import_.IsDynamic(In(input), dim)) continue;
    return Unsupported(absl::StrCat("the extent of dimension ", dim, " of ", name,
                                    " depends on data; it must be known at compile time"));
  }
  return absl::OkStatus();
}

std::vector<ecg::ValueId> Compose::Nodes(const std::string& op, std::vector<ValueId> inputs, const Attrs& attrs,
                                         int outputs) {
  if (status_.ok()) {
    ecg::Attributes attributes;
    for (const auto& [name, value] : attrs) attributes.Set(name, value);
    auto values = import_.AddNode(op, std::move(inputs), std::move(attributes), outputs);
    if (values.ok()) return *std::move(values);
    status_ = values.status();
  }
  return std::vector<ValueId>(outputs, ecg::kNone);
}

ecg::ValueId Compose::Ints(const std::vector<int64_t>& values) { return import_.AddConstant(IntsTensor(values)); }

ecg::ValueId Compose::Number(DType dtype, double value) {
  return import_.AddConstant(Tensor::From<double>(dtype, {}, {value}));
}

ecg::ValueId Compose::WithExtentOf(ValueId x, int axis, ValueId like) {
  if (!status_.ok() || (!import_.IsDynamic(x, axis) && !import_.IsDynamic(like, axis))) return x;
  std::vector<ValueId> extents = ExtentsOf(import_, x);
  extents[axis] = import_.Extent(like, axis);
  const auto same = import_.WithExtents(x, std::move(extents));
  if (!same.ok()) status_ = same.status();
  return same.ok() ? *same : ecg::kNone;
}

ecg::ValueId Compose::Positions(ValueId x, int axis) {
  if (!status_.ok()) return ecg::kNone;
  std::vector<int64_t> numbers(import_.value(x).type.shape[axis]);
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  const ValueId all = Ints(numbers);
  if (!import_.IsDynamic(x, axis)) return all;
  const auto some = import_.WithExtents(all, {import_.Extent(x, axis)});
  if (!some.ok()) status_ = some.status();
  return some.ok() ? *some : ecg::kNone;
}

ecg::ValueId Compose::Cast(ValueId x, DType dtype) { return Node("Cast", {x}, {{"to", OnnxNumber(dtype)}}); }

absl::Status Compose::Finish(std::vector<ValueId> outputs) {
  if (status_.ok()) import_.ReplaceWith(std::move(outputs));
  return status_;
}

OpDef DefineComposite(std::string name, int min_inputs, int max_inputs, int num_outputs, std::vector<AttrSpec> attrs,
                      absl::Status (*compose)(Compose&)) {
  OpDef def;
  def.name = std::move(name);
  def.min_inputs = min_inputs;
  def.max_inputs = max_inputs;
  def.num_outputs = num_outputs;
  def.attrs = std::move(attrs);
  def.normalize = [compose](ImportContext& import) {
    std::vector<const ecg::Value*> inputs;
    for (size_t i = 0; i < import.node().inputs.size(); ++i) inputs.push_back(import.input(static_cast<int>(i)));
    const OpContext context(import.node().op, import.node().name, import.node().attrs, std::move(inputs));
    RETURN_IF_ERROR(CheckSchema(*FindOp(context.op), context, static_cast<int>(import.node().outputs.size())));
    Compose composition(import);
    return compose(composition);
  };
  return def;
}

}  // namespace fusion::ops
