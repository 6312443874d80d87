#include "compiler/movement/traffic.h"

#include <gtest/gtest.h>

namespace fusion::movement {
namespace {

const te::Axis kTask{0, 4}, kRow{1, 10};

Buffer BufferOf(Scope scope, int64_t elements) {
  Buffer buffer;
  buffer.scope = scope;
  buffer.dtype = DType::kF32;
  buffer.elements = elements;
  return buffer;
}

// scratch = x; y = scratch + x
Kernel TwoSteps() {
  Kernel kernel;
  kernel.buffers = {BufferOf(Scope::kKernel, 40), BufferOf(Scope::kKernel, 40), BufferOf(Scope::kBlock, 10)};
  const te::Index at = te::Index(kTask) * 10 + te::Index(kRow);
  Step first, second;
  first.loops = second.loops = {{kRow, std::nullopt}};
  first.body = {te::Load(0, DType::kF32, {at})};
  first.stores = {{2, te::Index(kRow)}};
  second.body = {te::Call(te::Op::kAdd, {te::Load(2, DType::kF32, {te::Index(kRow)}), te::Load(0, DType::kF32, {at})})};
  second.stores = {{1, at}};
  Phase phase;
  phase.grid = {kTask};
  phase.steps = {first, second};
  kernel.phases = {phase};
  return kernel;
}

TEST(Traffic, AValueThatTheTaskHasMadeIsNotRead) {
  const Accesses accesses = AccessesOf(TwoSteps().phases[0]);
  EXPECT_EQ(accesses.read.count(2), 0u);
  EXPECT_DOUBLE_EQ(accesses.read.at(0), 80);  // by both steps, at 40 points each
  EXPECT_EQ(accesses.written, (std::set<int>{1, 2}));
}

// scratch[i] = sum of x up to element i: one pass takes each element once, where the definition takes it ten times.
TEST(Traffic, APrefixReductionReadsEachElementOnce) {
  Phase phase = TwoSteps().phases[0];
  phase.steps.resize(1);
  phase.steps[0].reduction = te::Reduction{te::ReductionKind::kSum, {{2, 10}}, {}, DType::kF32, {}};
  EXPECT_DOUBLE_EQ(AccessesOf(phase).read.at(0), 400);
  phase.steps[0].strategy = PrefixPass{};
  EXPECT_DOUBLE_EQ(ReducedElements(phase.steps[0]), 1);
  EXPECT_DOUBLE_EQ(AccessesOf(phase).read.at(0), 40);
}

TEST(Traffic, ScratchMovesNoBytesAndStoresMayReadTheirLines) {
  const Kernel kernel = TwoSteps();
  DeviceModel device;
  device.write_allocate = false;
  const auto traffic = TrafficOf(kernel, AccessesOf(kernel.phases[0]), device);
  ASSERT_EQ(traffic.size(), 2u);
  EXPECT_EQ(traffic[0].buffer, 0);
  EXPECT_DOUBLE_EQ(traffic[0].read_bytes, 160) << "each element once, however often it is loaded";
  EXPECT_DOUBLE_EQ(traffic[1].write_bytes, 160);
  EXPECT_DOUBLE_EQ(BytesOf(traffic), 320);
  device.write_allocate = true;
  EXPECT_DOUBLE_EQ(TrafficBytes(kernel, AccessesOf(kernel.phases[0]), device), 480);
}

TEST(Traffic, ALargeTableCountsWhatIsLoaded) {
  DeviceModel device;
  device.memory = {{"L2", 1 << 10, 1e10, false}, {"DRAM", 0, 1e9, true}};
  const Buffer table = BufferOf(Scope::kKernel, 1 << 20), small = BufferOf(Scope::kKernel, 200);
  EXPECT_DOUBLE_EQ(TouchedBytes(table, 5, device), 20);
  EXPECT_DOUBLE_EQ(TouchedBytes(table, kWholeBuffer, device), 4 << 20);
  EXPECT_DOUBLE_EQ(TouchedBytes(table, 1e12, device), 4 << 20) << "no more than the table has";
  EXPECT_DOUBLE_EQ(TouchedBytes(small, 5, device), 800) << "rows of a small table lie in most of its lines";
}

// The last of four tiles of eight rows has two.
TEST(Traffic, ALoopThatTheLastTileCutsRunsLessOftenOnAverage) {
  const te::Axis tile{0, 4}, row{1, 8};
  EXPECT_DOUBLE_EQ(MeanTrips({row, te::Index(26) - te::Index(tile) * 8}), (8 + 8 + 8 + 2) / 4.0);
  EXPECT_DOUBLE_EQ(MeanTrips({row, te::Index(20) - te::Index(tile) * 8}), (8 + 8 + 4 + 0) / 4.0) << "never negative";
  EXPECT_DOUBLE_EQ(MeanTrips({row, std::nullopt}), 8);
  EXPECT_DOUBLE_EQ(Trips({{tile, std::nullopt}, {row, std::nullopt}}), 32);
}

}  // namespace
}  // namespace fusion::movement
