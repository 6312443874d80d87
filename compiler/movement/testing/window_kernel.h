// A small kernel with a task loop that tests change.
#ifndef FUSION_COMPILER_MOVEMENT_TESTING_WINDOW_KERNEL_H_
#define FUSION_COMPILER_MOVEMENT_TESTING_WINDOW_KERNEL_H_

#include "compiler/movement/kernel.h"

namespace fusion::movement::testing {

// y[r, i] = the sum of exp(x[r - 1 .. r + 1, i]), 8 rows of 16 in one task: a ring keeps 3 rows of exp(x). The first
// step is one iteration ahead of the second one.
inline Kernel SlidingSums() {
  Kernel kernel;
  kernel.buffers.resize(3);
  kernel.buffers[0].elements = kernel.buffers[1].elements = 128;
  kernel.buffers[2] = {Scope::kBlock, DType::kF32, 48};
  kernel.buffers[2].ring = Ring{3, 8, 16};
  const te::Axis row{0, 8}, i{1, 16}, sum_row{2, 8}, j{3, 16}, tap{4, 3};
  Step exp;
  exp.label = "exp";
  exp.loops = {{i, std::nullopt}};
  exp.body = {te::Call(te::Op::kExp, {te::Load(0, DType::kF32, {te::Index(row) * 16 + te::Index(i)})})};
  exp.stores = {{2, te::Mod(te::Index(row), 3) * 16 + te::Index(i)}};
  exp.store_types = {DType::kF32};
  exp.strategy = VectorMap{.axis = 1};
  exp.turn = Turn{row, 0, {}, {{2, te::Index(row), 1}}};
  Step sum;
  sum.label = "sum";
  sum.loops = {{j, std::nullopt}};
  const te::Index at = te::Index(sum_row) + te::Index(tap) - 1;
  sum.reduction.emplace();
  sum.reduction->kind = te::ReductionKind::kSum;
  sum.reduction->acc = DType::kF32;
  sum.reduction->axes = {tap};
  sum.body = {te::If({{at, te::Cmp::kGe, te::Index(0)}, {at, te::Cmp::kLt, te::Index(8)}},
                     te::Load(2, DType::kF32, {te::Mod(at, 3) * 16 + te::Index(j)}), te::Imm(DType::kF32, 0))};
  sum.stores = {{1, te::Index(sum_row) * 16 + te::Index(j)}};
  sum.store_types = {DType::kF32};
  sum.turn = Turn{sum_row, 1, {{2, te::Index(sum_row) - 1, 3}}, {}};
  Phase phase;
  phase.steps = {exp, sum};
  phase.task_loops = {{0, 2, 9}};
  kernel.phases = {phase};
  kernel.next_axis = 5;
  kernel.scratch_bytes = kernel.PlannedScratchBytes();
  return kernel;
}

}  // namespace fusion::movement::testing

#endif  // FUSION_COMPILER_MOVEMENT_TESTING_WINDOW_KERNEL_H_
