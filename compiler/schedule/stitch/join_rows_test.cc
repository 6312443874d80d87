#include "compiler/schedule/stitch/join_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_format.h"
#include "compiler/movement/print.h"
#include "compiler/schedule/schedule_fusion_block.h"
#include "compiler/schedule/testing/schedule_text.h"

namespace fusion {
namespace {

using testing::Device;
using ::testing::ElementsAre;
using testing::GroupDevice;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::OrFail;
using testing::ParseTe;
using testing::Stages;

// Rows minus their maximum, of `rows` rows of `columns`.
te::Program Shifted(int64_t rows, int64_t columns) {
  te::Program program = Stages(absl::StrFormat(R"(te p(%%0: f32[%d, %d]) {
  %%1[i0<%d]: f32 = max.f32(i1<%d) %%0[i0, i1]
  %%2[i2<%d, i3<%d]: f32 = exp(sub(%%0[i2, i3], %%1[i2]))
  return %%2
})",
                                               rows, columns, rows, columns, rows, columns));
  for (size_t s = 0; s < program.tes.size(); ++s) program.tes[s].origins = {static_cast<int>(s)};
  return program;
}

std::vector<Scope> ScopesOf(const ScheduledFusionBlock& scheduled) {
  std::vector<Scope> scopes;
  for (const StageHandOver& hand_over : scheduled.hand_overs) scopes.push_back(hand_over.scope);
  return scopes;
}

ScheduledFusionBlock Asked(const te::Program& program, Scope nearest, Scope furthest, const DeviceModel& device) {
  ScheduleOptions options;
  options.hand_overs = {{1, 0, 1, nearest, furthest, true}};
  return OrFail(ScheduleFusionBlock(program, {}, device, options));
}

TEST(JoinRows, AReductionStaysInARegisterOfTheVector) {
  const ScheduledFusionBlock scheduled = OrFail(ScheduleFusionBlock(Shifted(256, 512), {}, Device()));
  EXPECT_THAT(ScopesOf(scheduled), ElementsAre(Scope::kWarp));
  ASSERT_EQ(scheduled.kernel.phases.at(0).row_nests.size(), 1u) << movement::Print(scheduled.kernel);
  EXPECT_EQ(scheduled.kernel.phases[0].row_nests[0].team, 1);
  EXPECT_EQ(scheduled.kernel.scratch_bytes, 0);
}

TEST(JoinRows, OrOfATeamOfWorkItems) {
  const ScheduledFusionBlock scheduled = OrFail(ScheduleFusionBlock(Shifted(4096, 128), {}, GroupDevice()));
  EXPECT_THAT(ScopesOf(scheduled), ElementsAre(Scope::kWarp));
  ASSERT_EQ(scheduled.kernel.phases.at(0).row_nests.size(), 1u) << movement::Print(scheduled.kernel);
  EXPECT_EQ(scheduled.kernel.phases[0].row_nests[0].team, 32);
}

// A work-group reads one long row together; a team of it would leave the others idle.
TEST(JoinRows, AWorkGroupSharesALongRow) {
  const te::Program program = Shifted(4096, 8192);
  const ScheduledFusionBlock scheduled = OrFail(ScheduleFusionBlock(program, {}, GroupDevice()));
  EXPECT_THAT(ScopesOf(scheduled), ElementsAre(Scope::kBlock)) << movement::Print(scheduled.kernel);
  // A plan may want it all the same.
  EXPECT_THAT(ScopesOf(Asked(program, Scope::kWarp, Scope::kWarp, GroupDevice())), ElementsAre(Scope::kWarp));
}

TEST(JoinRows, APlanMayWantScratch) {
  for (const DeviceModel& device : {Device(), GroupDevice()}) {
    const ScheduledFusionBlock scheduled = Asked(Shifted(4096, 128), Scope::kBlock, Scope::kBlock, device);
    EXPECT_THAT(ScopesOf(scheduled), ElementsAre(Scope::kBlock)) << movement::Print(scheduled.kernel);
    EXPECT_THAT(scheduled.kernel.phases.at(0).row_nests, IsEmpty());
  }
}

TEST(JoinRows, AMeasurementMayTakeThemApart) {
  const ScheduledFusionBlock scheduled = OrFail(ScheduleFusionBlock(Shifted(256, 512), {}, Device(), {{{"rows", 1}}}));
  EXPECT_THAT(ScopesOf(scheduled), ElementsAre(Scope::kBlock));
}

// A register keeps one element of a row.
TEST(JoinRows, ARefusalSaysWhy) {
  te::Program program = Stages(R"(te p(%0: f32[4096, 128]) {
  %1[i0<4096, i1<128]: f32 = exp(%0[i0, i1])
  %2[i2<4096]: f32 = sum.f32(i3<128) %1[i2, i3]
  %3[i4<4096, i5<128]: f32 = div(%1[i4, i5], %2[i4])
  return %3
})");
  ASSERT_EQ(program.tes.size(), 3u);
  for (size_t s = 0; s < program.tes.size(); ++s) program.tes[s].origins = {static_cast<int>(s)};
  program.tensors[1].name = "exponentials";
  for (const DeviceModel& device : {Device(), GroupDevice()}) {
    ScheduleOptions options;
    options.hand_overs = {{1, 0, 1, Scope::kWarp, Scope::kWarp, true}};
    const absl::Status refused = ScheduleFusionBlock(program, {}, device, options).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(std::string(refused.message()),
              "'exponentials' is handed over at block scope, and the plan allows warp: a row has several elements of "
              "it, and a register keeps one");
  }
}

// A core keeps scratch for one row instead of for all rows of its task, and attention's scores for all: tiles read
// them.
TEST(JoinRows, ScratchIsOfOneRowWhereOnlyTheNestReachesIt) {
  const ScheduledFusionBlock scheduled =
      OrFail(ScheduleFusionBlock(Stages(R"(te p(%0: f32[8, 64, 32], %1: f32[8, 32, 64], %2: f32[8, 64, 32]) {
  %3[i0<8, i1<64, i2<64]: f32 = sum.f32(i3<32) mul(%0[i0, i1, i3], %1[i0, i3, i2])
  %4[i4<8, i5<64]: f32 = max.f32(i6<64) %3[i4, i5, i6]
  %5[i7<8, i8<64, i9<64]: f32 = exp(sub(%3[i7, i8, i9], %4[i7, i8]))
  %6[i10<8, i11<64]: f32 = sum.f32(i12<64) %5[i10, i11, i12] then (div(1.0, acc0))
  %7[i13<8, i14<64, i15<64]: f32 = mul(%5[i13, i14, i15], %6[i13, i14])
  %8[i16<8, i17<64, i18<32]: f32 = sum.f32(i19<64) mul(%7[i16, i17, i19], %2[i16, i19, i18])
  return %8
})"),
                                 {}, Device()));
  const movement::Kernel& kernel = scheduled.kernel;
  ASSERT_EQ(kernel.phases.size(), 1u) << scheduled.reason;
  ASSERT_EQ(kernel.phases[0].row_nests.size(), 1u) << movement::Print(kernel);
  EXPECT_EQ(kernel.phases[0].row_nests[0].count, 4);
  for (const movement::Buffer& buffer : kernel.buffers) {
    if (buffer.tensor == 4 || buffer.tensor == 6) EXPECT_EQ(buffer.scope, Scope::kWarp);
    if (buffer.tensor == 5) EXPECT_EQ(buffer.elements, 64);
    if (buffer.tensor == 3 || buffer.tensor == 7) EXPECT_EQ(buffer.elements % 4096, 0);
  }
}

// The sums of short windows are computed for a vector of results at a time, which rows would undo.
TEST(JoinRows, VectorsOfResultsStay) {
  const ScheduledFusionBlock scheduled = OrFail(ScheduleFusionBlock(Stages(R"(te p(%0: f32[64, 66]) {
  %1[i0<64, i1<64]: f32 = max.f32(i2<3) %0[i0, i1 + i2]
  %2[i3<64, i4<64]: f32 = add(exp(%1[i3, i4]), erf(%1[i3, i4]))
  return %2, %1
})"),
                                                                    {}, Device()));
  for (const movement::Phase& phase : scheduled.kernel.phases) {
    EXPECT_THAT(phase.row_nests, IsEmpty()) << movement::Print(scheduled.kernel);
  }
}

// An index of an extreme is a general reduction: a core keeps it in a register, a team cannot share it.
TEST(JoinRows, GeneralReductions) {
  te::Program program = Stages(R"(te p(%0: f32[256, 512]) {
  %1, %2[i0<256]: f32, i64 = reduce(i1<512)(-inf, 0:i64) -> (max(acc0, %0[i0, i1]), select(lt(acc0, %0[i0, i1]), index(i1), acc1))
  %3[i2<256, i3<512]: f32 = sub(%0[i2, i3], %1[i2])
  return %3, %2
})");
  const ScheduledFusionBlock scheduled = OrFail(ScheduleFusionBlock(program, {}, GroupDevice()));
  for (const movement::Phase& phase : scheduled.kernel.phases) EXPECT_THAT(phase.row_nests, IsEmpty());
}

}  // namespace
}  // namespace fusion
