#include "runtime/devices/dsa_sim/timing.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace fusion::dsa {
namespace {

// The rates of a kind of transfer, or of a unit.
struct Cost {
  double startup = 0, per_cycle = 1;
  double shared_per_cycle = 0;  // of the shared resource that it passes
};

class CostModel {
 public:
  explicit CostModel(const Machine& machine)
      : sync_{machine.sync_cycles.value, 1, 0},
        dma_{machine.dma_startup_cycles.value, machine.dma_bytes_per_cycle.value,
             machine.ddr_bytes_per_s.value / machine.clock_hz.value},
        mover_{machine.mover_startup_cycles.value, machine.mover_bytes_per_cycle.value,
               machine.global_bytes_per_cycle.value},
        link_{machine.link_startup_cycles.value, machine.link_bytes_per_cycle.value,
              machine.interconnect_bytes_per_cycle.value} {
    for (const ComputeUnit& unit : machine.units) {
      units_.push_back({unit.startup_cycles.value, unit.per_cycle.value, 0});
    }
  }

  const Cost& Of(const Workload::Task& task) const {
    switch (task.kind) {
      case Kind::kLoad:
      case Kind::kStore:
        return dma_;
      case Kind::kMove:
        return mover_;
      case Kind::kRedistribute:
        return link_;
      case Kind::kMatrix:
      case Kind::kVector:
        return units_[task.unit];
      case Kind::kSync:
        break;
    }
    return sync_;
  }

 private:
  Cost sync_, dma_, mover_, link_;
  std::vector<Cost> units_;  // parallel to the machine's
};

// Shared resources: 0 is DDR; cluster k has the port of its GB at 1 + 2k and its interconnect at 2 + 2k. -1: none.
int SharedBy(const Workload::Task& task, int cluster) {
  if (task.kind == Kind::kLoad || task.kind == Kind::kStore) return 0;
  if (task.kind == Kind::kMove) return 1 + 2 * cluster;
  return task.kind == Kind::kRedistribute ? 2 + 2 * cluster : -1;
}

void CountBytes(const Workload::Task& task, Timing* timing) {
  if (task.kind == Kind::kLoad) timing->ddr_read_bytes += task.amount;
  if (task.kind == Kind::kStore) timing->ddr_written_bytes += task.amount;
  if (task.kind == Kind::kMove) timing->moved_bytes += task.amount;
  if (task.kind == Kind::kRedistribute) timing->redistributed_bytes += task.amount;
}

// The instructions of each lane, one after the other. A lane is an engine or, of each cluster and of all clusters
// together, the syncs; an instruction waits for the one before it in its lane.
class Lanes {
 public:
  Lanes(const Engines& engines, const Workload& workload) : engines_(engines), next_(workload.size(), -1) {
    std::vector<int> last(count(), -1);
    first_.assign(count(), -1);
    for (size_t i = 0; i < workload.size(); ++i) {
      const int lane = Of(workload.task(i)), number = static_cast<int>(i);
      (last[lane] < 0 ? first_[lane] : next_[last[lane]]) = number;
      last[lane] = number;
    }
  }

  int count() const { return engines_.count() + engines_.clusters() + 1; }
  int Of(const Workload::Task& task) const {
    if (task.kind != Kind::kSync) return task.engine;
    return engines_.count() + (task.engine < 0 ? engines_.clusters() : task.engine);
  }
  int First(int lane) const { return first_[lane]; }
  int Next(int instruction) const { return next_[instruction]; }

 private:
  const Engines& engines_;
  std::vector<int> first_, next_;  // -1: none
};

class Clock {
 public:
  Clock(const Machine& machine, const Workload& workload, bool spans)
      : workload_(workload), costs_(machine), engines_(machine), lanes_(engines_, workload) {
    ends_.assign(workload.size(), kOpen);
    if (spans) timing_.spans.resize(workload.size());
    waits_for_.assign(lanes_.count(), kNothing);
    waiting_.resize(lanes_.count());
    head_.resize(lanes_.count());
    use_.resize(machine.units.size());
    free_at_.assign(1 + 2 * machine.clusters, 0);
  }

  Timing Run() {
    for (int lane = 0; lane < lanes_.count(); ++lane) {
      head_[lane] = lanes_.First(lane);
      Look(lane);
    }
    while (!queue_.empty()) {
      const auto [ready, i] = queue_.top();
      queue_.pop();
      Finish(ready, i);
      const int lane = lanes_.Of(workload_.task(i));
      head_[lane] = lanes_.Next(i);
      Look(lane);
      // A lane that looks again may wait for a later instruction of this one.
      woken_.swap(waiting_[lane]);
      for (const int other : woken_) {
        if (waits_for_[other] == i) {
          Look(other);
        } else {
          waiting_[lane].push_back(other);
        }
      }
      woken_.clear();
    }
    return std::move(timing_);
  }

  const std::vector<Timing::UnitUse>& use() const { return use_; }

 private:
  static constexpr double kOpen = -1;  // the end of what has not ended
  static constexpr int kNothing = -1;

  // If all that the first instruction of the lane waits for has ended, it is ready; otherwise the lane waits for one of
  // those that have not.
  void Look(int lane) {
    waits_for_[lane] = kNothing;
    const int i = head_[lane];
    if (i < 0) return;
    double ready = 0;
    for (const int before : workload_.Waits(i)) {
      const double end = ends_[before];
      if (end == kOpen) {
        waits_for_[lane] = before;
        waiting_[lanes_.Of(workload_.task(before))].push_back(lane);
        return;
      }
      ready = std::max(ready, end);
    }
    queue_.emplace(ready, i);
  }

  void Finish(double ready, int i) {
    const Workload::Task& task = workload_.task(i);
    const Cost& cost = costs_.Of(task);
    const double work_cycles = task.amount / cost.per_cycle;
    double end = ready + cost.startup + work_cycles;
    const int shared = task.kind == Kind::kSync ? -1 : SharedBy(task, engines_.ClusterOf(task.engine));
    if (shared >= 0) {
      double& free = free_at_[shared];
      free = std::max(free, ready + cost.startup) + task.amount / cost.shared_per_cycle;
      end = std::max(end, free);
    }
    ends_[i] = end;
    if (!timing_.spans.empty()) timing_.spans[i] = {ready, end};
    timing_.cycles = std::max(timing_.cycles, end);
    CountBytes(task, &timing_);
    if (task.unit < 0) return;
    use_[task.unit].busy_cycles += end - ready;
    use_[task.unit].work_cycles += work_cycles;
  }

  const Workload& workload_;
  const CostModel costs_;
  const Engines engines_;
  const Lanes lanes_;
  Timing timing_;
  std::vector<double> ends_;               // by instruction
  std::vector<int> head_;                  // by lane: its first instruction that has not ended; -1: none
  std::vector<int> waits_for_;             // by lane: the instruction
  std::vector<std::vector<int>> waiting_;  // by lane: the lanes that wait for an instruction of it
  std::vector<int> woken_;                 // scratch
  std::vector<Timing::UnitUse> use_;
  std::vector<double> free_at_;
  // First instructions of lanes by the cycle at which they are ready; ties by their number.
  using Ready = std::pair<double, int>;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> queue_;
};

}  // namespace

Timing TimeProgram(const Machine& machine, const Program& program) {
  return TimeProgram(machine, Workload(machine, program));
}

Timing TimeProgram(const Machine& machine, const Workload& workload, bool spans) {
  Clock clock(machine, workload, spans);
  Timing timing = clock.Run();
  for (const CoreGroup& group : machine.groups) {
    for (const std::string& unit : group.units) timing.units[unit].units += machine.clusters * group.cores;
  }
  for (size_t u = 0; u < machine.units.size(); ++u) {
    const auto known = timing.units.find(machine.units[u].name);
    if (known == timing.units.end()) continue;
    known->second.busy_cycles = clock.use()[u].busy_cycles;
    known->second.work_cycles = clock.use()[u].work_cycles;
  }
  timing.seconds = timing.cycles / machine.clock_hz.value;
  return timing;
}

}  // namespace fusion::dsa
