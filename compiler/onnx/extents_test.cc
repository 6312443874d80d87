// Tests how import represents shapes that depend on data. tests/conformance/dynamic compares the values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/onnx/model_text.h"
#include "compiler/onnx/structural/appended.h"

namespace fusion::onnx_import {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string Ints(const std::string& name, const std::vector<int64_t>& values, bool scalar = false) {
  std::string text = absl::StrCat("initializer { name: '", name, "' data_type: 7 ");
  if (!scalar) absl::StrAppend(&text, "dims: ", values.size(), " ");
  for (int64_t value : values) absl::StrAppend(&text, "int64_data: ", value, " ");
  return text + "}\n";
}

// x [6, 4], and %rows: those rows of x that %mask selects.
std::string Rows() {
  return TensorInfo("input", "x", {"6", "4"}) + TensorInfo("input", "mask", {"6"}, onnx::TensorProto::BOOL) +
         TensorInfo("output", "y", {}) +
         NodeText("Compress", {"x", "mask"}, {"rows"}, "name: 'c' attribute { name: 'axis' type: INT i: 0 }");
}

std::string PrintOrError(const absl::StatusOr<ImportedModel>& model) {
  if (!model.ok()) return model.status().ToString();
  EXPECT_TRUE(ecg::Verify(model->graph).ok()) << ecg::Verify(model->graph);
  std::string text = ecg::Print(model->graph);
  const auto parsed = ecg::Parse(text);
  EXPECT_TRUE(parsed.ok() && ecg::Print(*parsed) == text) << text;
  return text;
}

TEST(Extents, OutputsCarryThem) {
  EXPECT_EQ(PrintOrError(ImportText(Rows() + NodeText("Abs", {"rows"}, {"y"}))),
            "graph g(%x: f32[6, 4], %mask: bool[6]) {\n"
            "  %v2: f32[6, 4], %v3: i64[] = Compress(%x, %mask) {axis = 0}\n"
            "  %y: f32[6, 4] = Abs(%v2)\n"
            "  return %y[%v3, _]\n}\n");
}

TEST(Extents, ReductionsOverThemAreMasked) {
  EXPECT_THAT(PrintOrError(ImportText(Rows() + Ints("axes", {0}) + NodeText("ReduceSum", {"rows", "axes"}, {"y"}))),
              HasSubstr("Where("));
  // Each row is reduced by itself, so that nothing is masked.
  EXPECT_THAT(PrintOrError(ImportText(Rows() + Ints("axes", {1}) + NodeText("ReduceSum", {"rows", "axes"}, {"y"}))),
              Not(HasSubstr("Where(")));
}

// Half of the bound is not half of what there is, and heads at the bound are not the heads that there are.
// The last extent of these indices decides the rank of the result.
TEST(Extents, OfIndexTuplesAreKnown) {
  const std::string tuples = Rows() + NodeText("Transpose", {"rows"}, {"t"}) +
                             NodeText("Cast", {"t"}, {"i"}, "attribute { name: 'to' type: INT i: 7 }");
  for (const char* op : {"GatherND", "ScatterND"}) {
    std::vector<std::string> inputs = {"i", "i"};
    if (op == std::string("ScatterND")) inputs.push_back("i");
    EXPECT_THAT(PrintOrError(ImportText(tuples + NodeText(op, inputs, {"y"}))),
                HasSubstr("the extent of dimension 1 of indices depends on data"))
        << op;
  }
}

TEST(Extents, ThatACompositionTakesForNumbersAreRefused) {
  const std::string columns = Rows() + NodeText("Transpose", {"rows"}, {"t"});
  EXPECT_THAT(PrintOrError(ImportText(columns + Ints("bias", {0}, true) +
                                      NodeText("BiasSplitGelu", {"t", "bias"}, {"y"}, "domain: 'com.microsoft'"))),
              HasSubstr("the extent of dimension 1 of X depends on data"));
  const std::string heads = Rows() + Ints("axes", {0, 3}) + NodeText("Unsqueeze", {"rows", "axes"}, {"q"});
  EXPECT_THAT(PrintOrError(ImportText(heads + NodeText("Attention", {"q", "q", "q"}, {"y"}))),
              HasSubstr("the extent of dimension 1 of Q depends on data"));
}

TEST(Extents, ShapeArithmeticFindsWhatIsEqual) {
  // Reshape(rows, [n, 2, 2]) with n from Shape is the Reshape at the bound, with the same extent n.
  const std::string text =
      PrintOrError(ImportText(Rows() + Ints("zero", {0}) + Ints("two", {2, 2}) + NodeText("Shape", {"rows"}, {"s"}) +
                              NodeText("Gather", {"s", "zero"}, {"n"}) +
                              NodeText("Concat", {"n", "two"}, {"t"}, "attribute { name: 'axis' type: INT i: 0 }") +
                              NodeText("Reshape", {"rows", "t"}, {"y"})));
  EXPECT_THAT(text, HasSubstr("f32[6, 2, 2] = Reshape("));
  EXPECT_THAT(text, HasSubstr("%v5: i64[] = Compress("));
  EXPECT_THAT(text, HasSubstr("[%v5, _, _] as \"y\""));
  EXPECT_THAT(text, Not(HasSubstr("GatherND")));
  // The extent of a static dimension is a constant, although the result of Shape is not.
  EXPECT_THAT(PrintOrError(ImportText(Rows() + Ints("one", {1}, true) + NodeText("Shape", {"rows"}, {"s"}) +
                                      NodeText("Gather", {"s", "one"}, {"y"}))),
              HasSubstr("i64[] = const {4}"));
}

// %others are the rows of x that a second mask selects, %both joins %rows and %others, and %sum is added to it.
std::string Joined(const std::vector<std::string>& sum) {
  const char* axis = "attribute { name: 'axis' type: INT i: 0 }";
  return Rows() + TensorInfo("input", "mask2", {"6"}, onnx::TensorProto::BOOL) +
         NodeText("Compress", {"x", "mask2"}, {"others"}, absl::StrCat("name: 'd' ", axis)) +
         NodeText("Concat", {"rows", "others"}, {"both"}, axis) + NodeText("Concat", sum, {"sum"}, axis) +
         NodeText("Add", {"both", "sum"}, {"y"}, "name: 'meet'");
}

TEST(Extents, SumsOfTheSameExtentsAreTheSameNumber) {
  EXPECT_THAT(PrintOrError(ImportText(Joined({"rows", "others"}))), HasSubstr("Add("));
  EXPECT_THAT(PrintOrError(ImportText(Joined({"others", "rows"}))), HasSubstr("Add("));
  EXPECT_THAT(PrintOrError(ImportText(Joined({"rows", "others"}))), Not(HasSubstr("check of the run")));
}

TEST(Extents, ThoseThatMayDifferAreCheckedByTheRun) {
  const std::string text = PrintOrError(ImportText(Joined({"rows", "rows"})));
  EXPECT_THAT(text, HasSubstr("Add("));
  EXPECT_THAT(text,
              HasSubstr("as \"check of the run: Add \\'meet\\': its operands have the extents {1} and {2} in dimension "
                        "0 of the result, which depend on the inputs and do not broadcast\""));
  // The Gather repeats the element of an operand whose extent is 1.
  EXPECT_THAT(text, HasSubstr("Gather("));
  // A static extent decides the extent of the result.
  const std::string fixed = PrintOrError(ImportText(Rows() + TensorInfo("input", "z", {"3", "4"}) +
                                                    NodeText("Add", {"rows", "z"}, {"y"}, "name: 'fixed'")));
  EXPECT_THAT(fixed, HasSubstr("%y: f32[3, 4] = Add("));
  EXPECT_THAT(fixed, HasSubstr("check of the run: Add \\'fixed\\'"));
  // An extent of 1 broadcasts, whatever the other extent is.
  EXPECT_THAT(
      PrintOrError(ImportText(Rows() + TensorInfo("input", "z", {"1", "4"}) + NodeText("Add", {"rows", "z"}, {"y"}))),
      Not(HasSubstr("check of the run")));
  // Extents that meet in an operator that does not broadcast are refused.
  EXPECT_THAT(PrintOrError(ImportText(Rows() + TensorInfo("input", "z", {"6", "4"}) +
                                      NodeText("Transpose", {"rows"}, {"t"}) + NodeText("MatMul", {"t", "z"}, {"y"}))),
              HasSubstr("UNIMPLEMENTED"));
}

TEST(Extents, NoOutputOfAModelIsNamedLikeACheck) {
  EXPECT_THAT(
      PrintOrError(ImportText(TensorInfo("input", "x", {"2"}) + TensorInfo("output", "check of the run: y", {}) +
                              NodeText("Abs", {"x"}, {"check of the run: y"}))),
      HasSubstr("names that begin with 'check of the run: ' are taken"));
}

TEST(Extents, WhatIsNotBoundedIsRefused) {
  const std::string graph = TensorInfo("input", "n", {}, onnx::TensorProto::INT64) + TensorInfo("output", "y", {}) +
                            Ints("one", {1}) + NodeText("Reshape", {"n", "one"}, {"s"}) +
                            NodeText("ConstantOfShape", {"s"}, {"y"}, "name: 'zeros'");
  EXPECT_THAT(PrintOrError(ImportText(graph)),
              HasSubstr("ConstantOfShape 'zeros': extent 0 is computed at run time, and how large it can become is not "
                        "known; limit it in the model (Min) or make it a constant"));
}

TEST(Extents, WhatEntersAsANumberIsRefused) {
  EXPECT_THAT(
      PrintOrError(ImportText(Rows() + Ints("four", {1, 6, 4}) + NodeText("Transpose", {"rows"}, {"t"}) +
                              Ints("axes", {0}) + NodeText("Unsqueeze", {"t", "axes"}, {"u"}) +
                              NodeText("GlobalAveragePool", {"u"}, {"y"}, "name: 'pool'"))),
      HasSubstr("GlobalAveragePool 'pool': input dimensions whose extents depend on data are not supported here"));
}

TEST(Extents, AResultThatDoesNotFollowThemIsRefused) {
  // At the bound of 6 nothing is padded, and the lowering is that of a copy.
  const std::string axes = "attribute { name: 'axes' type: INTS ints: 0 }";
  EXPECT_THAT(
      PrintOrError(ImportText(Rows() + Ints("six", {6}) + NodeText("CenterCropPad", {"rows", "six"}, {"y"}, axes))),
      HasSubstr("UNIMPLEMENTED"));
}

TEST(Extents, ARankThatDependsOnThemIsRefused) {
  EXPECT_THAT(PrintOrError(ImportText(Rows() + NodeText("Squeeze", {"rows"}, {"y"}))), HasSubstr("axes must say"));
  // The outputs of a loop that never runs have no elements, but still have these extents.
  EXPECT_THAT(PrintOrError(ImportText(
                  Rows() + Ints("none", {0}, /*scalar=*/true) +
                  "node { op_type: 'Loop' input: 'none' input: '' output: 'y' attribute { name: 'body' type: GRAPH g { "
                  "name: 'b' "
                  "input { name: 'i' } input { name: 'c' } node { op_type: 'Identity' input: 'c' output: 'd' } "
                  "node { op_type: 'Abs' input: 'rows' output: 'a' } output { name: 'd' } output { name: 'a' } } } }")),
              HasSubstr("[_, %v4, _]"));
}

TEST(Extents, TheRangeOfATypeIsNoBound) {
  // i32 holds 2^31 - 1 at most, which is no useful bound of a size.
  const std::string typed = TensorInfo("input", "n", {}, onnx::TensorProto::INT32) + TensorInfo("output", "y", {}) +
                            NodeText("Cast", {"n"}, {"wide"}, "attribute { name: 'to' type: INT i: 7 }") +
                            Ints("one", {1}) + NodeText("Reshape", {"wide", "one"}, {"s"}) +
                            NodeText("ConstantOfShape", {"s"}, {"y"}, "name: 'zeros'");
  EXPECT_THAT(PrintOrError(ImportText(typed)), HasSubstr("how large it can become is not known"));
  const std::string bytes = TensorInfo("input", "n", {}, onnx::TensorProto::UINT8) + TensorInfo("output", "y", {}) +
                            NodeText("Cast", {"n"}, {"wide"}, "attribute { name: 'to' type: INT i: 7 }") +
                            Ints("least", {1}) + NodeText("Min", {"wide", "most"}, {"few"}) + Ints("most", {9}) +
                            NodeText("ConstantOfShape", {"few"}, {"y"}, "name: 'zeros'");
  EXPECT_THAT(PrintOrError(ImportText(bytes)), HasSubstr("f32[9]"));
}

TEST(Extents, OfAJoinOfStaticAndDynamicAreTheirSum) {
  const std::string text =
      PrintOrError(ImportText(Rows() + TensorInfo("input", "z", {"2", "4"}) +
                              NodeText("Concat", {"rows", "z"}, {"y"}, "attribute { name: 'axis' type: INT i: 0 }")));
  EXPECT_THAT(text, HasSubstr("i64[] = const {2}"));
  EXPECT_THAT(text, HasSubstr("as \"y\""));
  EXPECT_THAT(text, HasSubstr("f32[8, 4]"));
  EXPECT_THAT(text, HasSubstr("Where("));  // %z begins where the rows end
}

TEST(Extents, ResizesThatAreRefusedSayWhatIsNot) {
  EXPECT_THAT(
      PrintOrError(ImportText(Rows() + NodeText("Shape", {"rows"}, {"sizes"}) +
                              NodeText("Resize", {"rows", "", "", "sizes"}, {"y"},
                                       "name: 'up' attribute { name: 'mode' type: STRING s: 'cubic' }"))),
      HasSubstr(
          "Resize 'up': sizes, scales or extents that are computed at run time are not supported with mode=cubic; "
          "make them constants, or take mode nearest or linear"));
}

TEST(AppendedTo, TheStartAndThenThePiece) {
  const auto parsed = ecg::Parse(R"(graph g(%a: f32[2, 3], %b: f32[1, 3], %c: f32[2, 3]) {
  %ab: f32[3, 3] = Concat(%a, %b) {axis = 0}
  %ba: f32[3, 3] = Concat(%b, %a) {axis = 0}
  %ac: f32[2, 6] = Concat(%a, %c) {axis = 1}
  %aa: f32[4, 3] = Concat(%a, %a) {axis = 0}
  %more: f32[5, 3] = Concat(%a, %b, %c) {axis = 0}
  %sum: f32[2, 3] = Add(%a, %c)
  return %ab, %ba, %ac, %aa, %more, %sum
})");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const auto found = [&](int output) { return AppendedTo(*parsed, 0, parsed->outputs()[output]); };
  ASSERT_TRUE(found(0).has_value());
  EXPECT_EQ(found(0)->axis, 0);
  EXPECT_EQ(found(0)->piece, 1);
  EXPECT_FALSE(found(1).has_value()) << "the piece comes first";
  ASSERT_TRUE(found(2).has_value());
  EXPECT_EQ(found(2)->axis, 1);
  EXPECT_EQ(found(2)->piece, 2);
  ASSERT_TRUE(found(3).has_value());
  EXPECT_EQ(found(3)->piece, 0);
  EXPECT_FALSE(found(4).has_value()) << "two pieces";
  EXPECT_FALSE(found(5).has_value()) << "nothing was appended";
}

TEST(Extents, KnownOnesCutAtOnce) {
  const std::string bools = "initializer { name: 'known' data_type: 9 dims: 6 int32_data: [1, 0, 1, 1, 0, 0] }\n";
  const auto model = ImportText(TensorInfo("input", "x", {"6", "4"}) + TensorInfo("output", "y", {}) + bools +
                                NodeText("NonZero", {"known"}, {"where"}) + Ints("axes", {0}) +
                                NodeText("Squeeze", {"where", "axes"}, {"w"}) + NodeText("Gather", {"x", "w"}, {"y"}));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->graph.value(model->graph.outputs()[0]).type.shape, (Shape{3, 4}));
  EXPECT_TRUE(model->graph.output_extents().empty());
}

}  // namespace
}  // namespace fusion::onnx_import
