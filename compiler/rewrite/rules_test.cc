// Every rule is checked against the interpreter on graphs made from its own pattern: random operands, shapes and
// attributes, kept when types infer and the rule fires. A rule that never fires is an error, as is one that saves
// nothing.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ecg/interpret.h"
#include "compiler/ops/op_def.h"
#include "compiler/rewrite/engine.h"
#include "compiler/rewrite/functions.h"
#include "compiler/rewrite/rule.h"
#include "compiler/simplify/passes.h"
#include "runtime/base/status_macros.h"

namespace fusion::rewrite {
namespace {

constexpr int kAttempts = 120000;
constexpr int kWantedFirings = 20;

using Random = std::mt19937;

template <typename T>
const T& Pick(const std::vector<T>& from, Random* random) {
  return from[(*random)() % from.size()];
}

// Shapes that an input is tried with, and which inputs are lists of integers.
struct Menu {
  std::vector<Shape> shapes;
  std::vector<Ints> lists = {};
  DType dtype = DType::kF32;  // kF32: the type of the graph
  std::vector<std::vector<double>> factors = {};
};

Menu MenuFor(const std::string& op, size_t input) {
  if (op == "Conv" || op == "ConvTranspose") {
    if (input == 0) return {{{2, 2, 5, 4}, {1, 4, 3, 3}, {1, 2, 6}}};
    if (input == 1)
      return {{{3, 2, 3, 3},
               {4, 2, 2, 2},
               {2, 2, 1, 3},
               {2, 3, 2, 2},
               {3, 2, 3},
               {2, 3, 3},
               {3, 2, 1, 1},
               {2, 4, 1, 1},
               {2, 2, 1}}};
    return {{{2}, {3}, {4}}};
  }
  if (op == "DequantizeLinear" || op == "QuantizeLinear") {
    if (input == 0 && op == "QuantizeLinear") return {{{2, 3}, {3}}};
    if (input == 0) return {{{1, 4, 3, 3}, {3, 4, 2, 2}, {2, 3}, {3, 2}, {3, 3}}, {}, DType::kU8};
    return {{{}, {}, {3}, {2}}, {}, input == 2 ? DType::kU8 : DType::kF32};
  }
  if (op == "MatMulInteger") {
    // Deep and wide enough that a zero point costs more than its correction.
    if (input == 0) return {{{2, 3}, {3, 3}, {4, 24}, {2, 3, 24}}, {}, DType::kI8};
    if (input == 1) return {{{3, 2}, {2, 3, 3}, {24, 12}, {2, 24, 12}}, {}, DType::kI8};
    return {{{}, {3}, {12}, {1}}, {}, DType::kI8};
  }
  if (op == "ConvInteger") {
    if (input == 0) return {{{2, 4, 5, 4}, {1, 4, 3, 3}, {1, 2, 6}}, {}, DType::kI8};
    if (input == 1) return {{{3, 4, 3, 3}, {4, 2, 2, 2}, {2, 4, 1, 3}, {3, 2, 3}}, {}, DType::kI8};
    return {{{}, {3}, {1}}, {}, DType::kI8};
  }
  if (op == "BatchNormalization" && input > 0) return {{{2}, {3}, {4}}};
  if (op == "Gemm") return input < 2 ? Menu{{{2, 3}, {3, 2}, {3, 3}}} : Menu{{{2}, {3}, {}, {2, 1}, {2, 3}}};
  if (op == "MatMul") return {{{2, 3}, {3, 2}, {2, 2, 3}, {3, 3}, {2, 3, 3}}};
  if (op == "Transpose") return {{{2, 3}, {2, 3, 4}, {24, 3}, {48, 3}}};
  if (op == "Reshape" || op == "Flatten" || op == "Squeeze" || op == "Unsqueeze") {
    if (input == 0) return {{{2, 3}, {1, 6}, {2, 1, 3}}};
    return {{}, {{2, 3}, {3, 2}, {-1}, {1, 6}, {0}, {1}}};
  }
  if (op.substr(0, 6) == "Reduce") {
    if (input == 1) return {{}, {{0}, {1}, {-1}, {0, 1}}};
    return {{{2, 3}, {3, 2, 2}, {4}}};
  }
  if (op == "ArgMax" || op == "ArgMin" || op == "Concat") return {{{2, 3}, {3, 2, 2}, {4}}};
  if (op == "LayerNormalization") return input == 0 ? Menu{{{2, 3}, {2, 4, 3}}} : Menu{{{3}}};
  if (op == "InstanceNormalization") return input == 0 ? Menu{{{2, 3, 4}, {1, 2, 3, 3}}} : Menu{{{2}, {3}}};
  if (op == "AveragePool" || op == "GlobalAveragePool") return {{{1, 2, 4, 4}, {2, 3, 5}}};
  if (op == "SpaceToDepth") return {{{1, 3, 4, 4}, {2, 1, 2, 4}}};
  if (op == "DepthToSpace") return {{{1, 4, 3, 2}, {2, 8, 1, 1}}};
  if (op == "Resize") {
    if (input == 0) return {{{2, 3}, {1, 2, 3, 2}}};
    if (input == 2) return {{}, {}, DType::kF32, {{1, 2}, {2, 1.5}, {1, 1, 2, 2}}};
    return {{}, {{4, 3}, {1, 2, 6, 4}}};
  }
  if (op == "Tile") return input == 0 ? Menu{{{3}, {2, 3}}} : Menu{{}, {{2}, {2, 1}, {1, 3}}};
  if (op == "Slice") {
    const std::vector<Ints> lists[] = {{}, {{0}, {1}}, {{2}, {-1}}, {{1}, {0}}, {{1}, {2}}};
    return {{{2, 3}, {4}, {3, 4, 2}}, lists[input]};
  }
  if (op == "Expand")
    return input == 0 ? Menu{{{3}, {2, 1}, {1, 3}, {}}} : Menu{{}, {{2, 3}, {4, 2, 3}, {3}, {1, 2, 3}, {2, 2, 3}}};
  if (op == "Gather") return input == 0 ? Menu{{{4, 3}, {3}, {3, 2, 2}}} : Menu{{}, {{0}, {1}, {2, 0}}};
  if (op == "Where") return {{{3}, {2, 3}, {2, 1}}, {}, input == 0 ? DType::kBool : DType::kF32};
  if (op == "Clip" && input > 0) return {{{}}};
  if (op == "MaxPool" || op == "GlobalMaxPool") return {{{1, 2, 4, 4}, {2, 1, 5}}};
  if (op == "Softmax" || op == "LogSoftmax") return {{{2, 3}, {3, 4, 2}, {5}}};
  if (op == "Pad") {
    if (input == 0) return {{{1, 2, 4, 4}, {2, 3}}};
    return {
        {},
        {{0, 1, 1, 0}, {1, 1, 0, 2}, {0, 0, 1, 1, 0, 0, 1, 1}, {0, 0, 0, 2, 0, 0, 1, 0}, {0, 0, -1, 0, 0, 0, 0, 0}}};
  }
  if (op == "Sub") return {{{2, 3}, {3}, {2, 1}, {}, {2, 3, 2}, {1, 2, 4, 4}, {2, 1, 5}, {2, 1, 1}}};
  return {{{}, {3}, {2, 3}, {2, 1}, {1, 3}, {1, 3, 1}, {3, 1, 1}, {1, 3, 1, 1}, {2, 3, 2, 2}, {2, 3, 3}}};
}

std::vector<ecg::Attributes> AttrsFor(const std::string& op) {
  const auto make = [](const std::vector<std::pair<std::string, ecg::Attribute>>& entries) {
    ecg::Attributes attrs;
    for (const auto& [name, value] : entries) attrs.Set(name, value);
    return attrs;
  };
  const auto one = [](int64_t i) { return ecg::Attribute(i); };
  if (op == "Transpose") {
    return {make({}),
            make({{"perm", Ints{1, 0}}}),
            make({{"perm", Ints{0, 1}}}),
            make({{"perm", Ints{2, 0, 1}}}),
            make({{"perm", Ints{1, 2, 0}}}),
            make({{"perm", Ints{0, 2, 1}}})};
  }
  if (op == "Conv" || op == "ConvInteger")
    return {make({}), make({{"group", one(2)}}), make({{"strides", Ints{2, 1}}}), make({{"pads", Ints{1, 0, 0, 1}}})};
  if (op == "DequantizeLinear") return {make({}), make({{"axis", one(0)}})};
  if (op == "ConvTranspose") return {make({}), make({{"strides", Ints{2, 1}}})};
  if (op == "BatchNormalization") return {make({}), make({{"epsilon", 0.01}})};
  if (op == "Gemm") {
    return {make({}), make({{"transB", one(1)}}), make({{"alpha", 0.5}, {"beta", 2.0}}),
            make({{"transA", one(1)}, {"beta", 0.5}, {"transB", one(1)}})};
  }
  if (op == "MaxPool")
    return {make({{"kernel_shape", Ints{2, 2}}}),
            make({{"kernel_shape", Ints{3}}, {"strides", Ints{2}}, {"pads", Ints{1, 1}}})};
  if (op == "AveragePool")
    return {
        make({{"kernel_shape", Ints{2, 2}}}), make({{"kernel_shape", Ints{2, 2}}, {"pads", Ints{1, 0, 0, 1}}}),
        make({{"kernel_shape", Ints{3}}, {"strides", Ints{2}}, {"pads", Ints{1, 1}}, {"count_include_pad", one(1)}})};
  if (op == "Concat") return {make({{"axis", one(0)}}), make({{"axis", one(1)}}), make({{"axis", one(-1)}})};
  if (op == "ArgMax" || op == "ArgMin")
    return {make({}), make({{"axis", one(1)}}), make({{"axis", one(-1)}, {"keepdims", one(0)}}),
            make({{"select_last_index", one(1)}})};
  if (op == "LogSoftmax" || op == "Softmax") return {make({}), make({{"axis", one(0)}}), make({{"axis", one(1)}})};
  if (op == "LayerNormalization") return {make({}), make({{"axis", one(1)}}), make({{"epsilon", 0.01}})};
  if (op == "Cast")
    return {make({{"to", one(1)}}), make({{"to", one(11)}}), make({{"to", one(6)}}), make({{"to", one(9)}})};
  if (op == "SpaceToDepth" || op == "DepthToSpace") return {make({{"blocksize", one(2)}})};
  if (op == "Resize") {
    std::vector<ecg::Attributes> all;
    for (const char* mode : {"nearest", "linear", "cubic"}) {
      for (const char* coordinates : {"half_pixel", "asymmetric", "align_corners", "tf_crop_and_resize"}) {
        all.push_back(
            make({{"mode", std::string(mode)}, {"coordinate_transformation_mode", std::string(coordinates)}}));
      }
    }
    return all;
  }
  if (op == "LeakyRelu" || op == "Elu") return {make({}), make({{"alpha", 0.3}})};
  if (op == "HardSigmoid") return {make({}), make({{"alpha", 0.1666666716337204}})};
  if (op == "Gather") return {make({}), make({{"axis", one(1)}})};
  if (op == "Pad")
    return {make({}), make({{"mode", std::string("constant")}}), make({{"mode", std::string("edge")}}),
            make({{"mode", std::string("reflect")}})};
  if (op.substr(0, 6) == "Reduce") return {make({}), make({{"keepdims", one(0)}}), make({{"keepdims", one(1)}})};
  return {make({})};
}

// What operands are like. Exact rules meet everything at once; what others promise, they promise of real numbers, so
// they meet one kind at a time, in double precision, where a product of huge numbers is still one.
enum class Kind { kTame, kHuge, kTiny, kZeros, kInfinities, kNaNs };
constexpr Kind kKinds[] = {Kind::kTame,  Kind::kHuge, Kind::kTame,       Kind::kTiny, Kind::kTame,
                           Kind::kZeros, Kind::kTame, Kind::kInfinities, Kind::kTame, Kind::kNaNs};

double Draw(MathClass math_class, Kind kind, Random* random) {
  const double unit = std::uniform_real_distribution<double>(-1, 1)(*random);
  const double inf = std::numeric_limits<double>::infinity();
  if (math_class == MathClass::kExact) {
    return Pick<double>(
        {unit, unit * 100, unit * 1e30, unit * 1e-30, 1e-42, 0.0, -0.0, 3e38, -3e38, inf, -inf, std::nan("")}, random);
  }
  const bool defined = math_class == MathClass::kNeedsDomain;  // where roots and logarithms are
  const double sign = unit < 0 && !defined ? -1 : 1;
  const double tame =
      sign * Pick<double>({std::abs(unit) * 3 + 0.1, 1.0, std::abs(unit) * (defined ? 100 : 30) + 1}, random);
  const bool rarely = (*random)() % 4 == 0;
  switch (kind) {
    case Kind::kTame:
      break;
    case Kind::kHuge:
      return sign * Pick<double>({3e38, std::abs(unit) * 1e38, std::abs(unit) * 1e37}, random);
    case Kind::kTiny:
      return sign * Pick<double>({1e-42, std::abs(unit) * 1e-38, 1e-45}, random);
    case Kind::kZeros:
      return rarely ? sign * 0.0 : tame;
    case Kind::kInfinities:
      return rarely ? sign * inf : tame;
    case Kind::kNaNs:
      return rarely ? std::nan("") : tame;
  }
  return tame;
}

// A graph that computes the pattern; an error when the choices do not fit together.
class Generator {
 public:
  Generator(const Rule& rule, Kind kind, Random* random) : rule_(rule), kind_(kind), random_(random) {
    dtype_ = Pick<DType>({DType::kF32, DType::kF32, DType::kF32, DType::kI32, DType::kU32, DType::kBool}, random_);
    if (kind != Kind::kTame && dtype_ == DType::kF32 && (*random)() % 4 != 0) dtype_ = DType::kF64;
    values_.assign(rule.variables.size(), kUnset);
  }

  absl::StatusOr<ecg::Graph> Make() {
    ASSIGN_OR_RETURN(const ecg::ValueId root, Build(rule_.pattern, "", 0));
    graph_.AddOutput(root, "y");
    return std::move(graph_);
  }

 private:
  static constexpr ecg::ValueId kUnset = -2;

  Tensor Filled(DType dtype, Shape shape) {
    Tensor tensor(dtype, std::move(shape));
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      if (IsFloat(dtype)) {
        tensor.SetDouble(i, Draw(rule_.math_class, kind_, random_));
      } else {
        // Shift counts beyond the word length mean nothing.
        const bool any = (*random_)() % 4 == 0 && rule_.id != "sum-shift";
        tensor.SetInt(i, static_cast<int64_t>(any ? (*random_)() : (*random_)() % 12));
      }
    }
    return tensor;
  }

  absl::StatusOr<ecg::ValueId> Build(const Term& term, const std::string& op, size_t input) {
    if (term.kind == Term::Kind::kAbsent) return ecg::kNone;
    if (term.kind == Term::Kind::kNumber) {
      const DType dtype = MenuFor(op, input).dtype;
      return graph_.AddConstant("n", Tensor::From<double>(dtype == DType::kF32 ? dtype_ : dtype,
                                                          Pick<Shape>({{}, {1}}, random_), {term.number}));
    }
    if (term.kind == Term::Kind::kVariable) {
      if (values_[term.slot] == kUnset) values_[term.slot] = Leaf(term, op, input);
      return values_[term.slot];
    }
    ecg::Node node;
    node.op = Pick(term.ops, random_);
    if (term.attrs_slot >= 0 || term.ignore_attrs) node.attrs = Pick(AttrsFor(node.op), random_);
    if (term.attrs_slot >= 0) node.attrs = attrs_.emplace(term.attrs_slot, node.attrs).first->second;
    if (node.op == "Flatten") node.attrs.Set("axis", int64_t{1});
    for (const auto& [name, value] : term.attrs) {
      if (value.kind == Term::Kind::kString) node.attrs.Set(name, value.text);
      if (value.kind == Term::Kind::kNumber) node.attrs.Set(name, static_cast<int64_t>(value.number));
    }
    for (size_t i = 0; i < term.args.size(); ++i) {
      ASSIGN_OR_RETURN(const ecg::ValueId id, Build(term.args[i], node.op, i));
      node.inputs.push_back(id);
    }
    while (!node.inputs.empty() && node.inputs.back() == ecg::kNone) node.inputs.pop_back();
    ASSIGN_OR_RETURN(const auto types, ops::InferTypes(ops::MakeContext(graph_, node), 1));
    const ecg::NodeId id = graph_.AddNode(node.op, node.op, node.inputs, node.attrs, types);
    if (term.slot >= 0) values_[term.slot] = graph_.node(id).outputs[0];
    return graph_.node(id).outputs[0];
  }

  ecg::ValueId Leaf(const Term& term, const std::string& op, size_t input) {
    if (term.optional && (*random_)() % 2 == 0) return ecg::kNone;
    const Menu menu = MenuFor(op, input);
    if (!menu.factors.empty()) {
      const std::vector<double>& factors = Pick(menu.factors, random_);
      return graph_.AddConstant("factors",
                                Tensor::From<double>(DType::kF32, {static_cast<int64_t>(factors.size())}, factors));
    }
    if (!menu.lists.empty()) {
      const Ints& list = Pick(menu.lists, random_);
      return graph_.AddConstant("list", Tensor::From(DType::kI64, {static_cast<int64_t>(list.size())}, list));
    }
    // Parameters are mostly scalars or vectors.
    const bool small = term.constant && menu.shapes.size() > 6 && (*random_)() % 2 == 0;
    const bool alike = !small && !shapes_.empty() && (*random_)() % 2 == 0;
    const Shape shape = small ? Pick<Shape>({{}, {3}}, random_) : Pick(alike ? shapes_ : menu.shapes, random_);
    shapes_.push_back(shape);
    const DType dtype = menu.dtype == DType::kF32 ? dtype_ : menu.dtype;
    if (!term.constant) return graph_.AddInput(term.text, {dtype, shape});
    Tensor tensor = Filled(dtype, shape);
    if (op == "BatchNormalization" && input == 4) {  // a variance
      for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.SetDouble(i, std::abs(tensor.GetDouble(i)));
    }
    return graph_.AddConstant(term.text, tensor);
  }

  const Rule& rule_;
  const Kind kind_;
  Random* random_;
  DType dtype_;
  ecg::Graph graph_;
  std::vector<ecg::ValueId> values_;
  std::map<int, ecg::Attributes> attrs_;  // by slot
  std::vector<Shape> shapes_;             // of operands so far

 public:
  Tensor Operand(const ecg::ValueType& type) { return Filled(type.dtype, type.shape); }
};

// The same graph with every intermediate result as an output behind its own.
ecg::Graph Opened(const ecg::Graph& graph) {
  ecg::Graph open = graph;
  for (const ecg::Node& node : graph.nodes()) {
    if (!open.IsOutput(node.outputs[0])) open.AddOutput(node.outputs[0], "t");
  }
  return open;
}

double LargestMagnitude(const std::vector<Tensor>& tensors, bool* finite) {
  double largest = 0;
  for (const Tensor& tensor : tensors) {
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      const double magnitude = std::abs(tensor.GetDouble(i));
      if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
      *finite = *finite && std::isfinite(magnitude);
    }
  }
  return largest;
}

// `trace`: what the original graph computes, its output first.
void ExpectEqual(const std::vector<Tensor>& trace, const Tensor& got, MathClass math_class, Kind kind,
                 const std::string& where) {
  const Tensor& wanted = trace[0];
  ASSERT_EQ(wanted.shape(), got.shape()) << where;
  if (math_class == MathClass::kExact) {
    for (int64_t i = 0; i < wanted.num_elements(); ++i) {
      const double a = wanted.GetDouble(i), b = got.GetDouble(i);
      if (std::isnan(a) && std::isnan(b)) continue;
      ASSERT_TRUE(a == b && std::signbit(a) == std::signbit(b))
          << where << " element " << i << ": " << a << " became " << b;
    }
    return;
  }
  bool finite = true;
  double largest = LargestMagnitude(trace, &finite);
  const bool given = kind == Kind::kInfinities || kind == Kind::kNaNs;  // what is not finite was not finite before
  if (!finite && !given && kind != Kind::kTame) return;                 // an overflow, or no real number
  const bool is_integer = !IsFloat(wanted.dtype());
  if (is_integer && kind != Kind::kTame) return;  // a comparison of numbers that rounded alike
  if ((kind == Kind::kHuge || kind == Kind::kTiny) && wanted.dtype() != DType::kF64) return;  // out of range on the way
  if (kind == Kind::kTame) largest = LargestMagnitude({wanted}, &finite) + 1;
  const double tolerance = is_integer ? 0 : (wanted.dtype() == DType::kF64 ? 1e-9 : 2e-5) * largest;
  for (int64_t i = 0; i < wanted.num_elements(); ++i) {
    const double a = wanted.GetDouble(i), b = got.GetDouble(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (!std::isfinite(a) && math_class == MathClass::kNeedsDomain) continue;  // not defined
    if (kind == Kind::kInfinities && !std::isfinite(a)) continue;
    ASSERT_LE(std::abs(a - b), tolerance) << where << " element " << i << ": " << a << " became " << b;
  }
}

// FLOPs, bytes read and written, operators: of whole graphs, by the registry and not by the engine.
std::array<double, 3> CostOfGraph(const ecg::Graph& graph) {
  std::array<double, 3> cost{};
  for (const ecg::Node& node : graph.nodes()) {
    if (node.op == "Identity") continue;  // an input that is an output
    cost[0] += ops::NodeFlops(graph, node);
    std::set<ecg::ValueId> values(node.inputs.begin(), node.inputs.end());
    values.insert(node.outputs.begin(), node.outputs.end());
    for (ecg::ValueId id : values) {
      if (id == ecg::kNone) continue;
      const ecg::ValueType& type = graph.value(id).type;
      cost[1] += static_cast<double>(NumElements(type.shape) * DTypeBytes(type.dtype));
    }
    cost[2] += 1;
  }
  return cost;
}

// Nodes over constants are the constant folding's, before and after.
ecg::Graph WithoutKnownNodes(const ecg::Graph& graph) { return simplify::RemoveDead(simplify::FoldConstants(graph)); }

std::string ShapesOf(const ecg::Graph& graph) {
  std::string shapes;
  for (const ecg::Value& value : graph.values()) {
    if (value.producer == ecg::kNone) absl::StrAppend(&shapes, absl::StrJoin(value.type.shape, "x"), " ");
  }
  return shapes;
}

class EveryRule : public ::testing::TestWithParam<Rule> {};

TEST_P(EveryRule, KeepsTheValueAndSaves) {
  const Rule& rule = GetParam();
  Random random(17);
  int firings = 0, helped = 0;
  std::set<std::string> shapes;
  for (int attempt = 0; attempt < kAttempts && firings < kWantedFirings; ++attempt) {
    const Kind kind = kKinds[firings % std::size(kKinds)];
    Generator generator(rule, kind, &random);
    const absl::StatusOr<ecg::Graph> graph = generator.Make();
    if (!graph.ok()) continue;
    const absl::StatusOr<Result> rewritten = RewriteWith(*graph, {rule}, {});
    ASSERT_TRUE(rewritten.ok()) << rewritten.status() << "\n" << ecg::Print(*graph);
    if (rewritten->firings.empty()) continue;
    std::vector<Tensor> inputs;
    for (ecg::ValueId id : graph->inputs()) inputs.push_back(generator.Operand(graph->value(id).type));
    const auto trace = ecg::Interpret(Opened(*graph), inputs), got = ecg::Interpret(rewritten->graph, inputs);
    if (!trace.ok()) continue;  // an index outside
    ASSERT_TRUE(got.ok()) << got.status() << "\n" << ecg::Print(rewritten->graph);
    const std::string where = ecg::Print(*graph) + "became\n" + ecg::Print(rewritten->graph);
    ExpectEqual(*trace, got->at(0), rule.math_class, kind, where);
    if (HasFatalFailure()) return;
    ++firings;
    shapes.insert(ShapesOf(*graph));
    std::array<double, 3> before = CostOfGraph(WithoutKnownNodes(*graph)),
                          after = CostOfGraph(WithoutKnownNodes(rewritten->graph));
    if (rule.composite) std::swap(before[0], before[2]), std::swap(after[0], after[2]);
    helped += after < before ? 1 : 0;
  }
  EXPECT_GE(firings, static_cast<int>(std::size(kKinds)))
      << rule.where << " '" << rule.id << "' never fires, or hardly";
  EXPECT_GE(helped, 1) << rule.where << " '" << rule.id << "' saves nothing in any graph";
  EXPECT_GE(shapes.size(), 2u) << rule.where << " '" << rule.id << "' fires at one shape only";
}

INSTANTIATE_TEST_SUITE_P(Rules, EveryRule, ::testing::ValuesIn(BuiltInRules().value_or(std::vector<Rule>{})),
                         [](const auto& info) {
                           std::string name = info.param.id;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace

void PrintTo(const Rule& rule, std::ostream* out) { *out << rule.id; }

}  // namespace fusion::rewrite
