#include "compiler/schedule/tile/register_tile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/movement/print.h"
#include "compiler/schedule/testing/schedule_text.h"

namespace fusion {
namespace {

using testing::Device;
using testing::Schedule;
using testing::Stages;
using testing::Strategies;

TEST(RegisterTile, LeavesBodiesWithoutAVectorFormAlone) {
  for (const char* body : {"cast.f32(mod(cast.i32(%0[i1, i0]), cast.i32(%0[i1, 0])))",
                           "cast.f32(shr(cast.i32(%0[i1, i0]), cast.i32(%0[i1, 0])))"}) {
    const ScheduledFusionBlock scheduled =
        Schedule(absl::StrCat("te p(%0: f32[40, 64]) {\n  %1[i0<64]: f32 = sum.f32(i1<40) ", body, "\n  return %1\n}"));
    for (const movement::Step& step : scheduled.kernel.phases.at(0).steps) {
      EXPECT_FALSE(step.Is<movement::RegisterTile>()) << body;
    }
  }
  const ScheduledFusionBlock known =
      Schedule("te p(%0: f32[40, 64]) {\n  %1[i0<64]: f32 = sum.f32(i1<40) exp(%0[i1, i0])\n  return %1\n}");
  EXPECT_TRUE(known.kernel.phases.at(0).steps[0].Is<movement::RegisterTile>());
}

TEST(RegisterTile, ChannelsThatFillNoWholeBlockStillAreLanes) {
  const Layout blocked{1, 16};
  const ScheduledFusionBlock scheduled = Schedule(R"(te p(%0: f32[1, 58, 28, 28], %1: f32[58, 3, 3] const) {
  %2[i0<1, i1<58, i2<28, i3<28]: f32 = sum.f32(i4<3, i5<3) mul(%0[i0, i1, i2 + i4 - 1, i3 + i5 - 1]?0.0, %1[i1, i4, i5])
  return %2
})",
                                                  {{0, blocked}, {2, blocked}});
  EXPECT_TRUE(scheduled.kernel.phases.at(0).steps[0].Is<movement::RegisterTile>());
}

// A task of a chain of windows may need nothing of a stage, whose loops then have no iterations.
TEST(RegisterTile, AStageOfWhichATaskNeedsNothingIsRefused) {
  testing::DraftedProgram program(R"(te p(%0: f32[64, 256], %1: f32[256, 64] const) {
  %2[i0<64, i1<64]: f32 = sum.f32(i2<256) mul(%0[i0, i2], %1[i2, i1])
  return %2
})");
  Nest nest = program.NestOf();
  nest.axes.at(0).extent = 0;
  KernelDraft& draft = program.draft;
  const absl::Status status =
      TilePhase(nest, program.device, &draft.kernel, &draft.axes, draft.choices, TileHome::kTask).status();
  EXPECT_EQ(status.message(), "no task reads a result of the stage");
}

// Rows are the vectors of an axis that ends inside of one; tasks share them out.
TEST(RegisterTile, TasksOfVectorsStoreNothingPastTheLastLane) {
  const ScheduledFusionBlock scheduled = Schedule(R"(te p(%0: f32[1, 127, 1], %1: f32[127, 127, 1, 2] const) {
  %2[i0<1, i1<127, i2<2]: f32 = sum.f32(i3<127, i4<1) mul(%0[i0, i3, i4], %1[i1, i3, i4, i2])
  return %2
})");
  const movement::Phase& phase = scheduled.kernel.phases.at(0);
  ASSERT_EQ(phase.tasks(), 2);
  const movement::Step& step = phase.steps.at(0);
  const movement::Bound* const limit = movement::StoreLimitOf(step);
  ASSERT_NE(limit, nullptr);
  EXPECT_EQ(limit->limit, 127);
  std::set<int> bound;
  for (const te::Axis& axis : phase.grid) bound.insert(axis.id);
  for (const movement::Loop& loop : step.loops) bound.insert(loop.axis.id);
  std::vector<te::Axis> used;
  te::CollectAxes(limit->index, &used);
  EXPECT_EQ(used.size(), 3);  // task, row and lane
  for (const te::Axis& axis : used) EXPECT_EQ(bound.count(axis.id), 1) << "i" << axis.id;
}

// One row of the left operand alone exceeds what a task may keep near, so a task has the rows of one tile.
TEST(RegisterTile, RowsLargerThanTheCacheAreOneTileEach) {
  DeviceModel small = Device();
  small.memory = {{"L1", 2048, 2e11, false}, {"DRAM", 0, 1e10, true}};
  const ScheduledFusionBlock scheduled = Schedule(R"(te p(%0: f32[64, 4096], %1: f32[4096, 64] const) {
  %2[i0<64, i1<64]: f32 = sum.f32(i2<4096) mul(%0[i0, i2], %1[i2, i1])
  return %2
})",
                                                  {}, small);
  const auto* tile = scheduled.kernel.phases.at(0).steps.back().As<movement::RegisterTile>();
  ASSERT_NE(tile, nullptr);
  EXPECT_GE(scheduled.kernel.phases.at(0).tasks(), 64 / tile->row_count);
}

// Each step of the reduction finds the rows in another of `blocks` places. Only rows that the core's own caches do not
// hold, in more places than the hardware follows, are prefetched.
TEST(RegisterTile, FarRowsOfManyPlacesArePrefetched) {
  const auto prefetched = [](int blocks, int rows, int inner) {
    const ScheduledFusionBlock scheduled = Schedule(absl::StrFormat(
        R"(te p(%%0: f32[%1$d, %2$d, %3$d], %%1: f32[%1$d, %3$d, 16]) {
  %%2[i0<%2$d, i1<16]: f32 = sum.f32(i2<%1$d, i3<%3$d) mul(%%0[i2, i0, i3], %%1[i2, i3, i1])
  return %%2
})",
        blocks, rows, inner));
    const auto* const tile = scheduled.kernel.phases.at(0).steps.back().As<movement::RegisterTile>();
    EXPECT_NE(tile, nullptr);
    return tile != nullptr && std::any_of(tile->prefetch.begin(), tile->prefetch.end(), [](const auto& prefetch) {
             return prefetch.next_rows && prefetch.buffer == 0;
           });
  };
  EXPECT_TRUE(prefetched(32, 4096, 16));
  EXPECT_FALSE(prefetched(32, 64, 16)) << "they stay in the cache";
  EXPECT_FALSE(prefetched(8, 16384, 16)) << "few places";
  EXPECT_FALSE(prefetched(32, 4096, 64)) << "one after another in several lines";
}

// Rows lie half a page apart: vectors are gathered first where many rows of the result read them.
TEST(RegisterTile, FarVectorsArePacked) {
  const auto product = [](int rows, int pitch) {
    const ScheduledFusionBlock scheduled = Schedule(absl::StrFormat(R"(te p(%%0: f32[%d, 256], %%1: f32[256, %d]) {
  %%2[i0<%d, i1<64]: f32 = sum.f32(i2<256) mul(%%0[i0, i2], %%1[i2, i1])
  return %%2
})",
                                                                    rows, pitch, rows));
    return Strategies(scheduled.kernel.phases.at(0));
  };
  EXPECT_EQ(product(128, 768), (std::vector<std::string>{"map", "tile"}));
  EXPECT_EQ(product(128, 64), (std::vector<std::string>{"tile"}));
  EXPECT_EQ(product(14, 768), (std::vector<std::string>{"tile"}));
}

// With pixels as lanes every task would copy the image, and the weights of neighbouring rows lie 3 to 48 KiB apart.
// With channels as lanes tasks read neighbouring pixels, and weights that are packed at compile time.
TEST(RegisterTile, APlainImageBehindABlockedResultIsBroadcast) {
  for (int channels : {256, 384, 768}) {
    for (int lanes : {8, 16}) {
      const std::string text = absl::StrFormat(
          "te p(%%0: f32[1, %1$d, 14, 14], %%1: f32[%1$d, %1$d] const) {\n"
          "  %%2[i0<1, i1<%1$d, i2<14, i3<14]: f32 = sum.f32(i4<%1$d) mul(%%0[i0, i4, i2, i3], %%1[i1, i4])\n"
          "  return %%2\n}",
          channels);
      const auto scheduled =
          ScheduleFusionBlock(Stages(text), {{2, Layout{1, lanes}}}, Device(4 * lanes, lanes == 8 ? 16 : 32));
      ASSERT_TRUE(scheduled.ok()) << scheduled.status();
      EXPECT_EQ(Strategies(scheduled->kernel.phases.at(0)), std::vector<std::string>{"tile"})
          << movement::Print(scheduled->kernel);
    }
  }
}

}  // namespace
}  // namespace fusion
