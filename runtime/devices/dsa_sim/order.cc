#include "runtime/devices/dsa_sim/order.h"

#include <algorithm>
#include <numeric>

namespace fusion::dsa {
namespace {

constexpr int kDma = 1, kMoverAndLink = 2;

int EnginesOfCore(const Machine& machine, int core) {
  return kMoverAndLink + static_cast<int>(machine.GroupOf(core).units.size());
}

int EnginesOfCluster(const Machine& machine) {
  int sum = kDma;
  for (int core = 0; core < machine.cores(); ++core) sum += EnginesOfCore(machine, core);
  return sum;
}

int FirstOfCore(const Machine& machine, const Place& place) {
  int first = place.cluster * EnginesOfCluster(machine) + kDma;
  for (int core = 0; core < place.core; ++core) first += EnginesOfCore(machine, core);
  return first;
}

const Memory& MemoryOf(const Program& program, const Slice& slice) { return program.buffers[slice.buffer].memory; }

}  // namespace

int EngineCount(const Machine& machine) { return machine.clusters * EnginesOfCluster(machine); }

int ClusterOfEngine(const Machine& machine, int engine) { return engine / EnginesOfCluster(machine); }

int EngineOf(const Machine& machine, const Program& program, const Instruction& instruction) {
  switch (instruction.kind) {
    case Kind::kSync:
      return -1;
    case Kind::kLoad:
      return MemoryOf(program, instruction.to).place.cluster * EnginesOfCluster(machine);
    case Kind::kStore:
      return MemoryOf(program, instruction.from[0]).place.cluster * EnginesOfCluster(machine);
    case Kind::kMove: {
      const Memory& to = MemoryOf(program, instruction.to);
      return FirstOfCore(machine, to.level == Level::kLocal ? to.place : MemoryOf(program, instruction.from[0]).place);
    }
    case Kind::kRedistribute:
      return FirstOfCore(machine, MemoryOf(program, instruction.from[0]).place) + 1;
    case Kind::kMatrix:
    case Kind::kVector: {
      const std::vector<std::string>& units = machine.GroupOf(instruction.place.core).units;
      const auto unit = std::find(units.begin(), units.end(), instruction.unit);
      return FirstOfCore(machine, instruction.place) + kMoverAndLink + static_cast<int>(unit - units.begin());
    }
  }
  return -1;
}

InstructionLists InstructionLists::Reversed() const {
  InstructionLists reversed;
  reversed.begin_.assign(begin_.size(), 0);
  for (const int one : all_) ++reversed.begin_[one + 1];
  std::partial_sum(reversed.begin_.begin(), reversed.begin_.end(), reversed.begin_.begin());
  reversed.all_.resize(all_.size());
  std::vector<size_t> next = reversed.begin_;
  for (size_t i = 0; i < size(); ++i) {
    for (const int one : (*this)[i]) reversed.all_[next[one]++] = static_cast<int>(i);
  }
  return reversed;
}

InstructionLists Predecessors(const Machine& machine, const Program& program) {
  const int count = static_cast<int>(program.instructions.size());
  InstructionLists predecessors;
  std::vector<int> last_of_engine(EngineCount(machine), -1), last_sync(machine.clusters, -1), waits;
  for (int i = 0; i < count; ++i) {
    const Instruction& instruction = program.instructions[i];
    waits.assign(instruction.after.begin(), instruction.after.end());
    const auto wait = [&](int earlier) {
      if (earlier >= 0) waits.push_back(earlier);
    };
    const int engine = EngineOf(machine, program, instruction);
    if (engine >= 0) {
      wait(last_of_engine[engine]);
      wait(last_sync[ClusterOfEngine(machine, engine)]);
      last_of_engine[engine] = i;
    } else {
      const int per_cluster = EnginesOfCluster(machine);
      for (int cluster = 0; cluster < machine.clusters; ++cluster) {
        if (instruction.cluster >= 0 && instruction.cluster != cluster) continue;
        for (int e = cluster * per_cluster; e < (cluster + 1) * per_cluster; ++e) wait(last_of_engine[e]);
        wait(last_sync[cluster]);
        last_sync[cluster] = i;
      }
    }
    std::sort(waits.begin(), waits.end());
    waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
    predecessors.Add(waits);
  }
  return predecessors;
}

HappensBefore::HappensBefore(const Machine& machine, const Program& program) : engines_(EngineCount(machine)) {
  const InstructionLists predecessors = Predecessors(machine, program);
  const size_t count = program.instructions.size();
  clocks_.assign(count * engines_, 0);
  std::vector<int> length(engines_, 0);
  for (size_t i = 0; i < count; ++i) {
    const int engine = EngineOf(machine, program, program.instructions[i]);
    engine_.push_back(engine);
    position_.push_back(engine < 0 ? 0 : length[engine]++);
    int* const clock = &clocks_[i * engines_];
    for (const int before : predecessors[i]) {
      const int* const other = &clocks_[static_cast<size_t>(before) * engines_];
      for (int e = 0; e < engines_; ++e) clock[e] = std::max(clock[e], other[e]);
      if (engine_[before] >= 0) clock[engine_[before]] = std::max(clock[engine_[before]], position_[before] + 1);
    }
  }
}

}  // namespace fusion::dsa
