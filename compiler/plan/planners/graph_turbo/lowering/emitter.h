// Makes a program for one cluster of an accelerator, instruction by instruction. It knows which instructions touched
// each block of memory, and gives each new instruction the dependences that keep the program free of races.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_EMITTER_H_
#define FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_EMITTER_H_

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "compiler/plan/planners/graph_turbo/access_map.h"
#include "compiler/plan/planners/graph_turbo/lowering/memory_space.h"
#include "runtime/devices/dsa_sim/machine.h"
#include "runtime/devices/dsa_sim/order.h"
#include "runtime/devices/dsa_sim/program.h"
#include "runtime/devices/dsa_sim/workload.h"

namespace fusion::graph_turbo {

// Consecutive addresses that hold the elements of one box.
struct Block {
  dsa::Memory memory;
  int buffer = -1;  // of the program
  MemorySpace::Range range;
  Waits before;            // what a first write has to wait for
  Waits writes, accesses;  // since then
};

// A block and the box, row-major, that it holds.
struct Held {
  Block* block = nullptr;
  Region box;
};

class Emitter {
 public:
  // `machine` outlives the emitter. Without `instructions` the program has no buffers and no instructions, and only its
  // workload is made.
  Emitter(const dsa::Machine& machine, const std::string& name, DType dtype, bool instructions = true);

  int64_t element_bytes() const { return DTypeBytes(dtype_); }
  // A block of the GB or of a core's LB; nullptr where there is no room.
  Block* NewGlobal(int64_t elements);
  Block* NewLocal(int core, int64_t elements);
  Block* NewDdr(const std::string& name, int64_t elements, bool input, bool output);
  void Free(Block* block);
  // The block is written anew: what comes waits for all accesses so far.
  static void Recycle(Block* block);
  int64_t LargestFreeGlobal() const { return global_.LargestFree(); }
  int64_t LargestFreeLocal(int core) const { return local_[core].LargestFree(); }

  // Copies the elements of `region`, which both hold, by the instruction that the two memories ask for. Between DDR and
  // the LBs, and between the GB and DDR, that is the DMA engine.
  void Copy(const Held& from, const Held& to, const Region& region);

  struct Operand {
    Held held;
    const Region* region = nullptr;
    int input = 0;  // of the expression; of a result: the output
  };
  struct Computation {
    dsa::Kind kind = dsa::Kind::kVector;  // kMatrix, kVector, or kLoad for a gather
    int core = 0;
    const std::string* unit = nullptr;
    int expression = 0;
    int expression_outputs = 1;  // how many the expression has; a computation may leave some out
    double work = 0;
    bool accumulate = false;
    Range reduce;  // empty: all
    absl::InlinedVector<Operand, 2> results;
    absl::InlinedVector<Operand, 4> operands;
  };
  void Compute(const Computation& computation);
  void Sync();

  // Adds an expression and returns its number.
  int AddExpression(const std::string& name, const std::string& text);
  const dsa::Program& program() const { return program_; }
  const dsa::Workload& workload() const { return workload_; }
  // Hands over the program and its workload.
  std::pair<dsa::Program, dsa::Workload> Take() && { return {std::move(program_), std::move(workload_)}; }

 private:
  Block* NewBlock(const dsa::Memory& memory, const MemorySpace::Range& range, const std::string& name, int64_t elements,
                  bool input, bool output);
  static dsa::Slice SliceOf(const Held& held, const Region& region);
  // Adds a task with the dependences that its blocks ask for; these stay in after_.
  void Add(const dsa::Workload::Task& task, absl::Span<Block* const> reads, absl::Span<Block* const> writes);
  int UnitNumber(const std::string& name) const;

  const dsa::Machine& machine_;
  const dsa::Engines engines_;
  const DType dtype_;
  const bool instructions_;
  std::string copy_unit_;
  dsa::Program program_;
  dsa::Workload workload_;
  MemorySpace global_;
  std::vector<MemorySpace> local_;
  int64_t ddr_bytes_ = 0;
  std::deque<Block> blocks_;
  int last_sync_ = -1;
  std::vector<int> after_;  // of the last instruction
  // Scratch: by engine, the last instruction to wait for, and the engines where there is one.
  std::vector<int> last_of_engine_, waited_;
};

}  // namespace fusion::graph_turbo

#endif  // FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_EMITTER_H_
