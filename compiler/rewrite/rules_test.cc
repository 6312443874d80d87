// Tests every rule against the interpreter on graphs made from its own pattern. Operands, shapes and attributes are
// random; a graph is kept when types infer and the rule fires. Then a search looks for operands for which the two
// graphs differ. A rule that never fires fails the test, as does one that saves nothing.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/analysis/interpret.h"
#include "compiler/ops/registry/infer_types.h"
#include "compiler/ops/registry/op_def.h"
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

// The shapes that are tried for an input, and which inputs are lists of integers.
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
    // The product is deep and wide enough that a zero point costs more than its correction.
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

// Numbers that are hard for rules: ties, zeros of both signs, subnormal, far from 1, at the ends, not finite; also
// ordinary ones.
const std::vector<double>& Grid() {
  static const auto* const kGrid = new std::vector<double>{
      1,     -1,     0.5,   -2,     2,      0.1,   0,       -0.0,    1e-42,  -1e-42, 1e-38, 1e-30,  -1e-30, 1e-25, 1e-19,
      1e-10, -1e-10, 100,   -100,   1e10,   1e19,  -1e19,   1e25,    -1e25,  1e30,   -1e30, 3e38,   -3e38,
      std::numeric_limits<double>::infinity(),      -std::numeric_limits<double>::infinity(), std::nan("")};
  return *kGrid;
}

// Most elements are ordinary, or all come from a few values of the grid, so that not every result is NaN.
double Draw(const std::vector<double>& palette, Random* random) {
  const double unit = std::uniform_real_distribution<double>(-1, 1)(*random);
  if (palette.empty() || (*random)() % 3 == 0) return Pick<double>({unit, unit * 3, unit * 30, 1, -1}, random);
  return Pick(palette, random);
}

std::vector<double> Palette(Random* random) {
  std::vector<double> palette;
  for (uint32_t n = (*random)() % 4; n > 0; --n) palette.push_back(Pick(Grid(), random));
  return palette;
}

// Ranges of the tables that operands are gathered from, of which ranges.h can prove something.
constexpr std::pair<double, double> kBands[] = {{0.5, 4},  {-8, 8},   {1e-3, 1e3},      {-30, -0.5},        {-60000, 60000},
                                                {0.9, 50}, {-30, 30}, {1e-12, 1e12}, {1.0 / 65536, 65536}, {0, 100}};

// Generates a graph that computes the pattern; an error when the choices do not fit together.
class Generator {
 public:
  // `ranged`: operands have known ranges, so that demands can be proven.
  Generator(const Rule& rule, bool ranged, Random* random) : rule_(rule), ranged_(ranged), random_(random) {
    dtype_ = Pick<DType>({DType::kF32, DType::kF32, DType::kF32, DType::kI32, DType::kU32, DType::kBool}, random_);
    values_.assign(rule.variables.size(), kUnset);
  }

  absl::StatusOr<ecg::Graph> Make() {
    ASSIGN_OR_RETURN(const ecg::ValueId root, Build(rule_.pattern, "", 0));
    graph_.AddOutput(root, "y");
    return std::move(graph_);
  }

 private:
  static constexpr ecg::ValueId kUnset = -2;

  Tensor Filled(DType dtype, Shape shape, const std::vector<double>& palette) {
    Tensor tensor(dtype, std::move(shape));
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      if (IsFloat(dtype)) {
        tensor.SetDouble(i, Draw(palette, random_));
      } else {
        // Shift counts beyond the word length have no meaning, nor have indices (i64) behind the end of a table.
        const bool any = (*random_)() % 4 == 0 && rule_.id != "sum-shift" && dtype != DType::kI64;
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
    // Constant parameters are mostly scalars or vectors.
    const bool small = term.constant && menu.shapes.size() > 6 && (*random_)() % 2 == 0;
    const bool alike = !small && !shapes_.empty() && (*random_)() % 2 == 0;
    const Shape shape = small ? Pick<Shape>({{}, {3}}, random_) : Pick(alike ? shapes_ : menu.shapes, random_);
    shapes_.push_back(shape);
    const DType dtype = menu.dtype == DType::kF32 ? dtype_ : menu.dtype;
    if (!term.constant && ranged_ && IsFloat(dtype)) return Ranged(term.text, dtype, shape);
    if (!term.constant) return graph_.AddInput(term.text, {dtype, shape});
    Tensor tensor = Filled(dtype, shape, (*random_)() % 4 == 0 ? Palette(random_) : std::vector<double>{});
    if ((*random_)() % 2 == 0) {  // all of one sign
      for (int64_t i = 0; IsFloat(dtype) && i < tensor.num_elements(); ++i) {
        tensor.SetDouble(i, std::abs(tensor.GetDouble(i)));
      }
    }
    if (op == "BatchNormalization" && input == 4) {  // a variance
      for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.SetDouble(i, std::abs(tensor.GetDouble(i)));
    }
    return graph_.AddConstant(term.text, tensor);
  }

  // Returns an operand whose range the graph shows: gathered from a table, or a magnitude.
  ecg::ValueId Ranged(const std::string& name, DType dtype, const Shape& shape) {
    const auto computed = [&](const char* op, std::vector<ecg::ValueId> inputs) {
      return graph_.node(graph_.AddNode(op, op, std::move(inputs), {}, {{dtype, shape}})).outputs[0];
    };
    const uint32_t choice = (*random_)() % 8;
    if (choice == 0) return graph_.AddInput(name, {dtype, shape});
    if (choice == 1) return computed("Exp", {graph_.AddInput(name, {dtype, shape})});
    if (choice == 2) return computed("Abs", {graph_.AddInput(name, {dtype, shape})});
    constexpr int64_t kEntries = 16;
    const auto [lo, hi] = band_ == nullptr || (*random_)() % 4 == 0 ? kBands[(*random_)() % std::size(kBands)] : *band_;
    Tensor table(dtype, {kEntries});
    for (int64_t i = 0; i < kEntries; ++i) {
      const double at = std::uniform_real_distribution<double>(0, 1)(*random_);
      const bool logarithmic = lo > 0 && hi / lo > 100;
      table.SetDouble(i, i == 0 ? lo : i == 1 ? hi : logarithmic ? lo * std::pow(hi / lo, at) : lo + (hi - lo) * at);
    }
    return computed("Gather", {graph_.AddConstant("table", table), graph_.AddInput(name, {DType::kI64, shape})});
  }

  const Rule& rule_;
  const bool ranged_;
  Random* random_;
  const std::pair<double, double>* band_ = &kBands[(*random_)() % std::size(kBands)];
  DType dtype_;
  ecg::Graph graph_;
  std::vector<ecg::ValueId> values_;
  std::map<int, ecg::Attributes> attrs_;  // by slot
  std::vector<Shape> shapes_;             // of operands so far

 public:
  Tensor Operand(const ecg::ValueType& type, const std::vector<double>& palette) {
    return Filled(type.dtype, type.shape, palette);
  }
};

// Returns the same graph with every intermediate result as an output behind its own.
ecg::Graph Opened(const ecg::Graph& graph) {
  ecg::Graph open = graph;
  for (const ecg::Node& node : graph.nodes()) {
    if (!open.IsOutput(node.outputs[0])) open.AddOutput(node.outputs[0], "t");
  }
  return open;
}

// Returns whether x is within 2^16 of the largest float.
bool IsAtEdge(double x) { return std::isfinite(x) && std::abs(x) > 0x1p111; }

// Returns whether the rule moves factors of up to 2^16 to another place. Such rules promise nothing at the edge
// (README.md), but for those that keep their promise there, too.
bool MovesFactors(const Rule& rule) {
  static const std::set<std::string> kToTheEnd = {"cancel-quotient",
                                                  "gelu-tanh-mul",
                                                  "gelu-tanh-pow",
                                                  "hard-swish-hard-sigmoid",
                                                  "hard-swish-inner-divide",
                                                  "layer-norm-mul",
                                                  "layer-norm-pow",
                                                  "log-softmax",
                                                  "mish",
                                                  "qdq-conv",
                                                  "qdq-conv-bias",
                                                  "qdq-gemm",
                                                  "qdq-gemm-bias",
                                                  "qdq-gemm-transposed",
                                                  "qdq-gemm-transposed-bias",
                                                  "qdq-matmul",
                                                  "quantize-scaled",
                                                  "quantize-shifted",
                                                  "recip-product",
                                                  "recip-quotient",
                                                  "sigmoid-divide",
                                                  "sigmoid-recip",
                                                  "square-sqrt",
                                                  "sum-square-scale"};
  if (kToTheEnd.count(rule.id) != 0) return false;
  static const std::set<std::string> kWords = {"modest", "moderate", "light", "foldable", "normal", "few"};
  return rule.composite || std::any_of(rule.demands.begin(), rule.demands.end(),
                                       [](const Guard& demand) { return kWords.count(demand.left.text) != 0; });
}

// The distance of `got` from what the class promises: above 1 the promise is broken. It is kWrongKind where a NaN, an
// infinity or a finite number became another of the three.
constexpr double kWrongKind = 1e300;
struct Verdict {
  double error = 0;
  std::string what;
};

Verdict Judge(const Rule& rule, const ecg::Graph& graph, const std::vector<Tensor>& inputs,
              const std::vector<Tensor>& trace, const std::vector<Tensor>& got_trace) {
  Verdict verdict;
  const Tensor &wanted = trace[0], &got = got_trace[0];
  if (wanted.shape() != got.shape()) return {kWrongKind, "another shape"};
  double largest = 0;
  bool at_edge = false, floats = false, zero = false;
  const auto look = [&](const Tensor& tensor, bool of_source) {
    if (!IsFloat(tensor.dtype())) return;
    floats = true;
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      const double x = tensor.GetDouble(i);
      if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
      at_edge = at_edge || (of_source && IsAtEdge(x));
      zero = zero || (of_source && x == 0);
    }
  };
  for (const Tensor& tensor : inputs) look(tensor, true);
  for (const Tensor& tensor : trace) look(tensor, true);
  for (const Tensor& tensor : got_trace) look(tensor, false);
  for (const ecg::Value& value : graph.values()) {
    if (value.constant.has_value()) look(*value.constant, true);
  }
  const bool exact = rule.math_class == MathClass::kExact;
  if (at_edge && !exact && MovesFactors(rule)) return verdict;
  // Sums may be rounded in another order. Quantised results may be one off where the original lies between two values.
  constexpr double kRounding = 2e-5, kFloor = 0x1p-110;
  const double tolerance = exact ? 0 : IsFloat(wanted.dtype()) ? kRounding * largest + kFloor : floats ? 1 : 0;
  for (int64_t i = 0; i < wanted.num_elements(); ++i) {
    const double a = wanted.GetDouble(i), b = got.GetDouble(i);
    if (std::isnan(a) && std::isnan(b)) continue;
    if (a == b && (!exact || std::signbit(a) == std::signbit(b))) continue;
    // A factor of 0 that meets a sum before it overflows makes it 0 instead of NaN, and a quotient by a product that
    // is 0 is infinite instead of 0 / 0.
    if (std::isnan(a) && zero && !exact && MovesFactors(rule)) continue;
    double error = kWrongKind;
    if (std::isfinite(a) && std::isfinite(b)) error = tolerance > 0 ? std::abs(a - b) / tolerance : kWrongKind;
    if (error > verdict.error) verdict = {error, absl::StrCat("element ", i, ": ", a, " became ", b)};
  }
  return verdict;
}

// A graph that a rule has rewritten, and the search for operands for which the two differ.
class Trial {
 public:
  Trial(const Rule& rule, const ecg::Graph& graph, const ecg::Graph& rewritten)
      : rule_(rule), graph_(graph), open_(Opened(graph)), open_rewritten_(Opened(rewritten)) {}

  Verdict At(const std::vector<Tensor>& inputs) const {
    // Sums inside an operator overflow at the limit of their type, which the interpreter observes only when it
    // perturbs.
    te::InterpretOptions options;
    if (rule_.math_class != MathClass::kExact && IsFloat(RootType())) {
      options = {.perturb_seed = 1, .perturb_sparsity = 63, .in_order = true};
    }
    const auto trace = ecg::Interpret(open_, inputs, options), got = ecg::Interpret(open_rewritten_, inputs, options);
    if (!trace.ok()) return {};  // an index is out of range
    if (!got.ok()) return {kWrongKind, std::string(got.status().message())};
    return Judge(rule_, graph_, inputs, *trace, *got);
  }

  // Starts from the worst of `starts` drawn operands and makes them worse one element at a time, each over the whole
  // grid.
  std::pair<Verdict, std::vector<Tensor>> Worst(Generator* generator, Random* random, int starts, int elements) const {
    Verdict worst;
    std::vector<Tensor> at;
    for (int n = 0; n < starts && worst.error <= 1; ++n) {
      const std::vector<double> palette = n == 0 ? std::vector<double>{} : Palette(random);
      std::vector<Tensor> inputs;
      for (ecg::ValueId id : graph_.inputs()) inputs.push_back(generator->Operand(graph_.value(id).type, palette));
      Verdict verdict = At(inputs);
      if (at.empty() || verdict.error > worst.error) worst = std::move(verdict), at = std::move(inputs);
    }
    for (int n = 0; n < elements && !at.empty() && worst.error <= 1; ++n) {
      Tensor& tensor = at[(*random)() % at.size()];
      if (!IsFloat(tensor.dtype()) || tensor.num_elements() == 0) continue;
      const auto element = static_cast<int64_t>((*random)() % tensor.num_elements());
      double best = tensor.GetDouble(element);
      for (const double value : Grid()) {
        tensor.SetDouble(element, value);
        Verdict verdict = At(at);
        if (verdict.error > worst.error) worst = std::move(verdict), best = value;
      }
      tensor.SetDouble(element, best);
    }
    return {worst, at};
  }

 private:
  DType RootType() const { return graph_.value(graph_.outputs()[0]).type.dtype; }

  const Rule& rule_;
  const ecg::Graph& graph_;
  const ecg::Graph open_, open_rewritten_;
};

std::string OperandsOf(const std::vector<Tensor>& inputs) {
  std::string text;
  for (const Tensor& tensor : inputs) {
    absl::StrAppend(&text, "operand ", absl::StrJoin(tensor.shape(), "x"), ":");
    for (int64_t i = 0; i < tensor.num_elements(); ++i) absl::StrAppend(&text, " ", tensor.GetDouble(i));
    absl::StrAppend(&text, "\n");
  }
  return text;
}

// Returns FLOPs, bytes read and written, and operators of a whole graph, counted by the registry and not by the engine.
std::array<double, 3> CostOfGraph(const ecg::Graph& graph) {
  std::array<double, 3> cost{};
  for (const ecg::Node& node : graph.nodes()) {
    if (node.op == "Identity") continue;  // an input that is passed through as an output
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

// Constant folding evaluates nodes over constants, so that they are left out before and after.
ecg::Graph WithoutKnownNodes(const ecg::Graph& graph) { return simplify::RemoveDead(simplify::FoldConstants(graph)); }

std::string ShapesOf(const ecg::Graph& graph) {
  std::string shapes;
  for (const ecg::Value& value : graph.values()) {
    if (value.producer == ecg::kNone) absl::StrAppend(&shapes, absl::StrJoin(value.type.shape, "x"), " ");
  }
  return shapes;
}

class EveryRule : public ::testing::TestWithParam<Rule> {};

// Relaxed rules keep the value in real arithmetic alone. Floats may stand for real numbers where they are near 1: sums,
// products, exponentials and logarithms of them stay far from the ends of the range.
bool IsMild(const Tensor& tensor) {
  for (int64_t i = 0; IsFloat(tensor.dtype()) && i < tensor.num_elements(); ++i) {
    const double x = tensor.GetDouble(i);
    if (!(x >= 0.25 && x <= 4)) return false;
  }
  return true;
}

bool HasMildConstants(const ecg::Graph& graph) {
  return std::all_of(graph.values().begin(), graph.values().end(),
                     [](const ecg::Value& value) { return !value.constant.has_value() || IsMild(*value.constant); });
}

std::vector<Tensor> MildOperands(const ecg::Graph& graph, Generator* generator, Random* random) {
  std::vector<Tensor> operands;
  for (const ecg::ValueId id : graph.inputs()) {
    operands.push_back(generator->Operand(graph.value(id).type, {}));
    Tensor& tensor = operands.back();
    for (int64_t i = 0; IsFloat(tensor.dtype()) && i < tensor.num_elements(); ++i) {
      tensor.SetDouble(i, std::uniform_real_distribution<double>(0.5, 2)(*random));
    }
  }
  return operands;
}

TEST_P(EveryRule, KeepsTheValueAndSaves) {
  const Rule& rule = GetParam();
  const bool relaxed = rule.math_class == MathClass::kRelaxed;
  Random random(17);
  int firings = 0, helped = 0, compared = 0;
  std::set<std::string> shapes;
  for (int attempt = 0; attempt < kAttempts && firings < kWantedFirings; ++attempt) {
    // Where something has to be proven, most operands come with a range.
    Generator generator(rule, !rule.demands.empty() && attempt % 4 != 0, &random);
    const absl::StatusOr<ecg::Graph> graph = generator.Make();
    if (!graph.ok()) continue;
    const absl::StatusOr<Result> rewritten =
        RewriteWith(*graph, {rule}, {.math = relaxed ? MathLevel::kRelaxed : MathLevel::kFast, .disabled = {}});
    ASSERT_TRUE(rewritten.ok()) << rewritten.status() << "\n" << ecg::Print(*graph);
    if (rewritten->firings.empty()) continue;
    ++firings;
    shapes.insert(ShapesOf(*graph));
    std::array<double, 3> before = CostOfGraph(WithoutKnownNodes(*graph)),
                          after = CostOfGraph(WithoutKnownNodes(rewritten->graph));
    if (rule.composite) std::swap(before[0], before[2]), std::swap(after[0], after[2]);
    helped += after < before ? 1 : 0;
    if (relaxed) {
      if (!HasMildConstants(*graph)) continue;
      ++compared;
      const std::vector<Tensor> operands = MildOperands(*graph, &generator, &random);
      const Verdict verdict = Trial(rule, *graph, rewritten->graph).At(operands);
      const bool rounded = IsFloat(graph->value(graph->outputs()[0]).type.dtype);
      ASSERT_LE(verdict.error, rounded ? 1 : 0) << verdict.what << "\n" << ecg::Print(*graph) << "became\n"
                                                << ecg::Print(rewritten->graph) << OperandsOf(operands);
      continue;
    }
    const auto [worst, operands] =
        Trial(rule, *graph, rewritten->graph).Worst(&generator, &random, 6, firings % 5 == 0 ? 3 : 0);
    ASSERT_LE(worst.error, 1) << worst.what << "\n" << ecg::Print(*graph) << "became\n"
                              << ecg::Print(rewritten->graph) << OperandsOf(operands);
  }
  EXPECT_GE(firings, kWantedFirings / 2) << rule.where << " '" << rule.id << "' never fires, or hardly";
  if (relaxed) EXPECT_GE(compared, kWantedFirings / 8) << rule.where << " '" << rule.id << "' is hardly compared";
  EXPECT_GE(helped, 1) << rule.where << " '" << rule.id << "' saves nothing in any graph";
  EXPECT_GE(shapes.size(), 2u) << rule.where << " '" << rule.id << "' fires at one shape only";
}

// Shows that the search finds differences: without their demands, these rules give other results than the original.
TEST(Search, FindsWhatDemandsPrevent) {
  const std::set<std::string> known = {"max-recip", "min-recip",    "sum-log",   "log-sum",     "sum-square-scale", "sqrt-product",
                                       "exp-product", "mul-constants", "factor",    "square-small", "log-softmax",      "matmul-constants",
                                       "prod-exp",    "log-sum-exp",   "square-sqrt", "argmax-exp",   "softmax-shift",    "max-sqrt"};
  const auto& rules = BuiltInRules();
  ASSERT_TRUE(rules.ok()) << rules.status();
  size_t seen = 0;
  for (const Rule& rule : *rules) {
    if (known.count(rule.id) == 0) continue;
    ++seen;
    Rule bare = rule;
    bare.demands.clear();  // the judge then allows no margin at the ends, either
    bare.composite = false;
    bool found = false;
    Random random(23);
    for (int attempt = 0; attempt < kAttempts && !found; ++attempt) {
      Generator generator(rule, /*ranged=*/false, &random);
      const absl::StatusOr<ecg::Graph> graph = generator.Make();
      if (!graph.ok()) continue;
      const auto rewritten = RewriteWith(*graph, {rule}, {.math = MathLevel::kRelaxed, .disabled = {}});
      ASSERT_TRUE(rewritten.ok()) << rewritten.status();
      if (rewritten->firings.empty()) continue;
      found = Trial(bare, *graph, rewritten->graph).Worst(&generator, &random, 8, 4).first.error > 1;
    }
    EXPECT_TRUE(found) << "no operands found of which " << rule.id << " changes the result";
  }
  EXPECT_EQ(seen, known.size());
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
