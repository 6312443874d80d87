// The order that a program promises: which instructions have completed before another one starts.
#ifndef FUSION_RUNTIME_DEVICES_DSA_SIM_ORDER_H_
#define FUSION_RUNTIME_DEVICES_DSA_SIM_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "runtime/devices/dsa_sim/machine.h"
#include "runtime/devices/dsa_sim/program.h"

namespace fusion::dsa {

// The engine that runs an instruction; -1 for a sync. Engines are numbered cluster by cluster: the DMA engine, then for
// each core its mover, its link and its units. The program has passed the checks of its operands.
int EngineOf(const Machine& machine, const Program& program, const Instruction& instruction);
int EngineCount(const Machine& machine);
int ClusterOfEngine(const Machine& machine, int engine);

// Lists of instructions, one for each instruction.
class InstructionLists {
 public:
  absl::Span<const int> operator[](size_t i) const { return {all_.data() + begin_[i], begin_[i + 1] - begin_[i]}; }
  size_t size() const { return begin_.size() - 1; }
  // Adds the list of the next instruction.
  void Add(absl::Span<const int> list) {
    all_.insert(all_.end(), list.begin(), list.end());
    begin_.push_back(all_.size());
  }
  // For each instruction, ascending, those in whose lists it is.
  InstructionLists Reversed() const;

 private:
  std::vector<int> all_;
  std::vector<size_t> begin_ = {0};
};

// The instructions that an instruction waits for directly, ascending: the one before it on its engine, its `after`, and
// the last sync of its cluster; for a sync the last of each engine that it covers. One entry an instruction.
InstructionLists Predecessors(const Machine& machine, const Program& program);

// Happens-before by vector clocks: each instruction knows, for each engine, how many of that engine's instructions have
// completed before it starts.
class HappensBefore {
 public:
  HappensBefore(const Machine& machine, const Program& program);
  // Has `earlier` completed before `later` starts? Neither is a sync.
  bool operator()(int earlier, int later) const {
    return clocks_[static_cast<size_t>(later) * engines_ + engine_[earlier]] > position_[earlier];
  }

 private:
  int engines_;
  std::vector<int> engine_, position_;  // of each instruction: its engine, its place in that engine's order
  std::vector<int> clocks_;             // instructions × engines
};

}  // namespace fusion::dsa

#endif  // FUSION_RUNTIME_DEVICES_DSA_SIM_ORDER_H_
