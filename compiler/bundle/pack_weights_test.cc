#include "compiler/bundle/pack_weights.h"

#include <gtest/gtest.h>

#include "compiler/movement/pack_constant.h"

namespace fusion {
namespace {

Tensor Counted(const Shape& shape) {
  Tensor tensor(DType::kF32, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.mutable_as<float>()[i] = static_cast<float>(i % 8191);
  return tensor;
}

// Packs [k, n] in panels of 16 columns.
movement::Pack Panels(int64_t k, int64_t n) {
  const te::Axis tile{0, (n + 15) / 16}, row{1, k}, lane{2, 16};
  movement::Pack pack;
  pack.axes = {tile, row, lane};
  const te::Index column = te::Index(tile) * 16 + te::Index(lane);
  pack.address = te::Index(row) * n + column;
  pack.pred = {{column, te::Cmp::kLt, te::Index(n)}};
  return pack;
}

class PackWeightsTest : public ::testing::Test {
 protected:
  PackWeightsTest() {
    // Transforms the third dimension of a filter from three elements to eight.
    Tensor matrix = Counted({8, 3});
    filtered_.transform.by_dimension = {{2, matrix}};
    const te::Axis tap{0, 8}, block{1, 90000};
    filtered_.axes = {tap, block};
    filtered_.address = te::Index(block) * 8 + te::Index(tap);
    weights_ = {{Counted({7}), nullptr},
                {Counted({1100, 2050}), &large_},
                {Counted({0}), nullptr},
                {Counted({300, 300, 3}), &filtered_},
                {Counted({5, 3}), &small_}};
  }

  const movement::Pack large_ = Panels(1100, 2050), small_ = Panels(5, 3);
  movement::Pack filtered_;
  std::vector<WeightToPack> weights_;
};

TEST_F(PackWeightsTest, TheSameBytesWithAnyNumberOfThreads) {
  std::string expected;
  for (const WeightToPack& weight : weights_) {
    const Tensor bytes = weight.pack == nullptr ? weight.source : movement::PackedConstant(*weight.pack, weight.source);
    expected.append(static_cast<const char*>(bytes.data()), bytes.size_bytes());
  }
  for (const int threads : {0, 1, 2, 3, 16}) {
    std::string packed;
    size_t pieces = 0;
    const absl::Status status = PackWeights(weights_, threads, [&](absl::string_view bytes) {
      packed.append(bytes.data(), bytes.size());
      ++pieces;
      return absl::OkStatus();
    });
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(packed.size(), expected.size());
    EXPECT_TRUE(packed == expected) << threads << " threads";
    EXPECT_GT(pieces, weights_.size());  // large weights are cut into pieces, so that threads share them
  }
}

TEST_F(PackWeightsTest, EndsWithTheFirstError) {
  for (const size_t fails : {0, 1, 3, 6}) {
    size_t calls = 0;
    const absl::Status status = PackWeights(weights_, 2, [&](absl::string_view) {
      return calls++ == fails ? absl::ResourceExhaustedError("the disk is full") : absl::OkStatus();
    });
    EXPECT_EQ(status, absl::ResourceExhaustedError("the disk is full"));
    EXPECT_EQ(calls, fails + 1);
  }
}

}  // namespace
}  // namespace fusion
