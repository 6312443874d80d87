#include "compiler/onnx/attribute_import.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "onnx/onnx_pb.h"

namespace fusion::onnx_import {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

onnx::AttributeProto Proto(const std::string& text) {
  onnx::AttributeProto proto;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &proto)) << text;
  return proto;
}

absl::StatusOr<ecg::Attribute> Take(const std::string& text) {
  onnx::AttributeProto proto = Proto(text);
  return TakeAttribute(&proto, "Op \"n\"");
}

TEST(TakeAttribute, EachKind) {
  EXPECT_EQ(std::get<double>(*Take("name: 'a' type: FLOAT f: 0.5")), 0.5);
  EXPECT_EQ(std::get<int64_t>(*Take("name: 'a' type: INT i: -7")), -7);
  EXPECT_EQ(std::get<std::string>(*Take("name: 'a' type: STRING s: 'words'")), "words");
  EXPECT_THAT(std::get<std::vector<double>>(*Take("name: 'a' type: FLOATS floats: 1 floats: 2.5")),
              ElementsAre(1, 2.5));
  EXPECT_THAT(std::get<std::vector<int64_t>>(*Take("name: 'a' type: INTS")), ElementsAre());
  EXPECT_THAT(std::get<std::vector<std::string>>(*Take("name: 'a' type: STRINGS strings: 'x'")), ElementsAre("x"));
  const auto tensor = Take("name: 'a' type: TENSOR t { data_type: 7 dims: 2 int64_data: 3 int64_data: 4 }");
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(std::get<Tensor>(*tensor).GetDouble(1), 4);
}

TEST(TakeAttribute, OldFilesLeaveTheKindOut) {
  EXPECT_EQ(std::get<int64_t>(*Take("name: 'a' i: 0")), 0);
  EXPECT_EQ(std::get<double>(*Take("name: 'a' f: 2")), 2);
  EXPECT_THAT(std::get<std::vector<int64_t>>(*Take("name: 'a' ints: 1 ints: 2")), ElementsAre(1, 2));
}

TEST(TakeAttribute, WhatIsWrongNamesNodeAndAttribute) {
  const absl::Status empty = Take("name: 'pads'").status();
  EXPECT_EQ(empty.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(empty.message()), HasSubstr("Op \"n\": attribute \"pads\" is of a kind"));
  EXPECT_EQ(Take("name: 'a' type: GRAPH g { }").status().code(), absl::StatusCode::kUnimplemented);
  const absl::Status tensor = Take("name: 'a' type: TENSOR t { data_type: 1 dims: 3 float_data: 1 }").status();
  EXPECT_EQ(tensor.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(tensor.message()), HasSubstr("attribute \"a\": f32[3] needs 3 elements"));
  EXPECT_THAT(
      std::string(Take("name: 'a' type: TENSOR t { data_type: 1 dims: 1 data_location: EXTERNAL }").status().message()),
      HasSubstr("external data is not possible here"));
}

TEST(TakeConstantValue, EachFormOfAConstant) {
  const auto value = [](const std::string& text) {
    onnx::AttributeProto proto = Proto(text);
    return TakeConstantValue(&proto, "Constant \"c\"", nullptr);
  };
  EXPECT_EQ(value("name: 'value_float' f: 1.5")->GetDouble(0), 1.5);
  EXPECT_EQ(value("name: 'value_int' i: -3")->dtype(), DType::kI64);
  EXPECT_EQ(value("name: 'value_ints' ints: 1 ints: 2")->shape(), Shape{2});
  EXPECT_EQ(value("name: 'value_floats'")->shape(), Shape{0});
  EXPECT_EQ(value("name: 'value' t { data_type: 1 float_data: 2 }")->shape(), Shape{});
  const absl::Status strings = value("name: 'value_strings' strings: 'x'").status();
  EXPECT_EQ(strings.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(strings.message()), HasSubstr("Constant \"c\": attribute \"value_strings\""));
}

}  // namespace
}  // namespace fusion::onnx_import
