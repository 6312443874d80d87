#include "compiler/onnx/bind_inputs.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/model_text.h"

namespace fusion::onnx_import {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

absl::StatusOr<std::vector<BoundInput>> Bind(const std::string& graph, const ImportRequest& request = {}) {
  onnx::GraphProto proto;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(graph, &proto)) << graph;
  return BindInputs(proto, request);
}

std::string Error(const std::string& graph, const ImportRequest& request = {}) {
  const absl::Status status = Bind(graph, request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

const std::string kImage = TensorInfo("input", "x", {"batch", "3", "height"});

TEST(BindInputs, DimensionsByName) {
  ImportRequest request;
  request.dims = {{"batch", 2}, {"height", 5}};
  const auto bound = Bind(kImage, request);
  ASSERT_TRUE(bound.ok()) << bound.status();
  ASSERT_THAT(*bound, SizeIs(1));
  EXPECT_EQ(bound->at(0).type.shape, (Shape{2, 3, 5}));
  EXPECT_THAT(bound->at(0).symbols, ElementsAre("batch", "", "height"));
}

TEST(BindInputs, AShapeReplacesTheModels) {
  ImportRequest request;
  request.shapes["x"] = {4, 4};
  const auto bound = Bind(kImage, request);
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_EQ(bound->at(0).type.shape, (Shape{4, 4}));
  EXPECT_THAT(bound->at(0).symbols, ElementsAre("", ""));
}

TEST(BindInputs, AllThatIsUnknownIsListedWithItsOption) {
  EXPECT_THAT(Error(absl::StrCat(kImage, TensorInfo("input", "y", {"", "2"}),
                                 "input { name: 'z' type { tensor_type { "
                                 "elem_type: 1 } } }")),
              AllOf(HasSubstr("dimension 0 of input \"x\" is \"batch\": --dim batch=N"), HasSubstr("--dim height=N"),
                    HasSubstr("dimension 0 of input \"y\" has no name: --shape y="),
                    HasSubstr("input \"z\" has no shape: --shape z=")));
}

TEST(BindInputs, ABindingOfNothingIsRefusedWithWhatThereIs) {
  ImportRequest request;
  request.dims = {{"batch", 2}, {"height", 5}, {"width", 1}};
  EXPECT_THAT(Error(kImage, request),
              AllOf(HasSubstr("no symbolic dimension \"width\""), HasSubstr("it has \"batch\", \"height\"")));
  request.dims = {{"batch", 0}, {"height", 5}};
  EXPECT_THAT(Error(kImage, request), HasSubstr("--dim batch=0 must be at least 1"));
  request.dims = {{"batch", 1}, {"height", 5}};
  request.shapes["image"] = {1};
  EXPECT_THAT(Error(kImage, request), AllOf(HasSubstr("no input \"image\""), HasSubstr("it has \"x\"")));
}

TEST(BindInputs, InitializersAreNoInputs) {
  const auto bound = Bind(absl::StrCat(TensorInfo("input", "w", {"n"}), TensorInfo("input", "x", {"2"}),
                                       "initializer { name: 'w' data_type: 1 dims: 1 float_data: 1 }"));
  ASSERT_TRUE(bound.ok()) << bound.status();
  ASSERT_THAT(*bound, SizeIs(1));
  EXPECT_EQ(bound->at(0).name, "x");
}

TEST(BindInputs, AConstantGivesTheShapeAndMustHaveTheType) {
  ImportRequest request;
  request.constant_inputs["x"] = Tensor(DType::kF32, {7});
  EXPECT_EQ(Bind(kImage, request)->at(0).type.shape, Shape{7});
  request.constant_inputs["x"] = Tensor(DType::kI64, {7});
  EXPECT_THAT(Error(kImage, request), HasSubstr("the constant given for input \"x\" is i64, the model wants f32"));
}

constexpr char kSequence[] =
    "input { name: 's' type { sequence_type { elem_type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } dim "
    "{ "
    "dim_param: 'n' } } } } } } }";

TEST(BindInputs, ASequenceHasAsManyElementsAsItsLength) {
  ImportRequest request;
  request.dims = {{"s[]", 2}, {"n", 3}};
  const auto bound = Bind(kSequence, request);
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_EQ(bound->at(0).kind, ImportedValue::Kind::kSequence);
  ASSERT_THAT(bound->at(0).elements, SizeIs(2));
  EXPECT_EQ(bound->at(0).elements[1].name, "s[1]");
  EXPECT_EQ(bound->at(0).elements[1].type.shape, (Shape{2, 3}));
  request.dims = {{"s[]", 0}};
  const auto empty = Bind(kSequence, request);
  ASSERT_TRUE(empty.ok()) << empty.status();
  EXPECT_THAT(empty->at(0).elements, IsEmpty());
  EXPECT_THAT(Error(kSequence), HasSubstr("--dim s[]=N"));
}

TEST(BindInputs, ASequenceThatIsTooLongIsRefused) {
  ImportRequest request;
  request.dims = {{"s[]", int64_t{1} << 40}, {"n", 1}};
  EXPECT_EQ(Bind(kSequence, request).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(BindInputs, AnOptionalIsPresentUnlessItIsSaidToBeAbsent) {
  const std::string optional =
      "input { name: 'o' type { optional_type { elem_type { tensor_type { elem_type: 1 shape { dim { dim_value: 4 } } "
      "} } "
      "} } }";
  const auto present = Bind(optional);
  ASSERT_TRUE(present.ok()) << present.status();
  ASSERT_THAT(present->at(0).elements, SizeIs(1));
  EXPECT_EQ(present->at(0).elements[0].name, "o");
  ImportRequest request;
  request.dims = {{"o?", 0}};
  EXPECT_THAT(Bind(optional, request)->at(0).elements, IsEmpty());
}

TEST(BindInputs, ShapesThatNothingHoldsAreRefused) {
  EXPECT_THAT(Error(TensorInfo("input", "x", {"4294967296", "4294967296"})), HasSubstr("graph input \"x\""));
  ImportRequest request;
  request.shapes["x"] = Shape(33, 1);
  EXPECT_THAT(Error(kImage, request), HasSubstr("rank 33 exceeds 32"));
  EXPECT_THAT(Error(absl::StrCat(TensorInfo("input", "x", {"1"}), TensorInfo("input", "x", {"1"}))),
              HasSubstr("is defined twice"));
  EXPECT_EQ(Bind("input { name: 'm' type { map_type { key_type: 1 } } }").status().code(),
            absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace fusion::onnx_import
