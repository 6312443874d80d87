#include "compiler/schedule/nest/column_reduction.h"

#include <gtest/gtest.h>

#include <vector>

#include "absl/strings/str_format.h"
#include "compiler/movement/print.h"
#include "compiler/schedule/testing/schedule_text.h"

namespace fusion {
namespace {

using testing::Schedule;
using testing::Strategies;

TEST(ColumnReductions, RowsBeyondTheCachesAreReadAsTheyLie) {
  const auto mean = [](int rows, int columns) {
    return Schedule(
        absl::StrFormat("te p(%%0: f32[%d, %d]) {\n  %%1[i0<%d]: f32 = sum.f32(i1<%d) %%0[i1, i0] then "
                        "(mul(acc0, 0.5))\n  return %%1\n}",
                        rows, columns, columns, rows));
  };
  const ScheduledFusionBlock far = mean(4096, 768);
  ASSERT_EQ(far.kernel.phases.size(), 2u);  // parts of the rows, then their sums
  EXPECT_EQ(far.kernel.phases.at(0).tasks(), 4);
  EXPECT_EQ(Strategies(far.kernel.phases.at(0)), std::vector<std::string>(3, "map"));
  EXPECT_EQ(mean(64, 768).kernel.phases.size(), 1u);    // these rows stay in the cache
  EXPECT_EQ(mean(65536, 64).kernel.phases.size(), 1u);  // these sums fit registers
}

// Rows of 500 columns are not whole vectors, and what is read once is not worth copying.
TEST(ColumnReductions, RowsTimesMatricesReadTheMatricesAsTheyLie) {
  const auto products = [](int rows, int columns) {
    return Schedule(
        absl::StrFormat("te p(%%0: f32[8, %d], %%1: f32[8, %d, %d]) {\n  %%2[i0<8, i1<%d]: f32 = sum.f32(i2<%d) "
                        "mul(%%0[i0, i2], %%1[i0, i2, i1])\n  return %%2\n}",
                        rows, rows, columns, columns, rows));
  };
  for (const ScheduledFusionBlock& block : {products(64, 500), products(1024, 500), products(64, 50)}) {
    EXPECT_EQ(Strategies(block.kernel.phases.at(0)), std::vector<std::string>(3, "map"));
  }
  EXPECT_EQ(Strategies(products(64, 256).kernel.phases.at(0)), std::vector<std::string>{"tile"});  // within the caches
}

TEST(ColumnReductions, WeightsArePackedInstead) {
  const auto row_by = [](const char* matrix) {
    return Schedule(
        absl::StrFormat("te p(%%0: f32[1024], %%1: f32[1024, 768]%s) {\n  %%2[i0<768]: f32 = sum.f32(i1<1024) "
                        "mul(%%0[i1], %%1[i1, i0]) then (mul(acc0, 0.5))\n  return %%2\n}",
                        matrix));
  };
  EXPECT_EQ(row_by("").kernel.phases.size(), 2u);
  const ScheduledFusionBlock product = row_by(" const");
  EXPECT_EQ(product.kernel.packs.size(), 1u);
  EXPECT_EQ(Strategies(product.kernel.phases.at(0)), std::vector<std::string>{"tile"});
  EXPECT_EQ(product.kernel.phases.size(), 1u);
}

// Windows that overlap find each element again: their sums are not kept in memory while rows go by.
TEST(ColumnReductions, WindowsThatOverlapAreNone) {
  const ScheduledFusionBlock block = Schedule(R"(te p(%0: f32[64, 130, 512], %1: f32[64, 3, 3] const) {
  %2[i0<64, i1<128, i2<510]: f32 = sum.f32(i3<3, i4<3) mul(%0[i0, i1 + i3, i2 + i4], %1[i0, i3, i4])
  return %2
})");
  EXPECT_EQ(block.kernel.phases.at(0).steps.size(), 1u) << movement::Print(block.kernel);
}

}  // namespace
}  // namespace fusion
