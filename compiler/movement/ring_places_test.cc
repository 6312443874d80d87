#include "compiler/movement/ring_places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "compiler/movement/testing/window_kernel.h"

namespace fusion::movement {
namespace {

using ::fusion::movement::testing::SlidingSums;
using ::testing::HasSubstr;

std::string Refusal(const Kernel& kernel, size_t step) {
  return std::string(CheckRingPlaces(kernel, kernel.phases[0].steps[step]).message());
}

const te::Axis kRow{0, 8}, kColumn{1, 16}, kSumRow{2, 8}, kSumColumn{3, 16}, kTap{4, 3};

// A sum whose rows are read at `at`, inside the tensor.
Kernel SumsOver(const te::Index& place, const te::Index& row) {
  Kernel kernel = SlidingSums();
  kernel.phases[0].steps[1].body = {te::If({{row, te::Cmp::kGe, te::Index(0)}, {row, te::Cmp::kLt, te::Index(8)}},
                                           te::Load(2, DType::kF32, {place}), te::Imm(DType::kF32, 0))};
  return kernel;
}

TEST(RingPlaces, AcceptsRowsThatAreSaid) {
  EXPECT_EQ(Refusal(SlidingSums(), 0), "");
  EXPECT_EQ(Refusal(SlidingSums(), 1), "");
}

TEST(RingPlaces, RefusesARowThatIsReachedUnsaid) {
  Kernel kernel = SlidingSums();
  kernel.phases[0].steps[1].turn->reads[0].rows = 2;
  EXPECT_THAT(Refusal(kernel, 1),
              HasSubstr("reaches place 1 in turn 0, which holds none of the rows that it says it reads"));
  kernel = SlidingSums();
  kernel.phases[0].steps[1].turn->reads.clear();
  EXPECT_THAT(Refusal(kernel, 1), HasSubstr("reaches place 0 in turn 0"));
  kernel = SlidingSums();
  kernel.phases[0].steps[0].stores[0].address = te::Mod(te::Index(kRow) + 1, 3) * 16 + te::Index(kColumn);
  EXPECT_THAT(Refusal(kernel, 0),
              HasSubstr("reaches place 1 in turn 0, which holds none of the rows that it says it writes"));
}

TEST(RingPlaces, RefusesARowThatIsSaidAndNotWritten) {
  Kernel kernel = SlidingSums();
  kernel.phases[0].steps[0].turn->writes[0].rows = 2;
  EXPECT_THAT(Refusal(kernel, 0), HasSubstr("says that it writes row 1 of ring b2 and does not"));
}

// Without its test, the window reaches rows beside the tensor, whose places belong to other rows.
TEST(RingPlaces, TestsOfTheBorderCount) {
  const te::Index at = te::Index(kSumRow) + te::Index(kTap) - 1;
  Kernel kernel = SlidingSums();
  kernel.phases[0].steps[1].body = {te::Load(2, DType::kF32, {te::Mod(at, 3) * 16 + te::Index(kSumColumn)})};
  EXPECT_THAT(Refusal(kernel, 1), HasSubstr("reaches place 2 in turn 0"));
}

// A border along the row: outside of its test an address lies in the row beside.
TEST(RingPlaces, AddressesStayInTheirRow) {
  const te::Index row = te::Index(kSumRow) + te::Index(kTap) - 1, column = te::Index(kSumColumn) + te::Index(kTap) - 1;
  const te::Index place = te::Mod(row, 3) * 16 + column;
  EXPECT_NE(Refusal(SumsOver(place, row), 1), "");
  Kernel kernel = SumsOver(place, row);
  te::Scalar& body = kernel.phases[0].steps[1].body[0];
  te::Pred inside = body->pred;
  inside.push_back({column, te::Cmp::kGe, te::Index(0)});
  inside.push_back({column, te::Cmp::kLt, te::Index(16)});
  body = te::If(inside, body->args[0], body->args[1]);
  EXPECT_EQ(Refusal(kernel, 1), "");
}

// The same in layout blocks of 4: the test is of columns, the address has four elements to each.
TEST(RingPlaces, AddressesOfLayoutBlocksStayInTheirRow) {
  const te::Axis lane{5, 4}, column{3, 4};
  const te::Index row = te::Index(kSumRow) + te::Index(kTap) - 1, at = te::Index(column) + te::Index(kTap) - 1;
  Kernel kernel = SumsOver(te::Mod(row, 3) * 16 + at * 4 + te::Index(lane), row);
  Step& sum = kernel.phases[0].steps[1];
  sum.loops = {{column, std::nullopt}, {lane, std::nullopt}};
  te::Pred inside = sum.body[0]->pred;
  inside.push_back({at, te::Cmp::kGe, te::Index(0)});
  EXPECT_NE(Refusal(kernel, 1), "");
  inside.push_back({at, te::Cmp::kLt, te::Index(4)});
  sum.body = {te::If(inside, sum.body[0]->args[0], sum.body[0]->args[1])};
  EXPECT_EQ(Refusal(kernel, 1), "");
}

// A ring of the whole tensor needs no remainder. The border's test keeps its rows inside their planes.
TEST(RingPlaces, TestsOfTheBorderKeepPlanesApart) {
  const te::Axis plane{6, 2};
  const te::Index row = te::Index(kSumRow) + te::Index(kTap) - 1;
  Kernel kernel = SumsOver(te::Index(plane) * 128 + row * 16 + te::Index(kSumColumn), row);
  kernel.buffers[2].elements = 256;
  kernel.buffers[2].ring = Ring{8, 8, 16};
  kernel.phases[0].steps[1].loops.insert(kernel.phases[0].steps[1].loops.begin(), {plane, std::nullopt});
  EXPECT_EQ(Refusal(kernel, 1), "");
  kernel.phases[0].steps[1].body = {kernel.phases[0].steps[1].body[0]->args[0]};
  EXPECT_THAT(Refusal(kernel, 1), HasSubstr("reaches planes -1 to 2 of 2"));
}

// An element whose result is stored as zero reads nothing, or in vectors what does not count.
TEST(RingPlaces, WhatIsMaskedHasToLieInItsBuffer) {
  const te::Axis lane{6, 2};
  const te::Index row = te::Index(kSumRow) + te::Index(kTap) - 1;
  Kernel kernel = SumsOver(te::Mod(row, 3) * 16 + te::Index(kSumColumn) + te::Index(lane) * 8, row);
  Step& sum = kernel.phases[0].steps[1];
  sum.loops.push_back({lane, std::nullopt});
  EXPECT_THAT(Refusal(kernel, 1), HasSubstr("reaches planes 0 to 1 of 1"));
  sum.lane_limit = Bound{te::Index(lane), 1};
  sum.strategy = ScalarLoops{};
  EXPECT_EQ(Refusal(kernel, 1), "");
  sum.strategy = VectorMap{lane.id};
  EXPECT_THAT(Refusal(kernel, 1), HasSubstr("reaches elements 0 to 55 of 48"));
  kernel.buffers[2].elements = 56;
  EXPECT_EQ(Refusal(kernel, 1), "");
}

TEST(RingPlaces, WhatNoPointReachesIsNotRead) {
  const te::Index row = te::Index(kSumRow) + te::Index(kTap) - 1;
  Kernel kernel = SumsOver(te::Mod(row + 1, 3) * 16 + te::Index(kSumColumn), row);
  EXPECT_NE(Refusal(kernel, 1), "");
  Step& sum = kernel.phases[0].steps[1];
  te::Pred never = sum.body[0]->pred;
  never.push_back({te::Index(kSumColumn) * 2, te::Cmp::kEq, te::Index(5)});
  sum.body = {te::If(never, sum.body[0]->args[0], sum.body[0]->args[1])};
  EXPECT_EQ(Refusal(kernel, 1), "");
}

// Rows of one element: rows and columns count alike in an address, and two tests keep their sum.
TEST(RingPlaces, SeveralTestsTogetherKeepAPlace) {
  const te::Index row = te::Index(kSumRow) + te::Index(kTap) - 1, column = te::Index(kSumColumn) - 1;
  Kernel kernel = SumsOver(te::Mod(row, 3) + column, row);
  kernel.buffers[2].elements = 3;
  kernel.buffers[2].ring = Ring{3, 8, 1};
  Step& sum = kernel.phases[0].steps[1];
  EXPECT_THAT(Refusal(kernel, 1), HasSubstr("reaches planes"));
  te::Pred inside = sum.body[0]->pred;
  inside.push_back({column, te::Cmp::kGe, te::Index(0)});
  inside.push_back({column, te::Cmp::kLt, te::Index(1)});
  sum.body = {te::If(inside, sum.body[0]->args[0], sum.body[0]->args[1])};
  EXPECT_EQ(Refusal(kernel, 1), "");
}

// The columns of a task may begin at its number's own place: 0 in task 0, and 3, not 4, in task 1.
TEST(RingPlaces, ColumnsOfTasksAreFollowed) {
  const te::Axis task{6, 2}, column{7, 4};
  const te::Index row = te::Index(kSumRow) + te::Index(kTap) - 1;
  const te::Index at = te::Index(task) * 12 + te::Index(column) + te::Index(kTap) - 1;  // of 16
  const te::Index begin = te::Index(task) * 11;                                         // of 5 columns in scratch
  const auto kernel = [&](int64_t pitch) {
    Kernel result = SumsOver(te::Mod(row, 3) * pitch + at - begin, row);
    result.buffers[2].ring->pitch = pitch;
    Step& sum = result.phases[0].steps[1];
    sum.loops = {{column, std::nullopt}};
    te::Pred inside = sum.body[0]->pred;
    inside.push_back({at, te::Cmp::kGe, te::Index(0)});
    inside.push_back({at, te::Cmp::kLt, te::Index(16)});
    sum.body = {te::If(inside, sum.body[0]->args[0], sum.body[0]->args[1])};
    return result;
  };
  EXPECT_EQ(Refusal(kernel(5), 1), "");
  EXPECT_NE(Refusal(kernel(4), 1), "");
}

// A condition on what a place does not depend on may rule rows out.
TEST(RingPlaces, AxesThatConditionsCompareCount) {
  const te::Axis other{6, 4};
  Kernel kernel = SlidingSums();
  Step& sum = kernel.phases[0].steps[1];
  const te::Scalar load = te::Load(2, DType::kF32, {te::Mod(te::Index(kSumRow), 3) * 16 + te::Index(kSumColumn)});
  sum.body = {load};
  sum.turn->reads[0] = {2, te::Index(0), 1};
  EXPECT_THAT(Refusal(kernel, 1), HasSubstr("in turn 1"));
  sum.loops.insert(sum.loops.begin(), {other, std::nullopt});
  sum.body = {
      te::If({{te::Index(kSumRow) * 8 + te::Index(other), te::Cmp::kLt, te::Index(8)}}, load, te::Imm(DType::kF32, 0))};
  EXPECT_EQ(Refusal(kernel, 1), "");
}

// The rows that exist count, of a window that is taller than its tensor.
TEST(RingPlaces, WindowsMayBeTallerThanTheirTensor) {
  Kernel kernel = SlidingSums();
  EXPECT_EQ(RowsInTurn({2, te::Index(kSumRow) - 20, 40}, *kernel.phases[0].steps[1].turn, 3, {3, 8, 16}).last, 8);
}

TEST(RingPlaces, RefusesPlanesThatDoNotExist) {
  Kernel kernel = SlidingSums();
  kernel.phases[0].steps[0].stores[0].address = te::Mod(te::Index(kRow), 3) * 16 + te::Index(kColumn) + 48;
  EXPECT_THAT(Refusal(kernel, 0), HasSubstr("reaches planes 1 to 1 of 1"));
}

TEST(RingPlaces, RefusesAddressesThatCannotBeFollowed) {
  Kernel kernel = SlidingSums();
  kernel.phases[0].steps[0].stores[0].address = te::Index::Load(0, {te::Index(kRow)}, {0, 2}) * 16 + te::Index(kColumn);
  EXPECT_THAT(Refusal(kernel, 0), HasSubstr("depends on data"));
  kernel = SlidingSums();
  const te::Axis far{5, int64_t{1} << 30};
  kernel.phases[0].steps[0].loops = {{far, std::nullopt}, {kColumn, std::nullopt}};
  kernel.phases[0].steps[0].stores[0].address = te::Mod(te::Index(far), 3) * 16 + te::Index(kColumn);
  EXPECT_THAT(Refusal(kernel, 0), HasSubstr("has too many points to follow"));
}

// Points that a loop's limit leaves out are not reached.
TEST(RingPlaces, LimitsOfLoopsCount) {
  Kernel kernel = SlidingSums();
  Step& exp = kernel.phases[0].steps[0];
  const te::Axis two{5, 2};
  exp.turn->axis.extent = 4;
  exp.turn->writes[0] = {2, te::Index(te::Axis{0, 4}) * 2, 2};
  exp.stores[0].address = te::Mod(te::Index(te::Axis{0, 4}) * 2 + te::Index(two), 3) * 16 + te::Index(kColumn);
  exp.loops = {{two, std::nullopt}, {kColumn, std::nullopt}};
  EXPECT_EQ(Refusal(kernel, 0), "");
  kernel.buffers[2].ring->of = 7;  // the last turn writes one row
  EXPECT_THAT(Refusal(kernel, 0), HasSubstr("in turn 3"));
  exp.loops[0].limit = te::Index(7) - te::Index(te::Axis{0, 4}) * 2;
  EXPECT_EQ(Refusal(kernel, 0), "");
}

}  // namespace
}  // namespace fusion::movement
