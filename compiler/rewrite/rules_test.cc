// Every rule is checked against the interpreter on graphs made from its own pattern: random operands, shapes and
// attributes, kept when types infer and the rule fires. A rule that never fires is an error.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "compiler/ecg/interpret.h"
#include "compiler/ops/op_def.h"
#include "compiler/rewrite/engine.h"
#include "compiler/rewrite/functions.h"
#include "compiler/rewrite/rule.h"
#include "runtime/base/status_macros.h"

namespace fusion::rewrite {
namespace {

constexpr int kAttempts = 60000;
constexpr int kWantedFirings = 12;

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
};

Menu MenuFor(const std::string& op, size_t input) {
  if (op == "Conv" || op == "ConvTranspose") {
    if (input == 0) return {{{2, 2, 5, 4}, {1, 4, 3, 3}, {1, 2, 6}}};
    if (input == 1) return {{{3, 2, 3, 3}, {4, 2, 2, 2}, {2, 2, 1, 3}, {2, 3, 2, 2}, {3, 2, 3}, {2, 3, 3}}};
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
  if (op == "Transpose") return {{{2, 3}, {2, 3, 4}, {24, 3}}};
  if (op == "Reshape" || op == "Flatten" || op == "Squeeze" || op == "Unsqueeze") {
    if (input == 0) return {{{2, 3}, {1, 6}, {2, 1, 3}}};
    return {{}, {{2, 3}, {3, 2}, {-1}, {1, 6}, {0}, {1}}};
  }
  if (op.substr(0, 6) == "Reduce") {
    if (input == 1) return {{}, {{0}, {1}, {-1}, {0, 1}}};
    return {{{2, 3}, {3, 2, 2}, {4}}};
  }
  if (op == "Slice") {
    const std::vector<Ints> lists[] = {{}, {{0}, {1}}, {{2}, {-1}}, {{1}, {0}}, {{1}, {2}}};
    return {{{2, 3}, {4}}, lists[input]};
  }
  if (op == "Expand") return input == 0 ? Menu{{{3}, {2, 1}, {1, 3}, {}}} : Menu{{}, {{2, 3}, {4, 2, 3}, {3}}};
  if (op == "Gather") return input == 0 ? Menu{{{4, 3}, {3}}} : Menu{{}, {{0}, {1}, {2, 0}}};
  if (op == "Where") return {{{3}, {2, 3}, {2, 1}}, {}, input == 0 ? DType::kBool : DType::kF32};
  if (op == "Clip" && input > 0) return {{{}}};
  if (op == "MaxPool" || op == "GlobalMaxPool") return {{{1, 2, 4, 4}, {2, 1, 5}}};
  if (op == "Softmax") return {{{2, 3}}};
  if (op == "Pad") {
    if (input == 0) return {{{1, 2, 4, 4}}};
    return {{}, {{0, 0, 1, 1, 0, 0, 1, 1}, {0, 0, 0, 2, 0, 0, 1, 0}, {0, 0, -1, 0, 0, 0, 0, 0}}};
  }
  if (op == "Sub") return {{{2, 3}, {3}, {2, 1}, {}, {2, 3, 2}}};
  return {{{}, {3}, {2, 3}, {2, 1}, {1, 3}, {1, 3, 1}, {3, 1, 1}, {1, 3, 1, 1}, {2, 3, 2, 2}, {2, 3, 3}}};
}

std::vector<ecg::Attributes> AttrsFor(const std::string& op) {
  const auto make = [](std::vector<std::pair<std::string, ecg::Attribute>> entries) {
    ecg::Attributes attrs;
    for (auto& [name, value] : entries) attrs.Set(name, std::move(value));
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
  if (op == "HardSigmoid") return {make({}), make({{"alpha", 0.1666666716337204}})};
  if (op == "Gather") return {make({}), make({{"axis", one(1)}})};
  if (op == "Softmax") return {make({}), make({{"axis", one(0)}})};
  if (op == "Pad") return {make({}), make({{"mode", std::string("constant")}}), make({{"mode", std::string("edge")}})};
  if (op.substr(0, 6) == "Reduce") return {make({}), make({{"keepdims", one(0)}}), make({{"keepdims", one(1)}})};
  return {make({})};
}

// Operands that suit the rule's class.
double Draw(MathClass math_class, Random* random) {
  const double unit = std::uniform_real_distribution<double>(-1, 1)(*random);
  const double inf = std::numeric_limits<double>::infinity();
  switch (math_class) {
    case MathClass::kExact:
      return Pick<double>(
          {unit, unit * 100, unit * 1e30, unit * 1e-30, 1e-42, 0.0, -0.0, 3e38, -3e38, inf, -inf, std::nan("")},
          random);
    case MathClass::kReassociates:
      return Pick<double>({unit * 3 + (unit < 0 ? -0.1 : 0.1), unit < 0 ? -1.0 : 1.0, unit * 30 + (unit < 0 ? -1 : 1)},
                          random);
    case MathClass::kNeedsDomain:
      return Pick<double>({std::abs(unit) * 3 + 0.1, std::abs(unit) * 100 + 0.1, 1.0}, random);
  }
  return unit;
}

// A graph that computes the pattern; an error when the choices do not fit together.
class Generator {
 public:
  Generator(const Rule& rule, Random* random) : rule_(rule), random_(random) {
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

  Tensor Filled(DType dtype, Shape shape) {
    Tensor tensor(dtype, std::move(shape));
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      if (IsFloat(dtype)) {
        tensor.SetDouble(i, Draw(rule_.math_class, random_));
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
    if (!menu.lists.empty()) {
      const Ints& list = Pick(menu.lists, random_);
      return graph_.AddConstant("list", Tensor::From(DType::kI64, {static_cast<int64_t>(list.size())}, list));
    }
    // Parameters are mostly scalars or vectors.
    const bool small = term.constant && menu.shapes.size() > 6 && (*random_)() % 2 == 0;
    const Shape shape = small ? Pick<Shape>({{}, {3}}, random_) : Pick(menu.shapes, random_);
    const DType dtype = menu.dtype == DType::kF32 ? dtype_ : menu.dtype;
    if (!term.constant) return graph_.AddInput(term.text, {dtype, shape});
    Tensor tensor = Filled(dtype, shape);
    if (op == "BatchNormalization" && input == 4) {  // a variance
      for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.SetDouble(i, std::abs(tensor.GetDouble(i)));
    }
    return graph_.AddConstant(term.text, tensor);
  }

  const Rule& rule_;
  Random* random_;
  DType dtype_;
  ecg::Graph graph_;
  std::vector<ecg::ValueId> values_;

 public:
  Tensor Operand(const ecg::ValueType& type) { return Filled(type.dtype, type.shape); }
};

void ExpectEqual(const Tensor& wanted, const Tensor& got, MathClass math_class, const std::string& where) {
  ASSERT_EQ(wanted.shape(), got.shape()) << where;
  double largest = 0;
  for (int64_t i = 0; i < wanted.num_elements(); ++i) {
    if (std::isfinite(wanted.GetDouble(i))) largest = std::max(largest, std::abs(wanted.GetDouble(i)));
  }
  for (int64_t i = 0; i < wanted.num_elements(); ++i) {
    const double a = wanted.GetDouble(i), b = got.GetDouble(i);
    if (std::isnan(a) && std::isnan(b)) continue;
    if (math_class == MathClass::kExact || !IsFloat(wanted.dtype())) {
      ASSERT_TRUE(a == b && std::signbit(a) == std::signbit(b))
          << where << " element " << i << ": " << a << " became " << b;
    } else if (a != b) {
      ASSERT_LE(std::abs(a - b), 2e-5 * largest + 2e-5) << where << " element " << i << ": " << a << " became " << b;
    }
  }
}

class EveryRule : public ::testing::TestWithParam<Rule> {};

TEST_P(EveryRule, KeepsTheValue) {
  const Rule& rule = GetParam();
  Random random(17);
  int firings = 0;
  for (int attempt = 0; attempt < kAttempts && firings < kWantedFirings; ++attempt) {
    Generator generator(rule, &random);
    const absl::StatusOr<ecg::Graph> graph = generator.Make();
    if (!graph.ok()) continue;
    const absl::StatusOr<Result> rewritten = RewriteWith(*graph, {rule}, {});
    ASSERT_TRUE(rewritten.ok()) << rewritten.status() << "\n" << ecg::Print(*graph);
    if (rewritten->firings.empty()) continue;
    ++firings;
    std::vector<Tensor> inputs;
    for (ecg::ValueId id : graph->inputs()) inputs.push_back(generator.Operand(graph->value(id).type));
    const auto wanted = ecg::Interpret(*graph, inputs), got = ecg::Interpret(rewritten->graph, inputs);
    ASSERT_TRUE(wanted.ok()) << wanted.status() << "\n" << ecg::Print(*graph);
    ASSERT_TRUE(got.ok()) << got.status() << "\n" << ecg::Print(rewritten->graph);
    ExpectEqual(wanted->at(0), got->at(0), rule.math_class,
                ecg::Print(*graph) + "became\n" + ecg::Print(rewritten->graph));
    if (HasFatalFailure()) return;
  }
  EXPECT_GE(firings, 2) << rule.where << " '" << rule.id << "' never fires";
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
