#include "compiler/accelerator/whole_program.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/accelerator/specialise.h"
#include "compiler/ecg/run_checks.h"
#include "compiler/plan/planners/graph_turbo/lowering/variants.h"
#include "runtime/base/status_macros.h"

namespace fusion::accelerator {
namespace {

std::string NodeInWords(const ecg::Graph& graph, const graph_turbo::OpGraph& layers, const graph_turbo::Op& op) {
  const ecg::NodeId producer = graph.value(layers.tensors[op.outputs[0]].value).producer;
  return absl::StrCat(graph.node(producer).op, " '", graph.node(producer).name, "'");
}

graph_turbo::Cluster ClusterOf(const dsa::Machine& machine) {
  graph_turbo::Cluster cluster;
  cluster.cores = machine.cores();
  cluster.local_bytes = machine.GroupOf(0).local_bytes.value;
  cluster.global_bytes = machine.global_bytes.value;
  return cluster;
}

std::string Bytes(double bytes) {
  return bytes >= 1 << 20 ? absl::StrFormat("%g MiB", bytes / (1 << 20)) : absl::StrFormat("%g KiB", bytes / 1024);
}

}  // namespace

double ModelOnMachine::flops() const {
  double sum = 0;
  for (const graph_turbo::Op& op : layers.ops) sum += op.work;
  return sum;
}

absl::StatusOr<ModelOnMachine> PlaceModel(const ecg::Graph& graph, const dsa::Machine& machine, DType dtype) {
  if (!graph.output_extents().empty()) {
    const ecg::OutputExtent& extent = graph.output_extents()[0];
    return absl::UnimplementedError(absl::StrCat("dimension ", extent.dim, " of output '",
                                                 graph.output_names()[extent.output],
                                                 "' depends on data; programs of target dsa have fixed extents"));
  }
  for (const std::string& name : graph.output_names()) {
    if (!ecg::IsRunCheck(name)) continue;
    return absl::UnimplementedError(
        absl::StrCat("programs of target dsa check nothing while they run, and this model needs it: ",
                     ecg::RunCheckMessage(name)));
  }
  ModelOnMachine model;
  model.graph = &graph;
  model.machine = graph_turbo::OneCluster(machine);
  model.dtype = dtype;
  ASSIGN_OR_RETURN(const auto layers, graph_turbo::LayersOf(graph));
  ASSIGN_OR_RETURN(model.layers, graph_turbo::MakeOpGraph(graph, layers, {DTypeBytes(dtype)}));
  for (const graph_turbo::Tensor& tensor : model.layers.tensors) {
    if (dtype == DType::kF32 || IsFloat(graph.value(tensor.value).type.dtype)) continue;
    return absl::UnimplementedError(absl::StrCat("'", tensor.name, "' holds integers, which the machine keeps as ",
                                                 DTypeName(dtype),
                                                 "; that is exact for small ones only: compile with --precision fp32"));
  }
  std::vector<std::string> refused;
  for (const graph_turbo::Op& op : model.layers.ops) {
    const auto empty = [&](int tensor) { return NumElements(model.layers.tensors[tensor].shape) == 0; };
    if (std::any_of(op.outputs.begin(), op.outputs.end(), empty) &&
        !std::all_of(op.outputs.begin(), op.outputs.end(), empty)) {
      refused.push_back(absl::StrCat(NodeInWords(graph, model.layers, op),
                                     " makes results with elements and one without any, which has no address"));
    }
    for (const te::Te& te : op.access.program().tes) {
      if (!te.routine) continue;
      refused.push_back(absl::StrCat(NodeInWords(graph, model.layers, op), ": the routine '", te.routine->name,
                                     "' is no tensor expression"));
    }
  }
  if (refused.empty()) return model;
  return absl::UnimplementedError(
      absl::StrCat("target dsa computes tensor expressions alone. ", absl::StrJoin(refused, "; ")));
}

absl::StatusOr<WholeProgram> MakeWholeProgram(const ModelOnMachine& model, const std::string& variant) {
  ASSIGN_OR_RETURN(
      graph_turbo::LoweredProgram lowered,
      graph_turbo::LowerVariant(model.layers, variant, ClusterOf(model.machine), model.machine, model.dtype));
  WholeProgram made;
  made.variant = variant;
  ASSIGN_OR_RETURN(const dsa::Program program, Specialise(lowered));
  made.name = program.name;
  made.text = dsa::Print(program);
  made.instructions = static_cast<int64_t>(program.instructions.size());
  made.unit_codes = static_cast<int64_t>(program.expressions.size());
  for (const dsa::Buffer& buffer : program.buffers) {
    if (buffer.input || buffer.output) made.arguments.push_back(buffer.name);
  }
  made.inputs = std::move(lowered.inputs);
  made.outputs = std::move(lowered.outputs);
  made.results = lowered.results;
  made.timing = dsa::TimeProgram(model.machine, program);
  made.timing.spans = {};
  return made;
}

std::string MachineInWords(const dsa::Machine& machine) {
  return absl::StrCat(machine.cores(), " cores with LBs of ", Bytes(machine.GroupOf(0).local_bytes.value),
                      " and a GB of ", Bytes(machine.global_bytes.value));
}

std::string ProgramInWords(const ModelOnMachine& model, const WholeProgram& program) {
  return absl::StrCat(model.layers.ops.size(), " layers, ", program.instructions, " instructions, ", program.unit_codes,
                      " unit codes; results: ", program.results.ddr, " in DDR, ", program.results.global,
                      " in the GB, ", program.results.local, " in the LBs");
}

}  // namespace fusion::accelerator
