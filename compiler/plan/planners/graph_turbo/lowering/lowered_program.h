// A program for one cluster of an accelerator, what it was made with, and what its inputs and outputs are.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_LOWERED_PROGRAM_H_
#define FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_LOWERED_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/plan/planners/graph_turbo/binding.h"
#include "compiler/te/program/program.h"
#include "runtime/devices/dsa_sim/program.h"
#include "runtime/devices/dsa_sim/workload.h"

namespace fusion::graph_turbo {

struct LowerOptions {
  DType dtype = DType::kF16;  // of all tensors on the accelerator; integers are kept as floats
  // The fastest level at which results of layers stay where there is room.
  BufferScope results = BufferScope::kLocal;
  // A result that has no room in the LBs goes to the GB first, and to DDR then; otherwise to DDR at once.
  bool spill_to_global = true;
  // Weights of later layers are brought into the GB while earlier ones compute, and layers overlap (section 4.4).
  // Otherwise a sync ends each layer.
  bool across_layers = true;
  // The program itself is made; otherwise its workload alone, which is enough to time it and takes much less time and
  // memory.
  bool instructions = true;
};

// An input of the program, a buffer in DDR.
struct ProgramInput {
  std::string buffer;
  int tensor = kNone;         // of the graph: a model's input; kNone: a weight
  int op = kNone, input = 0;  // of a weight: the input of the operator
};

struct ProgramOutput {
  std::string buffer;
  int tensor = kNone;
};

// How many outputs of parts of layers were made at each level.
struct ResultCounts {
  int64_t local = 0, global = 0, ddr = 0;
};

struct LoweredProgram {
  dsa::Program program;  // without buffers and instructions where the options ask for the workload alone
  dsa::Workload workload;
  std::vector<te::Program> expressions;  // parallel to the program's
  std::vector<ProgramInput> inputs;
  std::vector<ProgramOutput> outputs;
  ResultCounts results;
};

}  // namespace fusion::graph_turbo

#endif  // FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_LOWERED_PROGRAM_H_
