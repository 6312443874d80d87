#include "compiler/schedule/threadgroup/threadgroup_tile.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>

namespace fusion {
namespace {

DeviceModel Gpu() {
  DeviceModel device;
  device.work_group_size = 128;
  device.parallel_units = 4;
  device.vector_bytes = 16;
  device.vector_registers = 64;
  device.memory = {{"shared", 48 << 10, 0, false}, {"DRAM", 0, 1e11, true}};
  return device;
}

// y[i, j] = sum over k of a[i, k] * b[k, j]
Nest Product(int64_t rows, int64_t columns, int64_t depth, AxisSource* axes, movement::Kernel* kernel) {
  for (const int64_t elements : {rows * depth, depth * columns, rows * columns}) {
    movement::Buffer buffer;
    buffer.scope = Scope::kKernel;
    buffer.dtype = DType::kF32;
    buffer.elements = elements;
    kernel->buffers.push_back(buffer);
  }
  const te::Axis i = axes->New(rows), j = axes->New(columns), k = axes->New(depth);
  Nest nest;
  nest.label = "y";
  nest.axes = {i, j};
  nest.reduction = te::Reduction{te::ReductionKind::kSum, {k}, {}, DType::kF32, {}};
  nest.body = {te::Call(te::Op::kMul, {te::Load(0, DType::kF32, {te::Index(i) * depth + te::Index(k)}),
                                       te::Load(1, DType::kF32, {te::Index(k) * columns + te::Index(j)})})};
  nest.stores = {{2, te::Index(i) * columns + te::Index(j)}};
  nest.store_types = {DType::kF32};
  return nest;
}

absl::StatusOr<movement::Phase> PhaseOf(const Nest& nest, AxisSource* axes, movement::Kernel* kernel) {
  ChoiceLog choices;
  return ThreadgroupTilePhase(nest, Gpu(), kernel, axes, &choices);
}

TEST(ThreadgroupTilePhase, EveryResultIsInOneTileOfTheGrid) {
  AxisSource axes(0);
  movement::Kernel kernel;
  const Nest nest = Product(100, 70, 33, &axes, &kernel);
  const absl::StatusOr<movement::Phase> phase = PhaseOf(nest, &axes, &kernel);
  ASSERT_TRUE(phase.ok()) << phase.status();
  ASSERT_EQ(phase->steps.size(), 1u);
  const auto* tile = phase->steps[0].As<movement::ThreadgroupTile>();
  ASSERT_NE(tile, nullptr);
  EXPECT_EQ(tile->item_rows * tile->item_columns, 128);
  EXPECT_EQ(tile->shared_copies.size(), 2u);
  EXPECT_GE(phase->tasks() * tile->item_rows * tile->rows * tile->item_columns * tile->columns, 100 * 70);
  // 100 rows and 70 columns are no multiples of a tile, so that its loops end early.
  for (const movement::Loop& loop : phase->steps[0].loops) EXPECT_TRUE(loop.limit.has_value());
}

TEST(ThreadgroupTilePhase, RefusesWhatIsNoProductOfTwoSides) {
  AxisSource axes(0);
  movement::Kernel kernel;
  Nest maximum = Product(64, 64, 64, &axes, &kernel);
  maximum.reduction->kind = te::ReductionKind::kMax;
  EXPECT_TRUE(absl::IsFailedPrecondition(PhaseOf(maximum, &axes, &kernel).status()));
  Nest sum = Product(64, 64, 64, &axes, &kernel);
  sum.body = {sum.body[0]->args[0]};
  EXPECT_TRUE(absl::IsFailedPrecondition(PhaseOf(sum, &axes, &kernel).status()));
  Nest square = Product(64, 64, 64, &axes, &kernel);
  square.body = {te::Call(te::Op::kMul, {square.body[0]->args[0], square.body[0]->args[0]})};
  EXPECT_TRUE(absl::IsFailedPrecondition(PhaseOf(square, &axes, &kernel).status()));  // the columns move nothing
}

TEST(ThreadgroupTilePhase, RefusesSmallProductsByName) {
  for (const auto& [rows, columns, depth] : {std::tuple(7, 64, 64), std::tuple(64, 7, 64), std::tuple(64, 64, 7)}) {
    AxisSource axes(0);
    movement::Kernel kernel;
    const Nest nest = Product(rows, columns, depth, &axes, &kernel);
    const absl::Status status = PhaseOf(nest, &axes, &kernel).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << rows << " " << columns << " " << depth;
    EXPECT_NE(status.message().find("too few results"), std::string::npos) << status;
  }
}

}  // namespace
}  // namespace fusion
