#include "compiler/schedule/nest/vectorised_reduction.h"

#include <gtest/gtest.h>

#include "absl/strings/str_format.h"
#include "compiler/schedule/testing/schedule_text.h"
#include "compiler/schedule/vector/vectorize.h"

namespace fusion {
namespace {

using testing::DraftedProgram;

TEST(VectoriseReduction, TheContiguousAxisBecomesTheLanesAndConstantsFollow) {
  // Rows by a matrix of three columns: neither 4 nor 3 results fill a vector, but a row has 64 elements.
  DraftedProgram drafted(R"(te p(%0: f32[4, 64, 5], %1: f32[64, 5, 3] const) {
  %2[i0<4, i1<3]: f32 = sum.f32(i2<5, i3<64) mul(%0[i0, i3, i2], %1[i3, i2, i1])
  return %2
})");
  Nest nest = drafted.NestOf();
  ASSERT_EQ(nest.reduction->axes.size(), 2u);
  const Nest before = nest;
  EXPECT_FALSE(VectoriseReduction(drafted.device, &nest, &drafted.draft.kernel)) << "5 is no vector, 64 is strided";
  EXPECT_TRUE(te::StructurallyEqual(nest.body[0], before.body[0]));
  EXPECT_TRUE(drafted.draft.kernel.packs.empty());

  DraftedProgram along(R"(te p(%0: f32[4, 5, 64], %1: f32[64, 5, 3] const) {
  %2[i0<4, i1<3]: f32 = sum.f32(i2<64, i3<5) mul(%0[i0, i3, i2], %1[i2, i3, i1])
  return %2
})");
  Nest found = along.NestOf();
  EXPECT_FALSE(StepOf(found, along.device).Is<movement::RowReduction>());
  ASSERT_TRUE(VectoriseReduction(along.device, &found, &along.draft.kernel));
  EXPECT_EQ(found.reduction->axes.back().extent, 64) << "the lanes are innermost";
  ASSERT_EQ(along.draft.kernel.packs.size(), 1u);
  EXPECT_EQ(along.draft.kernel.packs[0].axes.back().id, found.reduction->axes.back().id);
  EXPECT_TRUE(StepOf(found, along.device).Is<movement::RowReduction>());
}

TEST(VectoriseReduction, NeedsAWholeVectorAndConstantsThatDoNotGrow) {
  const auto vectorises = [](int depth, const char* right, const char* shape) {
    DraftedProgram drafted(absl::StrFormat(R"(te p(%%0: f32[200, %1$d], %%1: f32[%2$s] const) {
  %%2[i0<200, i1<3]: f32 = sum.f32(i2<%1$d) mul(%%0[i0, i2], %%1[%3$s])
  return %%2
})",
                                           depth, shape, right));
    Nest nest = drafted.NestOf();
    return VectoriseReduction(drafted.device, &nest, &drafted.draft.kernel);
  };
  EXPECT_TRUE(vectorises(64, "i2, i1", "64, 3"));
  EXPECT_FALSE(vectorises(8, "i2, i1", "8, 3")) << "half a vector";
  EXPECT_FALSE(vectorises(64, "2*i0 + 2*i2 + i1", "600")) << "windows of a constant, each packed apart";
}

}  // namespace
}  // namespace fusion
