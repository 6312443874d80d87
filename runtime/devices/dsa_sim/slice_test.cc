#include "runtime/devices/dsa_sim/slice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <utility>
#include <vector>

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

using Ranges = std::vector<std::pair<int64_t, int64_t>>;

Program HalvesAt100() {
  Program program;
  program.buffers = {{"a", {}, 100, DType::kF16, 64}};
  return program;
}

Ranges RangesOf(const Slice& slice) {
  Ranges found;
  VisitRuns(ByteRunsOf(HalvesAt100(), slice), [&](int64_t begin, int64_t end) {
    found.emplace_back(begin, end);
    return true;
  });
  return found;
}

TEST(Slice, RunsJoinWhatIsContiguous) {
  EXPECT_EQ(RangesOf({0, 1, {{4, 8}, {8, 1}}}), (Ranges{{102, 166}}));
  EXPECT_EQ(RangesOf({0, 0, {{2, 16}, {3, 1}}}), (Ranges{{100, 106}, {132, 138}}));
  EXPECT_EQ(RangesOf({0, 0, {{5, 0}, {3, 1}, {7, 0}}}), (Ranges{{100, 106}}));
  EXPECT_EQ(RangesOf({0, 0, {{2, 4}}}), (Ranges{{100, 102}, {108, 110}}));
  // Rows that are turned or run backwards touch the same bytes.
  EXPECT_EQ(RangesOf({0, 0, {{8, 1}, {4, 8}}}), (Ranges{{100, 164}}));
  EXPECT_EQ(RangesOf({0, 31, {{4, -8}, {8, -1}}}), (Ranges{{100, 164}}));
  // Strides that continue each other are one, also where rows stand apart.
  EXPECT_EQ(ByteRunsOf(HalvesAt100(), {0, 0, {{2, 16}, {4, 4}, {2, 1}}}).outer, (std::vector<Stride>{{8, 8}}));
}

TEST(Slice, RunsVisitAllBoxes) {
  const Ranges expected = {{100, 102}, {104, 106}, {116, 118}, {120, 122},
                           {140, 142}, {144, 146}, {156, 158}, {160, 162}};
  EXPECT_EQ(RangesOf({0, 0, {{2, 20}, {2, 8}, {2, 2}}}), expected);
  int visited = 0;
  EXPECT_FALSE(VisitRuns(ByteRunsOf(HalvesAt100(), {0, 0, {{8, 4}}}), [&](int64_t, int64_t) { return ++visited < 3; }));
  EXPECT_EQ(visited, 3);
}

// Against sets of elements, on random slices.
TEST(Slice, OverlapsAreExact) {
  const Program program = HalvesAt100();
  std::mt19937 random(5);
  const auto any = [&](int low, int high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
  const auto slice = [&] {
    while (true) {
      Slice made{0, any(0, 63), {}};
      for (int64_t rank = any(0, 3); rank > 0; --rank) made.strides.push_back({any(1, 4), any(-9, 20)});
      const ElementRange range = TouchedElements(made);
      if (range.low >= 0 && range.high < 64) return made;
    }
  };
  const auto elements = [](const Slice& s) {
    std::vector<int64_t> found;
    for (const int64_t offset : Offsets(s.strides)) found.push_back(s.first + offset);
    std::sort(found.begin(), found.end());
    return found;
  };
  int overlaps = 0, twice = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    const Slice a = slice(), b = slice();
    std::vector<int64_t> of_a = elements(a), of_b = elements(b), both;
    std::set_intersection(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(), std::back_inserter(both));
    const ByteRuns runs_a = ByteRunsOf(program, a), runs_b = ByteRunsOf(program, b);
    EXPECT_EQ(Overlap(runs_a, runs_b), !both.empty());
    of_a.insert(of_a.end(), of_b.begin(), of_b.end());
    std::sort(of_a.begin(), of_a.end());
    const bool repeats = std::adjacent_find(of_a.begin(), of_a.end()) != of_a.end();
    EXPECT_EQ(TouchTwice({runs_a, runs_b}), repeats);
    overlaps += !both.empty();
    twice += repeats && both.empty();
  }
  EXPECT_GT(overlaps, 200);
  EXPECT_GT(twice, 200);
}

}  // namespace
}  // namespace fusion::dsa
