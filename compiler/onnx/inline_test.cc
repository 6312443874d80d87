// Control flow, functions, sequences and optionals are gone after import, and the numbers are right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "compiler/analysis/interpret.h"
#include "compiler/onnx/model_text.h"
#include "compiler/simplify/passes.h"

namespace fusion::onnx_import {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kBool = onnx::TensorProto::BOOL, kInt64 = onnx::TensorProto::INT64;

std::string Graph(const std::string& name, const std::string& body) {
  return absl::StrCat("attribute { name: '", name, "' type: GRAPH g { ", body, " } }\n");
}
std::string IntAttribute(const std::string& name, int64_t value) {
  return absl::StrCat("attribute { name: '", name, "' type: INT i: ", value, " }\n");
}
std::string Int(const std::string& name, int64_t value) {
  return absl::StrCat("initializer { name: '", name, "' data_type: 7 int64_data: ", value, " }\n");
}
std::string Bool(const std::string& name, bool value) {
  return absl::StrCat("initializer { name: '", name, "' data_type: 9 int32_data: ", value ? 1 : 0, " }\n");
}
std::string Float(const std::string& name, double value) {
  return absl::StrCat("initializer { name: '", name, "' data_type: 1 float_data: ", value, " }\n");
}

Tensor F32(const Shape& shape, const std::vector<double>& values) { return Tensor::From(DType::kF32, shape, values); }
Tensor Truth(bool value) { return Tensor::From<int64_t>(DType::kBool, {}, {value ? 1 : 0}); }

// Returns the elements of all outputs, one after another. The graph as imported and after simplification must agree.
std::vector<double> Computed(const absl::StatusOr<ImportedModel>& model, const std::vector<Tensor>& inputs) {
  EXPECT_TRUE(model.ok()) << model.status();
  if (!model.ok()) return {};
  std::vector<double> flat;
  for (const ecg::Graph& graph : {model->graph, simplify::Simplify(model->graph)}) {
    const auto outputs = ecg::Interpret(graph, inputs);
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    if (!outputs.ok()) return {};
    std::vector<double> now;
    for (const Tensor& tensor : *outputs) {
      for (int64_t i = 0; i < tensor.num_elements(); ++i) now.push_back(tensor.GetDouble(i));
    }
    if (!flat.empty()) {
      EXPECT_EQ(flat, now);
    }
    flat = now;
  }
  return flat;
}

Shape ShapeOf(const absl::StatusOr<ImportedModel>& model, int output) {
  return model->graph.value(model->graph.outputs()[output]).type.shape;
}

std::string Y() { return TensorInfo("output", "y", {}); }

// --- If
std::string Branches(const std::string& then_op, const std::string& else_op) {
  return NodeText("If", {"c"}, {"y"},
                  "name: 'branch' " +
                      Graph("then_branch", NodeText(then_op, {"x"}, {"t"}) + TensorInfo("output", "t", {})) +
                      Graph("else_branch", NodeText(else_op, {"x"}, {"e"}) + TensorInfo("output", "e", {})));
}

TEST(If, RunTimeConditionSelects) {
  const auto model =
      ImportText(TensorInfo("input", "c", {}, kBool) + TensorInfo("input", "x", {"2"}) + Y() + Branches("Neg", "Abs"));
  EXPECT_THAT(Computed(model, {Truth(true), F32({2}, {3, -4})}), ElementsAre(-3, 4));
  EXPECT_THAT(Computed(model, {Truth(false), F32({2}, {3, -4})}), ElementsAre(3, 4));
}

TEST(If, BranchesOfDifferentTypesNeedAKnownCondition) {
  const auto model = ImportText(TensorInfo("input", "c", {}, kBool) + TensorInfo("input", "x", {"2"}) + Y() +
                                Branches("Shape", "Abs"));
  EXPECT_EQ(model.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("If \"branch\": output \"y\" depends on a condition"));
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("i64[1] or f32[2]"));
}

TEST(If, ConditionMustBeOneBool) {
  const auto model = ImportText(TensorInfo("input", "c", {"2"}, kBool) + TensorInfo("input", "x", {"2"}) + Y() +
                                Branches("Neg", "Abs"));
  EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument);
}

// --- Loop. The body computes sum += x · scale[i] and scans it; `scale` comes from outside.
std::string LoopBody(const std::string& condition_node) {
  return Graph("body", TensorInfo("input", "i", {}, kInt64) + TensorInfo("input", "go", {}, kBool) +
                           TensorInfo("input", "sum", {"2"}) + NodeText("Gather", {"scale", "i"}, {"s"}) +
                           NodeText("Mul", {"x", "s"}, {"xs"}) + NodeText("Add", {"sum", "xs"}, {"next"}) +
                           condition_node + TensorInfo("output", "go_on", {}) + TensorInfo("output", "next", {}));
}
const char kScale[] = "initializer { name: 'scale' data_type: 1 dims: 4 float_data: [1, 10, 100, 1000] }\n";

TEST(Loop, KnownTripCountIsUnrolled) {
  const std::string body =
      Graph("body", TensorInfo("input", "i", {}, kInt64) + TensorInfo("input", "go", {}, kBool) +
                        TensorInfo("input", "sum", {"2"}) + NodeText("Gather", {"scale", "i"}, {"s"}) +
                        NodeText("Mul", {"x", "s"}, {"xs"}) + NodeText("Add", {"sum", "xs"}, {"next"}) +
                        NodeText("Identity", {"go"}, {"go_on"}) + TensorInfo("output", "go_on", {}) +
                        TensorInfo("output", "next", {}) + TensorInfo("output", "xs", {}));
  const auto model = ImportText(TensorInfo("input", "x", {"2"}) + Y() + TensorInfo("output", "each", {}) + kScale +
                                Int("trips", 3) + NodeText("Loop", {"trips", "", "x"}, {"y", "each"}, body));
  EXPECT_THAT(Computed(model, {F32({2}, {1, 2})}), ElementsAre(112, 224, 1, 2, 10, 20, 100, 200));
  EXPECT_EQ(ShapeOf(model, 1), (Shape{3, 2}));
}

int CountOf(const absl::StatusOr<ImportedModel>& model, const std::string& op) {
  if (!model.ok()) return -1;
  const ecg::Graph graph = simplify::Simplify(model->graph);
  int count = 0;
  for (const ecg::Node& node : graph.nodes()) count += node.op == op ? 1 : 0;
  return count;
}

TEST(Loop, ManyTripsStayALoop) {
  const std::string body =
      Graph("body", TensorInfo("input", "i", {}, kInt64) + TensorInfo("input", "go", {}, kBool) +
                        TensorInfo("input", "sum", {"2"}) + NodeText("Gather", {"scale", "i"}, {"s"}) +
                        NodeText("Mul", {"x", "s"}, {"xs"}) + NodeText("Add", {"sum", "xs"}, {"next"}) +
                        NodeText("Identity", {"go"}, {"go_on"}) + TensorInfo("output", "go_on", {}) +
                        TensorInfo("output", "next", {}) + TensorInfo("output", "xs", {}) +
                        TensorInfo("output", "x", {}));
  const auto model = ImportText(TensorInfo("input", "x", {"2"}) + Y() + TensorInfo("output", "each", {}) +
                                TensorInfo("output", "same", {}) + kScale + Int("trips", 4) +
                                NodeText("Loop", {"trips", "", "x"}, {"y", "each", "same"}, body));
  EXPECT_THAT(Computed(model, {F32({2}, {1, 2})}),
              ElementsAre(1112, 2224, 1, 2, 10, 20, 100, 200, 1000, 2000, 1, 2, 1, 2, 1, 2, 1, 2));
  EXPECT_EQ(CountOf(model, "LoopEnd"), 1);
  EXPECT_EQ(CountOf(model, "Mul"), 1);
}

// The state grows, so iterations differ in shape; a slice begins at the iteration's number, so they differ in constants.
TEST(Loop, IterationsThatDifferInMoreThanValuesAreWrittenOut) {
  const std::string growing = Graph(
      "body", TensorInfo("input", "i", {}, kInt64) + TensorInfo("input", "go", {}, kBool) +
                  TensorInfo("input", "s", {}) + NodeText("Concat", {"s", "x"}, {"n"}, IntAttribute("axis", 0)) +
                  TensorInfo("output", "go", {}) + TensorInfo("output", "n", {}));
  const auto grows = ImportText(TensorInfo("input", "x", {"1"}) + Y() + Int("trips", 4) +
                                NodeText("Loop", {"trips", "", "x"}, {"y"}, growing));
  EXPECT_THAT(Computed(grows, {F32({1}, {3})}), ElementsAre(3, 3, 3, 3, 3));
  EXPECT_EQ(CountOf(grows, "LoopEnd"), 0);
  EXPECT_EQ(CountOf(grows, "LoopBegin"), 0);
}

TEST(Scan, ManySlicesStayALoop) {
  // The state s and the slice x of axis 1, from the end: s' = s·2 + x; scanned along axis 1.
  const std::string body = Graph(
      "body", TensorInfo("input", "s", {"2"}) + TensorInfo("input", "x", {"2"}) + NodeText("Add", {"s", "s"}, {"d"}) +
                  NodeText("Add", {"d", "x"}, {"n"}) + TensorInfo("output", "n", {}) + TensorInfo("output", "n", {}));
  const std::string attributes =
      IntAttribute("num_scan_inputs", 1) +
      "attribute { name: 'scan_input_axes' type: INTS ints: 1 } attribute { name: 'scan_input_directions' type: INTS "
      "ints: 1 } attribute { name: 'scan_output_axes' type: INTS ints: 1 } ";
  const auto model = ImportText(TensorInfo("input", "s0", {"2"}) + TensorInfo("input", "xs", {"2", "4"}) + Y() +
                                TensorInfo("output", "all", {}) +
                                NodeText("Scan", {"s0", "xs"}, {"y", "all"}, attributes + body));
  EXPECT_THAT(Computed(model, {F32({2}, {0, 1}), F32({2, 4}, {1, 2, 3, 4, 0, 0, 0, 0})}),
              ElementsAre(49, 16, 4, 11, 24, 49, 2, 4, 8, 16));
  EXPECT_EQ(CountOf(model, "LoopEnd"), 1);
}

TEST(Loop, KnownConditionEndsIt) {
  // There is no trip count: the loop runs while i < 1, that is, twice.
  const auto model =
      ImportText(TensorInfo("input", "x", {"2"}) + Y() + kScale + Int("one", 1) +
                 NodeText("Loop", {"", "", "x"}, {"y"}, LoopBody(NodeText("Less", {"i", "one"}, {"go_on"}))));
  EXPECT_THAT(Computed(model, {F32({2}, {1, 2})}), ElementsAre(12, 24));
}

TEST(Loop, RunTimeConditionSelectsTheState) {
  const std::string below = NodeText("ReduceMax", {"next"}, {"max"}, IntAttribute("keepdims", 0)) +
                            NodeText("Less", {"max", "limit"}, {"go_on"});
  const std::string head = TensorInfo("input", "x", {"2"}) + TensorInfo("input", "c", {"1"}, kBool) + Y() + kScale +
                           Int("trips", 4) + Float("limit", 50);
  const auto model = ImportText(head + NodeText("Loop", {"trips", "c", "x"}, {"y"}, LoopBody(below)));
  EXPECT_THAT(Computed(model, {F32({2}, {1, 2}), Tensor::From<int64_t>(DType::kBool, {1}, {1})}),
              ElementsAre(112, 224));
  EXPECT_THAT(Computed(model, {F32({2}, {100, 2}), Tensor::From<int64_t>(DType::kBool, {1}, {1})}),
              ElementsAre(200, 4));
  EXPECT_THAT(Computed(model, {F32({2}, {1, 2}), Tensor::From<int64_t>(DType::kBool, {1}, {0})}), ElementsAre(1, 2));
  const auto endless = ImportText(head + NodeText("Loop", {"", "c", "x"}, {"y"}, "name: 'l' " + LoopBody(below)));
  EXPECT_EQ(endless.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(endless.status().message()), HasSubstr("Loop \"l\": runs until a condition"));
}

TEST(Loop, IterationsThatNeverRunMayIndexPastAnExtent) {
  const std::string below = NodeText("ReduceMax", {"next"}, {"max"}, IntAttribute("keepdims", 0)) +
                            NodeText("Less", {"max", "limit"}, {"go_on"});
  const auto model = ImportText(TensorInfo("input", "x", {"2"}) + Y() + kScale + Int("trips", 6) + Float("limit", 50) +
                                NodeText("Loop", {"trips", "", "x"}, {"y"}, LoopBody(below)));
  EXPECT_THAT(Computed(model, {F32({2}, {1, 2})}), ElementsAre(112, 224));
}

TEST(If, OnlyWhatAlwaysRunsIsRefusedForItsIndices) {
  const auto picks = [](const char* branch, const char* index) {
    return Graph(branch, NodeText("Gather", {"x", index}, {"picked"}) + TensorInfo("output", "picked", {}));
  };
  const std::string branches = picks("then_branch", "two") + picks("else_branch", "one");
  const std::string head = TensorInfo("input", "x", {"2"}) + Y() + Int("one", 1) + Int("two", 2);
  const auto model = ImportText(TensorInfo("input", "c", {}, kBool) + head + NodeText("If", {"c"}, {"y"}, branches));
  EXPECT_THAT(Computed(model, {Truth(false), F32({2}, {3, -4})}), ElementsAre(-4));
  const auto always = ImportText(head + NodeText("Gather", {"x", "two"}, {"y"}));
  EXPECT_EQ(always.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(always.status().message()), HasSubstr("index 2 is outside a dimension of extent 2"));
}

TEST(Loop, NoIterationKeepsStateAndScansNothing) {
  const std::string body = Graph(
      "body", TensorInfo("input", "i", {}, kInt64) + TensorInfo("input", "go", {}, kBool) +
                  TensorInfo("input", "s", {"2"}) + NodeText("Neg", {"s"}, {"n"}) + NodeText("Shape", {"s"}, {"size"}) +
                  NodeText("Identity", {"go"}, {"go_on"}) + TensorInfo("output", "go_on", {}) +
                  TensorInfo("output", "n", {}) + TensorInfo("output", "size", {}));
  const auto model =
      ImportText(TensorInfo("input", "x", {"2"}) + Y() + TensorInfo("output", "each", {}) + Int("trips", 5) +
                 Bool("no", false) + NodeText("Loop", {"trips", "no", "x"}, {"y", "each"}, body));
  EXPECT_THAT(Computed(model, {F32({2}, {1, 2})}), ElementsAre(1, 2));
  EXPECT_EQ(ShapeOf(model, 1), (Shape{0, 1}));
}

TEST(Loop, HugeTripCountIsRefused) {
  const std::string body = Graph("body", TensorInfo("input", "i", {}, kInt64) + TensorInfo("input", "go", {}, kBool) +
                                             TensorInfo("input", "s", {"2"}) + TensorInfo("output", "go", {}) +
                                             TensorInfo("output", "s", {}));
  const auto model = ImportText(TensorInfo("input", "x", {"2"}) + Y() + Int("trips", int64_t{1} << 60) +
                                NodeText("Loop", {"trips", "", "x"}, {"y"}, "name: 'l' " + body));
  EXPECT_EQ(model.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("Loop \"l\""));
}

TEST(Loop, NestedBodiesSeeEveryOuterName) {
  // y = x + Σ_i Σ_j (i + j) · x, with i and j below 2, is x + 4 · x.
  const std::string inner =
      Graph("body", TensorInfo("input", "j", {}, kInt64) + TensorInfo("input", "go_j", {}, kBool) +
                        TensorInfo("input", "a", {}) + NodeText("Add", {"i", "j"}, {"ij"}) +
                        NodeText("Cast", {"ij"}, {"f"}, IntAttribute("to", 1)) + NodeText("Mul", {"x", "f"}, {"xf"}) +
                        NodeText("Add", {"a", "xf"}, {"b"}) + TensorInfo("output", "go_j", {}) +
                        TensorInfo("output", "b", {}));
  const std::string outer =
      Graph("body", TensorInfo("input", "i", {}, kInt64) + TensorInfo("input", "go", {}, kBool) +
                        TensorInfo("input", "s", {}) + NodeText("Loop", {"two", "", "s"}, {"t"}, inner) +
                        TensorInfo("output", "go", {}) + TensorInfo("output", "t", {}));
  const auto model = ImportText(TensorInfo("input", "x", {"2"}) + Y() + Int("two", 2) +
                                NodeText("Loop", {"two", "", "x"}, {"y"}, outer));
  EXPECT_THAT(Computed(model, {F32({2}, {1, 2})}), ElementsAre(5, 10));
}

// --- Scan
TEST(Scan, AxesAndDirections) {
  // The body sums over the columns of x: [2, 3], beginning with the last one. Scan outputs lie along axis 1, again
  // reversed.
  const std::string body =
      Graph("body", TensorInfo("input", "s", {"2"}) + TensorInfo("input", "c", {"2"}) +
                        NodeText("Add", {"s", "c"}, {"t"}) + NodeText("Identity", {"t"}, {"each"}) +
                        TensorInfo("output", "t", {}) + TensorInfo("output", "each", {}));
  const auto ints = [](const std::string& name, int64_t value) {
    return absl::StrCat("attribute { name: '", name, "' type: INTS ints: ", value, " }\n");
  };
  const auto model = ImportText(TensorInfo("input", "x", {"2", "3"}) + Y() + TensorInfo("output", "z", {}) +
                                "initializer { name: 'zero' data_type: 1 dims: 2 float_data: [0, 0] }\n" +
                                NodeText("Scan", {"zero", "x"}, {"y", "z"},
                                         body + IntAttribute("num_scan_inputs", 1) + ints("scan_input_axes", -1) +
                                             ints("scan_input_directions", 1) + ints("scan_output_axes", 1) +
                                             ints("scan_output_directions", 1)));
  EXPECT_THAT(Computed(model, {F32({2, 3}, {1, 2, 3, 10, 20, 30})}), ElementsAre(6, 60, 6, 5, 3, 60, 50, 30));
  EXPECT_EQ(ShapeOf(model, 1), (Shape{2, 3}));
}

// --- Functions of the model
std::string FunctionModel(const std::string& functions, const std::string& graph) {
  onnx::ModelProto model;
  const std::string text =
      absl::StrCat("ir_version: 8 opset_import { domain: '' version: 17 } opset_import { domain: 'own' version: 1 } ",
                   functions, " graph { name: 'g' ", graph, " }");
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &model)) << text;
  return model.SerializeAsString();
}

TEST(Functions, AreInlinedWithTheCallsAttributes) {
  // Scaled(x, bias?) {alpha} = LeakyRelu(x, alpha) [+ bias through Clip's optional input]
  const std::string function =
      "functions { name: 'Leaky' domain: 'own' input: 'a' input: 'low' output: 'b' attribute: 'slope' "
      "opset_import { domain: '' version: 17 } " +
      NodeText("LeakyRelu", {"a"}, {"t"}, "attribute { name: 'alpha' type: FLOAT ref_attr_name: 'slope' }") +
      NodeText("Clip", {"t", "low"}, {"b"}) + "}";
  const std::string attribute = "domain: 'own' attribute { name: 'slope' type: FLOAT f: 0.5 }";
  const auto model = ImportBytes(FunctionModel(
      function, TensorInfo("input", "x", {"2"}) + Y() + TensorInfo("output", "z", {}) + Float("minus", -1) +
                    NodeText("Leaky", {"x"}, {"y"}, attribute) + NodeText("Leaky", {"x", "minus"}, {"z"}, attribute)));
  EXPECT_THAT(Computed(model, {F32({2}, {3, -4})}), ElementsAre(3, -2, 3, -1));
  // If the call lacks the attribute, the body's operator uses its own default.
  const auto plain = ImportBytes(FunctionModel(
      function, TensorInfo("input", "x", {"2"}) + Y() + NodeText("Leaky", {"x"}, {"y"}, "domain: 'own'")));
  EXPECT_THAT(Computed(plain, {F32({1, 2}, {3, -4}).Reshaped({2})}), ElementsAre(3, testing::DoubleNear(-0.04, 1e-6)));
}

TEST(Functions, SeeNoNamesOfTheCaller) {
  const std::string function =
      "functions { name: 'F' domain: 'own' input: 'a' output: 'b' opset_import { domain: '' version: 17 } " +
      NodeText("Add", {"a", "x"}, {"b"}) + "}";
  const auto model = ImportBytes(FunctionModel(
      function, TensorInfo("input", "x", {"2"}) + Y() + NodeText("F", {"x"}, {"y"}, "domain: 'own' name: 'f'")));
  EXPECT_THAT(model.status().ToString(), HasSubstr("F \"f\": Add \"b\" reads \"x\", which nothing defines"));
}

TEST(Functions, RecursionIsRefused) {
  const std::string function =
      "functions { name: 'F' domain: 'own' input: 'a' output: 'b' opset_import { domain: 'own' version: 1 } "
      "opset_import { domain: '' version: 17 } " +
      NodeText("F", {"a"}, {"b"}, "domain: 'own'") + "}";
  const auto model = ImportBytes(
      FunctionModel(function, TensorInfo("input", "x", {"2"}) + Y() + NodeText("F", {"x"}, {"y"}, "domain: 'own'")));
  EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("nested more than"));
}

// --- Sequences and optionals
TEST(Sequences, PositionsAreResolved) {
  // [a, b] → insert x at -1 → [a, x, b] → erase 0 → [x, b] → concatenated, and its length.
  const auto model = ImportText(
      TensorInfo("input", "a", {"1"}) + TensorInfo("input", "b", {"2"}) + TensorInfo("input", "x", {"1"}) + Y() +
      TensorInfo("output", "n", {}) + Int("last", -1) + Int("first", 0) +
      NodeText("SequenceConstruct", {"a", "b"}, {"s"}) + NodeText("SequenceInsert", {"s", "x", "last"}, {"t"}) +
      NodeText("SequenceErase", {"t", "first"}, {"u"}) +
      NodeText("ConcatFromSequence", {"u"}, {"y"}, IntAttribute("axis", 0)) + NodeText("SequenceLength", {"u"}, {"n"}));
  EXPECT_THAT(Computed(model, {F32({1}, {1}), F32({2}, {2, 3}), F32({1}, {4})}), ElementsAre(4, 2, 3, 2));
}

TEST(Sequences, SplitAndMap) {
  const std::string body =
      Graph("body", TensorInfo("input", "piece", {}) + TensorInfo("input", "k", {}) +
                        NodeText("Mul", {"piece", "k"}, {"scaled"}) + TensorInfo("output", "scaled", {}));
  const auto model =
      ImportText(TensorInfo("input", "x", {"5"}) +
                 "output { name: 'y' type { sequence_type { elem_type { tensor_type { elem_type: 1 } } } } }" +
                 Int("two", 2) + Float("ten", 10) + NodeText("SplitToSequence", {"x", "two"}, {"s"}) +
                 NodeText("SequenceMap", {"s", "ten"}, {"y"}, body));
  EXPECT_THAT(Computed(model, {F32({5}, {1, 2, 3, 4, 5})}), ElementsAre(10, 20, 30, 40, 50));
  EXPECT_EQ(model->graph.output_names(), (std::vector<std::string>{"y[0]", "y[1]", "y[2]"}));
}

TEST(Sequences, RunTimePositionOfEqualElementsIsAGather) {
  const std::string at = NodeText("SequenceConstruct", {"a", "b"}, {"s"}) + NodeText("SequenceAt", {"s", "i"}, {"y"});
  const auto model = ImportText(TensorInfo("input", "a", {"2"}) + TensorInfo("input", "b", {"2"}) +
                                TensorInfo("input", "i", {}, kInt64) + Y() + at);
  EXPECT_THAT(Computed(model, {F32({2}, {1, 2}), F32({2}, {3, 4}), Tensor::From<int64_t>(DType::kI64, {}, {-1})}),
              ElementsAre(3, 4));
  const auto unequal = ImportText(TensorInfo("input", "a", {"2"}) + TensorInfo("input", "b", {"3", "1"}) +
                                  TensorInfo("input", "i", {}, kInt64) + Y() + at);
  EXPECT_EQ(unequal.status().code(), absl::StatusCode::kUnimplemented) << "their ranks differ";
}

TEST(Sequences, RunTimePositionSelectsExtentsToo) {
  // The elements of a that Compress keeps; b, which has as much room; and d, which has more.
  const auto model =
      ImportText(TensorInfo("input", "a", {"3"}) + TensorInfo("input", "keep", {"3"}, kBool) +
                 TensorInfo("input", "b", {"3"}) + TensorInfo("input", "d", {"4"}) +
                 TensorInfo("input", "i", {}, kInt64) + Y() + NodeText("Compress", {"a", "keep"}, {"c"}) +
                 NodeText("SequenceConstruct", {"c", "b", "d"}, {"s"}) + NodeText("SequenceAt", {"s", "i"}, {"y"}));
  const auto at = [&](int64_t i) {
    const Tensor keep = Tensor::From<int64_t>(DType::kBool, {3}, {0, 1, 1});
    std::vector<double> all = Computed(model, {F32({3}, {1, 2, 3}), keep, F32({3}, {4, 5, 6}), F32({4}, {7, 8, 9, 10}),
                                               Tensor::From<int64_t>(DType::kI64, {}, {i})});
    EXPECT_EQ(all.size(), 5u) << "the bound, and the extent";
    // Elements past the extent have no meaning.
    if (all.size() == 5) all.erase(all.begin() + static_cast<int64_t>(all[4]), all.end());
    return all;
  };
  EXPECT_THAT(at(0), ElementsAre(2, 3));
  EXPECT_THAT(at(1), ElementsAre(4, 5, 6));
  EXPECT_THAT(at(-1), ElementsAre(7, 8, 9, 10));
  EXPECT_THAT(at(-3), ElementsAre(2, 3));
}

TEST(Sequences, InputsAndOutputsAreTensorsOfTheirOwn) {
  const std::string sequence =
      "type { sequence_type { elem_type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } } } }\n";
  const std::string graph = "input { name: 's' " + sequence + TensorInfo("input", "x", {"2"}) + "output { name: 'y' " +
                            sequence + NodeText("SequenceInsert", {"s", "x"}, {"y"});
  EXPECT_THAT(ImportText(graph).status().ToString(), HasSubstr("--dim s[]=N"));
  ImportRequest request;
  request.dims["s[]"] = 1;
  request.shapes["s[0]"] = {3};
  const auto model = ImportText(graph, request);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->graph.value(model->graph.inputs()[0]).name, "s[0]");
  EXPECT_EQ(model->graph.output_names(), (std::vector<std::string>{"y[0]", "y[1]"}));
  EXPECT_EQ(ShapeOf(model, 0), (Shape{3}));
  request.dims["s[]"] = 0;
  request.shapes.clear();
  EXPECT_EQ(ImportText(graph, request)->graph.output_names().size(), 1u);
  request.shapes["s[0]"] = {3};
  EXPECT_THAT(ImportText(graph, request).status().ToString(), HasSubstr("no input \"s[0]\""));
}

TEST(Sequences, TakenForTensorsAreRefused) {
  const auto model = ImportText(TensorInfo("input", "x", {"2"}) + Y() + NodeText("SequenceConstruct", {"x"}, {"s"}) +
                                NodeText("Abs", {"s"}, {"y"}, "name: 'a'"));
  EXPECT_THAT(model.status().ToString(), HasSubstr("Abs \"a\": its input \"s\" is a sequence, it takes tensors"));
}

TEST(Optionals, PresenceIsKnown) {
  const std::string graph =
      "input { name: 'o' type { optional_type { elem_type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } "
      "} } } } }\n" +
      TensorInfo("input", "x", {"2"}) + Y() + NodeText("OptionalHasElement", {"o"}, {"c"}) +
      NodeText("If", {"c"}, {"y"},
               Graph("then_branch", NodeText("OptionalGetElement", {"o"}, {"t"}) + TensorInfo("output", "t", {})) +
                   Graph("else_branch", NodeText("Neg", {"x"}, {"e"}) + TensorInfo("output", "e", {})));
  EXPECT_THAT(Computed(ImportText(graph), {F32({2}, {5, 6}), F32({2}, {1, 2})}), ElementsAre(5, 6));
  ImportRequest request;
  request.dims["o?"] = 0;
  EXPECT_THAT(Computed(ImportText(graph, request), {F32({2}, {1, 2})}), ElementsAre(-1, -2));
}

}  // namespace
}  // namespace fusion::onnx_import
