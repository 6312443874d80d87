#include "compiler/pipeline/compile.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/analysis/derived.h"
#include "compiler/api/generator_version.h"
#include "compiler/api/modes.h"
#include "compiler/api/specialisations.h"
#include "compiler/backends/backend.h"
#include "compiler/backends/placement.h"
#include "compiler/bundle/constant_pool.h"
#include "compiler/bundle/emit.h"
#include "compiler/bundle/hold_once.h"
#include "compiler/bundle/share_packings.h"
#include "compiler/choose_layouts/choose_layouts.h"
#include "compiler/kernels/block_kernel.h"
#include "compiler/launch/batch_launches.h"
#include "compiler/launch/elide_copies.h"
#include "compiler/measure/block_oracle.h"
#include "compiler/onnx/import.h"
#include "compiler/ops/registry/op_def.h"
#include "compiler/pipeline/precision_pass.h"
#include "compiler/pipeline/sum_accounts.h"
#include "compiler/plan/mapping_table.h"
#include "compiler/plan/plan.h"
#include "compiler/rewrite/rewrite.h"
#include "compiler/simplify/passes.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

class StageClock {
 public:
  // `label` names the specialisation and stands before every message.
  StageClock(const CompileContext& context, CompileAccount* account, const std::string& label = "")
      : context_(context), account_(account), label_(label.empty() ? "" : label + ": ") {}

  absl::Status Begin(const std::string& stage, const std::string& message) {
    End();
    if (context_.cancelled && context_.cancelled()) return absl::CancelledError("the job was cancelled");
    stage_ = stage;
    start_ = std::chrono::steady_clock::now();
    Report(0, 0, message);
    return absl::OkStatus();
  }
  void Report(int64_t done, int64_t total, const std::string& message) {
    if (context_.progress) context_.progress({stage_, done, total, label_ + message});
  }
  void End() {
    if (stage_.empty()) return;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    account_->stages.push_back({stage_, seconds});
    stage_.clear();
  }

 private:
  const CompileContext& context_;
  CompileAccount* account_;
  const std::string label_;
  std::string stage_;
  std::chrono::steady_clock::time_point start_;
};

struct Planned {
  ecg::Graph graph;
  std::vector<std::vector<std::string>> input_symbols;
  std::vector<onnx_import::InputExtent> input_extents;
  ValueLayouts layouts;
  FusionPlan plan;
  ElidedCopies elided;
  std::vector<std::vector<size_t>> launches;  // the fusion blocks of each
  // The nodes of the fusion blocks that have a kernel.
  std::vector<std::vector<ecg::NodeId>> KernelBlocks() const {
    std::vector<std::vector<ecg::NodeId>> blocks;
    for (size_t b = 0; b < plan.blocks.size(); ++b) {
      if (!elided.blocks.count(b)) blocks.push_back(plan.blocks[b].nodes);
    }
    return blocks;
  }
};

std::string Label(const ecg::Graph& graph, const std::vector<ecg::NodeId>& nodes) {
  std::vector<std::string> ops;
  for (ecg::NodeId id : nodes) ops.push_back(graph.node(id).op);
  if (ops.size() > 8) {
    const size_t more = ops.size() - 7;
    ops.resize(7);
    ops.push_back(absl::StrCat("… ", more, " more"));
  }
  return absl::StrJoin(ops, "+");
}

int64_t IntermediateBytes(const ecg::Graph& graph, const std::function<bool(ecg::ValueId)>& stored) {
  int64_t bytes = 0;
  for (ecg::ValueId v = 0; v < static_cast<int>(graph.values().size()); ++v) {
    const ecg::Value& value = graph.value(v);
    if (value.producer == ecg::kNone || graph.IsOutput(v) || !stored(v)) continue;
    bytes += NumElements(value.type.shape) * DTypeBytes(value.type.dtype);
  }
  return bytes;
}

std::string PlanJson(const ecg::Graph& graph, const Planned& planned, const std::vector<RewriteAccount>& rewrites) {
  using nlohmann::json;
  json blocks = json::array(), decisions = json::array(), rules = json::array();
  for (size_t b = 0; b < planned.plan.blocks.size(); ++b) {
    json nodes = json::array();
    for (ecg::NodeId id : planned.plan.blocks[b].nodes) {
      nodes.push_back({{"op", graph.node(id).op}, {"name", graph.node(id).name}});
    }
    blocks.push_back({{"nodes", nodes}});
    if (planned.elided.blocks.count(b)) blocks.back()["kernel"] = false;  // its copies are elided
  }
  auto node_name = [&](ecg::NodeId id) {
    return id == ecg::kNone ? std::string() : graph.node(id).op + " '" + graph.node(id).name + "'";
  };
  for (const Decision& d : planned.plan.decisions) {
    json item{{"producer", node_name(d.producer)},
              {"consumer", node_name(d.consumer)},
              {"colour", ColourName(d.colour)},
              {"fused", d.fused},
              {"reason", d.reason}};
    if (d.colour == Colour::kYellow && d.fused_ns > 0) {
      item["fused_ns"] = d.fused_ns;
      item["separate_ns"] = d.separate_ns;
      item["source"] = LatencySourceName(d.source);
    }
    decisions.push_back(item);
  }
  for (const RewriteAccount& one : rewrites) {
    rules.push_back({{"rule", one.rule},
                     {"where", one.where},
                     {"flops_saved", one.flops_saved},
                     {"bytes_saved", one.bytes_saved},
                     {"nodes_saved", one.nodes_saved}});
  }
  int64_t laid_out = 0;
  for (const auto& [v, layout] : planned.layouts) {
    (void)v;
    laid_out += layout.plain() ? 0 : 1;
  }
  return json{{"blocks", blocks}, {"decisions", decisions}, {"rewrites", rules}, {"values_not_row_major", laid_out}}
      .dump(1, ' ', false, json::error_handler_t::replace);
}

// A device kind without a backend is refused later.
int Units(const CompileOptions& options, const CompileContext& context) {
  const Backend* backend = FindBackend(context.device->kind);
  return backend == nullptr ? options.threads : backend->Units(options.threads, *context.device);
}

// The least time that the whole graph can take: each operator runs at the device's peak or from its fastest memory.
double LeastNs(const ecg::Graph& graph, const DeviceModel& device, int threads) {
  const double units = std::max(1, std::min(threads, device.parallel_units));
  double bandwidth = 1e9;
  for (const MemoryLevel& level : device.memory) bandwidth = std::max(bandwidth, level.bandwidth_bytes_per_s);
  double seconds = 0;
  for (const ecg::Node& node : graph.nodes()) {
    double bytes = 0;
    for (ecg::ValueId v : node.outputs) {
      if (v != ecg::kNone) bytes += static_cast<double>(ecg::ValueBytes(graph.value(v)));
    }
    seconds += std::max(ops::NodeFlops(graph, node) / device.fma_f32_flops_per_s, bytes / bandwidth) / units;
  }
  return 1e9 * seconds;
}

// Fraction of that time below which the cost model decides: a measurement would cost more than it could gain.
constexpr double kNegligible = 1e-4;

// Decides which fusion blocks have kernels, and which of these form one launch.
absl::Status PlanLaunches(const CompileOptions& options, const DeviceModel& device, GraphBlockOracle* oracle,
                          Planned* planned) {
  // Both passes need memory that only one processor sees and tasks that may each have their own arguments. Elsewhere
  // buffers are separate objects, on either side of a bus, and each kernel is a launch of its own.
  if (!device.CachesScratch()) {
    for (size_t b = 0; b < planned->plan.blocks.size(); ++b) planned->launches.push_back({b});
    return absl::OkStatus();
  }
  std::vector<std::shared_ptr<const BlockKernel>> kernels;
  for (const FusionBlock& block : planned->plan.blocks) {
    ASSIGN_OR_RETURN(kernels.emplace_back(), oracle->Get(block.nodes));
  }
  if (!options.disabled_passes.count("elide-copies")) planned->elided = ElideCopies(planned->graph, kernels);
  const BatchKernels which =
      options.disabled_passes.count("batch-launches") ? BatchKernels::kNone : BatchKernels::kThatLeaveUnitsIdle;
  planned->launches = BatchLaunches(kernels, planned->elided, device, which);
  return absl::OkStatus();
}

// Sums the bytes of constants that are an operand or a result. Constants in the same memory count once.
int64_t ConstantBytes(const ecg::Graph& graph) {
  std::map<const void*, int64_t> bytes;
  for (ecg::ValueId v = 0; v < static_cast<int>(graph.values().size()); ++v) {
    const ecg::Value& value = graph.value(v);
    if (!value.constant || (value.consumers.empty() && !graph.IsOutput(v))) continue;
    int64_t& most = bytes[value.constant->data()];
    most = std::max(most, value.constant->size_bytes());
  }
  int64_t sum = 0;
  for (const auto& one : bytes) sum += one.second;
  return sum;
}

// Refuses options that name nothing.
absl::Status CheckOptions(const CompileOptions& options, const CompileContext& context) {
  RETURN_IF_ERROR(MathLevelOf(options.math).status());
  RETURN_IF_ERROR(CheckPrecision(options.precision));
  RETURN_IF_ERROR(CheckSize(options.size));
  if (FindPlanner(options.planner) == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown planner '", options.planner, "': use one of ", absl::StrJoin(PlannerNames(), ", ")));
  }
  RETURN_IF_ERROR(tune::ParseBudget(options.tune).status());
  for (const std::string& pass : options.disabled_passes) {
    static const std::vector<std::string> kPasses = {"rewrite",      "layout",       "winograd",
                                                     "beyond-table", "elide-copies", "batch-launches"};
    if (std::find(kPasses.begin(), kPasses.end(), pass) == kPasses.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("no pass '", pass, "' to leave out: use one of ", absl::StrJoin(kPasses, ", ")));
    }
  }
  if (FindBackend(context.device->kind) == nullptr) {
    return absl::UnimplementedError(absl::StrCat("no kernels are printed for target '", context.device->kind, "'"));
  }
  return absl::OkStatus();
}

ecg::Graph Simplified(const ecg::Graph& graph, const CompileOptions& options, simplify::Widening widening) {
  const bool small = options.size == "small";
  return simplify::Simplify(graph, widening, small ? simplify::Reordering::kHoldOnce : simplify::Reordering::kFold);
}

// Import and simplify: the model's graph.
absl::Status ImportGraph(const ModelFiles& files, const CompileOptions& options, StageClock* clock,
                         CompileAccount* account, Planned* planned) {
  RETURN_IF_ERROR(clock->Begin("import", "reading the model"));
  if (files.graph != nullptr) {
    account->nodes_model = static_cast<int64_t>(files.graph->nodes().size());
    account->weights.model_bytes = ConstantBytes(*files.graph);
    RETURN_IF_ERROR(clock->Begin("simplify", absl::StrCat(account->nodes_model, " operators")));
    planned->graph = Simplified(*files.graph, options, simplify::Widening::kKeep);
  } else {
    onnx_import::ImportRequest request;
    request.model_path = files.model_path;
    request.model_name = files.model_name;
    request.external = files.external;
    request.dims = options.dims;
    request.bounded_dims = options.bounded_dims;
    request.constant_inputs = files.constant_inputs;
    for (const auto& [name, shape] : options.shapes) request.shapes[name] = shape;
    ASSIGN_OR_RETURN(onnx_import::ImportedModel imported, onnx_import::ImportOnnx(request));
    account->nodes_model = imported.model_nodes;
    account->weights.model_bytes = ConstantBytes(imported.graph);
    RETURN_IF_ERROR(clock->Begin("simplify", absl::StrCat(imported.graph.nodes().size(), " operators")));
    planned->graph = Simplified(imported.graph, options, simplify::Widening::kKeep);
    planned->input_symbols = std::move(imported.input_symbols);
    planned->input_extents = std::move(imported.input_extents);
  }
  account->nodes_simplified = static_cast<int64_t>(planned->graph.nodes().size());
  return absl::OkStatus();
}

// Rewrite, precision and the sharing of constants: the graph that is planned.
absl::Status RewriteGraph(const CompileOptions& options, ConstantPool* constants, StageClock* clock,
                          CompileAccount* account, Planned* planned) {
  ecg::Graph& graph = planned->graph;
  RETURN_IF_ERROR(clock->Begin("rewrite", absl::StrCat(account->nodes_simplified, " operators")));
  if (options.disabled_passes.count("rewrite")) {
    graph = Simplified(graph, options, simplify::Widening::kFold);
  } else {
    rewrite::Options rewrite_options;
    ASSIGN_OR_RETURN(rewrite_options.math, MathLevelOf(options.math));
    rewrite_options.disabled = options.disabled_rules;
    ASSIGN_OR_RETURN(rewrite::Result rewritten, rewrite::Rewrite(graph, rewrite_options));
    graph = Simplified(rewritten.graph, options, simplify::Widening::kFold);
    for (rewrite::Firing& firing : rewritten.firings) {
      account->rewrites.push_back({"", std::move(firing.rule), std::move(firing.where), firing.flops_saved,
                                   firing.bytes_saved, firing.nodes_saved});
    }
  }
  if (options.precision == "fp16") graph = Simplified(StoreAsHalves(graph), options, simplify::Widening::kFold);
  if (constants != nullptr) graph = constants->Share(graph);
  graph = simplify::OpenIndices(graph);
  RETURN_IF_ERROR(ecg::Verify(graph));
  account->nodes_rewritten = static_cast<int64_t>(graph.nodes().size());
  return absl::OkStatus();
}

// Layouts and the fusion plan. The oracle keeps pointers into `planned`.
absl::Status PlanFusion(const CompileOptions& options, const CompileContext& context, GraphBlockOracle* oracle,
                        StageClock* clock, CompileAccount* account, Planned* planned) {
  const ecg::Graph& graph = planned->graph;
  const int units = Units(options, context);
  RETURN_IF_ERROR(clock->Begin("layout", "choosing layouts"));
  if (!options.disabled_passes.count("layout")) {
    ASSIGN_OR_RETURN(planned->layouts, ChooseLayouts(graph, context.device->WithTypicalRates(), units));
  }
  RETURN_IF_ERROR(clock->Begin("plan", absl::StrCat(account->nodes_rewritten, " operators")));
  oracle->Start(&graph, &planned->layouts);
  PlanOptions plan_options;
  plan_options.cancelled = context.cancelled;
  plan_options.beyond_table = !options.disabled_passes.count("beyond-table");
  plan_options.negligible_ns = kNegligible * LeastNs(graph, context.device->WithTypicalRates(), units);
  ASSIGN_OR_RETURN(const ModelError error, context.oracle->Error());
  plan_options.trusted_factor = TrustedFactor(error);
  plan_options.progress = [&](int64_t done, int64_t total) { clock->Report(done, total, "planning fusion"); };
  const Planner* planner = FindPlanner(options.planner);
  ASSIGN_OR_RETURN(planned->plan, planner->Plan(graph, *context.device, *oracle, plan_options));
  return Annotate(CheckPlan(graph, planned->plan), absl::StrCat("planner ", options.planner));
}

void AccountForPlan(const GraphBlockOracle& oracle, const FusionPlan& plan, CompileAccount* account) {
  for (const Decision& d : plan.decisions) {
    if (d.colour == Colour::kGreen && d.fused) ++account->green;
    if (d.colour == Colour::kYellow) ++(d.fused ? account->yellow_fused : account->yellow_kept);
    if (d.colour == Colour::kRed) ++account->red;
  }
  account->questions = oracle.questions();
  account->from_database = oracle.answered(LatencySource::kDatabase);
  account->measured = oracle.answered(LatencySource::kMeasured);
  account->from_model = oracle.estimated();
}

void AccountForLaunches(const Planned& planned, CompileAccount* account) {
  account->kernels = static_cast<int64_t>(planned.launches.size());
  for (const ecg::Node& node : planned.graph.nodes()) account->flops += ops::NodeFlops(planned.graph, node);
  std::set<ecg::ValueId> stored;
  for (const FusionBlock& block : planned.plan.blocks) {
    for (ecg::ValueId v : LiveOut(planned.graph, block)) stored.insert(v);
  }
  for (const auto& [value, inside] : planned.elided.values) stored.erase(value);
  account->intermediate_bytes_before = IntermediateBytes(planned.graph, [](ecg::ValueId) { return true; });
  account->intermediate_bytes_after =
      IntermediateBytes(planned.graph, [&](ecg::ValueId v) { return stored.count(v) > 0; });
  account->plan_json = PlanJson(planned.graph, planned, account->rewrites);
}

// From import to plan: the part that Compile and PlanOnly share. The oracle keeps pointers into `planned`. `options`
// name one specialisation. `constants` are shared by the programs of a bundle; null if there is one program.
absl::Status MakePlan(const ModelFiles& files, const CompileOptions& options, const CompileContext& context,
                      ConstantPool* constants, GraphBlockOracle* oracle, StageClock* clock, CompileAccount* account,
                      Planned* planned) {
  RETURN_IF_ERROR(CheckOptions(options, context));
  RETURN_IF_ERROR(ImportGraph(files, options, clock, account, planned));
  RETURN_IF_ERROR(RewriteGraph(options, constants, clock, account, planned));
  RETURN_IF_ERROR(PlanFusion(options, context, oracle, clock, account, planned));
  AccountForPlan(*oracle, planned->plan, account);
  RETURN_IF_ERROR(PlanLaunches(options, *context.device, oracle, planned));
  AccountForLaunches(*planned, account);
  return absl::OkStatus();
}

// Fails with UNIMPLEMENTED, naming every operator for whose kernel neither the target nor its host has text.
absl::Status CheckSupported(const Planned& planned, const DeviceModel& device, GraphBlockOracle* oracle) {
  std::vector<std::string> refused;
  for (const FusionBlock& block : planned.plan.blocks) {
    ASSIGN_OR_RETURN(const BlockKernel kernel, oracle->Kernel(block.nodes));
    const absl::Status supported = PlaceKernel(kernel.kernel, device).backend->CheckSupported(kernel.kernel);
    if (supported.ok()) continue;
    const ecg::Node& node = planned.graph.node(block.nodes.front());
    refused.push_back(absl::StrCat(node.op, " '", node.name, "': ", std::string(supported.message())));
  }
  if (refused.empty()) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrJoin(refused, "; "));
}

// One program of a model, up to its movement graphs.
struct Prepared {
  CompileAccount account;
  Planned planned;
  std::vector<PlannedLaunch> launches;
};

// The passes over fusion blocks to leave out. Winograd reassociates sums, and its transformed filters are larger than
// the filters.
std::set<std::string> DisabledBlockPasses(const CompileOptions& options) {
  std::set<std::string> disabled = options.disabled_passes;
  if (options.math == "strict" || options.size == "small") disabled.insert("winograd");
  return disabled;
}

// Returns the context with its device as these options may use it. `device` holds that device.
CompileContext ContextFor(const CompileOptions& options, const CompileContext& context, DeviceModel* device) {
  *device = *context.device;
  device->tf32 = options.precision == "tf32";
  CompileContext own = context;
  own.device = device;
  return own;
}

double EstimatedNs(const Planned& planned, GraphBlockOracle* oracle) {
  double ns = 0;
  for (const std::vector<ecg::NodeId>& nodes : planned.KernelBlocks()) ns += oracle->EstimateNs(planned.graph, nodes);
  return ns;
}

// Estimates the model's time under these options, planned with estimates alone; 0 if they cannot be planned.
double EstimatedNs(const ModelFiles& files, const CompileOptions& options, const CompileContext& of_all) {
  ModelOracle estimates;
  CompileContext context = of_all;
  context.oracle = &estimates;
  context.progress = nullptr;
  CompileAccount account;
  StageClock clock(context, &account);
  Planned planned;
  GraphBlockOracle oracle(context, Units(options, context), DisabledBlockPasses(options));
  if (!MakePlan(files, options, context, nullptr, &oracle, &clock, &account, &planned).ok()) return 0;
  return EstimatedNs(planned, &oracle);
}

absl::Status Prepare(const ModelFiles& files, const CompileOptions& options, const CompileContext& of_all,
                     ConstantPool* constants, StageClock* clock, Prepared* out) {
  DeviceModel device;
  const CompileContext context = ContextFor(options, of_all, &device);
  GraphBlockOracle oracle(context, Units(options, context), DisabledBlockPasses(options));
  ASSIGN_OR_RETURN(const tune::Budget budget, tune::ParseBudget(options.tune));
  if (budget.trials > 0) oracle.LimitMeasuring(budget.seconds);
  RETURN_IF_ERROR(MakePlan(files, options, context, constants, &oracle, clock, &out->account, &out->planned));
  RETURN_IF_ERROR(CheckSupported(out->planned, *context.device, &oracle));
  if (budget.trials > 0) {
    RETURN_IF_ERROR(clock->Begin("tune", "trying schedules"));
    ASSIGN_OR_RETURN(out->account.tuned, oracle.Tune(out->planned.KernelBlocks(), budget));
    out->account.trials = oracle.questions() - out->account.questions;
    out->account.questions = oracle.questions();
    out->account.from_database = oracle.answered(LatencySource::kDatabase);
    out->account.measured = oracle.answered(LatencySource::kMeasured);
    out->account.from_model = oracle.estimated();
  }
  if (options.size == "small") {
    CompileOptions any = options;
    any.size = "any";
    const double any_ns = EstimatedNs(files, any, context);
    if (any_ns > 0) out->account.weights.time_ratio = EstimatedNs(out->planned, &oracle) / any_ns;
  }
  RETURN_IF_ERROR(clock->Begin("lower", absl::StrCat(out->account.kernels, " kernels")));
  for (const std::vector<size_t>& blocks : out->planned.launches) {
    PlannedLaunch launch;
    for (size_t b : blocks) {
      const std::vector<ecg::NodeId>& nodes = out->planned.plan.blocks[b].nodes;
      ASSIGN_OR_RETURN(BlockKernel kernel, oracle.Kernel(nodes));
      if (b != blocks[0] && kernel.key != launch.block.key) return absl::InternalError("a batch of different kernels");
      if (b == blocks[0]) launch.label = Label(out->planned.graph, nodes);
      (b == blocks[0] ? launch.block : launch.others.emplace_back()) = std::move(kernel);
      for (ecg::NodeId id : nodes) launch.nodes.push_back(out->planned.graph.node(id).name);
    }
    if (blocks.size() > 1) absl::StrAppend(&launch.label, " ×", blocks.size());
    out->launches.push_back(std::move(launch));
  }
  return absl::OkStatus();
}

Manifest Head(const ModelFiles& files, const CompileOptions& options, const DeviceModel& device) {
  Manifest head;
  head.generator = absl::StrCat("fusion " FUSION_VERSION " (generator ", kGeneratorVersion, ")");
  head.target = device.kind;
  head.isa = device.isa;
  head.march = device.march;
  head.model_name = files.model_name;
  head.options = {{"planner", options.planner}, {"math", options.math}, {"target", options.target}};
  if (options.precision != "fp32") head.options["precision"] = options.precision;
  if (options.size != "any") head.options["size"] = options.size;
  if (!options.disabled_rules.empty()) head.options["disabled_rules"] = absl::StrJoin(options.disabled_rules, ",");
  return head;
}

CompileOptions Bound(const CompileOptions& options, const std::map<std::string, int64_t>& dims) {
  CompileOptions bound = options;
  bound.specialised_dims.clear();
  bound.dims.insert(dims.begin(), dims.end());
  return bound;
}

// One program of a bundle under construction.
struct Program {
  std::map<std::string, int64_t> dims;
  Prepared model;

  std::string Name() const {
    std::set<std::string> bounded;
    for (const onnx_import::InputExtent& e : model.planned.input_extents) {
      bounded.insert(model.planned.input_symbols[e.input][e.dim]);
    }
    return DimsInWords(dims, bounded);
  }
};

using Programs = std::vector<std::unique_ptr<Program>>;  // of one bundle

// Checks that the specialisations of a bundle differ in the shapes of their inputs, which tell them apart at run time.
absl::Status CheckDistinct(const Programs& all) {
  std::map<std::vector<Shape>, std::string> known;
  for (const auto& one : all) {
    const ecg::Graph& graph = one->model.planned.graph;
    const ecg::Graph& first = all[0]->model.planned.graph;
    std::vector<Shape> shapes;
    for (ecg::ValueId v : graph.inputs()) shapes.push_back(graph.value(v).type.shape);
    auto [same, fresh] = known.emplace(std::move(shapes), one->Name());
    if (!fresh) {
      return absl::InvalidArgumentError(absl::StrCat("the inputs have the same shapes with ", same->second,
                                                     " and with ", one->Name(),
                                                     ": a --shape replaces what --dim gives"));
    }
    if (graph.inputs().size() != first.inputs().size() || graph.outputs().size() != first.outputs().size()) {
      return absl::InvalidArgumentError(absl::StrCat("with ", all[0]->Name(), " and with ", one->Name(),
                                                     " the model has another number of inputs or outputs: make two "
                                                     "bundles"));
    }
  }
  return absl::OkStatus();
}

// For each exact program in `all`, appends the program that also takes less. Where there is none, the exact program's
// account gets the reason.
absl::Status AddPadded(const ModelFiles& files, const CompileOptions& options, const CompileContext& context,
                       ConstantPool* constants, Programs* all) {
  const size_t exact = all->size();
  for (size_t i = 0; i < exact; ++i) {
    auto padded = std::make_unique<Program>();
    padded->dims = (*all)[i]->dims;
    CompileOptions bound = Bound(options, padded->dims);
    for (const auto& dim : options.specialised_dims) bound.bounded_dims.insert(dim.first);
    StageClock clock(context, &padded->model.account, absl::StrCat((*all)[i]->Name(), ", padded"));
    const absl::Status status = Prepare(files, bound, context, constants, &clock, &padded->model);
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

// Makes the kernels of all programs read constants in as few forms as their time allows.
void ShareConstants(const CompileOptions& options, const CompileContext& of_all, Programs* all) {
  DeviceModel device;
  const CompileContext context = ContextFor(options, of_all, &device);
  const bool small = options.size == "small";
  std::vector<SharingProgram> programs;
  for (const auto& program : *all) {
    Prepared& model = program->model;
    const auto reschedule = [&model, &device, &options](
                                size_t launch, const Choices& choices) -> absl::StatusOr<std::vector<BlockKernel>> {
      std::vector<BlockKernel> kernels;
      for (const size_t b : model.planned.launches[launch]) {
        const ecg::Graph& graph = model.planned.graph;
        const std::vector<ecg::NodeId>& nodes = model.planned.plan.blocks[b].nodes;
        ASSIGN_OR_RETURN(BlockKernel kernel, MakeBlockKernel(graph, nodes, LiveOutOf(graph, nodes),
                                                             model.planned.layouts, device,
                                                             {choices, DisabledBlockPasses(options)}));
        RETURN_IF_ERROR(PlaceKernel(kernel.kernel, device).backend->CheckSupported(kernel.kernel));
        kernels.push_back(std::move(kernel));
      }
      return kernels;
    };
    programs.push_back({&model.planned.graph, &model.launches, reschedule});
  }
  const int units = Units(options, context);
  SharePackings(device, units, small, programs);
  for (const auto& program : *all) {
    HoldOnce(program->model.planned.graph, device, units, small, &program->model.launches);
  }
}

// Prepares every program of the model's bundle, up to its movement graphs.
absl::StatusOr<Programs> PreparePrograms(const ModelFiles& files, const CompileOptions& options,
                                         const CompileContext& context) {
  ASSIGN_OR_RETURN(const auto dims, Specialisations(options));
  const bool several = dims.size() > 1;
  Programs all;
  ConstantPool constants;
  for (const std::map<std::string, int64_t>& one : dims) {
    Program& program = *all.emplace_back(std::make_unique<Program>());
    program.dims = one;
    const std::string label = several ? program.Name() : "";
    StageClock clock(context, &program.model.account, label);
    const absl::Status prepared =
        Prepare(files, Bound(options, one), context, several ? &constants : nullptr, &clock, &program.model);
    RETURN_IF_ERROR(several ? Annotate(prepared, label) : prepared);
    clock.End();
  }
  if (several) {
    RETURN_IF_ERROR(CheckDistinct(all));
    RETURN_IF_ERROR(AddPadded(files, options, context, &constants, &all));
  }
  ShareConstants(options, context, &all);
  return all;
}

void AppendKernels(const Programs& programs, std::vector<const BlockKernel*>* kernels) {
  for (const auto& program : programs) {
    for (const PlannedLaunch& launch : program->model.launches) kernels->push_back(&launch.block);
  }
}

CompileAccount SumAccounts(const Programs& programs) {
  std::vector<std::string> names;
  std::vector<CompileAccount> accounts;
  for (const auto& program : programs) {
    names.push_back(program->Name());
    accounts.push_back(program->model.account);
  }
  return SumAccounts(names, accounts);
}

// `place` is the text of the first launch of the first program; the others follow.
absl::Status Write(const CompileJob& job, const Programs& programs, const KernelTexts& texts,
                   const std::vector<std::string>& binaries, std::vector<KernelTexts::Place>::const_iterator place,
                   const DeviceModel& device, CompileAccount* account) {
  std::vector<BundleProgram> out;
  for (const auto& program : programs) {
    BundleProgram& one = out.emplace_back();
    const Prepared& model = program->model;
    one.graph = &model.planned.graph;
    one.layouts = &model.planned.layouts;
    one.launches = &model.launches;
    one.inside = &model.planned.elided.values;
    one.places.assign(place, place + static_cast<std::ptrdiff_t>(model.launches.size()));
    place += static_cast<std::ptrdiff_t>(model.launches.size());
    if (programs.size() == 1) continue;
    one.dims = program->dims;
    one.input_symbols = model.planned.input_symbols;
    one.input_extents = model.planned.input_extents;
  }
  return WriteBundle(out, texts, binaries, Head(job.files, job.options, device), job.bundle_path, account);
}

absl::StatusOr<CompileAccount> BuildAlone(const CompileJob& job, const Programs& programs,
                                          const CompileContext& context) {
  std::vector<const BlockKernel*> kernels;
  AppendKernels(programs, &kernels);
  const KernelTexts texts = PrintKernels(kernels, *context.device);
  CompileAccount account = SumAccounts(programs);
  account.kernels_distinct = texts.distinct;
  StageClock clock(context, &account);
  RETURN_IF_ERROR(
      clock.Begin("build", absl::StrCat(texts.distinct, " distinct kernels in ", texts.files.size(), " files")));
  ASSIGN_OR_RETURN(const std::vector<std::string> binaries, BuildTexts(texts, context.toolchain));
  RETURN_IF_ERROR(clock.Begin("write", "packing weights"));
  RETURN_IF_ERROR(Write(job, programs, texts, binaries, texts.places.begin(), *context.device, &account));
  clock.End();
  return account;
}

}  // namespace

absl::StatusOr<CompileAccount> Compile(const ModelFiles& files, const CompileOptions& options,
                                       const CompileContext& context, const std::string& bundle_path) {
  ASSIGN_OR_RETURN(const Programs programs, PreparePrograms(files, options, context));
  return BuildAlone({files, options, bundle_path}, programs, context);
}

std::vector<absl::StatusOr<CompileAccount>> CompileMany(const std::vector<CompileJob>& jobs,
                                                        const CompileContext& context) {
  std::vector<absl::StatusOr<Programs>> models;
  std::vector<const BlockKernel*> kernels;
  std::vector<std::ptrdiff_t> first;  // where the job's launches begin in `kernels`
  for (const CompileJob& job : jobs) {
    first.push_back(static_cast<std::ptrdiff_t>(kernels.size()));
    models.push_back(PreparePrograms(job.files, job.options, context));
    if (models.back().ok()) AppendKernels(*models.back(), &kernels);
  }
  const KernelTexts texts = PrintKernels(kernels, *context.device);
  const absl::StatusOr<std::vector<std::string>> binaries = BuildTexts(texts, context.toolchain);
  std::vector<absl::StatusOr<CompileAccount>> results;
  for (size_t j = 0; j < jobs.size(); ++j) {
    if (!models[j].ok()) {
      results.push_back(models[j].status());
      continue;
    }
    if (!binaries.ok()) {
      // Some text did not build. Building each job alone lets each fail or succeed on its own.
      results.push_back(BuildAlone(jobs[j], *models[j], context));
      continue;
    }
    CompileAccount account = SumAccounts(*models[j]);
    const absl::Status written =
        Write(jobs[j], *models[j], texts, *binaries, texts.places.begin() + first[j], *context.device, &account);
    results.push_back(written.ok() ? absl::StatusOr<CompileAccount>(std::move(account)) : written);
  }
  return results;
}

absl::StatusOr<PlanReport> PlanOnly(const ModelFiles& files, const CompileOptions& options,
                                    const CompileContext& of_all) {
  DeviceModel device;
  const CompileContext context = ContextFor(options, of_all, &device);
  ASSIGN_OR_RETURN(const auto dims, Specialisations(options));
  PlanReport report;
  std::vector<CompileAccount> accounts(dims.size());
  std::vector<std::string> names;
  for (size_t i = 0; i < dims.size(); ++i) {
    const std::string label = dims.size() > 1 ? names.emplace_back(DimsInWords(dims[i])) : names.emplace_back();
    StageClock clock(context, &accounts[i], label);
    GraphBlockOracle oracle(context, Units(options, context), DisabledBlockPasses(options));
    Planned planned;
    const absl::Status made =
        MakePlan(files, Bound(options, dims[i]), context, nullptr, &oracle, &clock, &accounts[i], &planned);
    RETURN_IF_ERROR(label.empty() ? made : Annotate(made, label));
    clock.End();
    if (!label.empty()) absl::StrAppend(&report.text, i > 0 ? "\n" : "", "with ", label, ":\n");
    report.text += PrintPlan(planned.graph, planned.plan);
    for (size_t b : planned.elided.blocks) {
      absl::StrAppend(&report.text, "block ", b, " has no kernel: what it would copy is written or read in place\n");
    }
    for (const std::vector<size_t>& blocks : planned.launches) {
      if (blocks.size() > 1) absl::StrAppend(&report.text, "one launch: blocks ", absl::StrJoin(blocks, ", "), "\n");
    }
  }
  report.account = SumAccounts(names, accounts);
  return report;
}

}  // namespace fusion
