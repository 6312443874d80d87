// The whole compiler without a server or workers, for development; see `fusion-compile --help`. A target that fails
// does not affect the others.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/api/modes.h"
#include "compiler/backends/cpu/toolchain/clang_toolchain.h"
#include "compiler/backends/cuda/toolchain/nvrtc_toolchain.h"
#include "compiler/backends/dsa/dsa_device_model.h"
#include "compiler/backends/dsa/toolchain/dsa_toolchain.h"
#include "compiler/backends/opencl/toolchain/opencl_toolchain.h"
#include "compiler/backends/toolchain_set.h"
#include "compiler/cost/stored_devices.h"
#include "compiler/cost/target.h"
#include "compiler/pipeline/compile.h"
#include "compiler/pipeline/passes.h"
#include "compiler/plan/plan.h"
#include "compiler/tools/offline_device.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/status_macros.h"
#include "runtime/bundle/target_path.h"

namespace fusion {
namespace {

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "error: %s\n", std::string(status.message()).c_str());
  return 1;
}

// The names that `fusionctl submit --json` uses.
std::string AccountJson(const CompileAccount& account) {
  nlohmann::ordered_json stages = nlohmann::ordered_json::object(), passes = nlohmann::ordered_json::object();
  for (const StageSeconds& pass : account.passes) passes[pass.stage] = pass.seconds;
  double seconds = 0;
  for (const StageSeconds& stage : account.stages) {
    stages[stage.stage] = stage.seconds;
    seconds += stage.seconds;
  }
  const nlohmann::ordered_json report = {
      {"nodes", account.nodes_model},
      {"nodes_simplified", account.nodes_simplified},
      {"nodes_rewritten", account.nodes_rewritten},
      {"kernels", account.kernels},
      {"kernels_distinct", account.kernels_distinct},
      {"from_model", account.from_model},
      {"intermediate_bytes",
       {{"before", account.intermediate_bytes_before}, {"after", account.intermediate_bytes_after}}},
      {"arena_bytes", account.arena_bytes},
      {"weight_bytes", account.weight_bytes},
      {"model_weight_bytes", account.weights.model_bytes},
      {"weight_causes", account.weights.causes},
      {"size_time_ratio", account.weights.time_ratio},
      {"flops", account.flops},
      {"stages", stages},
      {"passes", passes},
      {"seconds", seconds}};
  return report.dump(2) + "\n";
}

absl::StatusOr<std::unique_ptr<LocalToolchain>> MakeClang() {
  absl::StatusOr<std::unique_ptr<ClangToolchain>> clang = ClangToolchain::Create();
  if (!clang.ok()) return clang.status();
  return std::unique_ptr<LocalToolchain>(*std::move(clang));
}

absl::StatusOr<std::unique_ptr<LocalToolchain>> MakeOpenCl() { return MakeOpenClToolchain(); }

absl::StatusOr<std::unique_ptr<LocalToolchain>> MakeNvrtc() { return MakeNvrtcToolchain(); }

absl::StatusOr<std::unique_ptr<LocalToolchain>> MakeChecker() { return MakeDsaToolchain(); }

struct Kind {
  const char* name;
  absl::StatusOr<DeviceModel> (*device)(const std::string& target);
  absl::StatusOr<std::unique_ptr<LocalToolchain>> (*toolchain)();
};
constexpr Kind kKinds[] = {
    {"cpu", [](const std::string&) { return OfflineHostDevice(); }, MakeClang},
    {"opencl", [](const std::string&) -> absl::StatusOr<DeviceModel> { return OfflineOpenClDevice(); }, MakeOpenCl},
    {"cuda", StoredDevice, MakeNvrtc},
    {"dsa", DsaDeviceOf, MakeChecker}};

// The target's toolchain and clang, which compiles what runs on the target's host.
absl::StatusOr<std::unique_ptr<Toolchain>> MakeToolchain(const Kind& kind) {
  std::vector<std::unique_ptr<LocalToolchain>> toolchains;
  ASSIGN_OR_RETURN(toolchains.emplace_back(), kind.toolchain());
  if (kind.toolchain != MakeClang) {
    absl::StatusOr<std::unique_ptr<LocalToolchain>> clang = MakeClang();
    if (clang.ok()) toolchains.push_back(*std::move(clang));
  }
  return std::make_unique<ToolchainSet>(std::move(toolchains));
}

absl::StatusOr<Kind> FindKind(const std::string& target) {
  std::string known;
  for (const Kind& kind : kKinds) {
    if (ParseTarget(target).kind == kind.name) return kind;
    absl::StrAppend(&known, known.empty() ? "" : ", ", kind.name);
  }
  return absl::InvalidArgumentError(absl::StrCat("no target '", target, "'; there are ", known));
}

struct Request {
  ModelFiles files;
  CompileOptions options;
  std::string out, json;
  bool plan_only = false;
};

absl::Status CompileFor(const Request& request, const DeviceModel& device, Toolchain* toolchain) {
  ModelOracle oracle;
  CompileContext context;
  context.device = &device;
  context.oracle = &oracle;
  context.toolchain = toolchain;
  context.progress = [](const ProgressEvent& event) {
    if (event.done == 0) std::fprintf(stderr, "%-10s %s\n", event.stage.c_str(), event.message.c_str());
  };
  CompileAccount account;
  if (request.plan_only) {
    ASSIGN_OR_RETURN(const PlanReport report, PlanOnly(request.files, request.options, context));
    std::printf("%s", report.text.c_str());
    account = report.account;
    if (!request.out.empty()) RETURN_IF_ERROR(WriteFileAtomically(request.out, account.plan_json));
  } else {
    ASSIGN_OR_RETURN(account, Compile(request.files, request.options, context, request.out));
  }
  std::fprintf(stderr,
               "%ld nodes -> %ld -> %ld -> %ld kernels (%ld distinct); %.2f GFLOP; arena %.1f MB, weights %.1f MB\n",
               account.nodes_model, account.nodes_simplified, account.nodes_rewritten, account.kernels,
               account.kernels_distinct, account.flops / 1e9, static_cast<double>(account.arena_bytes) / 1e6,
               static_cast<double>(account.weight_bytes) / 1e6);
  if (!request.plan_only && account.weights.model_bytes > 0) {
    std::fprintf(stderr, "weights: %.2f of the model's %.1f MB", account.weights.ratio(),
                 static_cast<double>(account.weights.model_bytes) / 1e6);
    for (const auto& [cause, bytes] : account.weights.causes) {
      std::fprintf(stderr, "; %s %+.1f MB", WeightCauseInWords(cause).c_str(), static_cast<double>(bytes) / 1e6);
    }
    if (account.weights.time_ratio > 0) {
      std::fprintf(stderr, "; kept small at %.2f of the estimated time", account.weights.time_ratio);
    }
    std::fprintf(stderr, "\n");
  }
  for (const SpecialisationAccount& one : account.specialisations) {
    std::fprintf(stderr, "%s: %ld kernels%s%s\n", one.name.c_str(), one.kernels,
                 one.exact_only.empty() ? "" : "; takes no less: ", one.exact_only.c_str());
  }
  for (const StageSeconds& stage : account.stages)
    std::fprintf(stderr, "%s %.2fs  ", stage.stage.c_str(), stage.seconds);
  std::fprintf(stderr, "\n");
  return request.json.empty() ? absl::OkStatus() : WriteFileAtomically(request.json, AccountJson(account));
}

// Parses NAME=N or NAME=N,N.
absl::Status BindDimension(const std::string& binding, CompileOptions* options) {
  const size_t eq = binding.find('=');
  const std::string name = binding.substr(0, eq);
  if (eq == std::string::npos || options->dims.count(name) + options->specialised_dims.count(name) > 0) {
    return absl::InvalidArgumentError(absl::StrCat("--dim ", binding, " binds no dimension, or one again"));
  }
  std::vector<int64_t> extents;
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(binding.substr(eq + 1), ','))) {
    if (!absl::SimpleAtoi(part, &extents.emplace_back())) {
      return absl::InvalidArgumentError(absl::StrCat("--dim ", binding, ": '", part, "' is no number"));
    }
  }
  if (extents.size() == 1) {
    options->dims[name] = extents[0];
  } else {
    options->specialised_dims[name] = extents;
  }
  return absl::OkStatus();
}

absl::StatusOr<DeviceModel> ReadDevice(const std::string& path) {
  std::ifstream file(path);
  return DeviceModelFromJson(std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()));
}

int Main(int argc, char** argv) {
  CLI::App app(
      "The compiler without a server or workers, for development: builds with this machine's clang, OpenCL driver "
      "or NVRTC; the cost model answers the yellow cases");
  Request request;
  ModelFiles& files = request.files;
  CompileOptions& options = request.options;
  std::vector<std::string> targets, rules, passes, dims;
  std::string device_file;
  app.add_option("MODEL", files.model_path, "the .onnx file")->required();
  app.add_option("OUT", request.out,
                 "the bundle; with several targets OUT.TARGET.fusion for each; with --plan its JSON");
  app.add_option("--target", targets, "cpu, opencl, cuda:sm_90, dsa:stcp920")
      ->delimiter(',')
      ->take_all()
      ->allow_extra_args(false);
  app.add_option("--planner", options.planner, absl::StrCat("which planner: ", absl::StrJoin(PlannerNames(), ", ")));
  app.add_option("--math", options.math, absl::StrJoin(MathModes(), ", "));
  app.add_option("--precision", options.precision, absl::StrJoin(Precisions(), ", "));
  app.add_option(
      "--size", options.size,
      absl::StrCat(absl::StrJoin(SizeModes(), ", "), ": small keeps the weights near the bytes of the model's"));
  app.add_option("--dim", dims, "NAME=N[,N…]: extents of a symbolic dimension")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  app.add_option("--disable-rule", rules, "leave out a rewriting rule")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  app.add_option("--disable-pass", passes, absl::StrCat("leave out a pass: ", absl::StrJoin(PassesToDisable(), ", ")))
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  app.add_option("--device", device_file,
                 "a device model as JSON, instead of this machine's instructions at typical rates");
  app.add_flag("--plan", request.plan_only, "print the plan and build nothing");
  app.add_option("--json", request.json, "write the account of the compilation there");
  CLI11_PARSE(app, argc, argv);
  if (request.out.empty() && !request.plan_only) {
    return app.exit(CLI::RequiredError("OUT"));
  }
  files.model_name = files.model_path;
  options.disabled_rules.insert(rules.begin(), rules.end());
  options.disabled_passes.insert(passes.begin(), passes.end());
  for (const std::string& binding : dims) {
    if (const absl::Status bound = BindDimension(binding, &options); !bound.ok()) return Fail(bound);
  }
  std::optional<DeviceModel> given;
  if (!device_file.empty()) {
    absl::StatusOr<DeviceModel> read = ReadDevice(device_file);
    if (!read.ok()) return Fail(read.status());
    given = *std::move(read);
  }
  if (targets.empty()) targets = {given ? given->kind : "cpu"};
  int failures = 0;
  const Request one = request;
  for (const std::string& target : targets) {
    request.options.target = target;
    if (targets.size() > 1) {
      request.out = PathForTarget(one.out, target);
      request.json = one.json.empty() ? "" : PathForTarget(one.json, target);
    }
    const absl::Status status = [&]() -> absl::Status {
      ASSIGN_OR_RETURN(const Kind kind, FindKind(target));
      DeviceModel device;
      if (given && ParseTarget(target).IsFor(*given)) {
        device = *given;
      } else {
        ASSIGN_OR_RETURN(device, kind.device(target));
      }
      ASSIGN_OR_RETURN(const std::unique_ptr<Toolchain> toolchain, MakeToolchain(kind));
      return CompileFor(request, device, toolchain.get());
    }();
    if (!status.ok()) failures += Fail(targets.size() > 1 ? Annotate(status, target) : status);
  }
  return failures > 0 ? 1 : 0;
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) { return fusion::Main(argc, argv); }
