#include "compiler/schedule/stitch/task_boxes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/testing/schedule_text.h"
#include "compiler/te/ranges/task_spans.h"

namespace fusion {
namespace {

using testing::DraftedProgram;
using testing::OrFail;

constexpr char kRows[] = R"(te p(%0: f32[10, 64]) {
  %1[i0<10]: f32 = max.f32(i1<64) %0[i0, i1]
  %2[i2<10, i3<64]: f32 = exp(sub(%0[i2, i3], %1[i2]))
  return %2
})";

// The boxes of a program's stages; the last one's results are live.
struct Task {
  explicit Task(const std::string& text, Halos halos = Halos::kRefused) : drafted(text), halos(halos) {}
  te::Axis Main(size_t axis) const { return stages.back().te.axes.at(axis); }
  absl::StatusOr<std::vector<te::Box>> In(const te::Axis& axis, int64_t block) {
    return boxes.For({InBlocks(axis, block, &drafted.draft.axes)});
  }

  DraftedProgram drafted;
  const Halos halos;
  const std::vector<PhysicalTe> stages = drafted.PhysicalStages();
  const LayoutOf layout_of = [](te::TensorId) { return Layout(); };
  const std::set<te::TensorId> live_out{drafted.program.outputs.begin(), drafted.program.outputs.end()};
  const TaskBoxes boxes{drafted.program, stages, layout_of, live_out, halos};
};

TEST(TaskBoxes, ARowNeedsItsMaximumAlone) {
  Task task(kRows);
  const auto boxes = OrFail(task.In(task.Main(0), 1));
  ASSERT_EQ(boxes.size(), 2u);
  ASSERT_EQ(boxes[0].size(), 1u);
  EXPECT_EQ(boxes[0][0].length, 1);
  EXPECT_EQ(boxes[0][0].origin, te::Index(task.Main(0)));
  EXPECT_EQ(boxes[1][1].length, 64);
}

// Every column needs all maxima.
TEST(TaskBoxes, ColumnsWouldComputeTheRowsAgain) {
  Task task(kRows);
  const absl::Status status = task.In(task.Main(1), 1).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("would compute a stage 64 times"), std::string::npos) << status;
}

TEST(TaskBoxes, TheLastBlockOfAnAxisMayBeShorter) {
  Task task(kRows);
  const auto boxes = OrFail(task.In(task.Main(0), 4));
  ASSERT_EQ(boxes.size(), 2u);
  EXPECT_EQ(boxes[1][0].length, 4);
  EXPECT_TRUE(TaskBoxes::LimitOf(boxes[1][0], 10).has_value()) << "tasks of 4, 4 and 2 rows";
  EXPECT_FALSE(TaskBoxes::LimitOf(boxes[1][0], 12).has_value());
}

TEST(TaskBoxes, KnowsWhoReadsWhat) {
  Task task(kRows);
  EXPECT_EQ(task.boxes.LastReader(0), 1u);
  EXPECT_EQ(task.boxes.LastReader(1), 1u) << "nobody reads it";
  EXPECT_FALSE(task.boxes.LiveOut(0));
  EXPECT_TRUE(task.boxes.LiveOut(1));
  EXPECT_EQ(task.boxes.Work(), task.boxes.Work(0) + task.boxes.Work(1));
  const auto boxes = OrFail(task.In(task.Main(0), 1));
  ASSERT_EQ(boxes.size(), 2u);
  const std::vector<TaskBoxes::Read> of_maximum = task.boxes.ReadsOf(0, boxes[0]);
  ASSERT_EQ(of_maximum.size(), 1u);
  EXPECT_EQ(of_maximum[0].tensor, 0);
  EXPECT_EQ(of_maximum[0].elements, 64);
  EXPECT_TRUE(of_maximum[0].along_reduction);
  const std::vector<TaskBoxes::Read> of_map = task.boxes.ReadsOf(1, boxes[1]);
  ASSERT_EQ(of_map.size(), 1u) << "the maximum comes from the task itself";
  EXPECT_FALSE(of_map[0].along_reduction);
}

TEST(TaskBoxes, ResultsThatNoTaskWouldWriteWhole) {
  const auto refusal = [](const char* first) {
    Task task(absl::StrCat("te p(%0: f32[10, 64]) {\n  ", first,
                           "\n  %2[i2<10, i3<64]: f32 = exp(%0[i2, i3])\n  return %1, %2\n}"));
    return std::string(task.In(task.Main(0), 1).status().message());
  };
  EXPECT_EQ(refusal("%1[i0<10, i1<8]: f32 = exp(%0[i0, i1])"), "");
  EXPECT_EQ(refusal("%1[i0<9, i1<64]: f32 = exp(%0[i0, i1])"),
            "the results differ in extents, so they cannot share a grid");
  EXPECT_EQ(refusal("%1[i0<10]: f32 = exp(%0[i0, 0])"), "the results differ in rank, so they cannot share a grid");
}

// Only the first half of %1 is read, and all of it is a result.
TEST(TaskBoxes, ResultsOfWhichTasksLeaveElementsOut) {
  Task task(R"(te p(%0: f32[10, 64]) {
  %1[i0<10, i1<64]: f32 = exp(%0[i0, i1])
  %2[i2<10, i3<32]: f32 = exp(%1[i2, i3])
  return %1, %2
})");
  EXPECT_EQ(task.In(task.Main(0), 1).status().message(), "the tasks would leave out elements of a result");
}

// Rows of windows over rows; `returned`: what the kernel returns.
std::string Windows(const char* returned) {
  return absl::StrCat(R"(te p(%0: f32[10, 64]) {
  %1[i0<10, i1<64]: f32 = exp(%0[i0, i1])
  %2[i2<10, i3<64]: f32 = sum.f32(i4<3) %1[i2 + i4 - 1, i3]?0.0
  return )",
                      returned, "\n}");
}

TEST(TaskBoxes, AHaloIsRefusedUnlessItMayBeRecomputed) {
  Task task(Windows("%2"));
  EXPECT_NE(task.In(task.Main(0), 2).status().message().find("would compute a stage 2 times"), std::string::npos);
}

TEST(TaskBoxes, AHaloIsMovedIntoItsTensor) {
  Task task(Windows("%2"), Halos::kRecomputed);
  const auto boxes = OrFail(task.In(task.Main(0), 2));
  ASSERT_EQ(boxes.size(), 2u);
  EXPECT_EQ(boxes[0][0].length, 4) << "two rows, and one on either side";
  const std::optional<te::TaskValues> origins = te::ValuesOf(boxes[0][0].origin);
  ASSERT_TRUE(origins.has_value());
  EXPECT_EQ(origins->values, (std::vector<int64_t>{0, 1, 3, 5, 6}));
  EXPECT_EQ(OrFail(task.In(task.Main(0), 9))[0][0].length, 10) << "no more than the tensor";
}

TEST(TaskBoxes, WindowsInPaddingReadNothing) {
  Task task(R"(te p(%0: f32[10, 64]) {
  %1[i0<10, i1<64]: f32 = exp(%0[i0, i1])
  %2[i2<10, i3<64]: f32 = sum.f32(i4<3) %1[i2 + i4, i3 + 64]?0.0
  return %2
})",
            Halos::kRecomputed);
  EXPECT_NE(task.In(task.Main(0), 2).status().message().find("no task reads it"), std::string::npos);
}

// Each element of a result is stored by one task.
TEST(TaskBoxes, AResultHasNoHalo) {
  Task task(Windows("%1, %2"), Halos::kRecomputed);
  EXPECT_EQ(task.In(task.Main(0), 2).status().message(), "the tasks would compute a result 2 times");
}

// The last stage reads %1 at its own rows, and through the window of %2.
TEST(TaskBoxes, TwoReadersOfAMovedBox) {
  Task task(R"(te p(%0: f32[10, 64]) {
  %1[i0<10, i1<64]: f32 = exp(%0[i0, i1])
  %2[i2<10, i3<64]: f32 = sum.f32(i4<3) %1[i2 + i4 - 1, i3]?0.0
  %3[i5<10, i6<64]: f32 = sum.f32(i7<3) add(%2[i5 + i7 - 1, i6]?0.0, %1[i5, i6])
  return %3
})",
            Halos::kRecomputed);
  const auto boxes = OrFail(task.In(task.Main(0), 2));
  ASSERT_EQ(boxes.size(), 3u);
  EXPECT_EQ(boxes[1][0].length, 4);
  EXPECT_TRUE(te::LiesInside(boxes[0][0], 10));
  EXPECT_GE(boxes[0][0].length, 6);
}

}  // namespace
}  // namespace fusion
