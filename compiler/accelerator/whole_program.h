// A model as one program of an accelerator's cluster: GraphTurbo's schedule, or a baseline
// (compiler/plan/planners/graph_turbo/lowering/variants.h).
#ifndef FUSION_COMPILER_ACCELERATOR_WHOLE_PROGRAM_H_
#define FUSION_COMPILER_ACCELERATOR_WHOLE_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"
#include "compiler/plan/planners/graph_turbo/lowering/lowered_program.h"
#include "compiler/plan/planners/graph_turbo/op_graph.h"
#include "runtime/devices/dsa_sim/machine.h"
#include "runtime/devices/dsa_sim/timing.h"

namespace fusion::accelerator {

// A model and the machine that it is compiled for.
struct ModelOnMachine {
  const ecg::Graph* graph = nullptr;
  graph_turbo::OpGraph layers;
  dsa::Machine machine;  // one cluster of it
  DType dtype = DType::kF32;

  double flops() const;
};

// UNIMPLEMENTED, naming every operator and node, for what no program can compute: routines (sorting, compaction),
// run-time extents, and layers of which one result has no elements and another one has some.
absl::StatusOr<ModelOnMachine> PlaceModel(const ecg::Graph& graph, const dsa::Machine& machine, DType dtype);

struct WholeProgram {
  std::string variant;
  std::string name, text;  // of the dsa::Program, whose expressions are unit code; it may have a million instructions
  int64_t instructions = 0, unit_codes = 0;
  std::vector<std::string> arguments;  // its buffers that are inputs or outputs, in order
  std::vector<graph_turbo::ProgramInput> inputs;
  std::vector<graph_turbo::ProgramOutput> outputs;
  graph_turbo::ResultCounts results;
  dsa::Timing timing;  // without spans
};

// A program and what the toolchain made of its text.
struct BuiltProgram {
  WholeProgram program;
  std::string binary;
};

// Fails as LowerToProgram does; the message names the layer.
absl::StatusOr<WholeProgram> MakeWholeProgram(const ModelOnMachine& model, const std::string& variant);

// For people: "8 cores with LBs of 64 KiB and a GB of 8 MiB".
std::string MachineInWords(const dsa::Machine& machine);
// "41 layers, 5210 instructions, 96 unit codes; results: 3 in DDR, 4 in the GB, 51 in the LBs".
std::string ProgramInWords(const ModelOnMachine& model, const WholeProgram& program);

}  // namespace fusion::accelerator

#endif  // FUSION_COMPILER_ACCELERATOR_WHOLE_PROGRAM_H_
