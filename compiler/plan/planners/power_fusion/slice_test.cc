#include "compiler/plan/planners/power_fusion/slice.h"

#include <gtest/gtest.h>

#include "compiler/cost/stored_devices.h"

namespace fusion::power_fusion {
namespace {

constexpr int64_t kUnits = 16, kWarpsOfABlock = 4;
const Shape kMatrix = {kUnits, 8};

te::Index Unit() { return te::Index(UnitAxis(kUnits)); }
// Row `row` of the matrix, columns [first, first + columns).
Pattern Row(const te::Index& row, int64_t first = 0, int64_t columns = 8, bool in_order = true) {
  return PatternOf({{row, 1}, {te::Index(first), columns}}, kMatrix, in_order);
}
Scope ScopeOf(const Pattern& written, const Pattern& read) {
  return SyncScope(written, read, kMatrix, kUnits, kWarpsOfABlock);
}

// Figure 5: a block has four warps.
TEST(SyncScope, IsLaneWherePatternsAreTheSame) { EXPECT_EQ(ScopeOf(Row(Unit()), Row(Unit())), Scope::kLane); }

TEST(SyncScope, IsWarpWhereTheSameUnitWritesAndReads) {
  EXPECT_EQ(ScopeOf(Row(Unit()), Row(Unit(), 2, 4)), Scope::kWarp);
  EXPECT_EQ(ScopeOf(Row(Unit()), Row(Unit(), 0, 8, false)), Scope::kWarp) << "in another order";
}

TEST(SyncScope, IsBlockWhereNumbersOfUnitsAreTheSameDividedByFour) {
  const te::Index block = te::FloorDiv(Unit(), 4) * 4;
  EXPECT_EQ(ScopeOf(Row(Unit()), Row(block + te::Mod(Unit() + 1, 4))), Scope::kBlock) << "the next warp of the block";
  const Pattern all_of_block = PatternOf({{block, 4}, {te::Index(0), 8}}, kMatrix);
  EXPECT_EQ(ScopeOf(Row(Unit()), all_of_block), Scope::kBlock);
  // A unit that has block-scope memory for itself exchanges nothing there.
  EXPECT_EQ(SyncScope(Row(Unit()), all_of_block, kMatrix, kUnits, 1), Scope::kDevice);
}

TEST(SyncScope, IsDeviceWhereUnitsOfDifferentBlocksExchange) {
  EXPECT_EQ(ScopeOf(Row(Unit()), Row(te::Index(15) - Unit())), Scope::kDevice);
  const Pattern column = PatternOf({{te::Index(0), 16}, {te::FloorDiv(Unit(), 2), 1}}, kMatrix);
  EXPECT_EQ(ScopeOf(Row(Unit()), column), Scope::kDevice);
}

TEST(SyncScope, ReshapedPiecesStayWithTheirUnit) {
  // The same eight elements as a part of a vector of 128.
  const Pattern written = PatternOf({{Unit() * 8, 8}}, {128});
  const Pattern half = PatternOf({{Unit() * 8 + te::Index(4), 4}}, {128});
  EXPECT_EQ(SyncScope(written, half, {128}, kUnits, kWarpsOfABlock), Scope::kWarp);
}

TEST(Pattern, CountsRunsOfContiguousElements) {
  EXPECT_EQ(ToString(Row(Unit())), "1 x 8 / 0");
  EXPECT_EQ(ToString(PatternOf({{te::Index(0), 16}, {te::Index(3), 1}}, kMatrix)), "16 x 1 / 8");
  EXPECT_EQ(ToString(PatternOf({{te::Index(0), 16}, {te::Index(0), 8}}, kMatrix)), "1 x 128 / 0");
  EXPECT_EQ(ToString(PatternOf({{te::Index(4), 2}, {te::Index(0), 4}}, kMatrix)), "2 x 4 / 8");
}

TEST(Units, ComeFromTheDevice) {
  EXPECT_EQ(UnitsOf(DeviceModel()).per_block, 1) << "a core has its own caches";
  const auto gpu = StoredDevice("cuda:sm_80");
  ASSERT_TRUE(gpu.ok()) << gpu.status();
  EXPECT_EQ(UnitsOf(*gpu).per_block, gpu->work_group_size / 32);
  EXPECT_EQ(UnitsOf(*gpu).memory_bytes, 0.75 * static_cast<double>(gpu->memory[0].size_bytes) / 2);
}

}  // namespace
}  // namespace fusion::power_fusion
