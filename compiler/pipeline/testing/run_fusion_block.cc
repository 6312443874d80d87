#include "compiler/pipeline/testing/run_fusion_block.h"

#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/backends/backend.h"
#include "compiler/backends/cpu/toolchain/clang_toolchain.h"
#include "compiler/backends/cuda/testing/shim_toolchain.h"
#include "compiler/backends/cuda/toolchain/nvrtc_toolchain.h"
#include "compiler/backends/opencl/toolchain/opencl_toolchain.h"
#include "compiler/bundle/hold_once.h"
#include "compiler/choose_layouts/choose_layouts.h"
#include "compiler/movement/pack_constant.h"
#include "compiler/movement/print.h"
#include "compiler/movement/work_groups.h"
#include "compiler/ops/registry/op_def.h"
#include "compiler/pipeline/testing/kernel_call.h"
#include "compiler/pipeline/testing/subgroup_suffix.h"
#include "compiler/te/interpreter/interpreter.h"
#include "runtime/base/check.h"
#include "runtime/base/random_inputs.h"
#include "runtime/base/status_macros.h"
#include "runtime/devices/cpu/isa.h"

namespace fusion::testing {
namespace {

// Emulates subgroups for a driver that has none. A subgroup takes every fourth work-item of the work-group (or every
// n-th, with n subgroups), since the standard does not promise neighbours. A shuffle goes through the reduction's own
// local memory.
constexpr char kSubgroups[] = R"(#define cl_intel_subgroups 1
#define get_max_sub_group_size() 8u
#define get_sub_group_id() ((uint)get_local_id(0) % ((uint)get_local_size(0) / 8))
#define get_sub_group_local_id() ((uint)get_local_id(0) / ((uint)get_local_size(0) / 8))
#define sub_group_barrier(fence) barrier(fence)
#define intel_sub_group_shuffle_xor(value, mask) ({ __local __typeof__(value + 0)* const slots = (__local __typeof__(value + 0)*)partials; \
slots[lid] = value; barrier(CLK_LOCAL_MEM_FENCE); const __typeof__(value + 0) other = slots[lid ^ (int)(mask)]; barrier(CLK_LOCAL_MEM_FENCE); other; })
)";

std::string PreambleFor(const DeviceModel& device) {
  return absl::StrCat(absl::EndsWith(device.march, kSubgroupSuffix) ? kSubgroups : "",
                      FindBackend(device.kind)->Preamble({}, device));
}

Layout LayoutFor(const ValueLayouts& layouts, ecg::ValueId v) {
  auto it = layouts.find(v);
  return it == layouts.end() ? Layout() : it->second;
}

absl::StatusOr<std::map<ecg::ValueId, Tensor>> InputsOf(const FusionCase& fusion_case) {
  std::map<ecg::ValueId, Tensor> inputs = fusion_case.inputs;
  uint64_t seed = 100;
  for (ecg::ValueId v : fusion_case.graph.inputs()) {
    const ecg::ValueType& type = fusion_case.graph.value(v).type;
    if (!inputs.count(v)) inputs[v] = RandomTensor(type.dtype, type.shape, seed++, 5);
  }
  return inputs;
}

// The reference: the unscheduled program of the whole graph.
absl::StatusOr<std::vector<Tensor>> Reference(const FusionCase& fusion_case,
                                              const std::map<ecg::ValueId, Tensor>& inputs) {
  const ecg::Graph& graph = fusion_case.graph;
  std::vector<ecg::NodeId> nodes;
  for (size_t n = 0; n < graph.nodes().size(); ++n) nodes.push_back(static_cast<int>(n));
  ASSIGN_OR_RETURN(ops::LoweredFusionBlock lowered, ops::LowerNodes(graph, nodes, graph.outputs()));
  std::vector<Tensor> arguments;
  for (te::TensorId t : lowered.program.inputs) {
    const ecg::ValueId v = lowered.value_of_tensor[t];
    if (lowered.program.tensors[t].constant) {
      arguments.push_back(*lowered.program.tensors[t].constant);
    } else {
      arguments.push_back(graph.value(v).constant ? *graph.value(v).constant : inputs.at(v));
    }
  }
  return te::Interpret(lowered.program, arguments);
}

struct Run {
  const FusionCase* fusion_case = nullptr;
  const RunOptions* options = nullptr;
  ValueLayouts layouts;
  FusionResult result;
  std::vector<std::string> symbols;  // parallel to result.kernels
};

// Asks something of about half of the hand-overs.
std::vector<HandOver> DrawScopes(const ecg::Graph& graph, const FusionBlock& fusion_block, uint64_t seed) {
  std::mt19937 random(static_cast<uint32_t>(seed));
  std::vector<HandOver> asked;
  for (HandOver& hand_over : InnerHandOvers(graph, fusion_block)) {
    const uint32_t draw = random() % 8;
    if (draw >= 4) continue;
    hand_over.nearest = draw == 0 ? Scope::kDevice : draw == 1 ? Scope::kBlock : Scope::kLane;
    hand_over.furthest = draw == 3 ? Scope::kBlock : Scope::kDevice;
    asked.push_back(hand_over);
  }
  return asked;
}

// Every hand-over of which something was asked must be as asked; the others may have gone further.
absl::Status CheckAsked(const ecg::Graph& graph, const FusionBlock& fusion_block, const FusionKernel& kernel) {
  FusionBlock lenient = fusion_block;
  lenient.inner.clear();
  for (HandOver& hand_over : InnerHandOvers(graph, fusion_block)) {
    const bool asked =
        std::find(fusion_block.inner.begin(), fusion_block.inner.end(), hand_over) != fusion_block.inner.end();
    if (!asked) hand_over.furthest = Scope::kDevice;
    lenient.inner.push_back(hand_over);
  }
  return CheckRealised(graph, lenient, kernel);
}

absl::Status MakeKernels(Run* run) {
  const ecg::Graph& graph = run->fusion_case->graph;
  const RunOptions& options = *run->options;
  const int64_t lanes = options.device.vector_bytes / 4;
  if (options.layouts == LayoutMode::kChosen) {
    ASSIGN_OR_RETURN(run->layouts, ChooseLayouts(graph, options.device, 1));
  } else if (options.layouts != LayoutMode::kPlain) {
    const Layout layout{1, options.layouts == LayoutMode::kBlocked ? lanes : Layout::kWhole};
    for (size_t v = 0; v < graph.values().size(); ++v) {
      const ecg::Value& value = graph.values()[v];
      if (value.constant || value.type.dtype != DType::kF32 || value.type.shape.size() < 3) continue;
      run->layouts[static_cast<int>(v)] = layout;
    }
  }
  std::vector<FusionBlock> fusion_blocks = options.fusion_blocks;
  if (!options.split && fusion_blocks.empty()) fusion_blocks.emplace_back();
  for (size_t n = 0; n < graph.nodes().size() && options.fusion_blocks.empty(); ++n) {
    if (options.split) fusion_blocks.emplace_back();
    fusion_blocks.back().nodes.push_back(static_cast<int>(n));
  }
  for (FusionBlock& fusion_block : fusion_blocks) {
    fusion_block.directives.insert(fusion_block.directives.end(), options.directives.begin(), options.directives.end());
  }
  RETURN_IF_ERROR(CheckPlan(graph, {fusion_blocks, {}}));
  for (FusionBlock& fusion_block : fusion_blocks) {
    const auto make = [&](const Choices& choices) {
      return MakeFusionKernel(graph, fusion_block, LiveOutOf(graph, fusion_block), run->layouts, options.device,
                              {choices});
    };
    if (options.scopes_seed != 0) {
      fusion_block.inner = DrawScopes(graph, fusion_block, options.scopes_seed);
      if (const auto asked = make({}); absl::IsFailedPrecondition(asked.status())) fusion_block.inner.clear();
    }
    Choices choices = options.choices;
    absl::StatusOr<FusionKernel> kernel = make(choices);
    if (options.choices_seed != 0 && kernel.ok()) {
      std::mt19937 random(static_cast<uint32_t>(options.choices_seed));
      for (int times = 0; times < 2; ++times) {  // a choice may lead to further choices
        for (const ChoicePoint& point : kernel->choices) {
          if (choices.count(point.name) == 0) choices[point.name] = static_cast<int>(random() % point.count);
        }
        kernel = make(choices);
        if (!kernel.ok()) break;
      }
    }
    if (!kernel.ok()) return Annotate(kernel.status(), absl::StrCat("scheduling ", PrintChoices(choices)));
    RETURN_IF_ERROR(CheckAsked(graph, fusion_block, *kernel));
    run->result.kernels.push_back(*std::move(kernel));
  }
  if (!options.hold_once) return absl::OkStatus();
  std::vector<PlannedLaunch> launches;
  for (FusionKernel& kernel : run->result.kernels) launches.push_back({std::move(kernel), {}, "", {}});
  HoldOnce(graph, options.device, 1, /*whatever_it_costs=*/true, &launches);
  for (size_t l = 0; l < launches.size(); ++l) run->result.kernels[l] = std::move(launches[l].fusion_kernel);
  return absl::OkStatus();
}

std::string Describe(const GuardedBuffer& buffer, const KernelArg& arg, const ecg::Graph& graph) {
  return absl::StrCat(arg.value == ecg::kNone ? "a temporary" : "value ",
                      arg.value == ecg::kNone ? "" : graph.value(arg.value).name, " (", buffer.bytes(), " bytes)");
}

absl::Status RunKernel(const Run& run, size_t k, KernelHost* host,
                       std::map<ecg::ValueId, std::unique_ptr<GuardedBuffer>>* values, std::mt19937* random) {
  const ecg::Graph& graph = run.fusion_case->graph;
  const FusionKernel& fusion_block = run.result.kernels[k];
  std::vector<const movement::Buffer*> buffers;
  for (const movement::Buffer& buffer : fusion_block.kernel.buffers) {
    if (movement::IsArgument(buffer)) buffers.push_back(&buffer);
  }
  if (buffers.size() != fusion_block.args.size()) return absl::InternalError("args are not parallel to buffers");
  std::vector<std::unique_ptr<GuardedBuffer>> own;
  KernelCall call;
  std::map<size_t, std::string> read_only;
  for (size_t a = 0; a < fusion_block.args.size(); ++a) {
    const KernelArg& arg = fusion_block.args[a];
    const int64_t bytes = buffers[a]->elements * DTypeBytes(buffers[a]->dtype);
    GuardedBuffer* buffer = nullptr;
    if (arg.kind == KernelArg::Kind::kValue) {
      const Layout layout = LayoutFor(run.layouts, arg.value);
      const ecg::ValueType& type = graph.value(arg.value).type;
      const int64_t value_bytes = NumElements(layout.PhysicalShape(type.shape)) * DTypeBytes(type.dtype);
      if (value_bytes != bytes)
        return absl::InternalError(absl::StrCat("argument ", a, " has ", bytes, " bytes, its value ", value_bytes));
      auto it = values->find(arg.value);
      if (it == values->end()) {
        if (!arg.written)
          return absl::InternalError(absl::StrCat("argument ", a, " is read before any kernel wrote it"));
        it = values->emplace(arg.value, std::make_unique<GuardedBuffer>(bytes)).first;
      }
      buffer = it->second.get();
    } else {
      own.push_back(std::make_unique<GuardedBuffer>(bytes));
      buffer = own.back().get();
      if (arg.kind == KernelArg::Kind::kConstant) {
        Tensor source = arg.value == ecg::kNone ? arg.literal : *graph.value(arg.value).constant;
        if (arg.pack >= 0) source = movement::PackedConstant(fusion_block.kernel.packs[arg.pack], source);
        if (source.size_bytes() != bytes)
          return absl::InternalError(absl::StrCat("constant of argument ", a, " has the wrong size"));
        memcpy(buffer->data(), source.data(), bytes);
      }
    }
    if (!arg.written && arg.kind != KernelArg::Kind::kTemporary) read_only[a] = std::string(buffer->data(), bytes);
    call.args.push_back(buffer);
  }
  call.scratch_bytes = fusion_block.kernel.scratch_bytes;
  const DeviceModel& device = run.options->device;
  const std::vector<int64_t> launched = FindBackend(device.kind)->LaunchedTasks(fusion_block.kernel, device);
  const std::vector<movement::PhaseRange> launches = movement::LaunchesOf(fusion_block.kernel);
  call.persistent = fusion_block.kernel.persistent;
  for (size_t p = 0; p < launched.size(); ++p) {
    const int64_t tasks = launched[p];
    KernelCall::Phase phase{PhaseSymbol(run.symbols[k], static_cast<int>(p)), {}, {}};
    const LibraryCall* library = movement::LibraryCallOf(fusion_block.kernel.phases[launches[p].first]);
    if (library != nullptr) phase.library = *library;
    for (int64_t at = 0; at < tasks;) {
      const int64_t length =
          std::min<int64_t>(tasks - at, 1 + static_cast<int64_t>((*random)() % std::max<int64_t>(1, tasks / 3)));
      phase.ranges.push_back({at, at + length});
      at += length;
    }
    std::shuffle(phase.ranges.begin(), phase.ranges.end(), *random);
    call.phases.push_back(std::move(phase));
  }
  RETURN_IF_ERROR(host->Run(call));
  for (size_t a = 0; a < call.args.size(); ++a) {
    const std::string what = Describe(*call.args[a], fusion_block.args[a], graph);
    if (!call.args[a]->SlackUntouched()) return absl::InternalError(absl::StrCat("slack of ", what, " is written"));
    auto it = read_only.find(a);
    if (it != read_only.end() && memcmp(it->second.data(), call.args[a]->data(), it->second.size()) != 0) {
      return absl::InternalError(absl::StrCat(what, " is written although it is only read"));
    }
  }
  return absl::OkStatus();
}

absl::Status Execute(Run* of, KernelHost* host, const std::map<ecg::ValueId, Tensor>& inputs,
                     const std::vector<Tensor>& expected) {
  const Run& run = *of;
  const ecg::Graph& graph = run.fusion_case->graph;
  std::mt19937 random(7);
  std::map<ecg::ValueId, std::unique_ptr<GuardedBuffer>> values;
  for (const auto& [v, tensor] : inputs) {
    const Tensor physical = ToPhysical(tensor, LayoutFor(run.layouts, v));
    values[v] = std::make_unique<GuardedBuffer>(physical.size_bytes());
    memcpy(values[v]->data(), physical.data(), physical.size_bytes());
  }
  for (size_t k = 0; k < run.result.kernels.size(); ++k) {
    RETURN_IF_ERROR(Annotate(RunKernel(run, k, host, &values, &random), absl::StrCat("kernel ", k)));
  }
  std::vector<Tensor> outputs;
  for (size_t o = 0; o < graph.outputs().size(); ++o) {
    const ecg::ValueId v = graph.outputs()[o];
    if (!values.count(v)) return absl::InternalError(absl::StrCat("output ", o, " is written by no kernel"));
    bool pad_is_zero = true;
    const ecg::ValueType& type = graph.value(v).type;
    outputs.push_back(FromPhysical(values[v]->data(), type.dtype, type.shape, LayoutFor(run.layouts, v), &pad_is_zero));
    if (!pad_is_zero) return absl::InternalError(absl::StrCat("output ", o, ": padding lanes are not zero"));
  }
  of->result.outputs = std::move(outputs);
  for (size_t o = 0; o < expected.size(); ++o) {
    RETURN_IF_ERROR(Annotate(CompareOutputs(expected[o], of->result.outputs[o]), absl::StrCat("output ", o)));
  }
  return absl::OkStatus();
}

}  // namespace

const char* LayoutModeName(LayoutMode mode) {
  static const char* const kNames[] = {"plain", "chosen", "blocked", "axis last"};
  return kNames[static_cast<int>(mode)];
}

std::vector<std::shared_ptr<const FusionKernel>> KernelOfEachNode(const ecg::Graph& graph) {
  std::vector<std::shared_ptr<const FusionKernel>> kernels;
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    const std::vector<ecg::NodeId> nodes = {static_cast<ecg::NodeId>(n)};
    absl::StatusOr<FusionKernel> kernel = MakeFusionKernel(graph, nodes, LiveOutOf(graph, nodes), {}, Avx512Device());
    FUSION_CHECK(kernel.ok(), std::string(kernel.status().message()).c_str());
    kernels.push_back(std::make_shared<const FusionKernel>(*std::move(kernel)));
  }
  return kernels;
}

absl::Status CanRun(const DeviceModel& device) {
  if (device.kind == "opencl") return FindOpenCl();
  if (device.kind == "cuda") return absl::OkStatus();  // runs as C++ on this machine
  const absl::Status here = CheckIsa(device.isa);
  return here.ok() || device.isa != "neon" ? here : FindQemu();
}

namespace {

// The kernels of all runs as texts, each kernel of an architecture once.
struct Texts {
  std::map<std::string, const DeviceModel*> devices;                   // by march
  std::map<std::string, std::string> all;                              // march -> all kernels
  std::map<std::pair<std::string, std::string>, std::string> symbols;  // (march, key) -> symbol
  std::map<std::pair<std::string, std::string>, std::string> one;      // (march, symbol) -> text

  // Returns the kernel's symbol.
  std::string Add(const FusionKernel& kernel, const DeviceModel& device) {
    const std::string& march = device.march;
    devices[march] = &device;
    const auto [it, fresh] = symbols.emplace(std::make_pair(march, kernel.key), absl::StrCat("k", symbols.size()));
    if (fresh) {
      const std::string text = FindBackend(device.kind)->PrintKernel(kernel.kernel, it->second, device);
      if (all[march].empty()) all[march] = PreambleFor(device);
      all[march] += text;
      one[{march, it->second}] = text;
    }
    return it->second;
  }
};

// For debugging: FUSION_PRINT_MOVEMENT=1 prints the movement graphs, FUSION_KEEP_TEXT=FOLDER keeps the texts.
void PrintMovement(const FusionResult& result) {
  if (getenv("FUSION_PRINT_MOVEMENT") == nullptr) return;
  for (const FusionKernel& kernel : result.kernels) {
    fprintf(stderr, "== %s\n%s", result.name.c_str(), movement::Print(kernel.kernel).c_str());
  }
}

void KeepTexts(const std::string& name, const Texts& texts) {
  const char* const folder = getenv("FUSION_KEEP_TEXT");
  if (folder == nullptr) return;
  for (const auto& [march, text] : texts.all) {
    std::ofstream(absl::StrCat(folder, "/", name, "_", march, ".cc")) << text;
  }
}

// Schedules the kernels of every case with every set of options.
std::vector<Run> MakeRuns(const std::vector<FusionCase>& cases, const std::vector<RunOptions>& options, Texts* texts) {
  std::vector<Run> runs;
  for (const FusionCase& fusion_case : cases) {
    for (const RunOptions& option : options) {
      Run run;
      run.fusion_case = &fusion_case;
      run.options = &option;
      run.result.name = absl::StrCat(fusion_case.name, " ", option.device.isa, " ", option.device.march, " ",
                                     LayoutModeName(option.layouts), option.split ? " split" : "");
      run.result.status = MakeKernels(&run);
      PrintMovement(run.result);
      for (const FusionKernel& kernel : run.result.kernels) run.symbols.push_back(texts->Add(kernel, option.device));
      runs.push_back(std::move(run));
    }
  }
  return runs;
}

class Builder {
 public:
  Builder() {
    absl::StatusOr<std::unique_ptr<ClangToolchain>> clang = ClangToolchain::Create();
    FUSION_CHECK(clang.ok(), std::string(clang.status().message()).c_str());
    clang_ = *std::move(clang);
    absl::StatusOr<std::unique_ptr<LocalToolchain>> cuda = MakeCudaShimToolchain();
    FUSION_CHECK(cuda.ok(), std::string(cuda.status().message()).c_str());
    cuda_ = *std::move(cuda);
  }

  absl::StatusOr<std::string> Build(const BuildUnit& unit) {
    LocalToolchain* toolchain = unit.kind == "opencl" ? opencl_.get()
                                : unit.kind == "cuda" ? cuda_.get()
                                                      : clang_.get();
    if (unit.kind == "cuda" && nvrtc_.ok()) RETURN_IF_ERROR((*nvrtc_)->Build({&unit, 1}, nullptr).status());
    ASSIGN_OR_RETURN(std::vector<std::string> built, toolchain->Build({&unit, 1}, nullptr));
    return std::move(built[0]);
  }

 private:
  std::unique_ptr<LocalToolchain> clang_, cuda_;
  // The host builds OpenCL's text; the error of a single kernel goes to `broken`.
  const std::unique_ptr<LocalToolchain> opencl_ = MakeOpenClToolchain({/*build=*/false});
  // If installed, it also builds the text that runs as C++.
  const decltype(MakeNvrtcToolchain()) nvrtc_ = MakeNvrtcToolchain();
};

// Hosts of the built kernels, by march; where the text of an architecture does not build as a whole, by march and
// symbol, so that one faulty kernel leaves the others.
class Hosts {
 public:
  Hosts(const Texts& texts, Builder* builder) {
    std::map<std::string, std::string> binaries;  // by march
    for (const auto& [march, text] : texts.all) {
      const absl::StatusOr<std::string> built = builder->Build({texts.devices.at(march)->kind, march, text});
      if (!built.ok()) break;
      binaries[march] = *built;
    }
    batched_ = binaries.size() == texts.all.size();
    if (!batched_) LoadOneByOne(texts, builder);
    if (!batched_) return;
    for (const auto& [march, binary] : binaries) Load(march, *texts.devices.at(march), binary);
  }

  // The host of all the run's kernels.
  absl::StatusOr<KernelHost*> Find(const Run& run) {
    const std::string& march = run.options->device.march;
    if (batched_) return FindOne(march);
    absl::StatusOr<KernelHost*> host = nullptr;
    for (const std::string& symbol : run.symbols) {
      ASSIGN_OR_RETURN(host, FindOne(march + symbol));
      if (run.symbols.size() > 1) {
        return absl::UnknownError("not run: another kernel of the batch does not compile");
      }
    }
    return host;
  }

 private:
  void LoadOneByOne(const Texts& texts, Builder* builder) {
    for (const auto& [place, text] : texts.one) {
      const auto& [march, symbol] = place;
      const DeviceModel& device = *texts.devices.at(march);
      const absl::StatusOr<std::string> built = builder->Build({device.kind, march, PreambleFor(device) + text});
      if (built.ok()) {
        Load(march + symbol, device, *built);
      } else {
        broken_[march + symbol] = built.status();
      }
    }
  }

  void Load(const std::string& key, const DeviceModel& device, const std::string& binary) {
    if (!CanRun(device).ok()) return;
    absl::StatusOr<std::unique_ptr<KernelHost>> host = device.kind == "opencl"     ? LoadOnOpenCl(binary)
                                                       : device.kind == "cuda"     ? LoadAsCuda(binary)
                                                       : CheckIsa(device.isa).ok() ? LoadHere(binary)
                                                                                   : LoadUnderQemu(binary);
    if (host.ok()) {
      hosts_[key] = *std::move(host);
    } else {
      broken_[key] = host.status();
    }
  }

  absl::StatusOr<KernelHost*> FindOne(const std::string& key) {
    if (const auto host = hosts_.find(key); host != hosts_.end()) return host->second.get();
    RETURN_IF_ERROR(broken_[key]);
    return nullptr;
  }

  bool batched_ = false;
  std::map<std::string, std::unique_ptr<KernelHost>> hosts_;
  std::map<std::string, absl::Status> broken_;
};

}  // namespace

std::vector<FusionResult> RunCases(const std::vector<FusionCase>& cases, const std::vector<RunOptions>& options) {
  Texts texts;
  std::vector<Run> runs = MakeRuns(cases, options, &texts);
  KeepTexts(cases.empty() ? "" : cases[0].name, texts);
  Builder builder;
  Hosts hosts(texts, &builder);
  std::map<const FusionCase*, absl::StatusOr<std::vector<Tensor>>> references;
  std::vector<FusionResult> results;
  for (Run& run : runs) {
    if (run.result.status.ok() && CanRun(run.options->device).ok()) {
      const auto inputs = InputsOf(*run.fusion_case);
      auto it = references.find(run.fusion_case);
      if (it == references.end()) it = references.emplace(run.fusion_case, Reference(*run.fusion_case, *inputs)).first;
      run.result.status = it->second.status();
      const absl::StatusOr<KernelHost*> host = run.result.status.ok() ? hosts.Find(run) : run.result.status;
      run.result.status = host.ok() ? Execute(&run, *host, *inputs, *it->second) : host.status();
    }
    results.push_back(std::move(run.result));
  }
  return results;
}

std::vector<RunOptions> AllOptions() {
  std::vector<RunOptions> options;
  for (const DeviceModel& device : {Avx512Device(), Avx2Device()}) {
    for (LayoutMode mode : {LayoutMode::kPlain, LayoutMode::kChosen, LayoutMode::kBlocked, LayoutMode::kAxisLast})
      options.push_back({device, mode, false});
    options.push_back({device, LayoutMode::kPlain, true});
    options.push_back({device, LayoutMode::kChosen, true});
  }
  return options;
}

std::string Failures(const std::vector<FusionCase>& cases) { return Failures(cases, AllOptions()); }

std::string Failures(const std::vector<FusionCase>& cases, const std::vector<RunOptions>& options) {
  std::string text;
  for (const FusionResult& result : RunCases(cases, options)) {
    if (!result.status.ok()) absl::StrAppend(&text, result.name, ": ", std::string(result.status.message()), "\n");
  }
  return text;
}

}  // namespace fusion::testing
