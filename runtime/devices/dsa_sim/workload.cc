#include "runtime/devices/dsa_sim/workload.h"

namespace fusion::dsa {
namespace {

double Work(const Instruction& instruction) {
  if (instruction.part.present()) return instruction.part.work;
  if (instruction.kind == Kind::kMatrix) {
    return static_cast<double>(instruction.to.elements()) *
           static_cast<double>(instruction.from[0].strides.back().count);
  }
  const bool reduces = GetVectorOpInfo(instruction.op).reduces;
  return static_cast<double>(reduces ? instruction.from[0].elements() : instruction.to.elements());
}

double Bytes(const Program& program, const Slice& slice) {
  return static_cast<double>(slice.elements()) * static_cast<double>(DTypeBytes(program.buffers[slice.buffer].dtype));
}

}  // namespace

Workload::Workload(const Machine& machine, const Program& program) : Workload(machine) {
  const Engines engines(machine);
  for (const Instruction& instruction : program.instructions) {
    Task task;
    task.kind = instruction.kind;
    task.engine = instruction.kind == Kind::kSync ? instruction.cluster : engines.Of(program, instruction);
    if (instruction.kind == Kind::kMatrix || instruction.kind == Kind::kVector) {
      task.unit = static_cast<int16_t>(machine.Unit(instruction.unit) - machine.units.data());
      task.amount = Work(instruction);
    } else if (instruction.kind != Kind::kSync) {
      task.amount = Bytes(program, instruction.to);
    }
    Add(task, instruction.after);
  }
}

void Workload::Add(const Task& task, absl::Span<const int> after) {
  tasks_.push_back(task);
  const bool sync = task.kind == Kind::kSync;
  predecessors_.Add(sync ? -1 : task.engine, sync ? task.engine : 0, after);
}

}  // namespace fusion::dsa
