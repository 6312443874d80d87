#include "runtime/devices/dsa_sim/timing.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "runtime/devices/dsa_sim/order.h"

namespace fusion::dsa {
namespace {

// The time that an instruction takes of its engine and of a shared resource.
struct Demand {
  double startup = 0, work_cycles = 0;  // on its engine
  int shared = -1;                      // the shared resource, -1: none
  double shared_cycles = 0;
};

double Bytes(const Program& program, const Slice& slice) {
  return static_cast<double>(slice.elements()) * static_cast<double>(DTypeBytes(program.buffers[slice.buffer].dtype));
}

double Work(const Instruction& instruction) {
  if (instruction.part.present()) return instruction.part.work;
  if (instruction.kind == Kind::kMatrix) {
    return static_cast<double>(instruction.to.elements()) *
           static_cast<double>(instruction.from[0].strides.back().count);
  }
  const bool reduces = GetVectorOpInfo(instruction.op).reduces;
  return static_cast<double>(reduces ? instruction.from[0].elements() : instruction.to.elements());
}

// Shared resources: 0 is DDR; cluster k has the port of its GB at 1 + 2k and its interconnect at 2 + 2k.
Demand DemandOf(const Machine& machine, const Program& program, const Instruction& instruction) {
  const auto transfer = [&](const Rate& startup, const Rate& engine, int shared, double shared_bytes_per_cycle) {
    const double bytes = Bytes(program, instruction.to);
    return Demand{startup.value, bytes / engine.value, shared, bytes / shared_bytes_per_cycle};
  };
  const int cluster = instruction.kind == Kind::kSync ? 0 : program.buffers[instruction.to.buffer].memory.place.cluster;
  switch (instruction.kind) {
    case Kind::kSync:
      return Demand{machine.sync_cycles.value, 0};
    case Kind::kLoad:
    case Kind::kStore:
      return transfer(machine.dma_startup_cycles, machine.dma_bytes_per_cycle, 0,
                      machine.ddr_bytes_per_s.value / machine.clock_hz.value);
    case Kind::kMove:
      return transfer(machine.mover_startup_cycles, machine.mover_bytes_per_cycle, 1 + 2 * cluster,
                      machine.global_bytes_per_cycle.value);
    case Kind::kRedistribute:
      return transfer(machine.link_startup_cycles, machine.link_bytes_per_cycle, 2 + 2 * cluster,
                      machine.interconnect_bytes_per_cycle.value);
    case Kind::kMatrix:
    case Kind::kVector: {
      const ComputeUnit& unit = *machine.Unit(instruction.unit);
      return Demand{unit.startup_cycles.value, Work(instruction) / unit.per_cycle.value};
    }
  }
  return {};
}

void CountBytes(const Program& program, const Instruction& instruction, Timing* timing) {
  if (instruction.kind == Kind::kLoad) timing->ddr_read_bytes += Bytes(program, instruction.to);
  if (instruction.kind == Kind::kStore) timing->ddr_written_bytes += Bytes(program, instruction.to);
  if (instruction.kind == Kind::kMove) timing->moved_bytes += Bytes(program, instruction.to);
  if (instruction.kind == Kind::kRedistribute) timing->redistributed_bytes += Bytes(program, instruction.to);
}

}  // namespace

Timing TimeProgram(const Machine& machine, const Program& program) {
  const InstructionLists predecessors = Predecessors(machine, program), followers = predecessors.Reversed();
  const int count = static_cast<int>(program.instructions.size());
  std::vector<int> open(count, 0);
  for (int i = 0; i < count; ++i) open[i] = static_cast<int>(predecessors[i].size());
  Timing timing;
  timing.spans.resize(count);
  for (const CoreGroup& group : machine.groups) {
    for (const std::string& unit : group.units) timing.units[unit].units += machine.clusters * group.cores;
  }
  // Instructions by the cycle at which they are ready; ties by their number.
  using Ready = std::pair<double, int>;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> queue;
  for (int i = 0; i < count; ++i) {
    if (open[i] == 0) queue.emplace(0, i);
  }
  std::vector<double> free_at(1 + 2 * machine.clusters, 0);
  while (!queue.empty()) {
    const auto [ready, i] = queue.top();
    queue.pop();
    const Instruction& instruction = program.instructions[i];
    const Demand demand = DemandOf(machine, program, instruction);
    double end = ready + demand.startup + demand.work_cycles;
    if (demand.shared >= 0) {
      double& free = free_at[demand.shared];
      free = std::max(free, ready + demand.startup) + demand.shared_cycles;
      end = std::max(end, free);
    }
    timing.spans[i] = {ready, end};
    timing.cycles = std::max(timing.cycles, end);
    CountBytes(program, instruction, &timing);
    if (instruction.kind == Kind::kMatrix || instruction.kind == Kind::kVector) {
      timing.units[instruction.unit].busy_cycles += end - ready;
      timing.units[instruction.unit].work_cycles += demand.work_cycles;
    }
    for (const int next : followers[i]) {
      if (--open[next] > 0) continue;
      double start = 0;
      for (const int before : predecessors[next]) start = std::max(start, timing.spans[before].end);
      queue.emplace(start, next);
    }
  }
  timing.seconds = timing.cycles / machine.clock_hz.value;
  return timing;
}

}  // namespace fusion::dsa
