#include "compiler/movement/row_nest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_replace.h"
#include "compiler/movement/parse.h"
#include "compiler/movement/print.h"
#include "compiler/movement/verify.h"

namespace fusion::movement {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Each task sums its four rows of eight, and divides them by their sums. The quotients' squares are scratch of one row.
constexpr char kRows[] = R"(buffer b0 kernel f32[64]
buffer b1 kernel f32[64]
buffer b2 warp f32[1]
buffer b3 block f32[8]
parallel (i0<2) {
  rows of 1 loops {
  step row_reduction{lanes i2} {
    loop i1<4
    reduce sum:f32(i2<8)
      v0 = load b0[32*i0 + 8*i1 + i2]
      body v0
    store b2[0]
  }
  step map{lanes i3} {
    loop i1<4
    loop i3<8
      v1 = load b0[32*i0 + 8*i1 + i3]
      v2 = load b2[0]
      v3 = div(v1, v2)
      body v3
    store b3[i3]
  }
  step map{lanes i4} {
    loop i1<4
    loop i4<8
      v4 = load b3[i4]
      v5 = mul(v4, v4)
      body v5
    store b1[32*i0 + 8*i1 + i4]
  }
  }
}
)";

TEST(RowNest, PrintsTheSameAgain) {
  const absl::StatusOr<Kernel> kernel = Parse(kRows);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  ASSERT_EQ(kernel->phases[0].row_nests.size(), 1u);
  EXPECT_EQ(kernel->phases[0].row_nests[0].count, 3);
  EXPECT_EQ(Print(*kernel), kRows);
  EXPECT_EQ(kernel->num_args(), 2) << "registers are no arguments";
}

TEST(RowNest, EveryBrokenOneIsRefused) {
  struct Case {
    const char *from, *to, *error;
  };
  for (const Case& c : {
           Case{"b2[0]", "b2[i1]", "movement: "},
           Case{"buffer b2 warp f32[1]", "buffer b2 warp f32[4]", "has 4 elements"},
           // Row 0 would overwrite what row 3 reads afterwards.
           Case{"load b0[32*i0 + 8*i1 + i3]", "load b1[32*i0 - 8*i1 + i3 + 24]", "rows meet in b1"},
           Case{"load b0[32*i0 + 8*i1 + i3]", "load b1[32*i0 + 4*i1 + i3]", "rows meet in b1"},
           Case{"store b3[i3]", "store b3[i3 + 8*i1]", "movement: "},
           Case{"load b0[32*i0 + 8*i1 + i3]", "load b3[i3]", "reads b3 before it is written"},
           Case{"rows of 1 loops {", "rows of 1 loops by 8 {", "rows meet in b3"},
           Case{"rows of 1 loops {", "rows of 1 loops by 3 {", "no team"},
           Case{"rows of 1 loops {", "rows of 2 loops {", "has other rows"},
           Case{"map{lanes i4}", "map{lanes i1}", "movement: "},
           Case{"    loop i1<4\n    loop i4<8", "    loop i4<8", "movement: "},
       }) {
    SCOPED_TRACE(c.to);
    const std::string text = absl::StrReplaceAll(kRows, {{c.from, c.to}});
    ASSERT_NE(text, kRows);
    const absl::Status status = Parse(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.error));
  }
  Kernel kernel = *Parse(kRows);
  kernel.phases[0].row_nests[0].count = 1;
  EXPECT_THAT(std::string(Verify(kernel).message()), HasSubstr("reads b2 before it is written"))
      << "registers do not outlive their row";
  kernel.phases[0].row_nests.clear();
  kernel.phases[0].steps.resize(1);
  EXPECT_THAT(std::string(Verify(kernel).message()), HasSubstr("outside a row nest"));
}

TEST(RowNest, ATeamSharesNoGeneralReduction) {
  Kernel kernel = *Parse(kRows);
  RowNest nest = kernel.phases[0].row_nests[0];
  nest.count = 1;
  EXPECT_TRUE(CheckRowNest(kernel, kernel.phases[0], nest).ok());
  kernel.phases[0].steps[0].reduction->kind = te::ReductionKind::kGeneral;
  EXPECT_TRUE(CheckRowNest(kernel, kernel.phases[0], nest).ok());
  nest.team = 8;
  EXPECT_THAT(std::string(CheckRowNest(kernel, kernel.phases[0], nest).message()), HasSubstr("no team"));
}

TEST(RowAccessOf, TellsRowsApart) {
  const Kernel kernel = *Parse(absl::StrReplaceAll(kRows, {{"store b3[i3]", "store b1[32*i0 + 8*i1 + i3]"},
                                                           {"load b3[i4]", "load b1[32*i0 + 8*i1 + i4]"}}));
  const Phase& phase = kernel.phases[0];
  const std::optional<RowAccess> access = RowAccessOf(phase, phase.row_nests[0], 1);
  ASSERT_TRUE(access);
  EXPECT_THAT(access->strides, ElementsAre(8));
  EXPECT_EQ(access->last, 7);
  EXPECT_EQ(access->task, te::Index(phase.grid[0]) * 32);
  EXPECT_FALSE(access->one_element);
}

// A value that one row leaves in scratch and the next one overwrites lives as long as the nest, beside the values that
// other steps of the nest use in between.
TEST(RowNest, ItsScratchLivesThroughTheWholeNest) {
  const Kernel kernel = *Parse(R"(buffer b0 kernel f32[32]
buffer b1 kernel f32[32]
buffer b2 block f32[32]
buffer b3 block f32[32]
parallel () {
  step map{lanes i9} {
    loop i9<32
      v0 = load b0[i9]
      body v0
    store b2[i9]
  }
  rows of 1 loops {
  step map{lanes i3} {
    loop i1<4
    loop i3<8
      v1 = load b2[8*i1 + i3]
      v2 = exp(v1)
      body v2
    store b1[8*i1 + i3]
  }
  step map{lanes i4} {
    loop i1<4
    loop i4<8
      v4 = load b1[8*i1 + i4]
      v5 = mul(v4, v4)
      body v5
    store b3[8*i1 + i4]
  }
  }
  step map{lanes i5} {
    loop i5<32
      v6 = load b3[i5]
      body v6
    store b1[i5]
  }
}
)");
  const std::vector<int64_t> offsets = kernel.scratch_offset_bytes();
  EXPECT_NE(offsets[2], offsets[3]) << "row 1 of b2 is read after row 0 of b3 is written";
  EXPECT_EQ(offsets[0], -1);
}

}  // namespace
}  // namespace fusion::movement
