#include "compiler/schedule/drop_unused_buffers.h"

#include <gtest/gtest.h>

#include "compiler/movement/verify.h"

namespace fusion {
namespace {

using te::Axis;
using te::Index;

movement::Step Copy(int from, int to, const Axis& axis) {
  movement::Step step;
  step.label = "copy";
  step.loops = {{axis, std::nullopt}};
  step.body = {te::Load(from, DType::kF32, {Index(axis)})};
  step.stores = {{to, Index(axis)}};
  step.store_types = {DType::kF32};
  return step;
}

// Buffer 0 is not used, and scratch (buffer 1) comes before what the kernel returns.
TEST(DropUnusedBuffers, RenumbersWhatIsLeftAndPutsScratchLast) {
  movement::Kernel kernel;
  kernel.buffers = {{Scope::kKernel, DType::kF32, 7},
                    {Scope::kBlock, DType::kF32, 8},
                    {Scope::kKernel, DType::kF32, 9},
                    {Scope::kKernel, DType::kF32, 10}};
  const Axis axis{0, 8};
  kernel.phases = {{{}, {Copy(2, 1, axis), Copy(1, 3, axis)}}};
  DropUnusedBuffers(&kernel);
  ASSERT_EQ(kernel.buffers.size(), 3u);
  EXPECT_EQ(kernel.buffers[0].elements, 9);
  EXPECT_EQ(kernel.buffers[1].elements, 10);
  EXPECT_EQ(kernel.buffers[2].elements, 8);
  const std::vector<movement::Step>& steps = kernel.phases[0].steps;
  EXPECT_EQ(steps[0].body[0]->tensor, 0);
  EXPECT_EQ(steps[0].stores[0].buffer, 2);
  EXPECT_EQ(steps[1].body[0]->tensor, 2);
  EXPECT_EQ(steps[1].stores[0].buffer, 1);
  EXPECT_TRUE(movement::Verify(kernel).ok()) << movement::Verify(kernel);
}

TEST(DropUnusedBuffers, FollowsHintsToo) {
  movement::Kernel kernel;
  kernel.buffers.resize(3);
  for (movement::Buffer& buffer : kernel.buffers) buffer.elements = 8;
  movement::Step step = Copy(1, 2, {0, 8});
  step.strategy = movement::VectorMap{.axis = 0, .read_next = {0, 1, {1}}};
  kernel.phases = {{{}, {step}}};
  DropUnusedBuffers(&kernel);
  EXPECT_EQ(kernel.phases[0].steps[0].As<movement::VectorMap>()->read_next.buffers, std::vector<int>{0});
}

TEST(DropUnusedBuffers, FollowsLooks) {
  movement::Kernel kernel;
  kernel.buffers.resize(4);
  movement::Step makes = Copy(1, 2, {0, 8}), waits = Copy(1, 2, {0, 8});
  makes.look = movement::Look{3, Index(0)};
  waits.runs_if = movement::Condition{3, false};
  kernel.phases = {{{}, {makes, waits}}};
  DropUnusedBuffers(&kernel);
  EXPECT_EQ(kernel.phases[0].steps[0].look->buffer, 2);
  EXPECT_EQ(kernel.phases[0].steps[1].runs_if->buffer, 2);
}

}  // namespace
}  // namespace fusion
