#include "compiler/movement/print.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "compiler/movement/testing/sample_kernel.h"

namespace fusion::movement {
namespace {

using ::fusion::movement::testing::Sample;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Print, IsFreeOfNames) {
  Kernel kernel = Sample();
  const std::string text = Print(kernel);
  kernel.phases[0].steps[0].label = "another";
  kernel.buffers[0].tensor = 12;
  EXPECT_EQ(Print(kernel), text);
  EXPECT_THAT(text, HasSubstr("parallel (i0<4)"));
  kernel.phases[0].steps[0].strategy = ScalarLoops();
  EXPECT_NE(Print(kernel), text);
}

// The hash of the text is the key of stored measurements, so that everything in a strategy must be in it.
TEST(Print, HoldsWhatTheStrategyNeeds) {
  const auto printed = [](Strategy strategy) {
    Kernel kernel = Sample();
    kernel.phases[0].steps[0].strategy = std::move(strategy);
    return Print(kernel);
  };
  EXPECT_THAT(printed(ScalarLoops()), HasSubstr("step scalar {\n"));
  EXPECT_THAT(printed(VectorMap{1, true, true, {0, 2, {0, 1}}}),
              HasSubstr("step map{lanes i1 streaming rest in a vector} next i0 + 2 of b0, b1 {\n"));
  EXPECT_THAT(printed(BlockedTranspose{1, 0, true}), HasSubstr("step transpose{lanes i1 across i0 streaming} {\n"));
  EXPECT_THAT(printed(RowReduction{1}), HasSubstr("step row_reduction{lanes i1} {\n"));
  EXPECT_THAT(printed(PrefixPass{}), HasSubstr("step prefix {\n"));
  EXPECT_THAT(printed(PrefixPass{1}), HasSubstr("step prefix{lanes i1} {\n"));
  RegisterTile tile{.lane_axis = 1, .store_limit = Bound{0, 9}};
  tile.prefetch.emplace_back().buffer = 0;
  tile.prefetch[0].ahead = 64;
  tile.prefetch.push_back({.buffer = 2, .next_rows = true});
  EXPECT_THAT(printed(tile),
              AllOf(HasSubstr("step tile{1x1 rows i-1 vectors i-1 lanes i1 unroll 1} {\n    prefetch b0 ahead 64\n"
                              "    prefetch b2 next rows\n"),
                    HasSubstr("store if 0 < 9\n")));
  ThreadgroupTile threadgroup;
  threadgroup.rows = threadgroup.buffers = 2;
  threadgroup.shared_copies.emplace_back().strategy = RowReduction{5};
  EXPECT_THAT(printed(threadgroup),
              HasSubstr("step threadgroup_tile{2x1 of 1x1 rows i-1 columns i-1 buffers 2} {\n  step row_reduction"));
  EXPECT_THAT(printed(RoutineCall{"sort", DType::kF32, {0, 1}, {7, 8}}),
              HasSubstr("step scalar sort.f32(b0, b1) {7, 8} {\n"));
}

}  // namespace
}  // namespace fusion::movement
