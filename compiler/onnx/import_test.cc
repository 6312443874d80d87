#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/onnx/model_text.h"

namespace fusion::onnx_import {
namespace {

using testing::HasSubstr;

std::string Y() { return TensorInfo("output", "y", {}); }

std::string PrintOrError(const absl::StatusOr<ImportedModel>& model) {
  return model.ok() ? ecg::Print(model->graph) : model.status().ToString();
}

TEST(Import, SortsAndDropsWhatNoOutputNeeds) {
  const auto model = ImportText(TensorInfo("input", "x", {"2"}) + Y() + NodeText("Exp", {"a"}, {"y"}) +
                                NodeText("Neg", {"x"}, {"dead"}) + NodeText("Abs", {"x"}, {"a"}));
  EXPECT_EQ(PrintOrError(model),
            "graph g(%x: f32[2]) {\n  %a: f32[2] = Abs(%x)\n  %y: f32[2] = Exp(%a)\n  return %y\n}\n");
  EXPECT_EQ(model->model_nodes, 3);
}

TEST(Import, BindsDimensions) {
  const std::string graph = TensorInfo("input", "x", {"batch", "3"}) + TensorInfo("input", "z", {"batch", "", "seq"}) +
                            Y() + NodeText("Abs", {"x"}, {"y"});
  const auto unbound = ImportText(graph);
  EXPECT_EQ(unbound.status().code(), absl::StatusCode::kInvalidArgument);
  const std::string message(unbound.status().message());
  EXPECT_THAT(message, HasSubstr("--dim batch=N"));
  EXPECT_THAT(message, HasSubstr("--dim seq=N"));
  EXPECT_THAT(message, HasSubstr("--shape z=NxM"));
  ImportRequest request;
  request.dims["batch"] = 4;
  request.shapes["z"] = {4, 5, 6};
  const auto model = ImportText(graph, request);
  EXPECT_THAT(PrintOrError(model), HasSubstr("graph g(%x: f32[4, 3], %z: f32[4, 5, 6])"));
  request.dims["bacth"] = 4;
  EXPECT_THAT(PrintOrError(ImportText(graph, request)),
              HasSubstr("no symbolic dimension \"bacth\"; it has \"batch\", \"seq\""));
  request.dims = {{"batch", 0}};
  EXPECT_THAT(PrintOrError(ImportText(graph, request)), HasSubstr("must be at least 1"));
  request.dims = {};
  request.shapes["w"] = {1};
  EXPECT_THAT(PrintOrError(ImportText(graph, request)), HasSubstr("no input \"w\"; it has \"x\", \"z\""));
}

TEST(Import, ShapeArithmeticIsFolded) {
  // y = Reshape(x, Concat(Shape(x)[0:1], [-1])), as exporters write Flatten.
  const std::string graph =
      TensorInfo("input", "x", {"4", "3", "5"}) + Y() + "initializer { name: 'zero' data_type: 7 int64_data: 0 }\n" +
      "initializer { name: 'minus' data_type: 7 dims: 1 int64_data: -1 }\n" +
      "initializer { name: 'axes' data_type: 7 dims: 1 int64_data: 0 }\n" + NodeText("Shape", {"x"}, {"shape"}) +
      NodeText("Gather", {"shape", "zero"}, {"n"}) + NodeText("Unsqueeze", {"n", "axes"}, {"n1"}) +
      NodeText("Concat", {"n1", "minus"}, {"target"}, "attribute { name: 'axis' type: INT i: 0 }") +
      NodeText("Reshape", {"x", "target"}, {"y"});
  const auto model = ImportText(graph);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->graph.nodes().size(), 1u) << ecg::Print(model->graph);
  EXPECT_EQ(model->graph.value(model->graph.outputs()[0]).type.shape, (Shape{4, 15}));
  EXPECT_EQ(model->model_nodes, 5);
}

TEST(Import, SplitBecomesSlices) {
  const auto split = [](const std::string& attributes) {
    return ImportText(TensorInfo("input", "x", {"2", "6"}) + TensorInfo("output", "a", {}) +
                      TensorInfo("output", "b", {}) + NodeText("Split", {"x"}, {"a", "b"}, attributes));
  };
  const std::string axis = "attribute { name: 'axis' type: INT i: -1 }";
  const std::string text = PrintOrError(split(axis));
  EXPECT_THAT(text, HasSubstr("%v4: f32[2, 3] = Slice(%x, %v2, %v3, %v1)\n"));
  EXPECT_THAT(text, HasSubstr("%v7: f32[2, 3] = Slice(%x, %v5, %v6, %v1)\n"));
  EXPECT_THAT(text, HasSubstr("return %v4 as \"a\", %v7 as \"b\""));
  EXPECT_THAT(PrintOrError(split(axis + "attribute { name: 'num_outputs' type: INT i: 3 }")),
              HasSubstr("num_outputs=3, the node has 2"));
}

// Exporters write `w[picks]` as a GatherND of tuples of one component.
TEST(Import, TuplesOfOneComponentAreIndices) {
  const auto gathered = [](const std::vector<std::string>& indices, const std::string& attributes = "") {
    return PrintOrError(ImportText(TensorInfo("input", "x", {"4", "6"}) +
                                   TensorInfo("input", "i", indices, onnx::TensorProto::INT64) +
                                   TensorInfo("output", "y", {}) + NodeText("GatherND", {"x", "i"}, {"y"}, attributes)));
  };
  EXPECT_THAT(gathered({"3", "5", "1"}), HasSubstr("f32[3, 5, 6] = Gather(%x, "));
  EXPECT_THAT(gathered({"1"}), HasSubstr("f32[6] = Gather(%x, "));
  EXPECT_THAT(gathered({"3", "2"}), HasSubstr("f32[3] = GatherND(%x, %i)"));
  EXPECT_THAT(gathered({"4", "1"}, "attribute { name: 'batch_dims' type: INT i: 1 }"), HasSubstr("= GatherND(%x, %i)"));
}

TEST(Import, OutputsAreValuesOfTheirOwn) {
  const auto model =
      ImportText(TensorInfo("input", "x", {"2"}) + TensorInfo("output", "x", {}) + Y() + TensorInfo("output", "w", {}) +
                 "initializer { name: 'w' data_type: 7 int64_data: 3 }\n" + NodeText("Abs", {"x"}, {"y"}));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_NE(model->graph.value(model->graph.outputs()[0]).producer, ecg::kNone);
  EXPECT_TRUE(model->graph.value(model->graph.outputs()[2]).constant.has_value());
  EXPECT_EQ(model->graph.output_names(), (std::vector<std::string>{"x", "y", "w"}));
}

TEST(Import, InitializersOfEveryForm) {
  const auto model =
      ImportText(TensorInfo("input", "x", {"2"}) + TensorInfo("input", "f", {"2"}) + Y() +
                 "initializer { name: 'f' data_type: 1 dims: 2 float_data: [0.5, -2] }\n"
                 "initializer { name: 'h' data_type: 10 dims: 2 int32_data: [15360, 49152] }\n"
                 "initializer { name: 'b' data_type: 9 dims: 2 raw_data: '\\002\\000' }\n"
                 "initializer { name: 'u' data_type: 13 dims: 1 uint64_data: 18446744073709551615 }\n" +
                 NodeText("Constant", {}, {"c"}, "attribute { name: 'value_floats' type: FLOATS floats: [1, 2] }") +
                 NodeText("Add", {"x", "c"}, {"y"}));
  ASSERT_TRUE(model.ok()) << model.status();
  const auto& values = model->graph.values();
  EXPECT_EQ(model->graph.inputs().size(), 1u);
  EXPECT_EQ(values[1].constant->GetDouble(1), -2);
  EXPECT_EQ(values[2].constant->GetDouble(1), -2);
  EXPECT_EQ(values[3].constant->as<uint8_t>()[0], 1);
  EXPECT_EQ(values[4].constant->as<uint64_t>()[0], UINT64_MAX);
}

// Elements of fewer bits than a byte are packed; the first one lies in the lowest bits.
TEST(Import, InitializersOfPackedElements) {
  const auto model = ImportText(TensorInfo("input", "x", {"2"}) + Y() +
                                "initializer { name: 'a' data_type: 22 dims: 3 raw_data: '\\x8f\\x07' }\n"
                                "initializer { name: 'b' data_type: 21 dims: 3 int32_data: [143, 7] }\n"
                                "initializer { name: 'c' data_type: 26 dims: 5 raw_data: '\\xe4\\x03' }\n"
                                "initializer { name: 'd' data_type: 23 dims: [2, 1] raw_data: '\\xf1' }\n"
                                "initializer { name: 'e' data_type: 27 dims: 4 raw_data: '\\x81\\x30\\xfc' }\n"
                                "initializer { name: 'f' data_type: 28 dims: 2 int32_data: [1, 63] }\n"
                                "initializer { name: 'g' data_type: 17 dims: 2 int32_data: [56, 255] }\n"
                                "initializer { name: 'h' data_type: 24 dims: 2 raw_data: '\\x7f\\xff' }\n" +
                                NodeText("Abs", {"x"}, {"y"}));
  ASSERT_TRUE(model.ok()) << model.status();
  const auto elements = [&](size_t value) {
    const Tensor& tensor = *model->graph.values()[value].constant;
    std::vector<double> numbers;
    for (int64_t i = 0; i < tensor.num_elements(); ++i) numbers.push_back(tensor.GetDouble(i));
    return numbers;
  };
  EXPECT_EQ(elements(1), (std::vector<double>{-1, -8, 7}));
  EXPECT_EQ(elements(2), (std::vector<double>{15, 8, 7}));
  EXPECT_EQ(elements(3), (std::vector<double>{0, 1, -2, -1, -1}));
  EXPECT_EQ(elements(4), (std::vector<double>{0.5, -6}));
  EXPECT_EQ(elements(5), (std::vector<double>{0.125, 0.25, 0.375, -7.5}));
  EXPECT_EQ(elements(6), (std::vector<double>{0.0625, -28}));
  EXPECT_EQ(elements(7)[0], 1);
  EXPECT_TRUE(std::isnan(elements(7)[1]));
  EXPECT_EQ(elements(8)[0], 1);
  const auto missing = ImportText(TensorInfo("input", "x", {"2"}) + Y() +
                                  "initializer { name: 'a' data_type: 22 dims: 5 raw_data: '\\x8f\\x07' }\n" +
                                  NodeText("Abs", {"x"}, {"y"}));
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("i4[5] needs 3 bytes, the model stores 2"));
}

TEST(Import, ConstantInputs) {
  const std::string graph = TensorInfo("input", "x", {"4"}) +
                            TensorInfo("input", "s", {"n"}, onnx::TensorProto::INT64) + Y() +
                            NodeText("Reshape", {"x", "s"}, {"y"}, "name: 'r'");
  ImportRequest request;
  request.shapes["s"] = {2};
  EXPECT_EQ(ImportText(graph, request).status().code(), absl::StatusCode::kUnimplemented);
  request.shapes.clear();
  request.constant_inputs["s"] = Tensor::From<int64_t>(DType::kI64, {2}, {2, 2});
  const auto model = ImportText(graph, request);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->graph.inputs().size(), 1u);
  EXPECT_EQ(model->graph.value(model->graph.outputs()[0]).type.shape, (Shape{2, 2}));
}

TEST(Import, IfWithKnownConditionBecomesItsBranch) {
  const std::string graph =
      TensorInfo("input", "x", {"4"}) + Y() + "initializer { name: 'c' data_type: 9 int32_data: 1 }\n" +
      NodeText("If", {"c"}, {"y"},
               "attribute { name: 'then_branch' type: GRAPH g { " + NodeText("Abs", {"x"}, {"t"}) +
                   TensorInfo("output", "t", {}) + " } }" + "attribute { name: 'else_branch' type: GRAPH g { " +
                   NodeText("Unheard", {"x"}, {"e"}) + TensorInfo("output", "e", {}) + " } }");
  EXPECT_THAT(PrintOrError(ImportText(graph)), HasSubstr("= Abs(%x)"));
}

}  // namespace
}  // namespace fusion::onnx_import
