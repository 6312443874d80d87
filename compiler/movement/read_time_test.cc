#include "compiler/movement/read_time.h"

#include <gtest/gtest.h>

namespace fusion::movement {
namespace {

using te::Axis;
using te::Index;

TEST(ReadTime, RareReadsAreHidden) {
  EXPECT_DOUBLE_EQ(ExposedSeconds(0, 0), 0);
  EXPECT_DOUBLE_EQ(ExposedSeconds(1, 1), 1);
  EXPECT_DOUBLE_EQ(ExposedSeconds(3, 1), 3) << "no more than all of it";
  EXPECT_DOUBLE_EQ(ExposedSeconds(1, 10), 0.1);
}

// Four tasks, each of which takes two steps over a table of 1,024 elements, of which a step reads 8 by their numbers.
TEST(ReadTime, WhatAStepHasReadIsNearForTheNext) {
  const Axis task{0, 4}, element{1, 8};
  Kernel kernel;
  for (const int64_t elements : {1024, 32, 32, 32}) {
    Buffer buffer;
    buffer.elements = elements;
    kernel.buffers.push_back(buffer);
  }
  const Index at = Index(task) * 8 + Index(element);
  Step step;
  step.loops = {{element, std::nullopt}};
  step.body = {te::Load(0, DType::kF32, {Index::Load(1, {Index(element)}, {0, 1023})})};
  step.stores = {{2, at}};
  Phase phase;
  phase.grid = {task};
  phase.steps = {step};
  DeviceModel device;
  device.memory = {{"L2", 1 << 20, 1e9, false}, {"DRAM", 0, 1e8, true}};
  const double once = TaskOperandSeconds(kernel, phase, device);
  EXPECT_DOUBLE_EQ(once, 4 * 8 * 4 / 2e9);
  step.stores = {{3, at}};
  phase.steps.push_back(step);
  EXPECT_DOUBLE_EQ(TaskOperandSeconds(kernel, phase, device), once);
}

}  // namespace
}  // namespace fusion::movement
