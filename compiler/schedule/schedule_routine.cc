#include "compiler/schedule/schedule_routine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/fusion_block_passes.h"
#include "runtime/base/status_macros.h"

namespace fusion {

absl::StatusOr<ScheduledFusionBlock> ScheduleRoutine(const te::Program& program,
                                                     const std::map<te::TensorId, Layout>& layouts) {
  const te::Te& te = program.tes[0];
  const te::Routine& routine = *te.routine;
  ScheduledFusionBlock result;
  movement::Kernel& kernel = result.kernel;
  std::map<te::TensorId, int> buffer_of;
  const auto buffer = [&](te::TensorId tensor, Scope scope) {
    auto [it, fresh] = buffer_of.emplace(tensor, static_cast<int>(kernel.buffers.size()));
    if (fresh) {
      const te::TensorInfo& info = program.tensors[tensor];
      movement::Buffer added;
      added.scope = scope;
      added.dtype = info.dtype;
      added.elements = NumElements(info.shape);
      added.is_constant = info.role == te::Role::kConstant;
      added.tensor = tensor;
      kernel.buffers.push_back(added);
    }
    return it->second;
  };
  const auto live_out = [&](te::TensorId tensor) {
    return std::find(program.outputs.begin(), program.outputs.end(), tensor) != program.outputs.end();
  };
  for (const std::vector<te::TensorId>* tensors : {&routine.inputs, &te.outputs}) {
    for (te::TensorId tensor : *tensors) {
      const auto layout = layouts.find(tensor);
      if (layout != layouts.end() && !layout->second.plain()) {
        return absl::FailedPreconditionError(absl::StrCat("routine ", routine.name, " needs row-major operands"));
      }
    }
  }
  movement::Step step;
  step.label = routine.name;
  movement::RoutineCall call{routine.name, program.tensors[routine.inputs[0]].dtype, {}, routine.params};
  for (te::TensorId tensor : routine.inputs) call.inputs.push_back(buffer(tensor, Scope::kKernel));
  step.strategy = std::move(call);
  for (te::TensorId tensor : te.outputs) {
    if (live_out(tensor)) buffer(tensor, Scope::kKernel);
  }
  for (te::TensorId tensor : te.outputs) {
    step.stores.push_back({buffer(tensor, Scope::kDevice), te::Index(0)});
    step.store_types.push_back(program.tensors[tensor].dtype);
  }
  movement::Buffer scratch;
  scratch.scope = Scope::kBlock;
  scratch.dtype = DType::kI64;
  scratch.elements = (routine.scratch_bytes + 7) / 8;
  if (scratch.elements > 0) {
    kernel.buffers.push_back(scratch);
    kernel.scratch_bytes = (scratch.elements * 8 + 127) / 64 * 64;
  }
  movement::Phase phase;
  phase.grid = {te::Axis{0, routine.tasks}};
  kernel.next_axis = 1;
  phase.steps.push_back(std::move(step));
  kernel.phases.push_back(std::move(phase));
  RETURN_IF_ERROR(VerifySchedule(kernel));
  return result;
}

}  // namespace fusion
