// Bad input: each case gives a clear error that names its cause, and nothing crashes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/onnx/model_text.h"

namespace fusion::onnx_import {
namespace {

using absl::StatusCode;
using testing::HasSubstr;

void ExpectError(const absl::StatusOr<ImportedModel>& model, StatusCode code, const std::vector<std::string>& parts) {
  EXPECT_EQ(model.status().code(), code) << model.status();
  for (const std::string& part : parts) EXPECT_THAT(std::string(model.status().message()), HasSubstr(part));
}

const char kReluNode[] = "node { op_type: 'Relu' input: 'x' output: 'y' }\n";
std::string X() { return TensorInfo("input", "x", {"2", "3"}); }
std::string Y() { return TensorInfo("output", "y", {}); }

TEST(BadModel, FilesThatAreNoModels) {
  ExpectError(ImportBytes(""), StatusCode::kInvalidArgument, {"test.onnx", "is empty"});
  ExpectError(ImportBytes("hello, this is not a protobuf at all"), StatusCode::kInvalidArgument, {"not an ONNX file"});
  ExpectError(ImportBytes(std::string(4096, '\0')), StatusCode::kInvalidArgument, {"not an ONNX file"});
  ImportRequest request;
  request.model_path = "/nonexistent/model.onnx";
  ExpectError(ImportOnnx(request), StatusCode::kInvalidArgument, {"cannot be opened"});
  request.model_path = testing::TempDir();
  ExpectError(ImportOnnx(request), StatusCode::kInvalidArgument, {"not a regular file"});
}

TEST(BadModel, EveryTruncationAndByteFlipIsAnswered) {
  const std::string bytes = ModelBytes(
      X() + Y() + "initializer { name: 'w' data_type: 1 dims: [3, 2] raw_data: '000011112222333344445555' }\n" +
      "initializer { name: 's' data_type: 7 dims: 2 int64_data: [4, 1] }\n" + NodeText("MatMul", {"x", "w"}, {"a"}) +
      NodeText("Reshape", {"a", "s"}, {"b"}) +
      NodeText("Transpose", {"b"}, {"c"}, "attribute { name: 'perm' type: INTS ints: [1, 0] }") +
      NodeText("Relu", {"c"}, {"y"}));
  for (size_t length = 0; length < bytes.size(); ++length) {
    const auto model = ImportBytes(bytes.substr(0, length));
    EXPECT_TRUE(!model.ok() || model->graph.outputs().size() == 1);
  }
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (int bit : {0, 1, 3, 6, 7}) {
      std::string flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      const auto model = ImportBytes(flipped);
      EXPECT_TRUE(!model.ok() || !model->graph.outputs().empty());
    }
  }
  EXPECT_TRUE(ImportBytes(bytes).ok()) << ImportBytes(bytes).status();
}

TEST(BadModel, MarksOfTheCompiler) {
  const auto model =
      ImportText(X() + Y() + NodeText("Mul", {"x", "x"}, {"y"}, "attribute { name: 'rounded' type: INT i: 1 }"));
  ExpectError(model, StatusCode::kInvalidArgument, {"Mul", "unknown attribute \"rounded\""});
}

TEST(BadModel, DeepNesting) {
  std::string inner("\x0a\x00", 2);
  for (int i = 0; i < 2000; ++i) {
    // Wraps the bytes in GraphProto.node (1) → NodeProto.attribute (5) → AttributeProto.g (6), each length-delimited.
    for (int field : {6, 5, 1}) {
      std::string length;
      for (size_t n = inner.size(); true; n >>= 7) {
        length += static_cast<char>((n & 127) | (n > 127 ? 128 : 0));
        if (n <= 127) break;
      }
      inner.insert(0, length);
      inner.insert(0, 1, static_cast<char>(field << 3 | 2));
    }
  }
  std::string length;
  for (size_t n = inner.size(); true; n >>= 7) {
    length += static_cast<char>((n & 127) | (n > 127 ? 128 : 0));
    if (n <= 127) break;
  }
  ExpectError(ImportBytes("\x3a" + length + inner), StatusCode::kInvalidArgument, {"not an ONNX file"});
}

TEST(BadModel, AllUnsupportedOperatorsAtOnce) {
  const auto model = ImportText(
      X() + Y() + NodeText("Frobnicate", {"x"}, {"a"}, "name: 'first'") + NodeText("Frobnicate", {"a"}, {"b"}) +
      NodeText("Attention", {"b"}, {"c"}, "domain: 'com.example'") + NodeText("Relu", {"c"}, {"y"}));
  ExpectError(model, StatusCode::kUnimplemented,
              {"\"Frobnicate\" (2×, e.g. node \"first\")", "\"com.example.Attention\" (1×, e.g. node \"c\")"});
  EXPECT_THAT(std::string(model.status().message()), testing::Not(HasSubstr("Relu")));
}

TEST(BadModel, Cycle) {
  ExpectError(
      ImportText(X() + Y() + NodeText("Add", {"x", "b"}, {"a"}, "name: 'left'") +
                 NodeText("Relu", {"a"}, {"b"}, "name: 'right'") + NodeText("Relu", {"b"}, {"y"}, "name: 'after'")),
      StatusCode::kInvalidArgument, {"cycle of 2 node(s)", "\"left\"", "\"right\""});
  ExpectError(ImportText(X() + Y() + NodeText("Relu", {"y"}, {"y"}, "name: 'self'")), StatusCode::kInvalidArgument,
              {"cycle of 1 node(s)", "\"self\""});
}

TEST(BadModel, Names) {
  ExpectError(ImportText(X() + Y() + NodeText("Relu", {"nowhere"}, {"y"}, "name: 'r'")), StatusCode::kInvalidArgument,
              {"Relu \"r\" reads \"nowhere\", which nothing defines"});
  ExpectError(ImportText(X() + TensorInfo("output", "z", {}) + kReluNode), StatusCode::kInvalidArgument,
              {"graph output \"z\""});
  ExpectError(ImportText(X() + Y() + kReluNode + kReluNode), StatusCode::kInvalidArgument,
              {"\"y\", which is already defined"});
  ExpectError(ImportText(X() + Y() + NodeText("Relu", {"x"}, {"x"})), StatusCode::kInvalidArgument,
              {"already defined"});
  ExpectError(ImportText(X() + X() + Y() + kReluNode), StatusCode::kInvalidArgument, {"\"x\" is defined twice"});
  ExpectError(ImportText(X() + kReluNode), StatusCode::kInvalidArgument, {"no outputs"});
}

TEST(BadModel, ShapeMismatchNamesNodeAndShapes) {
  ExpectError(ImportText(X() + TensorInfo("input", "w", {"4", "5"}) + Y() +
                         NodeText("MatMul", {"x", "w"}, {"y"}, "name: 'proj'")),
              StatusCode::kInvalidArgument, {"proj", "[2, 3]", "[4, 5]"});
  ExpectError(
      ImportText(X() + TensorInfo("input", "w", {"4", "5"}) + Y() + NodeText("Add", {"x", "w"}, {"y"}, "name: 'sum'")),
      StatusCode::kInvalidArgument, {"sum", "[2, 3]", "[4, 5]"});
}

TEST(BadModel, InitializersOfTheWrongSize) {
  auto with = [](const std::string& tensor) {
    return ImportText(X() + Y() + "initializer { name: 'w' " + tensor + " }\n" + NodeText("Add", {"x", "w"}, {"y"}));
  };
  EXPECT_TRUE(with("data_type: 1 dims: 3 raw_data: '000011112222'").ok());
  ExpectError(with("data_type: 1 dims: 3 raw_data: '00001111222'"), StatusCode::kInvalidArgument,
              {"initializer \"w\"", "needs 12 bytes", "stores 11"});
  ExpectError(with("data_type: 1 dims: 3 raw_data: '0000111122223'"), StatusCode::kInvalidArgument,
              {"needs 12 bytes", "stores 13"});
  ExpectError(with("data_type: 1 dims: 3 float_data: [1, 2]"), StatusCode::kInvalidArgument,
              {"needs 3 elements", "stores 2"});
  ExpectError(with("data_type: 1 dims: [1099511627776, 1099511627776]"), StatusCode::kInvalidArgument,
              {"exceeds the limit"});
  ExpectError(with("data_type: 1 dims: -3"), StatusCode::kInvalidArgument, {"negative extent"});
  ExpectError(with("data_type: 8 dims: 1 string_data: 'a'"), StatusCode::kUnimplemented,
              {"initializer \"w\"", "STRING"});
  ExpectError(with("data_type: 999 dims: 1"), StatusCode::kUnimplemented, {"number 999"});
  ExpectError(with("dims: 1"), StatusCode::kInvalidArgument, {"element type is missing"});
}

TEST(BadModel, ExternalDataOutsideTheFolder) {
  auto with = [](const std::string& entries, ImportRequest request = {}) {
    return ImportText(X() + Y() + "initializer { name: 'w' data_type: 1 dims: 3 data_location: EXTERNAL " + entries +
                          " }\n" + NodeText("Add", {"x", "w"}, {"y"}),
                      std::move(request));
  };
  const TemporaryFile weights("....000011112222");
  ImportRequest request;
  request.external["w.bin"] = weights.path();
  const std::string location = "external_data { key: 'location' value: 'w.bin' } ";
  ExpectError(with("external_data { key: 'location' value: '../../etc/passwd' }", request),
              StatusCode::kInvalidArgument, {"initializer \"w\"", "\"../../etc/passwd\" was not given"});
  ExpectError(with("", request), StatusCode::kInvalidArgument, {"was not given"});
  ExpectError(with(location + "external_data { key: 'offset' value: '8' }", request), StatusCode::kInvalidArgument,
              {"12 bytes from offset 8", "the file has 16"});
  ExpectError(with(location + "external_data { key: 'offset' value: '-1' }", request), StatusCode::kInvalidArgument,
              {"offset \"-1\""});
  ExpectError(with(location + "external_data { key: 'length' value: '8' }", request), StatusCode::kInvalidArgument,
              {"needs 12 bytes", "stores 8"});
  const auto good = with(location + "external_data { key: 'offset' value: '4' }", request);
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_EQ(*static_cast<const char*>(good->graph.value(1).constant->data()), '0');
}

TEST(BadModel, HugeExpandIsRefusedBeforeAnythingIsAllocated) {
  const std::string shape = "initializer { name: 's' data_type: 7 dims: 2 int64_data: [1048576, 1048576] }\n";
  const std::string more = TensorInfo("input", "e", {"1", "1"}) + Y() + shape;
  ExpectError(ImportText(more + NodeText("Expand", {"e", "s"}, {"y"}, "name: 'grow'")), StatusCode::kInvalidArgument,
              {"grow", "exceeds the limit"});
  // The size is below the limit of one tensor and above that of a model. The input is a constant, which must not be
  // folded.
  ExpectError(ImportText(Y() + "initializer { name: 's' data_type: 7 dims: 2 int64_data: [524288, 1048576] }\n" +
                         "initializer { name: 'e' data_type: 9 dims: 1 int32_data: 1 }\n" +
                         NodeText("Expand", {"e", "s"}, {"y"}, "name: 'grow'")),
              StatusCode::kResourceExhausted, {"grow", "256 GiB"});
}

TEST(BadModel, HostileNamesAreData) {
  const std::string hostile = "*/ system(\\\"x\\\") \\n\\001";
  const auto model = ImportText(TensorInfo("input", hostile, {"2"}) + TensorInfo("output", "y", {}) +
                                NodeText("Relu", {hostile}, {"y"}, "name: '" + hostile + "'"));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->graph.value(0).name, "*/ system(\"x\") \n\x01");
  EXPECT_EQ(ecg::Print(model->graph).find("system"), std::string::npos);
  ExpectError(ImportText(X() + Y() + NodeText("MatMul", {"x", "x"}, {"y"}, "name: '" + hostile + "'")),
              StatusCode::kInvalidArgument, {"'*/ system(\\\"x\\\") \\n\\x01': "});
  ExpectError(ImportText(Y() + NodeText("Relu", {hostile}, {"y"})), StatusCode::kInvalidArgument,
              {"system(\\\"x\\\") \\n"});
}

TEST(BadModel, OpsetsAndTypes) {
  const std::string graph = X() + Y() + kReluNode;
  ExpectError(ImportBytes(ModelBytes(graph, 0)), StatusCode::kUnimplemented, {"opset 0", "1 to 28"});
  ExpectError(ImportBytes(ModelBytes(graph, 99)), StatusCode::kUnimplemented, {"opset 99"});
  EXPECT_TRUE(ImportBytes(ModelBytes(graph, 7)).ok());
  EXPECT_TRUE(ImportBytes(ModelBytes(graph, 28)).ok());
  ExpectError(ImportText(TensorInfo("input", "x", {"2"}, onnx::TensorProto::STRING) + Y() + kReluNode),
              StatusCode::kUnimplemented, {"graph input \"x\"", "STRING"});
  ExpectError(ImportText("input { name: 'x' type { sequence_type { elem_type { tensor_type { elem_type: 1 } } } } }" +
                         Y() + kReluNode),
              StatusCode::kInvalidArgument, {"\"x\" is a sequence of unknown length: --dim x[]=N"});
  ExpectError(ImportText("input { name: 'x' type { map_type { key_type: 7 } } }" + Y() + kReluNode),
              StatusCode::kUnimplemented, {"graph input \"x\" is no tensor, sequence or optional"});
}

TEST(BadModel, WrongArityAndAttributes) {
  ExpectError(ImportText(X() + Y() + NodeText("Relu", {"x", "x"}, {"y"}, "name: 'r'")), StatusCode::kInvalidArgument,
              {"r"});
  ExpectError(ImportText(X() + Y() + NodeText("MatMul", {"x"}, {"y"}, "name: 'm'")), StatusCode::kInvalidArgument,
              {"m"});
  ExpectError(ImportText(X() + Y() + NodeText("MatMul", {"x", ""}, {"y"}, "name: 'm'")), StatusCode::kInvalidArgument,
              {"m"});
  ExpectError(ImportText(X() + Y() + NodeText("Relu", {"x"}, {"y", "z"}, "name: 'r'")), StatusCode::kInvalidArgument,
              {"r"});
  ExpectError(
      ImportText(X() + Y() + NodeText("Relu", {"x"}, {"y"}, "name: 'r' attribute { name: 'surprise' type: INT i: 1 }")),
      StatusCode::kInvalidArgument, {"r", "surprise"});
}

}  // namespace
}  // namespace fusion::onnx_import
