#include "compiler/movement/rereads.h"

#include <gtest/gtest.h>

namespace fusion::movement {
namespace {

using te::Axis;
using te::Index;

constexpr int64_t kDepth = 1024;  // elements of a row: 4 KiB
constexpr double kRow = 4096, kLine = 64;

// One whose core keeps three quarters of so many bytes.
DeviceModel DeviceWith(int64_t private_bytes) {
  DeviceModel device;
  device.vector_bytes = 32;
  device.memory = {{"L2", private_bytes, 1e10, false}, {"DRAM", 0, 1e9, true}};
  return device;
}

// Sums of products of two operands, numbers 0 and 1, at these addresses.
Kernel Products(std::vector<Axis> grid, std::vector<Axis> loops, const Index& left, const Index& right, Axis k,
                const Index& result) {
  Kernel kernel;
  for (int b = 0; b < 3; ++b) {
    Buffer buffer;
    buffer.elements = (b == 2 ? result : b == 1 ? right : left).Range().hi + 1;
    kernel.buffers.push_back(buffer);
  }
  Step step;
  for (const Axis& axis : loops) step.loops.push_back({axis, std::nullopt});
  step.reduction = te::Reduction();
  step.reduction->axes = {k};
  step.body = {te::Call(te::Op::kMul, {te::Load(0, DType::kF32, {left}), te::Load(1, DType::kF32, {right})})};
  step.stores = {{2, result}};
  Phase phase;
  phase.grid = std::move(grid);
  phase.steps = {step};
  kernel.phases = {phase};
  return kernel;
}

std::vector<Reread> Of(const Kernel& kernel, const DeviceModel& device) {
  return RereadsOf(kernel, kernel.phases[0], device);
}

const Axis kTask{0, 4}, kI{1, 8}, kK{2, kDepth}, kOther{3, 3};

Kernel RowTimesRows() {
  const Index i = Index(kTask) * 8 + Index(kI);
  return Products({kTask}, {kI}, i * kDepth + Index(kK), Index(kK), kK, i);
}

TEST(Rereads, NothingIsReadAgainWhereTheCoreKeepsIt) {
  EXPECT_TRUE(Of(RowTimesRows(), DeviceWith(1 << 20)).empty()) << "the whole kernel";
  EXPECT_TRUE(Of(RowTimesRows(), DeviceWith(16 << 10)).empty()) << "an iteration: two rows and a result";
}

TEST(Rereads, ALoopReadsAgainWhatItsIterationPushesOut) {
  const std::vector<Reread> rereads = Of(RowTimesRows(), DeviceWith(8 << 10));
  ASSERT_EQ(rereads.size(), 1u) << "every task reads operand 1, which is not counted here";
  EXPECT_EQ(rereads[0].buffer, 1);
  EXPECT_DOUBLE_EQ(rereads[0].bytes, 4 * (8 - 1) * kRow);
  EXPECT_DOUBLE_EQ(rereads[0].footprint, 2 * kRow + kLine);
}

// Operand 0 moves with the outer axis of the grid, operand 1 with the inner one.
TEST(Rereads, TasksReadAgainWhatOneAxisOfTheGridMoves) {
  const Kernel kernel = Products({kOther, kTask}, {}, Index(kOther) * kDepth + Index(kK),
                                 Index(kTask) * kDepth + Index(kK), kK, Index(kOther) * 4 + Index(kTask));
  const std::vector<Reread> rereads = Of(kernel, DeviceWith(8 << 10));
  ASSERT_EQ(rereads.size(), 2u);
  EXPECT_EQ(rereads[0].buffer, 0);
  EXPECT_DOUBLE_EQ(rereads[0].bytes, 3 * (4 - 1) * kRow);
  EXPECT_DOUBLE_EQ(rereads[0].footprint, 2 * kRow + 48);
  EXPECT_EQ(rereads[1].buffer, 1);
  EXPECT_DOUBLE_EQ(rereads[1].bytes, (3 - 1) * 4 * kRow);
  EXPECT_DOUBLE_EQ(rereads[1].footprint, 5 * kRow + 48);

  const std::vector<Reread> larger = Of(kernel, DeviceWith(16 << 10));
  ASSERT_EQ(larger.size(), 1u) << "a task fits, the tasks of the inner axis do not";
  EXPECT_EQ(larger[0].buffer, 1);
}

TEST(Rereads, WindowsThatOverlapCountOnce) {
  const Axis again{4, 2}, x{5, 1000}, tap{6, 3};
  const Kernel kernel =
      Products({kTask}, {again, x}, Index(kTask) * 1002 + Index(x) + Index(tap), Index(tap), tap,
               (Index(kTask) * 2 + Index(again)) * 1000 + Index(x));
  const std::vector<Reread> rereads = Of(kernel, DeviceWith(4 << 10));
  ASSERT_EQ(rereads.size(), 2u);
  EXPECT_EQ(rereads[0].buffer, 0);
  EXPECT_DOUBLE_EQ(rereads[0].bytes, 4 * 1002 * 4);
}

TEST(Rereads, ElementsFarApartTakeALineEach) {
  const Axis again{4, 2}, column{5, 100};
  const Kernel kernel = Products({kTask}, {again}, Index(kTask) + Index(column) * 100, Index(column), column,
                                 Index(kTask) * 2 + Index(again));
  const std::vector<Reread> rereads = Of(kernel, DeviceWith(4 << 10));
  ASSERT_FALSE(rereads.empty());
  EXPECT_EQ(rereads[0].buffer, 0);
  EXPECT_DOUBLE_EQ(rereads[0].bytes, 4 * 100 * kLine);
}

// 16 rows in tiles of 4: each tile reads the panel of 8 columns, and each panel the rows.
TEST(Rereads, TilesReadWhatTheirRowsShareOnce) {
  const Axis panel{4, 5}, row{5, 16}, lane{6, 8};
  const Index r = Index(kTask) * 16 + Index(row);
  Kernel kernel =
      Products({kTask}, {panel, row, lane}, r * kDepth + Index(kK),
               (Index(panel) * kDepth + Index(kK)) * 8 + Index(lane), kK, r * 40 + Index(panel) * 8 + Index(lane));
  RegisterTile tile;
  tile.lane_axis = lane.id;
  tile.row_axis = row.id;
  tile.row_count = 4;
  kernel.phases[0].steps[0].strategy = tile;
  const std::vector<Reread> rereads = Of(kernel, DeviceWith(32 << 10));
  ASSERT_EQ(rereads.size(), 2u);
  EXPECT_EQ(rereads[0].buffer, 0);
  EXPECT_DOUBLE_EQ(rereads[0].bytes, 4 * (5 - 1) * 16 * kRow) << "for each panel but the first";
  EXPECT_EQ(rereads[1].buffer, 1);
  EXPECT_DOUBLE_EQ(rereads[1].bytes, 4 * 5 * (4 - 1) * 8 * kRow) << "for each tile but the first";
}

TEST(Rereads, StepsPrefetchWhatTheyName) {
  Kernel kernel = RowTimesRows();
  RegisterTile tile;
  tile.lane_axis = 100;
  tile.prefetch = {{.buffer = 1, .ahead = 64}};
  EXPECT_FALSE(Of(kernel, DeviceWith(8 << 10))[0].prefetched);
  kernel.phases[0].steps[0].strategy = tile;
  EXPECT_TRUE(Of(kernel, DeviceWith(8 << 10))[0].prefetched);
}

// Tasks or iterations, 100 of them, read one of 4 rows of 4 KiB, as a table says.
Kernel PickedRows(bool in_task, bool of_scratch) {
  const Axis token{4, 100};
  const Index pick = Index::Load(3, {of_scratch ? Index(0) : Index(token)}, {0, 3});
  const std::vector<Axis> tokens = {token};
  Kernel kernel = Products(in_task ? std::vector<Axis>() : tokens, in_task ? tokens : std::vector<Axis>(),
                           pick * kDepth + Index(kK), Index(kK), kK, Index(token));
  Buffer table;
  table.dtype = DType::kI64;
  table.elements = of_scratch ? 1 : 100;
  table.scope = of_scratch ? Scope::kBlock : Scope::kKernel;
  kernel.buffers.push_back(table);
  return kernel;
}

TEST(Rereads, WhatDataPickIsReadAgain) {
  const double picked = 4 * kRow, again = 100 - 4;
  for (const bool in_task : {false, true}) {
    const std::vector<Reread> rereads = Of(PickedRows(in_task, false), DeviceWith(16 << 10));
    ASSERT_FALSE(rereads.empty());
    EXPECT_EQ(rereads[0].buffer, 0);
    EXPECT_DOUBLE_EQ(rereads[0].bytes, again * kRow);
    EXPECT_GE(rereads[0].footprint, picked) << "on average, each row lies between two reads of one";
    for (const Reread& reread : Of(PickedRows(in_task, false), DeviceWith(64 << 10))) {
      EXPECT_NE(reread.buffer, 0) << "the core keeps 4 rows";
    }
  }
  const std::vector<Reread> rereads = Of(PickedRows(false, true), DeviceWith(16 << 10));
  ASSERT_FALSE(rereads.empty()) << "each task has another pick in its scratch";
  EXPECT_EQ(rereads[0].buffer, 0);
  EXPECT_DOUBLE_EQ(rereads[0].bytes, again * kRow);
}

TEST(Rereads, MemoryOfAFixedSizeHasNone) {
  DeviceModel device = DeviceWith(1 << 10);
  device.kind = "cuda";
  EXPECT_TRUE(Of(RowTimesRows(), device).empty());
}

}  // namespace
}  // namespace fusion::movement
