#include "compiler/onnx/tensor_import.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/model_text.h"

namespace fusion::onnx_import {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

onnx::TensorProto Proto(const std::string& text) {
  onnx::TensorProto proto;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &proto)) << text;
  return proto;
}

absl::StatusOr<Tensor> Take(onnx::TensorProto proto, ExternalFiles* files = nullptr) {
  return TakeTensor(&proto, "initializer \"w\"", files);
}
absl::StatusOr<Tensor> Take(const std::string& text) { return Take(Proto(text)); }

std::vector<double> Elements(const absl::StatusOr<Tensor>& tensor) {
  EXPECT_TRUE(tensor.ok()) << tensor.status();
  std::vector<double> elements;
  for (int64_t i = 0; tensor.ok() && i < tensor->num_elements(); ++i) elements.push_back(tensor->GetDouble(i));
  return elements;
}

void ExpectRefused(const absl::StatusOr<Tensor>& tensor, const std::string& why,
                   absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
  EXPECT_EQ(tensor.status().code(), code) << why;
  EXPECT_THAT(std::string(tensor.status().message()), HasSubstr(why));
  EXPECT_THAT(std::string(tensor.status().message()), HasSubstr("initializer \"w\""));
}

TEST(TakeTensor, TypedFields) {
  EXPECT_THAT(Elements(Take("data_type: 1 dims: 2 float_data: 1.5 float_data: -2")), ElementsAre(1.5, -2));
  EXPECT_THAT(Elements(Take("data_type: 7 int64_data: -9")), ElementsAre(-9));
  EXPECT_THAT(Elements(Take("data_type: 3 dims: 2 int32_data: -1 int32_data: 127")), ElementsAre(-1, 127));
  EXPECT_THAT(Elements(Take("data_type: 10 dims: 1 int32_data: 15360")), ElementsAre(1)) << "bits of an f16";
  EXPECT_THAT(Elements(Take("data_type: 9 dims: 2 int32_data: 0 int32_data: 5")), ElementsAre(0, 1)) << "a truth";
  EXPECT_THAT(Elements(Take("data_type: 12 dims: 1 uint64_data: 4294967295")), ElementsAre(4294967295.0));
}

TEST(TakeTensor, RawDataIsTakenWithoutACopy) {
  onnx::TensorProto proto = Proto("data_type: 1 dims: 300");
  std::vector<float> numbers(300);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  proto.mutable_raw_data()->assign(reinterpret_cast<const char*>(numbers.data()), 1200);
  const void* bytes = proto.raw_data().data();
  const auto tensor = TakeTensor(&proto, "w", nullptr);
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(tensor->data(), bytes);
  EXPECT_EQ(tensor->as<float>()[299], 299);
  EXPECT_TRUE(proto.raw_data().empty());
}

TEST(TakeTensor, TruthsOfRawDataAreZeroOrOne) {
  onnx::TensorProto proto = Proto("data_type: 9 dims: 3");
  proto.set_raw_data(std::string("\x00\x02\xff", 3));
  EXPECT_THAT(Elements(Take(proto)), ElementsAre(0, 1, 1));
}

TEST(TakeTensor, ElementsOfFewBitsAreUnpacked) {
  // u4 and i4, the first element in the low bits; the last byte is half empty.
  onnx::TensorProto u4 = Proto("data_type: 21 dims: 3"), i4 = Proto("data_type: 22 dims: 3");
  for (onnx::TensorProto* proto : {&u4, &i4}) proto->set_raw_data(std::string("\xa1\x0f", 2));
  EXPECT_THAT(Elements(Take(u4)), ElementsAre(1, 10, 15));
  EXPECT_THAT(Elements(Take(i4)), ElementsAre(1, -6, -1));
  EXPECT_THAT(Elements(Take("data_type: 21 dims: 3 int32_data: 161 int32_data: 15")), ElementsAre(1, 10, 15));
  ExpectRefused(Take("data_type: 21 dims: 3 int32_data: 161"), "needs 2 bytes, the model stores 1");
}

TEST(TakeTensor, SizesMustAgree) {
  ExpectRefused(Take("data_type: 1 dims: 3 float_data: 1"), "f32[3] needs 3 elements, the model stores 1");
  ExpectRefused(Take("data_type: 1 dims: 1 double_data: 1"), "the model stores 0");
  onnx::TensorProto raw = Proto("data_type: 1 dims: 2");
  raw.set_raw_data("1234567");
  ExpectRefused(Take(raw), "f32[2] needs 8 bytes, the model stores 7");
  ExpectRefused(Take("data_type: 1 dims: -1"), "-1");
  ExpectRefused(Take("data_type: 1 dims: 4294967296 dims: 4294967296 dims: 4294967296"), "4294967296");
  std::string deep = "data_type: 1";
  for (int d = 0; d < 33; ++d) deep += " dims: 1";
  ExpectRefused(Take(deep), "rank 33 exceeds 32");
  EXPECT_EQ(Take("data_type: 1 dims: 0 dims: 5")->num_elements(), 0) << "no data is right for no elements";
}

TEST(TakeTensor, TypesThatAreNotThereAreNamed) {
  ExpectRefused(Take("data_type: 8 string_data: 'x'"), "element type STRING is not supported",
                absl::StatusCode::kUnimplemented);
  ExpectRefused(Take("data_type: 99"), "element type number 99", absl::StatusCode::kUnimplemented);
  ExpectRefused(Take("dims: 1"), "element type is missing");
}

TEST(TakeTensor, ExternalData) {
  const TemporaryFile file(std::string("\0\0\0\0\0\0\x80\x3f\0\0\0\x40", 12));  // 0, 1, 2
  const std::map<std::string, std::string> paths = {{"weights.bin", file.path()}};
  const auto take = [&](const std::string& location, const std::string& offset, const std::string& length,
                        int64_t count = 2) {
    ExternalFiles files(&paths);
    onnx::TensorProto proto = Proto(absl::StrCat("data_type: 1 dims: ", count, " data_location: EXTERNAL"));
    const auto add = [&](const std::string& key, const std::string& value) {
      if (value.empty()) return;
      auto* entry = proto.add_external_data();
      entry->set_key(key), entry->set_value(value);
    };
    add("location", location), add("offset", offset), add("length", length);
    return Take(proto, &files);
  };
  EXPECT_THAT(Elements(take("weights.bin", "4", "8")), ElementsAre(1, 2));
  EXPECT_THAT(Elements(take("weights.bin", "", "", 3)), ElementsAre(0, 1, 2));
  ExpectRefused(take("weights.bin", "8", ""), "8 bytes from offset 8 of external file");
  ExpectRefused(take("weights.bin", "9223372036854775807", ""), "the file has 12");
  ExpectRefused(take("weights.bin", "-4", ""), "external data with offset \"-4\"");
  ExpectRefused(take("weights.bin", "4", "99999999999999999999"), "external data with length");
  ExpectRefused(take("weights.bin", "4", "4"), "needs 8 bytes, the model stores 4");
  ExpectRefused(take("../secret", "", ""), "was not given");
  ExpectRefused(take("", "", ""), "was not given");
}

TEST(Quoted, EscapesWhatSteersATerminal) {
  EXPECT_EQ(Quoted("a\033[2J\"\n"), "\"a\\x1b[2J\\\"\\n\"");
  EXPECT_EQ(Quoted("größe"), "\"größe\"");
}

}  // namespace
}  // namespace fusion::onnx_import
