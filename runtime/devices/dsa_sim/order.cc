#include "runtime/devices/dsa_sim/order.h"

#include <algorithm>

namespace fusion::dsa {
namespace {

constexpr int kDma = 1, kMoverAndLink = 2;

const Memory& MemoryOf(const Program& program, const Slice& slice) { return program.buffers[slice.buffer].memory; }

}  // namespace

Engines::Engines(const Machine& machine) : machine_(machine), clusters_(machine.clusters), per_cluster_(kDma) {
  for (const CoreGroup& group : machine.groups) {
    for (int core = 0; core < group.cores; ++core) {
      first_of_core_.push_back(per_cluster_);
      per_cluster_ += kMoverAndLink + static_cast<int>(group.units.size());
    }
  }
}

int Engines::Unit(const Place& place, const std::string& unit) const {
  const std::vector<std::string>& units = machine_.GroupOf(place.core).units;
  return Mover(place) + kMoverAndLink + static_cast<int>(std::find(units.begin(), units.end(), unit) - units.begin());
}

int Engines::Of(const Program& program, const Instruction& instruction) const {
  switch (instruction.kind) {
    case Kind::kSync:
      return -1;
    case Kind::kLoad:
      return Dma(MemoryOf(program, instruction.to).place.cluster);
    case Kind::kStore:
      return Dma(MemoryOf(program, instruction.from[0]).place.cluster);
    case Kind::kMove: {
      const Memory& to = MemoryOf(program, instruction.to);
      return Mover(to.level == Level::kLocal ? to.place : MemoryOf(program, instruction.from[0]).place);
    }
    case Kind::kRedistribute:
      return Link(MemoryOf(program, instruction.from[0]).place);
    case Kind::kMatrix:
    case Kind::kVector:
      return Unit(instruction.place, instruction.unit);
  }
  return -1;
}

Predecessors::Predecessors(const Engines& engines)
    : clusters_(engines.clusters()),
      per_cluster_(engines.per_cluster()),
      last_of_engine_(engines.count(), -1),
      last_sync_(engines.clusters(), -1) {}

Predecessors::Predecessors(const Engines& engines, const Program& program) : Predecessors(engines) {
  for (const Instruction& instruction : program.instructions) {
    Add(engines.Of(program, instruction), instruction.cluster, instruction.after);
  }
}

void Predecessors::Add(int engine, int cluster, absl::Span<const int> after) {
  const int number = static_cast<int>(size());
  waits_.assign(after.begin(), after.end());
  const auto wait = [&](int earlier) {
    if (earlier >= 0) waits_.push_back(earlier);
  };
  if (engine >= 0) {
    wait(last_of_engine_[engine]);
    wait(last_sync_[engine / per_cluster_]);
    last_of_engine_[engine] = number;
  } else {
    for (int covered = 0; covered < clusters_; ++covered) {
      if (cluster >= 0 && cluster != covered) continue;
      for (int e = covered * per_cluster_; e < (covered + 1) * per_cluster_; ++e) wait(last_of_engine_[e]);
      wait(last_sync_[covered]);
      last_sync_[covered] = number;
    }
  }
  std::sort(waits_.begin(), waits_.end());
  waits_.erase(std::unique(waits_.begin(), waits_.end()), waits_.end());
  lists_.Add(waits_);
}

HappensBefore::HappensBefore(const Machine& machine, const Program& program) {
  const Engines engines(machine);
  engines_ = engines.count();
  const Predecessors predecessors(engines, program);
  const size_t count = program.instructions.size();
  clocks_.assign(count * engines_, 0);
  std::vector<int> length(engines_, 0);
  for (size_t i = 0; i < count; ++i) {
    const int engine = engines.Of(program, program.instructions[i]);
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
