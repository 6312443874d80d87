#include "compiler/schedule/tile/rank_lanes.h"

#include <gtest/gtest.h>

#include <vector>

namespace fusion {
namespace {

constexpr int64_t kLanes = 16;

movement::Kernel ThreeBuffers() {
  movement::Kernel kernel;
  for (int b = 0; b < 3; ++b) {
    movement::Buffer buffer;
    buffer.scope = Scope::kKernel;
    buffer.dtype = DType::kF32;
    buffer.elements = 1 << 20;
    kernel.buffers.push_back(buffer);
  }
  return kernel;
}

// y[i, j] = sum over k of a[i, k] * b[k, j]
Nest Product(int64_t rows, int64_t columns) {
  const te::Axis i{0, rows}, j{1, columns}, k{2, 64};
  Nest nest;
  nest.axes = {i, j};
  nest.reduction = te::Reduction{te::ReductionKind::kSum, {k}, {}, DType::kF32, {}};
  nest.body = {te::Call(te::Op::kMul, {te::Load(0, DType::kF32, {te::Index(i) * 64 + te::Index(k)}),
                                       te::Load(1, DType::kF32, {te::Index(k) * columns + te::Index(j)})})};
  nest.stores = {{2, te::Index(i) * columns + te::Index(j)}};
  nest.store_types = {DType::kF32};
  return nest;
}

std::vector<int> RankedAxes(const Nest& nest) {
  std::vector<int> axes;
  for (const LaneChoice& choice : RankLanes(nest, BodyLoads(nest), kLanes, ThreeBuffers(), PortModel(), false)) {
    axes.push_back(choice.axis.id);
  }
  return axes;
}

TEST(RankLanes, ThePlainAxisOfAnOperandComesFirst) {
  const std::vector<int> axes = RankedAxes(Product(64, 64));
  ASSERT_FALSE(axes.empty());
  EXPECT_EQ(axes[0], 1);
}

TEST(RankLanes, AnAxisOfLessThanAQuarterOfAVectorIsNone) {
  EXPECT_EQ(RankedAxes(Product(2, 4)), std::vector<int>{1});
  EXPECT_TRUE(RankedAxes(Product(2, 3)).empty());
}

TEST(RankLanes, AnAxisThatATaskCutsOrAConditionTestsIsNone) {
  Nest cut = Product(64, 64);
  cut.limits[1] = te::Index(60);
  for (const int axis : RankedAxes(cut)) EXPECT_NE(axis, 1);
  Nest tested = Product(64, 64);
  tested.body = {
      te::If({{te::Index(tested.axes[1]), te::Cmp::kLt, te::Index(50)}}, tested.body[0], te::Imm(DType::kF32, 0))};
  for (const int axis : RankedAxes(tested)) EXPECT_NE(axis, 1);
}

// An axis that moves no operand would compute the same sum in every lane.
TEST(RankLanes, AnAxisThatMovesNoOperandIsNone) {
  Nest nest = Product(64, 64);
  nest.body = {nest.body[0]->args[0]};
  for (const int axis : RankedAxes(nest)) EXPECT_NE(axis, 1);
}

TEST(RankLanes, ThoseMuchSlowerThanTheBestAreLeftOut) {
  for (const int64_t rows : {16, 64, 1024}) {
    const Nest nest = Product(rows, 64);
    const auto ranked = RankLanes(nest, BodyLoads(nest), kLanes, ThreeBuffers(), PortModel(), false);
    ASSERT_FALSE(ranked.empty());
    for (size_t r = 1; r < ranked.size(); ++r) {
      EXPECT_GE(ranked[r].cycles, ranked[r - 1].cycles);
      EXPECT_LE(ranked[r].cycles, 2 * ranked[0].cycles);
    }
  }
}

}  // namespace
}  // namespace fusion
