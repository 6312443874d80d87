#include "compiler/movement/task_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "compiler/movement/cost.h"
#include "compiler/movement/in_place.h"
#include "compiler/movement/parse.h"
#include "compiler/movement/print.h"
#include "compiler/movement/testing/window_kernel.h"
#include "compiler/movement/traffic.h"
#include "compiler/movement/verify.h"
#include "compiler/schedule/testing/schedule_text.h"

namespace fusion::movement {
namespace {

using ::fusion::movement::testing::SlidingSums;
using ::testing::HasSubstr;

void ExpectRefused(const Kernel& kernel, const std::string& why) {
  const absl::Status status = Verify(kernel);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr(why));
}

Turn& TurnOf(Kernel* kernel, size_t step) { return *kernel->phases[0].steps[step].turn; }

TEST(TaskLoop, AcceptsWindowsThatSlide) { EXPECT_TRUE(Verify(SlidingSums()).ok()) << Verify(SlidingSums()); }

TEST(TaskLoop, PrintsAndParses) {
  const std::string text = Print(SlidingSums());
  EXPECT_THAT(text, HasSubstr("buffer b2 block f32[48] ring of 3 of 8 rows by 16\n"));
  EXPECT_THAT(text,
              HasSubstr("  iterate 9 {\n  step map{lanes i1} {\n    turn i0<8 from 0\n    writes b2 1 rows from i0\n"));
  EXPECT_THAT(text, HasSubstr("    turn i2<8 from 1\n    reads b2 3 rows from i2 - 1\n"));
  const absl::StatusOr<Kernel> parsed = Parse(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(Print(*parsed), text);
  EXPECT_EQ(parsed->scratch_bytes, SlidingSums().scratch_bytes);
}

TEST(TaskLoop, ATextWithAWrongTurnIsRefused) {
  for (const auto& [from, to, why] : std::vector<std::array<std::string, 3>>{
           {"turn i2<8 from 1", "turn i2<8 from 0", "not there yet"},
           {"iterate 9 {", "iterate 7 {", "turns from iteration"},
           {"ring of 3 of 8 rows by 16", "ring of 3 of 8 rows by 17", "is no ring"},
           {"    turn i2<8 from 1\n    reads b2 3 rows from i2 - 1\n", "", "axis i2 is not defined"},
           {"    turn i2<8 from 1\n", "", "'reads' is no part of a step"}}) {
    std::string text = Print(SlidingSums());
    ASSERT_NE(text.find(from), std::string::npos);
    text.replace(text.find(from), from.size(), to);
    const absl::Status status = Parse(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  }
  EXPECT_FALSE(Parse("parallel () {\n  iterate 3 {\n  }\n}\n").ok());
}

TEST(TaskLoop, RefusesARowThatIsNotThereYet) {
  Kernel kernel = SlidingSums();
  TurnOf(&kernel, 1).first = 0;  // in the same iteration as the first step: the window's last row comes in the next
  ExpectRefused(kernel, "step 'sum' reads row 1 of ring b2 in iteration 0, which is not there yet");
}

TEST(TaskLoop, RefusesARowThatIsReplaced) {
  Kernel kernel = SlidingSums();
  TurnOf(&kernel, 1).first = 2;  // one iteration later than the ring has room for
  kernel.phases[0].task_loops[0].iterations = 10;
  ExpectRefused(kernel, "reads row 0 of ring b2 in iteration 3, which row 3 has replaced");
}

TEST(TaskLoop, RefusesARingThatIsTooSmall) {
  Kernel kernel = SlidingSums();
  kernel.buffers[2].ring->rows = 2;
  Step& exp = kernel.phases[0].steps[0];
  exp.stores[0].address = te::Mod(te::Index(te::Axis{0, 8}), 2) * 16 + te::Index(te::Axis{1, 16});
  const te::Index at = te::Index(te::Axis{2, 8}) + te::Index(te::Axis{4, 3}) - 1;
  kernel.phases[0].steps[1].body = {te::If({{at, te::Cmp::kGe, te::Index(0)}, {at, te::Cmp::kLt, te::Index(8)}},
                                           te::Load(2, DType::kF32, {te::Mod(at, 2) * 16 + te::Index(te::Axis{3, 16})}),
                                           te::Imm(DType::kF32, 0))};
  ExpectRefused(kernel, "which row 2 has replaced");
}

TEST(TaskLoop, RefusesTurnsThatDoNotFit) {
  Kernel kernel = SlidingSums();
  TurnOf(&kernel, 1).first = 2;
  ExpectRefused(kernel, "has 8 turns from iteration 2 of 9");
  kernel = SlidingSums();
  kernel.phases[0].steps[1].turn.reset();
  ExpectRefused(kernel, "no loop binds");
  kernel = SlidingSums();
  kernel.phases[0].steps[0].turn.reset();
  kernel.phases[0].grid = {{0, 8}};
  ExpectRefused(kernel, "is in a task loop and has no turn");
  kernel = SlidingSums();
  kernel.phases[0].grid = {{2, 8}};
  ExpectRefused(kernel, "numbers its turns by axis i2, which a loop binds");
  kernel = SlidingSums();
  kernel.phases[0].task_loops.clear();
  ExpectRefused(kernel, "has a turn outside of a task loop");
  kernel = SlidingSums();
  kernel.phases[0].task_loops[0].iterations = int64_t{1} << 40;
  ExpectRefused(kernel, "a task loop has");
  for (const TaskLoop& loop : {TaskLoop{0, 0, 9}, TaskLoop{-1, 2, 9}, TaskLoop{1, 2, 9}, TaskLoop{3, 1, 9}}) {
    kernel = SlidingSums();
    kernel.phases[0].task_loops = {loop};
    EXPECT_FALSE(Verify(kernel).ok()) << loop.first << " " << loop.count;
  }
}

TEST(TaskLoop, RefusesRowNestsAndRoutines) {
  Kernel kernel = SlidingSums();
  kernel.phases[0].row_nests = {{0, 1, 0}};
  ExpectRefused(kernel, "is in a row nest inside a task loop");
  kernel = SlidingSums();
  kernel.phases[0].steps[0].strategy = RoutineCall{"sort", DType::kF32, {0}, {}};
  ExpectRefused(kernel, "calls a routine in a task loop");
}

TEST(TaskLoop, RefusesWhatIsSaidOfOtherBuffers) {
  Kernel kernel = SlidingSums();
  TurnOf(&kernel, 0).writes[0].buffer = 1;
  ExpectRefused(kernel, "says that it writes rows of b1, which is no ring that it writes");
  kernel = SlidingSums();
  TurnOf(&kernel, 1).writes = {{2, te::Index(0), 1}};
  ExpectRefused(kernel, "says that it writes rows of b2, which is no ring that it writes");
  kernel = SlidingSums();
  TurnOf(&kernel, 1).reads[0].buffer = 99;
  ExpectRefused(kernel, "says that it reads rows of b99");
  kernel = SlidingSums();
  TurnOf(&kernel, 1).reads[0].first = te::Index(te::Axis{3, 16});
  ExpectRefused(kernel, "by an index of more than its turn");
}

TEST(TaskLoop, RefusesRingsOutsideOfTheirLoop) {
  Kernel kernel = SlidingSums();
  Step again = kernel.phases[0].steps[1];
  again.turn.reset();
  again.label = "again";
  again.body = {te::Load(2, DType::kF32, {te::Index(te::Axis{3, 16})})};
  again.stores[0].address = te::Index(te::Axis{3, 16});
  kernel.phases[0].steps.push_back(again);
  ExpectRefused(kernel, "step 'again' uses ring b2 outside of a task loop");
  kernel = SlidingSums();
  kernel.buffers[2].scope = Scope::kDevice;
  ExpectRefused(kernel, "is no ring");
  kernel = SlidingSums();
  kernel.buffers[2].elements = 47;
  ExpectRefused(kernel, "is no ring");
}

// Scratch that is no ring holds nothing from one iteration to the next.
TEST(TaskLoop, RefusesScratchOfAnEarlierIteration) {
  Kernel kernel = SlidingSums();
  kernel.buffers.push_back({Scope::kBlock, DType::kF32, 16});
  Step& exp = kernel.phases[0].steps[0];
  exp.stores.push_back({3, te::Index(te::Axis{1, 16})});
  exp.store_types.push_back(DType::kF32);
  exp.body.push_back(exp.body[0]);
  Step& sum = kernel.phases[0].steps[1];
  sum.then = {
      te::Call(te::Op::kAdd, {te::Acc(0, DType::kF32), te::Load(3, DType::kF32, {te::Index(te::Axis{3, 16})})})};
  ExpectRefused(kernel, "step 'sum' reads b3 in an iteration that has not written it before");
  // Where it is written with each turn of the reader, it may be read.
  exp.turn->axis.extent = 9;
  EXPECT_THAT(std::string(Verify(kernel).message()), ::testing::Not(HasSubstr("b3")));
}

TEST(TaskLoop, RefusesAnArgumentThatAnotherIterationWrites) {
  Kernel kernel = SlidingSums();
  kernel.phases[0].steps[0].body = {
      te::Load(1, DType::kF32, {te::Index(te::Axis{0, 8}) * 16 + te::Index(te::Axis{1, 16})})};
  ExpectRefused(kernel, "step 'exp' reads argument b1, which another step of its task loop writes");
}

TEST(TaskLoop, RefusesAStepThatReadsTheRingThatItWrites) {
  Kernel kernel = SlidingSums();
  Step& exp = kernel.phases[0].steps[0];
  exp.body = {te::Load(2, DType::kF32, {exp.stores[0].address})};
  ExpectRefused(kernel, "b2");
}

// Rings live through the whole loop, also where no step touches them for a while.
TEST(TaskLoop, RingsShareNoScratchWithOtherBuffersOfTheLoop) {
  Kernel kernel = SlidingSums();
  kernel.buffers.push_back({Scope::kBlock, DType::kF32, 16});
  Step write = kernel.phases[0].steps[1], read = write;
  write.label = "write", read.label = "read";
  write.body = read.body = {te::Imm(DType::kF32, 1)};
  write.reduction.reset(), read.reduction.reset();
  write.turn->reads.clear(), read.turn->reads.clear();
  write.stores = {{3, te::Index(te::Axis{3, 16})}};
  read.body = {te::Load(3, DType::kF32, {te::Index(te::Axis{3, 16})})};
  kernel.phases[0].steps.insert(kernel.phases[0].steps.end(), {write, read});
  kernel.phases[0].task_loops[0].count = 4;
  ASSERT_TRUE(Verify(kernel).ok()) << Verify(kernel);
  const std::vector<int64_t> offsets = kernel.scratch_offset_bytes();
  EXPECT_GE(std::abs(offsets[2] - offsets[3]), 64);
  EXPECT_GE(kernel.PlannedScratchBytes(), 256 + 128);
}

TEST(TaskLoop, TurnsCountAsWork) {
  const Accesses accesses = AccessesOf(SlidingSums().phases[0]);
  EXPECT_EQ(accesses.read.at(0), 8 * 16);
  EXPECT_EQ(accesses.read.count(2), 0u);
  const DeviceModel device = fusion::testing::Device();
  Kernel longer = SlidingSums();
  TurnOf(&longer, 0).axis.extent = 4;
  EXPECT_LT(EstimateCost(longer, device, 1).compute_ns, EstimateCost(SlidingSums(), device, 1).compute_ns);
}

// A step that reads x where it stores y may do so in place, whatever the turn.
TEST(TaskLoop, ResultsMayOverwriteWhatTheirTurnReads) {
  Kernel kernel = SlidingSums();
  EXPECT_TRUE(InPlacePairs(kernel).empty()) << "another step reads x, in another iteration";
  Step& sum = kernel.phases[0].steps[1];
  kernel.buffers.insert(kernel.buffers.begin() + 2, kernel.buffers[0]);
  kernel.phases[0].steps[0].stores[0].buffer = 3;
  kernel.phases[0].steps[0].turn->writes[0].buffer = 3;
  sum.body = {
      te::MapLoads(sum.body[0], [](const te::Scalar& load) { return te::Load(3, DType::kF32, load->indices); })};
  sum.turn->reads[0].buffer = 3;
  sum.then = {te::Call(te::Op::kAdd, {te::Acc(0, DType::kF32), te::Load(2, DType::kF32, {sum.stores[0].address})})};
  ASSERT_TRUE(Verify(kernel).ok()) << Verify(kernel);
  const std::vector<InPlacePair> pairs = InPlacePairs(kernel);
  ASSERT_EQ(pairs.size(), 1u);
  EXPECT_EQ(pairs[0].in, 2);
}

}  // namespace
}  // namespace fusion::movement
