#include "runtime/devices/dsa_sim/slice.h"

#include <gtest/gtest.h>

namespace fusion::dsa {
namespace {

TEST(Slice, OffsetsRunOverTheLastIndexFirst) {
  EXPECT_EQ(Offsets({}), std::vector<int64_t>{0});
  EXPECT_EQ(Offsets({{2, 10}, {3, 1}}), (std::vector<int64_t>{0, 1, 2, 10, 11, 12}));
  EXPECT_EQ(Offsets({{2, -1}}), (std::vector<int64_t>{0, -1}));
}

TEST(Slice, TouchedElementsHoldNegativeStrides) {
  const ElementRange range = TouchedElements(Slice{0, 10, {{3, -2}, {4, 1}}});
  EXPECT_EQ(range.low, 6);
  EXPECT_EQ(range.high, 13);
}

TEST(Slice, ByteRangesJoinWhatIsContiguous) {
  Program program;
  program.buffers = {{"a", {}, 100, DType::kF16, 64}};
  const auto ranges = [&](Slice slice) {
    std::vector<std::pair<int64_t, int64_t>> found;
    VisitByteRanges(program, slice, [&](int64_t begin, int64_t end) { found.emplace_back(begin, end); });
    return found;
  };
  using Ranges = std::vector<std::pair<int64_t, int64_t>>;
  EXPECT_EQ(ranges({0, 1, {{4, 8}, {8, 1}}}), (Ranges{{102, 166}}));
  EXPECT_EQ(ranges({0, 0, {{2, 16}, {3, 1}}}), (Ranges{{100, 106}, {132, 138}}));
  EXPECT_EQ(ranges({0, 0, {{5, 0}, {3, 1}, {7, 0}}}), (Ranges{{100, 106}}));
  EXPECT_EQ(ranges({0, 0, {{2, 4}}}), (Ranges{{100, 102}, {108, 110}}));
}

}  // namespace
}  // namespace fusion::dsa
