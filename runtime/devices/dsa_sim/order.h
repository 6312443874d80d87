// The order that a program promises: which instructions have completed before another one starts.
#ifndef FUSION_RUNTIME_DEVICES_DSA_SIM_ORDER_H_
#define FUSION_RUNTIME_DEVICES_DSA_SIM_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "runtime/devices/dsa_sim/machine.h"
#include "runtime/devices/dsa_sim/program.h"

namespace fusion::dsa {

// The engines of a machine, numbered cluster by cluster: the DMA engine, then for each core its mover, its link and its
// units.
class Engines {
 public:
  // `machine` outlives this.
  explicit Engines(const Machine& machine);

  int clusters() const { return clusters_; }
  int per_cluster() const { return per_cluster_; }
  int count() const { return clusters_ * per_cluster_; }
  int ClusterOf(int engine) const { return engine / per_cluster_; }
  int Dma(int cluster) const { return cluster * per_cluster_; }
  int Mover(const Place& place) const { return place.cluster * per_cluster_ + first_of_core_[place.core]; }
  int Link(const Place& place) const { return Mover(place) + 1; }
  // The core has a unit of this name.
  int Unit(const Place& place, const std::string& unit) const;

  // The engine that runs an instruction; -1 for a sync. The program has passed the checks of its operands.
  int Of(const Program& program, const Instruction& instruction) const;

 private:
  const Machine& machine_;
  const int clusters_;
  int per_cluster_ = 1;
  std::vector<int> first_of_core_;  // in its cluster
};

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

 private:
  std::vector<int> all_;
  std::vector<size_t> begin_ = {0};
};

// The instructions that an instruction waits for directly, ascending: the one before it on its engine, its `after`, and
// the last sync of its cluster; for a sync the last of each engine that it covers. One entry an instruction.
class Predecessors {
 public:
  Predecessors() = default;  // of a machine without engines: takes no instruction
  explicit Predecessors(const Engines& engines);
  Predecessors(const Engines& engines, const Program& program);

  // Adds the next instruction. `engine` is -1 for a sync, of `cluster` or, where that is -1, of all.
  void Add(int engine, int cluster, absl::Span<const int> after);
  absl::Span<const int> operator[](size_t i) const { return lists_[i]; }
  size_t size() const { return lists_.size(); }

 private:
  int clusters_ = 0, per_cluster_ = 1;
  InstructionLists lists_;
  std::vector<int> last_of_engine_, last_sync_;  // -1: none
  std::vector<int> waits_;                       // scratch
};

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
  int engines_ = 0;
  std::vector<int> engine_, position_;  // of each instruction: its engine, its place in that engine's order
  std::vector<int> clocks_;             // instructions × engines
};

}  // namespace fusion::dsa

#endif  // FUSION_RUNTIME_DEVICES_DSA_SIM_ORDER_H_
