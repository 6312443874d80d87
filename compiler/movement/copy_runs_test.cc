#include "compiler/movement/copy_runs.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/movement/parse.h"

namespace fusion::movement {
namespace {

std::optional<std::vector<CopyRun>> RunsOf(const std::string& text) {
  const absl::StatusOr<Kernel> kernel = Parse(text);
  EXPECT_TRUE(kernel.ok()) << kernel.status() << text;
  return kernel.ok() ? CopyRunsOf(*kernel) : std::nullopt;
}

std::string TextOf(const CopyRun& run) {
  return absl::StrCat("b", run.source, "+", run.from, " to b", run.target, "+", run.to, ": ", run.elements);
}

// Rows of 16 of a matrix, the second half of which is left out.
constexpr char kSlice[] = R"(buffer b0 kernel f32[64]
buffer b1 kernel f32[32]
parallel (i0<2) {
  step map{lanes i1} {
    loop i1<16
      v0 = load b0[16*i0 + i1 + 8]
      body v0
    store b1[16*i0 + i1]
  }
}
)";

TEST(CopyRuns, ARunWithAnOffset) {
  const auto runs = RunsOf(kSlice);
  ASSERT_TRUE(runs.has_value());
  ASSERT_EQ(runs->size(), 1u);
  EXPECT_EQ(TextOf(runs->at(0)), "b0+8 to b1+0: 32");
}

TEST(CopyRuns, TheLoopsMayBeInAnyOrder) {
  const auto runs = RunsOf(absl::StrReplaceAll(
      kSlice,
      {{"parallel (i0<2)", "parallel (i1<16)"}, {"step map{lanes i1}", "step scalar"}, {"loop i1<16", "loop i0<2"}}));
  ASSERT_TRUE(runs.has_value());
  EXPECT_EQ(TextOf(runs->at(0)), "b0+8 to b1+0: 32");
}

TEST(CopyRuns, TheLastTaskOfALimitedLoopIsCutShort) {
  const auto runs = RunsOf(R"(buffer b0 kernel f32[30]
buffer b1 kernel f32[30]
parallel (i0<2) {
  step map{lanes i1} {
    loop i1<16 while < -16*i0 + 30
      v0 = load b0[16*i0 + i1]
      body v0
    store b1[16*i0 + i1]
  }
}
)");
  ASSERT_TRUE(runs.has_value());
  EXPECT_EQ(TextOf(runs->at(0)), "b0+0 to b1+0: 30");
}

TEST(CopyRuns, APieceForEachBranch) {
  const auto runs = RunsOf(R"(buffer b0 kernel f32[10]
buffer b1 kernel f32[6]
buffer b2 kernel f32[16]
parallel () {
  step scalar {
    loop i0<16
      v0 = load b0[i0]
      v1 = load b1[i0 - 10]
      v2 = if i0 < 10 then v0 else v1
      body v2
    store b2[i0]
  }
}
)");
  ASSERT_TRUE(runs.has_value());
  ASSERT_EQ(runs->size(), 2u);
  EXPECT_EQ(TextOf(runs->at(0)), "b0+0 to b2+0: 10");
  EXPECT_EQ(TextOf(runs->at(1)), "b1+0 to b2+10: 6");
}

TEST(CopyRuns, AnythingElseIsNoCopy) {
  const struct {
    const char *from, *to, *why;
  } changes[] = {
      {"      body v0", "      v1 = exp(v0)\n      body v1", "it computes"},
      {"b0[16*i0 + i1 + 8]", "b0[i0 + 2*i1]", "the operand lies in another order"},
      {"b1 kernel f32[32]", "b1 kernel f16[32]", "the types differ"},
      {"store b1[16*i0 + i1]", "store b1[8*i0 + i1]", "tasks store the same elements"},
      {"b1 kernel f32[32]\nparallel (i0<2) {\n  step map{lanes i1} {\n    loop i1<16",
       "b1 kernel f32[32]\nparallel (i0<2) {\n  step map{lanes i1} {\n    loop i1<8", "the runs have gaps"},
  };
  for (const auto& change : changes) {
    const std::string text = absl::StrReplaceAll(kSlice, {{change.from, change.to}});
    ASSERT_NE(text, kSlice) << change.why;
    EXPECT_FALSE(RunsOf(text).has_value()) << change.why;
  }
}

}  // namespace
}  // namespace fusion::movement
