#include "compiler/plan/planners/power_fusion/gir.h"

#include <gtest/gtest.h>

namespace fusion::power_fusion {
namespace {

constexpr ecg::ValueId kX = 0, kY = 1, kZ = 2;

DeviceModel Device() {
  DeviceModel device;
  device.memory = {{"L1", 1 << 10, 1e11, false}, {"L2", 1 << 16, 5e10, false}, {"DRAM", 0, 1e10, true}};
  return device;
}

// Slices of 4 KB tensors.
class GirTest : public testing::Test {
 protected:
  int Slice(ecg::ValueId value, Scope memory) { return gir_.Add({value, memory, {}, {1024}, 4096}); }
  int Add(GKind kind, std::vector<int> reads, int writes, Scope scope = Scope::kDevice) {
    GOperator op;
    op.kind = kind;
    op.reads = std::move(reads);
    op.writes = writes;
    op.scope = scope;
    gir_.Add(std::move(op));
    return writes;
  }
  int Load(ecg::ValueId value) { return Add(GKind::kMove, {Slice(value, Scope::kDevice)}, Slice(value, Scope::kLane)); }
  Gir gir_;
};

TEST_F(GirTest, EachTensorCountsOnceInAPhase) {
  const int first = Load(kX), again = Load(kX);
  const int made = Add(GKind::kElementwise, {first, again}, Slice(kY, Scope::kLane));
  Add(GKind::kMove, {made}, Slice(kY, Scope::kDevice));
  const MovedBytes moved = BytesOf(gir_, Device());
  EXPECT_EQ(moved.read, 4096);
  EXPECT_EQ(moved.written, 4096);
  EXPECT_EQ(moved.phases, 1);
  DeviceModel device = Device();
  device.write_allocate = false;
  EXPECT_EQ(moved.Dram(device), 2 * 4096);
  EXPECT_EQ(moved.Dram(Device()), 3 * 4096) << "a store reads its line first";
}

TEST_F(GirTest, ADeviceSynchronisationBeginsAPhase) {
  const int made = Add(GKind::kReduce, {Load(kX)}, Slice(kY, Scope::kLane));
  const int stored = Add(GKind::kMove, {made}, Slice(kY, Scope::kDevice));
  const int read = Add(GKind::kSync, {stored}, Slice(kY, Scope::kDevice));
  const int loaded = Add(GKind::kMove, {read}, Slice(kY, Scope::kLane));
  // %x is loaded again: registers do not outlive the synchronisation, so this load belongs to the second phase.
  const int result = Add(GKind::kElementwise, {Load(kX), loaded}, Slice(kZ, Scope::kLane));
  Add(GKind::kMove, {result}, Slice(kZ, Scope::kDevice));
  const MovedBytes moved = BytesOf(gir_, Device());
  EXPECT_EQ(moved.phases, 2);
  EXPECT_EQ(moved.read, 3 * 4096) << "%x twice and %y once";
  EXPECT_EQ(moved.written, 2 * 4096);
  EXPECT_EQ(PhasesOf(gir_), (std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1}));
}

TEST_F(GirTest, ABlockSynchronisationMovesBytesInTheBlocksMemory) {
  const int made = Add(GKind::kReduce, {Load(kX)}, Slice(kY, Scope::kLane));
  const int read = Add(GKind::kSync, {made}, Slice(kY, Scope::kBlock), Scope::kBlock);
  Add(GKind::kMove, {read}, Slice(kY, Scope::kDevice));
  const MovedBytes moved = BytesOf(gir_, Device());
  EXPECT_EQ(moved.exchanged, 2 * 4096);
  EXPECT_EQ(moved.unit_bytes, 4096);
  EXPECT_EQ(moved.phases, 1);
}

TEST_F(GirTest, RowsOfATableThatNoCacheHoldsCountOneByOne) {
  const int table = gir_.Add({kX, Scope::kDevice, {}, {1 << 20}, 4 << 20});
  const int row = Add(GKind::kMove, {table}, Slice(kX, Scope::kLane));
  gir_.operators.back().looked_up_bytes = 256;
  Add(GKind::kMove, {row}, Slice(kY, Scope::kDevice));
  EXPECT_EQ(BytesOf(gir_, Device()).read, 256);
  DeviceModel large = Device();
  large.memory[1].size_bytes = 64 << 20;
  EXPECT_EQ(BytesOf(gir_, large).read, 4 << 20) << "rows lie in most lines of a table that a cache holds";
}

TEST(GKind, HasNames) { EXPECT_STREQ(GKindName(GKind::kBroadcast), "broadcast"); }

}  // namespace
}  // namespace fusion::power_fusion
