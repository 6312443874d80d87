// A workload is all that the time model needs of a program: for each instruction its engine, the work that it asks for,
// and what it waits for. It is a small part of a program, so that whoever makes a program of millions of instructions
// only to time it need not make the program itself.
#ifndef FUSION_RUNTIME_DEVICES_DSA_SIM_WORKLOAD_H_
#define FUSION_RUNTIME_DEVICES_DSA_SIM_WORKLOAD_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "runtime/devices/dsa_sim/machine.h"
#include "runtime/devices/dsa_sim/order.h"
#include "runtime/devices/dsa_sim/program.h"

namespace fusion::dsa {

class Workload {
 public:
  struct Task {
    Kind kind = Kind::kSync;
    int16_t unit = -1;   // kMatrix, kVector: of Machine::units
    int32_t engine = 0;  // of a sync: its cluster, or -1
    // Bytes of a transfer, multiply-adds of a product, elements of a vector operation (of a reduction: those that it
    // reads).
    double amount = 0;
    bool operator==(const Task&) const = default;
  };

  Workload() = default;  // of no machine: takes no task
  // Without tasks.
  explicit Workload(const Machine& machine) : predecessors_(Engines(machine)) {}
  // The program's. It has passed CheckOperands.
  Workload(const Machine& machine, const Program& program);

  // Adds the next instruction; `after` are the instructions that it names as such.
  void Add(const Task& task, absl::Span<const int> after);

  size_t size() const { return tasks_.size(); }
  const Task& task(size_t i) const { return tasks_[i]; }
  absl::Span<const int> Waits(size_t i) const { return predecessors_[i]; }  // order.h: Predecessors

 private:
  std::vector<Task> tasks_;
  Predecessors predecessors_;
};

}  // namespace fusion::dsa

#endif  // FUSION_RUNTIME_DEVICES_DSA_SIM_WORKLOAD_H_
