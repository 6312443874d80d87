#include "compiler/kernels/fusion_kernel.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/movement/cost.h"
#include "compiler/movement/occupancy.h"
#include "compiler/movement/pressure.h"
#include "compiler/movement/print.h"
#include "compiler/movement/work_groups.h"
#include "compiler/ops/registry/op_def.h"
#include "compiler/plan/plan.h"
#include "compiler/schedule/fusion_block_passes.h"
#include "compiler/schedule/schedule_fusion_block.h"
#include "compiler/te/scalar/rounded.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

// Returns the layout of a map's operands if the map keeps it: along the layout's axis, the result is indexed like the
// operands.
std::optional<Layout> LayoutOfOperands(const te::Program& program, const te::Te& te,
                                       const std::map<te::TensorId, Layout>& layouts) {
  if (!te.IsMap() || te.outputs.size() != 1) return std::nullopt;
  const Shape& shape = program.tensors[te.outputs[0]].shape;
  std::optional<Layout> found;
  bool same = true;
  te::Visit(te.body[0], [&](const te::ScalarNode& node) {
    if (node.kind != te::ScalarKind::kLoad || node.indices.size() != shape.size()) return;
    const auto it = layouts.find(node.tensor);
    if (it == layouts.end() || it->second.plain()) return;
    const int axis = it->second.axis;
    same = same && (!found || *found == it->second) && program.tensors[node.tensor].shape[axis] == shape[axis] &&
           node.indices[axis] == te::Index(te.axes[axis]);
    found = it->second;
  });
  return same ? found : std::nullopt;
}

// A value that an operator computes between its operands and its results is no value of the graph (the rows of a Resize
// before its columns). If operands and results have the same layout, the value gets it, too.
void LayBetween(const te::Program& program, std::map<te::TensorId, Layout>* layouts) {
  for (size_t t = 0; t < program.tes.size(); ++t) {
    const te::TensorId between = program.tes[t].outputs[0];
    const std::optional<Layout> layout = LayoutOfOperands(program, program.tes[t], *layouts);
    if (!layout || layouts->count(between) > 0 || program.tensors[between].role != te::Role::kIntermediate) continue;
    const bool goes_on =
        std::any_of(program.tes.begin() + static_cast<std::ptrdiff_t>(t), program.tes.end(), [&](const te::Te& reader) {
          const auto it = layouts->find(reader.outputs[0]);
          bool reads = false;
          te::VisitTensors(reader, [&](te::TensorId read) { reads |= read == between; });
          return reads && it != layouts->end() && it->second == *layout;
        });
    if (goes_on) layouts->emplace(between, *layout);
  }
}

// The meaning of each argument: of each buffer that is not in a task's scratch. `staged` is the program that was
// scheduled, `made_constants` those that the schedule made.
absl::StatusOr<std::vector<KernelArg>> MakeArguments(const movement::Kernel& kernel, const te::Program& staged,
                                                     const std::vector<ecg::ValueId>& value_of_tensor,
                                                     const std::map<te::TensorId, Tensor>& made_constants) {
  std::vector<KernelArg> args;
  std::set<int> written;
  for (const movement::Phase& phase : kernel.phases) written.merge(movement::WrittenBuffers(phase));
  for (size_t b = 0; b < kernel.buffers.size(); ++b) {
    const movement::Buffer& buffer = kernel.buffers[b];
    if (!movement::IsArgument(buffer)) continue;
    KernelArg arg;
    arg.written = written.count(static_cast<int>(b)) > 0;
    int tensor = buffer.tensor;
    if (buffer.packed_from >= 0) {
      arg.pack = buffer.packed_from;
      tensor = kernel.packs[buffer.packed_from].source_tensor;
    }
    const ecg::ValueId value =
        tensor >= 0 && tensor < static_cast<int>(value_of_tensor.size()) ? value_of_tensor[tensor] : ecg::kNone;
    if (buffer.scope == Scope::kDevice) {
      arg.kind = KernelArg::Kind::kTemporary;
    } else if (buffer.is_constant) {
      arg.kind = KernelArg::Kind::kConstant;
      arg.value = value;
      if (value == ecg::kNone) {
        const auto made = made_constants.find(tensor);
        const bool lowered_here = tensor < static_cast<int>(staged.tensors.size()) && staged.tensors[tensor].constant;
        if (made == made_constants.end() && !lowered_here) {
          return absl::InternalError("a constant of the lowering has no value");
        }
        arg.literal = lowered_here ? *staged.tensors[tensor].constant : made->second;
      }
    } else {
      arg.value = value;
      if (value == ecg::kNone) return absl::InternalError("a kernel argument stands for no value");
    }
    args.push_back(std::move(arg));
  }
  return args;
}

// The fusion block's requests about its hand-overs, in terms of its program. An origin is a position among the members.
std::vector<HandOverRequest> RequestsOf(const ecg::Graph& graph, const FusionBlock& fusion_block,
                                        const std::vector<ecg::ValueId>& value_of_tensor) {
  const std::vector<ecg::NodeId> members = fusion_block.Members();
  const auto position = [&](ecg::NodeId id) {
    return static_cast<int>(std::lower_bound(members.begin(), members.end(), id) - members.begin());
  };
  std::vector<HandOverRequest> requests;
  for (const HandOver& hand_over : InnerHandOvers(graph, fusion_block)) {
    const auto tensor = std::find(value_of_tensor.begin(), value_of_tensor.end(), hand_over.value);
    if (tensor == value_of_tensor.end()) continue;
    const bool asked =
        std::find(fusion_block.inner.begin(), fusion_block.inner.end(), hand_over) != fusion_block.inner.end();
    requests.push_back({static_cast<int>(tensor - value_of_tensor.begin()), position(hand_over.producer),
                        position(hand_over.consumer), hand_over.nearest, hand_over.furthest, asked});
  }
  return requests;
}

std::vector<DirectiveRequest> DirectivesOf(const ecg::Graph& graph, const FusionBlock& fusion_block) {
  const std::vector<ecg::NodeId> members = fusion_block.Members();
  std::vector<DirectiveRequest> requests;
  for (const Directive& directive : fusion_block.directives) {
    const auto node = std::lower_bound(members.begin(), members.end(), directive.node);
    const int origin = directive.node == ecg::kNone ? -1 : static_cast<int>(node - members.begin());
    requests.push_back({origin, directive.choice, directive.alternative});
    if (origin < 0) continue;
    const ecg::Node& of = graph.node(directive.node);
    requests.back().stage = absl::StrCat(of.op, " %", graph.value(of.outputs[0]).name);
  }
  return requests;
}

// A node that several kernels compute must give all of them the same bits: a row's largest element, computed again
// beside the maximum that another kernel has taken, is to be equal to it. So no kernel's compiler may contract a
// product of such a node with what reads it.
void RoundRecomputed(const std::vector<ecg::NodeId>& members, const std::vector<ecg::NodeId>& recomputed,
                     te::Program* program) {
  for (te::Te& te : program->tes) {
    const bool again = std::any_of(te.origins.begin(), te.origins.end(), [&](int origin) {
      return std::binary_search(recomputed.begin(), recomputed.end(), members[static_cast<size_t>(origin)]);
    });
    if (!again || !te.IsMap()) continue;
    for (size_t o = 0; o < te.body.size(); ++o) {
      if (IsFloat(program->tensors[te.outputs[o]].dtype)) te.body[o] = te::Rounded(te.body[o]);
    }
  }
}

}  // namespace

std::string DescribeFusionBlock(const ecg::Graph& graph, const std::vector<ecg::NodeId>& nodes) {
  std::vector<std::string> ops;
  for (ecg::NodeId id : nodes) ops.push_back(graph.node(id).op);
  const ecg::Node& last = graph.node(nodes.back());
  return absl::StrCat(absl::StrJoin(ops, "+"), " ", ShapeToString(graph.value(last.outputs[0]).type.shape));
}

std::vector<ecg::ValueId> LiveOutOf(const ecg::Graph& graph, const FusionBlock& fusion_block) {
  std::vector<ecg::ValueId> live = LiveOut(graph, fusion_block);
  // A fusion block whose results nobody reads (an unused second output) still stores its last value.
  if (live.empty() && !fusion_block.nodes.empty()) live.push_back(graph.node(fusion_block.nodes.back()).outputs[0]);
  return live;
}

absl::StatusOr<FusionKernel> MakeFusionKernel(const ecg::Graph& graph, const FusionBlock& fusion_block,
                                              const std::vector<ecg::ValueId>& live_out, const ValueLayouts& layouts,
                                              const DeviceModel& device, ScheduleOptions options) {
  const std::vector<ecg::NodeId> nodes = fusion_block.Members();
  ASSIGN_OR_RETURN(ops::LoweredFusionBlock lowered, ops::LowerNodes(graph, nodes, live_out));
  RoundRecomputed(nodes, fusion_block.recomputed, &lowered.program);
  RETURN_IF_ERROR(VerifyAfter(FusionBlockPass::kLower, lowered.program));
  options.hand_overs = RequestsOf(graph, fusion_block, lowered.value_of_tensor);
  options.directives = DirectivesOf(graph, fusion_block);
  FusionBlockPassContext context;
  for (const HandOverRequest& request : options.hand_overs) {
    if (request.nearest > Scope::kLane) context.kept.insert(request.tensor);
  }
  ASSIGN_OR_RETURN(const std::optional<FusionBlockForm> formed,
                   RunFusionBlockPass(FusionBlockPass::kFormStages, {std::move(lowered.program), {}, {}}, context, {}));
  if (!formed) return absl::InternalError("pass 'form-stages' made no program");
  const te::Program& staged = formed->program;
  // Values that stay inside the fusion block are free in their layout. They follow the layout pass where it chose one,
  // so that a task reads, keeps and writes whole vectors; otherwise they are row-major.
  std::map<te::TensorId, Layout> tensor_layouts, inner_layouts;
  const std::set<te::TensorId> outputs(staged.outputs.begin(), staged.outputs.end());
  const std::set<te::TensorId> inputs(staged.inputs.begin(), staged.inputs.end());
  for (te::TensorId t = 0; t < static_cast<int>(staged.tensors.size()); ++t) {
    if (t >= static_cast<int>(lowered.value_of_tensor.size())) continue;
    auto it = layouts.find(lowered.value_of_tensor[t]);
    if (it != layouts.end()) (outputs.count(t) || inputs.count(t) ? tensor_layouts : inner_layouts)[t] = it->second;
  }
  absl::StatusOr<ScheduledFusionBlock> scheduled = absl::FailedPreconditionError("nothing tried");
  inner_layouts.insert(tensor_layouts.begin(), tensor_layouts.end());
  LayBetween(staged, &inner_layouts);
  if (inner_layouts.size() > tensor_layouts.size()) {
    scheduled = ScheduleFusionBlock(staged, inner_layouts, device, options);
  }
  const bool one_task = staged.tes.size() == 1 || (scheduled.ok() && scheduled->kernel.phases.size() == 1);
  if (!scheduled.ok() || !one_task) {
    ASSIGN_OR_RETURN(scheduled, ScheduleFusionBlock(staged, tensor_layouts, device, options));
  }
  FusionKernel result;
  result.kernel = std::move(scheduled->kernel);
  for (const HandOverRequest& request : options.hand_overs) {
    result.hand_overs.push_back({lowered.value_of_tensor[request.tensor], request.consumer,
                                 RealisedScope(scheduled->hand_overs, request, options.hand_overs)});
  }
  result.phase_members = std::move(scheduled->phase_origins);
  result.reason = scheduled->reason;
  result.fits = scheduled->within;
  result.choices = std::move(scheduled->choices);
  ASSIGN_OR_RETURN(result.args, MakeArguments(result.kernel, staged, lowered.value_of_tensor, scheduled->constants));
  result.key = Sha256Hex(movement::Print(result.kernel));
  for (ecg::NodeId id : nodes) result.flops += ops::NodeFlops(graph, graph.node(id));
  return result;
}

std::vector<PlannedHandOver> BesidePlan(const ecg::Graph& graph, const FusionBlock& fusion_block,
                                        const FusionKernel& kernel) {
  const std::vector<ecg::NodeId> members = fusion_block.Members();
  std::vector<PlannedHandOver> result;
  for (const HandOver& planned : InnerHandOvers(graph, fusion_block)) {
    for (const RealisedHandOver& realised : kernel.hand_overs) {
      if (realised.value != planned.value || members[realised.consumer] != planned.consumer) continue;
      result.push_back({planned, realised.scope});
    }
  }
  return result;
}

absl::Status CheckRealised(const ecg::Graph& graph, const FusionBlock& fusion_block, const FusionKernel& kernel) {
  for (const auto& [planned, realised] : BesidePlan(graph, fusion_block, kernel)) {
    if (planned.nearest <= realised && realised <= planned.furthest) continue;
    const bool asked =
        std::find(fusion_block.inner.begin(), fusion_block.inner.end(), planned) != fusion_block.inner.end();
    if (!asked && kernel.measured) continue;
    const ecg::Node &producer = graph.node(planned.producer), &consumer = graph.node(planned.consumer);
    return absl::InternalError(absl::StrCat("the kernel hands '", graph.value(planned.value).name, "' from ",
                                            producer.op, " '", producer.name, "' to ", consumer.op, " '", consumer.name,
                                            "' at ", ScopeName(realised), " scope, and the plan allows ",
                                            ScopeName(planned.nearest), " to ", ScopeName(planned.furthest)));
  }
  return absl::OkStatus();
}

FusionBlockAccount AccountOf(const FusionKernel& kernel, const DeviceModel& typical, int threads) {
  FusionBlockAccount account;
  account.phases = static_cast<int64_t>(kernel.kernel.BetweenBarriers().size());
  account.phase_members = kernel.phase_members;
  for (const movement::Phase& phase : kernel.kernel.phases) account.tasks = std::max(account.tasks, phase.tasks());
  for (const int64_t groups : movement::LaunchedWorkGroups(kernel.kernel, typical.work_group_size)) {
    account.work_groups = std::max(account.work_groups, groups);
  }
  account.scratch_bytes = kernel.kernel.scratch_bytes;
  for (const movement::Buffer& buffer : kernel.kernel.buffers) {
    if (buffer.scope == Scope::kDevice) account.device_scope_bytes += movement::SizeBytes(buffer);
  }
  const movement::Pressure pressure = movement::EstimatePressure(kernel.kernel, typical, threads);
  account.registers = pressure.registers;
  account.code_bytes = pressure.code_bytes;
  account.occupancy = movement::EstimateOccupancy(kernel.kernel, typical);
  const std::vector<double> bytes = movement::BytesByLevel(kernel.kernel, typical);
  for (size_t level = 0; level < bytes.size(); ++level) {
    if (bytes[level] > 0) account.bytes.push_back({typical.memory[level].name, bytes[level]});
  }
  account.estimate_ns = movement::EstimateCost(kernel.kernel, typical, threads).latency_ns;
  return account;
}

FusionKernel WithValues(const FusionKernel& kernel, const std::vector<ecg::ValueId>& from,
                        const std::vector<ecg::ValueId>& to) {
  FusionKernel result = kernel;
  for (KernelArg& arg : result.args) {
    if (arg.value == ecg::kNone) continue;
    arg.value = to[std::find(from.begin(), from.end(), arg.value) - from.begin()];
  }
  for (RealisedHandOver& hand_over : result.hand_overs) {
    hand_over.value = to[std::find(from.begin(), from.end(), hand_over.value) - from.begin()];
  }
  return result;
}

std::vector<SharedArgument> SharedArguments(const KernelSequence& kernels, int kernel) {
  std::vector<SharedArgument> shared;
  const std::vector<KernelArg>& args = kernels[kernel]->args;
  for (int a = 0; a < static_cast<int>(args.size()); ++a) {
    if (args[a].kind != KernelArg::Kind::kValue) continue;
    for (int k = kernel - 1; k >= 0; --k) {
      const std::vector<KernelArg>& others = kernels[k]->args;
      const auto same = std::find_if(others.begin(), others.end(), [&](const KernelArg& other) {
        return other.kind == KernelArg::Kind::kValue && other.value == args[a].value;
      });
      if (same == others.end()) continue;
      shared.push_back({a, k, static_cast<int>(same - others.begin())});
      break;
    }
  }
  return shared;
}

}  // namespace fusion
