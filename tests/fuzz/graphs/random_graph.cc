#include "tests/fuzz/graphs/random_graph.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/ecg/text.h"
#include "compiler/ops/op_def.h"
#include "tests/fuzz/graphs/values.h"

namespace fusion::fuzz {
namespace {

using ops::InputRole;
using ops::OpDef;

constexpr int kProposals = 80;  // of inputs and attributes for one operator before another one is tried
constexpr int kMaxInputs = 8;   // of a graph, roughly

bool Drawable(const OpDef& def) { return def.infer && def.lower; }

// An operand: a value of the graph, or one that will be added if the operator takes it.
struct Operand {
  ecg::ValueId existing = ecg::kNone;
  std::optional<ecg::Value> fresh;  // a constant, or else an input of the graph
  bool absent() const { return existing == ecg::kNone && !fresh.has_value(); }
};

class Generator {
 public:
  Generator(uint64_t seed, const GraphLimits& limits) : random_(seed), limits_(limits) {
    static constexpr int64_t kExtents[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 17, 19, 31, 32, 33, 47, 64};
    for (int i = 0; i < 3; ++i) extents_.push_back(kExtents[Below(std::size(kExtents))]);
    extents_.push_back(1);
    const DType common[] = {DType::kF32, DType::kF32, DType::kF32, DType::kF32, AnyType()};
    dtypes_ = {common[Below(5)], common[Below(5)], AnyType()};
    for (const OpDef* def : ops::AllOps()) {
      if (Drawable(*def)) ops_.push_back(def);
    }
  }

  ecg::Graph Make() {
    // Small graphs more often than large ones.
    const int span = limits_.max_nodes - limits_.min_nodes + 1;
    const int wanted = limits_.min_nodes + std::min(Below(span), Below(span));
    for (int n = 1 + Below(3); n > 0; --n) Take(FreshOperand(AnyShape(), DrawType(), false));
    for (int failures = 0; static_cast<int>(graph_.nodes().size()) < wanted && failures < 4 * wanted;) {
      if (!AddNode(*ops_[Below(static_cast<int>(ops_.size()))])) ++failures;
    }
    AddOutputs();
    return std::move(graph_);
  }

 private:
  int Below(int64_t n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  int64_t Between(int64_t low, int64_t high) { return low + Below(high - low + 1); }
  bool Chance(double p) { return static_cast<double>(random_() >> 11) * 0x1p-53 < p; }
  template <typename T>
  const T& OneOf(const std::vector<T>& all) {
    return all[Below(static_cast<int64_t>(all.size()))];
  }

  DType AnyType() { return static_cast<DType>(Below(kNumDTypes)); }
  DType DrawType() { return OneOf(dtypes_); }
  int64_t Extent() { return Chance(0.005) ? 0 : Chance(0.2) ? Between(1, 5) : OneOf(extents_); }

  // ---- shapes
  Shape AnyShape() {
    Shape shape(Chance(0.4) ? 4 : Below(6));
    for (int64_t& extent : shape) extent = Extent();
    Limit(&shape);
    return shape;
  }

  // A shape that may suit an operand beside one of shape `first`: most operators relate their operands' extents.
  Shape RelatedShape(const Shape& first) {
    Shape shape = first;
    switch (Below(8)) {
      case 0:
        return shape;
      case 1:  // broadcast
        for (int64_t& extent : shape) extent = Chance(0.4) ? 1 : extent;
        shape.erase(shape.begin(), shape.begin() + Below(static_cast<int64_t>(shape.size()) + 1));
        return shape;
      case 2:
        return {};
      case 3:
        return {shape.empty() ? Extent() : OneOf(shape)};
      case 4:  // without an axis
        if (!shape.empty()) shape.erase(shape.begin() + Below(static_cast<int64_t>(shape.size())));
        return shape;
      case 5:  // one other extent
        if (!shape.empty()) shape[Below(static_cast<int64_t>(shape.size()))] = Extent();
        return shape;
      case 6:  // a few extents of the first
        shape.resize(Between(1, 4));
        break;
      default:
        break;
    }
    for (int64_t& extent : shape) {
      extent = first.empty() || Chance(0.4) ? Between(1, 4) : OneOf(first) / (Chance(0.1) ? 2 : 1);
    }
    return shape;
  }

  void Limit(Shape* shape) {
    while (NumElements(*shape) > limits_.max_elements) *std::max_element(shape->begin(), shape->end()) = Between(1, 4);
  }

  // ---- operands
  Operand FreshOperand(Shape shape, DType dtype, bool constant) {
    Limit(&shape);
    Operand operand;
    ecg::Value value;
    value.type = {dtype, shape};
    if (constant) value.constant = DrawConstant(dtype, shape);
    operand.fresh = std::move(value);
    return operand;
  }

  Tensor DrawConstant(DType dtype, const Shape& shape) {
    const uint64_t seed = random_();
    return NumElements(shape) > ecg::kMaxPrintedElements ? FilledTensor(dtype, shape, seed)
                                                         : DrawTensor(dtype, shape, seed);
  }

  Operand DataOperand(const ecg::Value* first) {
    Operand operand;
    const auto size = static_cast<int64_t>(values_.size());
    if (size > 0 && Chance(first == nullptr ? 0.95 : 0.5)) {
      // Recent values more often: deep graphs.
      operand.existing = values_[size - 1 - (Chance(0.5) ? Below(std::min<int64_t>(size, 4)) : Below(size))];
      return operand;
    }
    if (first == nullptr) return FreshOperand(AnyShape(), DrawType(), false);
    const DType dtype = Chance(0.7)   ? first->type.dtype
                        : Chance(0.5) ? (Chance(0.7) ? DType::kI64 : DType::kI32)
                                      : DrawType();
    const bool constant = Chance(graph_.inputs().size() < kMaxInputs ? 0.4 : 0.9);
    return FreshOperand(RelatedShape(first->type.shape), dtype, constant);
  }

  static Operand Ints(const std::vector<int64_t>& values) {
    Operand operand;
    ecg::Value value;
    value.type = {DType::kI64, {static_cast<int64_t>(values.size())}};
    value.constant = Tensor::From(DType::kI64, value.type.shape, values);
    operand.fresh = std::move(value);
    return operand;
  }

  // `count`: of axes and what goes along with them, in this proposal.
  Operand RoleOperand(InputRole role, const ecg::Value* first, int64_t count, DType scalar_type) {
    const Shape shape = first == nullptr ? AnyShape() : first->type.shape;
    const auto rank = static_cast<int64_t>(shape.size());
    std::vector<int64_t> values;
    switch (role) {
      case InputRole::kData:
      case InputRole::kIndices:
        break;
      case InputRole::kAxes:
        return Ints(SomeAxes(rank, count));
      case InputRole::kExtents:
        return Ints(SomeExtents(shape));
      case InputRole::kCounts:
        for (int64_t d = 0; d < rank; ++d) values.push_back(Between(1, 3));
        return Ints(values);
      case InputRole::kPads:
        for (int64_t k = 0; k < 2 * count; ++k) values.push_back(Chance(0.15) ? -1 : Below(4));
        return Ints(values);
      case InputRole::kPositions:
        for (int64_t k = 0; k < count; ++k) {
          const int64_t most = shape.empty() ? 1 : *std::max_element(shape.begin(), shape.end());
          values.push_back(Chance(0.1) ? INT64_MAX : Between(-most - 1, most + 1));
        }
        return Ints(values);
      case InputRole::kSteps:
        for (int64_t k = 0; k < count; ++k)
          values.push_back(Chance(0.6) ? 1 : Chance(0.5) ? Between(2, 3) : -Between(1, 2));
        return Ints(values);
      case InputRole::kParts:
        for (int64_t left = shape.empty() ? 1 : OneOf(shape); left > 0; left -= values.back()) {
          values.push_back(Between(1, left));
        }
        return Ints(values);
      case InputRole::kScales: {
        Operand operand = FreshOperand({rank}, DType::kF32, true);
        Tensor scales(DType::kF32, {rank});
        for (int64_t d = 0; d < rank; ++d) {
          static constexpr double kScales[] = {1, 1, 2, 0.5, 1.5, 3};
          scales.SetDouble(d, kScales[Below(std::size(kScales))]);
        }
        operand.fresh->constant = scales;
        return operand;
      }
      case InputRole::kScalar: {
        Operand operand = FreshOperand(Chance(0.7) ? Shape{} : Shape{1}, scalar_type, true);
        Tensor scalar(scalar_type, operand.fresh->type.shape);
        scalar.SetInt(0, Between(IsSigned(scalar_type) ? -3 : 0, 9));
        operand.fresh->constant = scalar;
        if (Chance(0.15)) operand.fresh->constant.reset();  // some may be known only when the graph runs
        return operand;
      }
    }
    return DataOperand(first);
  }

  std::vector<int64_t> SomeAxes(int64_t rank, int64_t count) {
    std::vector<int64_t> axes(std::max<int64_t>(rank, 1));
    std::iota(axes.begin(), axes.end(), 0);
    std::shuffle(axes.begin(), axes.end(), random_);
    axes.resize(std::min<int64_t>(count, static_cast<int64_t>(axes.size())));
    for (int64_t& axis : axes) axis -= Chance(0.3) ? rank : 0;
    return axes;
  }

  std::vector<int64_t> SomeExtents(Shape shape) {
    const int64_t elements = NumElements(shape);
    switch (Below(4)) {
      case 0: {  // the same elements, grouped otherwise
        shape.clear();
        for (int64_t left = elements; static_cast<int>(shape.size()) < limits_.max_rank;) {
          if (left <= 1 && Chance(0.7)) break;
          int64_t factor = left;
          if (left > 1 && Chance(0.7)) {
            do {
              factor = Between(1, left);
            } while (left % factor != 0);
          }
          shape.push_back(factor);
          left /= std::max<int64_t>(factor, 1);
        }
        if (!shape.empty() && Chance(0.3)) shape[Below(static_cast<int64_t>(shape.size()))] = -1;
        return shape;
      }
      case 1:  // what it broadcasts to
        for (int64_t& extent : shape) extent = extent == 1 && Chance(0.6) ? Extent() : Chance(0.2) ? 1 : extent;
        while (shape.size() < 5 && Chance(0.3)) shape.insert(shape.begin(), Extent());
        return shape;
      case 2:  // a little more or less
        for (int64_t& extent : shape) extent = std::max<int64_t>(0, extent + Between(-2, 3));
        return shape;
      default:
        return AnyShape();
    }
  }

  // ---- attributes
  std::optional<ecg::Attribute> DrawAttribute(const ops::AttrSpec& spec, int64_t rank) {
    switch (spec.kind) {
      case ops::AttrKind::kInt:
        return Chance(0.5) ? int64_t{Below(2)} : Chance(0.6) ? Between(-rank, rank) : Between(-1, 16);
      case ops::AttrKind::kFloat: {
        static constexpr double kFloats[] = {0.5, 1, 2, -1, 0.25, 0.01, 1e-5, 3};
        return kFloats[Below(std::size(kFloats))];
      }
      case ops::AttrKind::kString: {
        const std::vector<std::string>& texts = spec.choices.empty() ? spec.examples : spec.choices;
        if (texts.empty()) return std::nullopt;
        return OneOf(texts);
      }
      case ops::AttrKind::kInts: {
        // A permutation, axes, or one or two small numbers for each spatial dimension.
        if (Chance(0.35)) return SomeAxes(rank, Chance(0.7) ? rank : Between(1, std::max<int64_t>(rank, 1)));
        const bool twice = Chance(0.3);
        std::vector<int64_t> values(std::max<int64_t>(rank - 2, 1) * (twice ? 2 : 1));
        for (int64_t& value : values) value = twice ? Below(3) : Between(1, 3);
        return values;
      }
      case ops::AttrKind::kTensor:
        return DrawTensor(DrawType(), {1}, random_());
      case ops::AttrKind::kFloats:
      case ops::AttrKind::kStrings:
        return std::nullopt;
    }
    return std::nullopt;
  }

  // ---- nodes
  const ecg::Value* ValueOf(const Operand& operand) const {
    if (operand.fresh.has_value()) return &*operand.fresh;
    return operand.existing == ecg::kNone ? nullptr : &graph_.value(operand.existing);
  }

  ecg::ValueId Take(const Operand& operand) {
    if (!operand.fresh.has_value()) return operand.existing;
    const ecg::Value& value = *operand.fresh;
    const std::string name = absl::StrCat(value.constant.has_value() ? "c" : "x", graph_.values().size());
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
    const int count =
        def.max_inputs < 0 ? def.min_inputs + Below(3) : static_cast<int>(Between(def.min_inputs, def.max_inputs));
    std::vector<Operand> operands;
    int64_t some = 1;
    DType scalar_type = DrawType();
    for (int i = 0; i < count; ++i) {
      const ecg::Value* first = operands.empty() ? nullptr : ValueOf(operands[0]);
      const auto role = i < static_cast<int>(def.roles.size()) ? def.roles[i] : InputRole::kData;
      if (i >= def.min_inputs && i + 1 < count && Chance(0.4)) {
        operands.emplace_back();
      } else {
        operands.push_back(RoleOperand(role, first, some, scalar_type));
      }
      if (i > 0) continue;
      first = ValueOf(operands[0]);
      const auto rank = static_cast<int64_t>(first->type.shape.size());
      some = Chance(0.4) ? std::max<int64_t>(rank, 1) : Between(1, std::max<int64_t>(rank, 1));
      if (Chance(0.8) && (def.roles.empty() || def.roles[0] == InputRole::kData)) scalar_type = first->type.dtype;
      if (Chance(0.1)) scalar_type = DType::kI64;
    }
    const int64_t rank = operands.empty() ? 2 : static_cast<int64_t>(ValueOf(operands[0])->type.shape.size());
    ecg::Attributes attrs;
    for (const ops::AttrSpec& spec : def.attrs) {
      if (!spec.required && Chance(0.6)) continue;
      if (std::optional<ecg::Attribute> value = DrawAttribute(spec, rank)) attrs.Set(spec.name, *std::move(value));
    }
    const int num_outputs = def.num_outputs < 0 ? 1 + Below(4) : 1 + Below(def.num_outputs);

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
    // A routine's results are undefined past extents that import alone supplies.
    const bool routine = lowered.ok() && std::any_of(lowered->program.tes.begin(), lowered->program.tes.end(),
                                                     [](const te::Te& te) { return te.routine.has_value(); });
    // Constant indices out of range, say.
    if (routine || absl::IsUnimplemented(lowers) || absl::IsInvalidArgument(lowers)) {
      graph_ = std::move(before);
      values_.resize(values_before);
      return false;
    }
    values_.insert(values_.end(), outputs.begin(), outputs.end());
    return true;
  }

  bool WithinLimits(const OpDef& def, const ops::OpContext& context, const std::vector<ecg::ValueType>& types) {
    double elements = 0;
    for (const ecg::ValueType& type : types) {
      const int64_t count = NumElements(type.shape);
      if (count > limits_.max_elements || static_cast<int>(type.shape.size()) > limits_.max_rank) return false;
      if (count == 0 && !Chance(0.1)) return false;
      elements += static_cast<double>(count);
    }
    const double flops = def.flops ? def.flops(context, types) : 0;
    // A search through all inputs for each result is work too (Scatter).
    for (const ecg::Value* input : context.inputs) {
      if (input != nullptr && elements * static_cast<double>(NumElements(input->type.shape)) > 4e6) return false;
    }
    return flops <= limits_.max_flops;
  }

  void AddOutputs() {
    for (ecg::ValueId id = 0; id < static_cast<int>(graph_.values().size()); ++id) {
      const ecg::Value& value = graph_.value(id);
      if (value.producer == ecg::kNone) continue;
      if (value.consumers.empty() || Chance(0.12)) graph_.AddOutput(id, value.name);
    }
  }

  std::mt19937_64 random_;
  const GraphLimits limits_;
  std::vector<int64_t> extents_;  // of this graph, few so that operands match
  std::vector<DType> dtypes_;
  std::vector<const OpDef*> ops_;
  ecg::Graph graph_;
  std::vector<ecg::ValueId> values_;  // that may be operands
};

}  // namespace

ecg::Graph RandomGraph(uint64_t seed, const GraphLimits& limits) { return Generator(seed, limits).Make(); }

void CountOperators(const ecg::Graph& graph, std::map<std::string, int>* counts) {
  if (counts->empty()) {
    for (const OpDef* def : ops::AllOps()) {
      if (Drawable(*def)) (*counts)[def->name] = 0;
    }
  }
  for (const ecg::Node& node : graph.nodes()) ++(*counts)[node.op];
}

}  // namespace fusion::fuzz
