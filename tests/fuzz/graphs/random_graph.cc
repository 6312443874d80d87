#include "tests/fuzz/graphs/random_graph.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/ecg/text.h"
#include "compiler/ops/registry/infer_types.h"
#include "compiler/ops/registry/op_def.h"
#include "tests/fuzz/graphs/drawing.h"
#include "tests/fuzz/graphs/fitting.h"
#include "tests/fuzz/graphs/values.h"

namespace fusion::fuzz {
namespace {

using ops::InputRole;
using ops::OpDef;

constexpr int kProposals = 80;  // of inputs and attributes for one operator before another operator is tried
constexpr int kMaxInputs = 8;   // approximately, for a graph

bool Drawable(const OpDef& def) { return def.infer && def.lower; }

// Returns the number of terms that the interpreter evaluates.
double Work(const te::Program& program) {
  double work = 0;
  for (const te::Te& te : program.tes) {
    double terms = 1;
    for (const te::Axis& axis : te.axes) terms *= static_cast<double>(axis.extent);
    if (te.reduction) {
      for (const te::Axis& axis : te.reduction->axes) terms *= static_cast<double>(axis.extent);
    }
    work += terms;
  }
  return work;
}

// An operand: an existing value of the graph, or a new one that is added if the operator accepts it.
struct Operand {
  ecg::ValueId existing = ecg::kNone;
  std::optional<ecg::Value> fresh;  // a constant, or else an input of the graph
  std::string suffix = "";          // of the input's name: tells what its elements are (values.h)
  bool absent() const { return existing == ecg::kNone && !fresh.has_value(); }
};

class Generator {
 public:
  Generator(uint64_t seed, const GraphLimits& limits) : draw_(seed, limits), limits_(limits) {
    for (const OpDef* def : ops::AllOps()) {
      const std::vector<std::string>& routines = DataDependentOps();
      if (Drawable(*def) && std::find(routines.begin(), routines.end(), def->name) == routines.end())
        ops_.push_back(def);
    }
  }

  ecg::Graph Make() {
    const int wanted = draw_.NodeCount();
    for (int n = 1 + draw_.Below(3); n > 0; --n) Take(FreshOperand(draw_.AnyShape(), draw_.DrawType(), false));
    for (int failures = 0; static_cast<int>(graph_.nodes().size()) < wanted && failures < 4 * wanted;) {
      if (!AddNode(*ops_[draw_.Below(static_cast<int>(ops_.size()))])) ++failures;
    }
    AddOutputs();
    return std::move(graph_);
  }

 private:
  // ---- operands
  Operand FreshOperand(Shape shape, DType dtype, bool constant) {
    draw_.Limit(&shape);
    Operand operand;
    ecg::Value value;
    value.type = {dtype, shape};
    if (constant) value.constant = DrawConstant(dtype, shape);
    operand.fresh = std::move(value);
    return operand;
  }

  Tensor DrawConstant(DType dtype, const Shape& shape) {
    const uint64_t seed = draw_.Bits();
    return NumElements(shape) > ecg::kMaxPrintedElements ? FilledTensor(dtype, shape, seed)
                                                         : DrawTensor(dtype, shape, seed);
  }

  Operand DataOperand(const ecg::Value* first) {
    Operand operand;
    const auto size = static_cast<int64_t>(values_.size());
    if (size > 0 && draw_.Chance(first == nullptr ? 0.95 : 0.5)) {
      // Prefers recent values, so that graphs become deep.
      operand.existing =
          values_[size - 1 - (draw_.Chance(0.5) ? draw_.Below(std::min<int64_t>(size, 4)) : draw_.Below(size))];
      return operand;
    }
    if (first == nullptr) return FreshOperand(draw_.AnyShape(), draw_.DrawType(), false);
    const DType dtype = draw_.Chance(0.7)   ? first->type.dtype
                        : draw_.Chance(0.5) ? (draw_.Chance(0.7) ? DType::kI64 : DType::kI32)
                                            : draw_.DrawType();
    const bool constant = draw_.Chance(graph_.inputs().size() < kMaxInputs ? 0.4 : 0.9);
    return FreshOperand(draw_.RelatedShape(first->type.shape), dtype, constant);
  }

  Operand Known(Tensor constant) {
    Operand operand;
    operand.fresh.emplace();
    operand.fresh->type = {constant.dtype(), constant.shape()};
    operand.fresh->constant = std::move(constant);
    return operand;
  }

  Operand RoleOperand(InputRole role, const ecg::Value* first, int64_t count, DType scalar_type) {
    const Shape shape = first == nullptr ? draw_.AnyShape() : first->type.shape;
    std::optional<Tensor> value = draw_.RoleValue(role, shape, count, scalar_type);
    if (!value) return DataOperand(first);
    Operand operand = Known(*std::move(value));
    // Some scalars are inputs, known only when the graph runs.
    if (role == InputRole::kScalar && draw_.Chance(0.15)) operand.fresh->constant.reset();
    return operand;
  }

  // Returns an operand that must fit others: an existing value of that type, if there is one, or a new one.
  Operand FittingOperand(FittingSpec spec) {
    if (spec.absent) return {};
    if (spec.value) return Known(*std::move(spec.value));
    for (const ecg::ValueId id : values_) {
      if (spec.suffix.empty() && graph_.value(id).type == spec.type && draw_.Chance(0.5)) {
        Operand operand;
        operand.existing = id;
        return operand;
      }
    }
    const bool constant = spec.suffix.empty() && draw_.Chance(graph_.inputs().size() < kMaxInputs ? 0.4 : 0.9);
    Operand operand = FreshOperand(spec.type.shape, spec.type.dtype, constant);
    operand.suffix = spec.suffix;
    return operand;
  }

  // ---- nodes
  const ecg::Value* ValueOf(const Operand& operand) const {
    if (operand.fresh.has_value()) return &*operand.fresh;
    return operand.existing == ecg::kNone ? nullptr : &graph_.value(operand.existing);
  }

  ecg::ValueId Take(const Operand& operand) {
    if (!operand.fresh.has_value()) return operand.existing;
    const ecg::Value& value = *operand.fresh;
    const std::string name =
        absl::StrCat(value.constant.has_value() ? "c" : "x", graph_.values().size(), operand.suffix);
    if (value.constant.has_value()) return graph_.AddConstant(name, *value.constant);
    values_.push_back(graph_.AddInput(name, value.type));
    return values_.back();
  }

  bool AddNode(const OpDef& def) {
    for (int attempt = 0; attempt < kProposals; ++attempt) {
      if (Propose(def)) return true;
    }
    return false;
  }

  bool Propose(const OpDef& def) {
    const int count = def.max_inputs < 0 ? def.min_inputs + draw_.Below(3)
                                         : static_cast<int>(draw_.Between(def.min_inputs, def.max_inputs));
    std::vector<Operand> operands;
    ecg::Attributes attrs;
    std::optional<Fitting> fitting;
    if (draw_.Chance(0.8)) fitting = FittingOperands(def.name, &draw_);
    if (fitting) {
      for (FittingSpec& spec : fitting->operands) operands.push_back(FittingOperand(std::move(spec)));
      attrs = fitting->attrs;
    }
    int64_t some = 1;
    DType scalar_type = draw_.DrawType();
    for (int i = 0; i < count && !fitting; ++i) {
      const ecg::Value* first = operands.empty() ? nullptr : ValueOf(operands[0]);
      const auto role = i < static_cast<int>(def.roles.size()) ? def.roles[i] : InputRole::kData;
      if (i >= def.min_inputs && i + 1 < count && draw_.Chance(0.4)) {
        operands.emplace_back();
      } else {
        operands.push_back(RoleOperand(role, first, some, scalar_type));
      }
      if (i > 0) continue;
      first = ValueOf(operands[0]);
      const auto rank = static_cast<int64_t>(first->type.shape.size());
      some = draw_.Chance(0.4) ? std::max<int64_t>(rank, 1) : draw_.Between(1, std::max<int64_t>(rank, 1));
      if (draw_.Chance(0.8) && (def.roles.empty() || def.roles[0] == InputRole::kData)) scalar_type = first->type.dtype;
      if (draw_.Chance(0.1)) scalar_type = DType::kI64;
    }
    const int64_t rank = operands.empty() ? 2 : static_cast<int64_t>(ValueOf(operands[0])->type.shape.size());
    for (const ops::AttrSpec& spec : def.attrs) {
      if (attrs.Has(spec.name) || (fitting && draw_.Chance(0.5))) continue;
      if (!spec.required && draw_.Chance(0.6)) continue;
      if (std::optional<ecg::Attribute> value = draw_.DrawAttribute(spec, rank))
        attrs.Set(spec.name, *std::move(value));
    }
    const int num_outputs = def.num_outputs < 0 ? 1 + draw_.Below(4) : 1 + draw_.Below(def.num_outputs);

    std::vector<const ecg::Value*> inputs;
    inputs.reserve(operands.size());
    for (const Operand& operand : operands) inputs.push_back(ValueOf(operand));
    const std::string name;
    const ops::OpContext context(def.name, name, attrs, inputs);
    const auto types = ops::InferTypes(context, num_outputs);
    if (!types.ok() || !WithinLimits(def, context, *types)) return false;

    ecg::Graph before = graph_;
    const size_t values_before = values_.size();
    std::vector<ecg::ValueId> ids;
    for (const Operand& operand : operands) ids.push_back(Take(operand));
    std::vector<std::string> names;
    for (size_t o = 0; o < types->size(); ++o)
      names.push_back(absl::StrCat("v", graph_.nodes().size(), o > 0 ? absl::StrCat("_", o) : ""));
    const ecg::NodeId node = graph_.AddNode(def.name, "", ids, attrs, *types, names);
    const std::vector<ecg::ValueId> outputs = graph_.node(node).outputs;
    const auto lowered = ops::LowerNodes(graph_, {node}, outputs);
    const absl::Status& lowers = lowered.status();
    // The extents of a routine's results depend on data, and only import supplies them. Models draw such operators
    // instead.
    const bool routine = lowered.ok() && std::any_of(lowered->program.tes.begin(), lowered->program.tes.end(),
                                                     [](const te::Te& te) { return te.routine.has_value(); });
    const bool costly = lowered.ok() && Work(lowered->program) > limits_.max_work;
    // InvalidArgument: for example, constant indices are out of range.
    if (routine || costly || absl::IsUnimplemented(lowers) || absl::IsInvalidArgument(lowers)) {
      graph_ = std::move(before);
      values_.resize(values_before);
      return false;
    }
    values_.insert(values_.end(), outputs.begin(), outputs.end());
    return true;
  }

  bool WithinLimits(const OpDef& def, const ops::OpContext& context, const std::vector<ecg::ValueType>& types) {
    for (const ecg::ValueType& type : types) {
      const int64_t count = NumElements(type.shape);
      if (count > limits_.max_elements || static_cast<int>(type.shape.size()) > limits_.max_rank) return false;
      if (count == 0 && !draw_.Chance(0.1)) return false;
    }
    const double flops = def.flops ? def.flops(context, types) : 0;
    return flops <= limits_.max_flops;
  }

  void AddOutputs() {
    for (ecg::ValueId id = 0; id < static_cast<int>(graph_.values().size()); ++id) {
      const ecg::Value& value = graph_.value(id);
      if (value.producer == ecg::kNone) continue;
      if (value.consumers.empty() || draw_.Chance(0.12)) graph_.AddOutput(id, value.name);
    }
  }

  Drawing draw_;
  const GraphLimits limits_;
  std::vector<const OpDef*> ops_;
  ecg::Graph graph_;
  std::vector<ecg::ValueId> values_;  // values that may become operands
};

}  // namespace

ecg::Graph RandomGraph(uint64_t seed, const GraphLimits& limits) { return Generator(seed, limits).Make(); }

void CountOperators(const ecg::Graph& graph, std::map<std::string, int>* counts) {
  if (counts->empty()) {
    for (const OpDef* def : ops::AllOps()) (*counts)[def->name] = 0;
  }
  for (const ecg::Node& node : graph.nodes()) ++(*counts)[node.op];
}

}  // namespace fusion::fuzz
