#include "compiler/schedule/vector/prefetch_reads.h"

#include <gtest/gtest.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/testing/schedule_text.h"

namespace fusion {
namespace {

// The prefetches of a step that is a map; nothing where the step is no map.
movement::ReadNext ReadNextOf(const movement::Step& step) {
  const auto* map = step.As<movement::VectorMap>();
  return map != nullptr ? map->read_next : movement::ReadNext();
}

using testing::Device;
using testing::Schedule;
using testing::Stages;

constexpr char kSoftmax[] = R"(te p(%0: f32[512, 64]) {
  %1[i0<512]: f32 = max.f32(i1<64) %0[i0, i1]
  %2[i2<512, i3<64]: f32 = exp(sub(%0[i2, i3], %1[i2]))
  %3[i4<512]: f32 = sum.f32(i5<64) %2[i4, i5]
  %4[i6<512, i7<64]: f32 = div(%2[i6, i7], %3[i6])
  return %4
})";

TEST(PrefetchReads, CostlyMapsAskForVectorsAhead) {
  const auto map = [](const char* body, const DeviceModel& device = Device()) {
    return Schedule(absl::StrCat("te p(%0: f32[1048576]) {\n  %1[i0<1048576]: f32 = ", body, "\n  return %1\n}"), {},
                    device)
        .kernel.phases.at(0)
        .steps[0];
  };
  EXPECT_EQ(ReadNextOf(map("max(%0[i0], 0.0)")).axis, -1);
  const movement::Step step = map("erf(%0[i0])");
  EXPECT_EQ(ReadNextOf(step).axis, step.loops.back().axis.id);
  EXPECT_EQ(ReadNextOf(step).distance, 256);  // 16 lines of 16 elements
  DeviceModel other = Device();
  other.lines_in_flight = 10;
  other.line_bytes = 128;
  EXPECT_EQ(ReadNextOf(map("erf(%0[i0])", other)).distance, 320);
}

TEST(PrefetchReads, RowsBeyondTheCachesAreAskedForATaskAhead) {
  for (const movement::Step& step : Schedule(kSoftmax).kernel.phases.at(0).steps) EXPECT_EQ(ReadNextOf(step).axis, -1);
  DeviceModel small = Device();
  small.memory[1].size_bytes = 64 << 10;  // the rows that are read take 128 KiB
  const absl::StatusOr<ScheduledFusionBlock> scheduled = ScheduleFusionBlock(Stages(kSoftmax), {}, small);
  ASSERT_TRUE(scheduled.ok()) << scheduled.status();
  const movement::Phase& phase = scheduled->kernel.phases.at(0);
  ASSERT_EQ(phase.steps.size(), 4u);
  for (size_t s = 0; s < 4; ++s) {
    // The maximum and the exponentials both read the rows; the exponentials take longer, so they prefetch.
    const bool asks = s == 1;
    EXPECT_EQ(ReadNextOf(phase.steps[s]).axis, asks ? phase.grid.back().id : -1) << s;
    EXPECT_EQ(ReadNextOf(phase.steps[s]).buffers, asks ? std::vector<int>{0} : std::vector<int>{}) << s;
  }
}

}  // namespace
}  // namespace fusion
