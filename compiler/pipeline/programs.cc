#include "compiler/pipeline/programs.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/api/specialisations.h"
#include "compiler/backends/backend.h"
#include "compiler/backends/placement.h"
#include "compiler/pipeline/check_options.h"
#include "compiler/pipeline/pass_runner.h"
#include "compiler/pipeline/plan_account.h"
#include "compiler/pipeline/plan_candidates.h"
#include "compiler/pipeline/verify.h"
#include "compiler/tune/budget.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

// Fails with UNIMPLEMENTED, naming every operator for whose kernel neither the target nor its host has text.
absl::Status CheckSupported(const Planned& planned, const DeviceModel& device, GraphFusionOracle* oracle) {
  std::vector<std::string> refused;
  for (const FusionBlock& fusion_block : planned.plan.fusion_blocks) {
    ASSIGN_OR_RETURN(const FusionKernel kernel, oracle->Kernel(fusion_block));
    const absl::Status supported = PlaceKernel(kernel.kernel, device).backend->CheckSupported(kernel.kernel);
    if (supported.ok()) continue;
    const ecg::Node& node = planned.graph.node(fusion_block.nodes.front());
    refused.push_back(absl::StrCat(node.op, " '", node.name, "': ", std::string(supported.message())));
  }
  if (refused.empty()) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrJoin(refused, "; "));
}

double EstimatedNs(const Planned& planned, GraphFusionOracle* oracle) {
  double ns = 0;
  const std::vector<FusionBlock> fusion_blocks = planned.KernelFusionBlocks();
  const std::vector<int64_t> runs = planned.KernelRuns();
  for (size_t b = 0; b < fusion_blocks.size(); ++b)
    ns += static_cast<double>(runs[b]) * oracle->Estimate(fusion_blocks[b]);
  return ns;
}

// Estimates the model's time under these options, planned with estimates alone; 0 if they cannot be planned. `context`
// has the device as the options may use it.
double EstimatedNs(const ModelFiles& files, const CompileOptions& options, const CompileContext& given) {
  ModelOracle estimates;
  CompileContext context = given;
  context.oracle = &estimates;
  context.progress = nullptr;
  context.plans = nullptr;
  CompileAccount account;
  StageClock clock(context, &account);
  Planned planned;
  GraphFusionOracle oracle(context, Units(options, context), DisabledFusionBlockPasses(options));
  Compilation compilation{files, options, context, &oracle, &clock, &account, &planned};
  return MakePlan(&compilation).ok() ? EstimatedNs(planned, &oracle) : 0;
}

absl::Status Prepare(const ModelFiles& files, const CompileOptions& options, const CompileContext& given,
                     const std::map<std::string, int64_t>& dims, ConstantPool* constants, StageClock* clock,
                     Prepared* out) {
  DeviceModel device;
  const CompileContext context = ContextFor(options, given, &device);
  GraphFusionOracle oracle(context, Units(options, context), DisabledFusionBlockPasses(options));
  ASSIGN_OR_RETURN(const tune::Budget budget, tune::ParseBudget(options.tune));
  if (budget.trials > 0) oracle.LimitMeasuring(budget.seconds);
  Compilation compilation{files,         options,       context,   &oracle,       clock,
                          &out->account, &out->planned, constants, &out->launches};
  RETURN_IF_ERROR(MakePlan(&compilation));
  RETURN_IF_ERROR(CheckSupported(out->planned, *context.device, &oracle));
  RETURN_IF_ERROR(RunPasses(Passes(), PassPart::kKernels, &compilation));
  RETURN_IF_ERROR(AccountForKernels(&compilation));
  RETURN_IF_ERROR(KeepFastestPlan(compilation, dims, out));
  if (options.size != "small") return absl::OkStatus();
  CompileOptions any = options;
  any.size = "any";
  const double any_ns = EstimatedNs(files, any, context);
  if (any_ns > 0) out->account.weights.time_ratio = EstimatedNs(out->planned, &oracle) / any_ns;
  return absl::OkStatus();
}

// The passes over the kernels of all programs.
absl::Status RunOverBundle(const ModelFiles& files, const CompileOptions& options, const CompileContext& given,
                           PreparedPrograms* all) {
  DeviceModel device;
  const CompileContext context = ContextFor(options, given, &device);
  StageClock clock(context, &(*all)[0]->model.account);
  std::vector<Compilation> programs;
  for (const auto& program : *all) {
    Prepared& model = program->model;
    programs.push_back(
        {files, options, context, nullptr, &clock, &model.account, &model.planned, nullptr, &model.launches});
  }
  RETURN_IF_ERROR(RunBundlePasses(Passes(), absl::MakeSpan(programs)));
  clock.End();
  return absl::OkStatus();
}

// For each exact program in `all`, appends the program that also takes less. Where there is none, the exact program's
// account gets the reason.
absl::Status AddPadded(const ModelFiles& files, const CompileOptions& options, const CompileContext& context,
                       ConstantPool* constants, PreparedPrograms* all) {
  const size_t exact = all->size();
  for (size_t i = 0; i < exact; ++i) {
    auto padded = std::make_unique<PreparedProgram>();
    padded->dims = (*all)[i]->dims;
    CompileOptions bound = Bound(options, padded->dims);
    for (const auto& dim : options.specialised_dims) bound.bounded_dims.insert(dim.first);
    StageClock clock(context, &padded->model.account, absl::StrCat((*all)[i]->Name(), ", padded"));
    const absl::Status status = Prepare(files, bound, context, padded->dims, constants, &clock, &padded->model);
    clock.End();
    if (absl::IsUnimplemented(status) || absl::IsInvalidArgument(status)) {  // the model itself cannot be padded
      (*all)[i]->model.account.exact_only = std::string(status.message());
      continue;
    }
    RETURN_IF_ERROR(status);
    if (!padded->model.planned.input_extents.empty()) all->push_back(std::move(padded));
  }
  return absl::OkStatus();
}

}  // namespace

std::string PreparedProgram::Name() const {
  std::set<std::string> bounded;
  for (const onnx_import::InputExtent& e : model.planned.input_extents) {
    bounded.insert(model.planned.input_symbols[e.input][e.dim]);
  }
  return DimsInWords(dims, bounded);
}

absl::Status CheckDistinct(const std::vector<NamedGraph>& programs) {
  std::map<std::vector<Shape>, std::string> known;
  const ecg::Graph& first = *programs[0].graph;
  for (const NamedGraph& one : programs) {
    const ecg::Graph& graph = *one.graph;
    std::vector<Shape> shapes;
    for (ecg::ValueId v : graph.inputs()) shapes.push_back(graph.value(v).type.shape);
    auto [same, fresh] = known.emplace(std::move(shapes), one.name);
    if (!fresh) {
      return absl::InvalidArgumentError(absl::StrCat("the inputs have the same shapes with ", same->second,
                                                     " and with ", one.name, ": a --shape replaces what --dim gives"));
    }
    if (graph.inputs().size() != first.inputs().size() || graph.outputs().size() != first.outputs().size()) {
      return absl::InvalidArgumentError(absl::StrCat("with ", programs[0].name, " and with ", one.name,
                                                     " the model has another number of inputs or outputs: make two "
                                                     "bundles"));
    }
  }
  return absl::OkStatus();
}

CompileOptions Bound(const CompileOptions& options, const std::map<std::string, int64_t>& dims) {
  CompileOptions bound = options;
  bound.specialised_dims.clear();
  bound.dims.insert(dims.begin(), dims.end());
  return bound;
}

absl::Status MakePlan(Compilation* compilation) {
  RETURN_IF_ERROR(CheckOptions(compilation->options, compilation->context));
  RETURN_IF_ERROR(RunPasses(Passes(), PassPart::kGraph, compilation));
  RETURN_IF_ERROR(RunPasses(Passes(), PassPart::kPlan, compilation));
  AccountForPlan(compilation);
  return absl::OkStatus();
}

absl::StatusOr<PreparedPrograms> PreparePrograms(const ModelFiles& files, const CompileOptions& options,
                                                 const CompileContext& context) {
  ASSIGN_OR_RETURN(const auto dims, Specialisations(options));
  const bool several = dims.size() > 1;
  PreparedPrograms all;
  ConstantPool constants;
  for (const std::map<std::string, int64_t>& one : dims) {
    PreparedProgram& program = *all.emplace_back(std::make_unique<PreparedProgram>());
    program.dims = one;
    const std::string label = several ? program.Name() : "";
    StageClock clock(context, &program.model.account, label);
    const absl::Status prepared =
        Prepare(files, Bound(options, one), context, one, several ? &constants : nullptr, &clock, &program.model);
    RETURN_IF_ERROR(several ? Annotate(prepared, label) : prepared);
    clock.End();
  }
  if (several) {
    std::vector<NamedGraph> graphs;
    for (const auto& one : all) graphs.push_back({one->Name(), &one->model.planned.graph});
    RETURN_IF_ERROR(CheckDistinct(graphs));
    RETURN_IF_ERROR(AddPadded(files, options, context, &constants, &all));
  }
  RETURN_IF_ERROR(RunOverBundle(files, options, context, &all));
  return all;
}

}  // namespace fusion
