#include "compiler/schedule/stitch/slide_windows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "compiler/movement/cost.h"
#include "compiler/movement/print.h"
#include "compiler/schedule/testing/schedule_text.h"

namespace fusion {
namespace {

using testing::Device;
using testing::OrFail;
using testing::Stages;

// Two 3 × 3 convolutions of 16 channels.
constexpr char kConvolutions[] =
    R"(te p(%0: f32[16, 28, 32], %1: f32[16, 16, 3, 3] const, %2: f32[16, 16, 3, 3] const) {
  %3[i0<16, i1<28, i2<32]: f32 =
    sum.f32(i3<16, i4<3, i5<3) mul(%0[i3, i1 + i4 - 1, i2 + i5 - 1]?0.0, %1[i0, i3, i4, i5])
  %4[i6<16, i7<28, i8<32]: f32 =
    sum.f32(i9<16, i10<3, i11<3) mul(%3[i9, i7 + i10 - 1, i8 + i11 - 1]?0.0, %2[i6, i9, i10, i11])
  return %4
})";

// The program in a form, with windows read where they lie, or from copies where those are cheaper.
ScheduledFusionBlock Form(const std::string& form, const DeviceModel& device = Device(), bool copies = false) {
  ScheduleOptions options;
  if (!copies) options.disabled_passes = {"copy-windows"};
  options.directives = {{-1, "form", form}};
  return OrFail(ScheduleFusionBlock(Stages(kConvolutions), {}, device, options));
}

TEST(SlideWindows, OnePhaseKeepsThreeRows) {
  const movement::Kernel kernel = Form("windows").kernel;
  ASSERT_EQ(kernel.phases.size(), 1u);
  const movement::Phase& phase = kernel.phases[0];
  EXPECT_EQ(phase.tasks(), 1);
  ASSERT_EQ(phase.task_loops.size(), 1u) << movement::Print(kernel);
  EXPECT_EQ(phase.task_loops[0].iterations, 29);
  std::vector<int64_t> rings;
  for (const movement::Buffer& buffer : kernel.buffers) {
    if (buffer.ring) rings.push_back(buffer.ring->rows);
  }
  EXPECT_EQ(rings, (std::vector<int64_t>{3}));
}

// Separate phases do the work that there is. A task of all columns does no more.
TEST(SlideWindows, ComputesNoRowTwice) {
  const DeviceModel device = Device();
  const double separate = movement::EstimateCost(Form("plain").kernel, device, 1).fma;
  EXPECT_EQ(movement::EstimateCost(Form("windows").kernel, device, 1).fma, separate);
  const double halos = movement::EstimateCost(Form("halos").kernel, device, 1).fma;
  EXPECT_GE(halos, separate);
}

// Units without a task get tiles of columns, each of which computes the halo of its columns, and no row twice.
TEST(SlideWindows, UnitsShareColumns) {
  DeviceModel device = Device();
  device.parallel_units = 2;
  const movement::Kernel kernel = Form("windows", device, /*copies=*/true).kernel;
  ASSERT_EQ(kernel.phases.size(), 1u);
  EXPECT_GE(kernel.phases[0].tasks(), 2) << movement::Print(kernel);
  const double work = movement::EstimateCost(kernel, device, 1).fma;
  const double separate = movement::EstimateCost(Form("plain").kernel, device, 1).fma;
  EXPECT_GT(work, separate);
  EXPECT_LT(work, 1.25 * separate);
}

// The form is made where a directive asks for it, and nowhere else.
TEST(SlideWindows, NothingChangesUnasked) {
  const ScheduledFusionBlock plain = OrFail(ScheduleFusionBlock(Stages(kConvolutions), {}, Device()));
  for (const ChoicePoint& choice : plain.choices) {
    if (choice.name != "form") continue;
    EXPECT_EQ(std::count(choice.labels.begin(), choice.labels.end(), "windows"), 0);
  }
}

}  // namespace
}  // namespace fusion
