#include "runtime/bundle/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/bundle/manifest.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

nlohmann::json HeaderOf(const SafetensorsLayout& layout) {
  uint64_t length = 0;
  std::memcpy(&length, layout.header.data(), 8);
  EXPECT_EQ(length + 8, layout.header.size());
  return nlohmann::json::parse(layout.header.substr(8));
}

TEST(LayOutSafetensors, EveryByteBelongsToATensor) {
  const std::vector<WeightInfo> weights = {{"a", DType::kF32, {3}},        {"b", DType::kI64, {2, 2}},
                                           {"large", DType::kF32, {2000}}, {"empty", DType::kF32, {0}},
                                           {"~gap0", DType::kI8, {5}},     {"scalar", DType::kF16, {}}};
  const auto layout = LayOutSafetensors(weights);
  ASSERT_TRUE(layout.ok()) << layout.status();
  const nlohmann::json header = HeaderOf(*layout);
  std::vector<std::pair<int64_t, int64_t>> ranges;
  for (const auto& [name, entry] : header.items()) {
    ranges.emplace_back(entry["data_offsets"][0], entry["data_offsets"][1]);
  }
  std::sort(ranges.begin(), ranges.end());
  int64_t end = 0;
  for (const auto& [begin, next] : ranges) {
    EXPECT_EQ(begin, end);
    end = next;
  }
  EXPECT_EQ(end, layout->data_bytes);
  for (size_t w = 0; w < weights.size(); ++w) {
    const nlohmann::json& entry = header[weights[w].name];
    EXPECT_EQ(entry["data_offsets"][0], layout->offsets[w]) << weights[w].name;
    EXPECT_EQ(entry["shape"].get<Shape>(), weights[w].shape);
    EXPECT_EQ(layout->offsets[w] % kBufferAlignBytes, 0) << weights[w].name;
  }
  EXPECT_EQ(layout->offsets[2] % 512, 0) << "kernels stream through it";
  EXPECT_EQ(header["a"]["dtype"], "F32");
  EXPECT_EQ(header["scalar"]["dtype"], "F16");
}

TEST(LayOutSafetensors, TypesThatOthersDoNotKnowAreBytes) {
  const auto layout = LayOutSafetensors({{"w", DType::kI4, {8}}});
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_EQ(HeaderOf(*layout)["w"]["dtype"], "U8");
  EXPECT_EQ(layout->sizes_bytes[0], 8);
}

TEST(LayOutSafetensors, RefusesNamesThatMeetAndShapesThatNothingHolds) {
  EXPECT_EQ(LayOutSafetensors({{"a", DType::kF32, {1}}, {"a", DType::kF32, {1}}}).status().code(),
            absl::StatusCode::kInternal);
  EXPECT_EQ(LayOutSafetensors({{"__metadata__", DType::kF32, {1}}}).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(LayOutSafetensors({{"a", DType::kF32, {int64_t{1} << 40, int64_t{1} << 40}}}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(LayOutSafetensors, TheDataBeginsWhereTheFileIsMappedAligned) {
  for (const int64_t file_offset : {0, 64, 448, 1000 * 64}) {
    auto layout = LayOutSafetensors({{absl::StrCat("a name of some length ", file_offset), DType::kF32, {4}}});
    ASSERT_TRUE(layout.ok());
    layout->AlignData(file_offset);
    EXPECT_EQ((file_offset + static_cast<int64_t>(layout->header.size())) % 512, 0) << file_offset;
    EXPECT_EQ(HeaderOf(*layout).size(), 1u) << "still the same header";
  }
}

TEST(SafetensorsData, IsWhatFollowsTheHeader) {
  const auto layout = LayOutSafetensors({{"w", DType::kU8, {5}}});
  ASSERT_TRUE(layout.ok());
  const std::string file = layout->header + "bytes";
  EXPECT_EQ(*SafetensorsData(file), "bytes");
}

TEST(SafetensorsData, AHeaderThatDoesNotFitIsDamage) {
  const auto with_length = [](uint64_t length, size_t size) {
    std::string file(size, ' ');
    std::memcpy(file.data(), &length, 8);
    return file;
  };
  for (const std::string& file : {std::string(), std::string(7, ' '), with_length(56, 63), with_length(57, 200),
                                  with_length(~uint64_t{0}, 64), with_length(~uint64_t{7}, 64)}) {
    EXPECT_EQ(SafetensorsData(file).status().code(), absl::StatusCode::kDataLoss) << file.size();
  }
  EXPECT_EQ(*SafetensorsData(with_length(56, 64)), "");
}

}  // namespace
}  // namespace fusion
