// fusion-compile MODEL.onnx OUT.fusion [--target cpu,opencl,cuda:sm_90] [--planner P] [--math fast|strict]
// [--precision fp32|fp16|tf32] [--disable-rule ID] [--device MODEL.json] [--disable-pass
// rewrite|layout|winograd|beyond-table|elide-copies] [--plan]
// [--dim NAME=N[,N…]] [--json FILE]
// The whole compiler without a server or workers, for development: builds with this machine's clang, OpenCL driver
// or NVRTC, and the cost model answers the yellow cases. Several targets: OUT.TARGET.fusion for each; one that fails
// leaves the others alone.
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
#include "absl/strings/str_split.h"
#include "compiler/backends/cpu/toolchain/clang_toolchain.h"
#include "compiler/backends/cuda/toolchain/nvrtc_toolchain.h"
#include "compiler/backends/opencl/toolchain/opencl_toolchain.h"
#include "compiler/backends/toolchain_set.h"
#include "compiler/cost/stored_devices.h"
#include "compiler/cost/target.h"
#include "compiler/pipeline/compile.h"
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
  nlohmann::ordered_json stages = nlohmann::ordered_json::object();
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
      {"flops", account.flops},
      {"stages", stages},
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

struct Kind {
  const char* name;
  absl::StatusOr<DeviceModel> (*device)(const std::string& target);
  absl::StatusOr<std::unique_ptr<LocalToolchain>> (*toolchain)();
};
constexpr Kind kKinds[] = {
    {"cpu", [](const std::string&) -> absl::StatusOr<DeviceModel> { return OfflineDevice(); }, MakeClang},
    {"opencl", [](const std::string&) -> absl::StatusOr<DeviceModel> { return OfflineOpenClDevice(); }, MakeOpenCl},
    {"cuda", StoredDevice, MakeNvrtc}};

// The target's and, for what runs on its host, clang.
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
  for (const SpecialisationAccount& one : account.specialisations) {
    std::fprintf(stderr, "%s: %ld kernels%s%s\n", one.name.c_str(), one.kernels,
                 one.exact_only.empty() ? "" : "; takes no less: ", one.exact_only.c_str());
  }
  for (const StageSeconds& stage : account.stages)
    std::fprintf(stderr, "%s %.2fs  ", stage.stage.c_str(), stage.seconds);
  std::fprintf(stderr, "\n");
  return request.json.empty() ? absl::OkStatus() : WriteFileAtomically(request.json, AccountJson(account));
}

int Main(int argc, char** argv) {
  Request request;
  ModelFiles& files = request.files;
  CompileOptions& options = request.options;
  std::optional<DeviceModel> given;
  std::vector<std::string> targets;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    auto value = [&] { return i + 1 < argc ? std::string(argv[++i]) : std::string(); };
    if (arg == "--planner") {
      options.planner = value();
    } else if (arg == "--target") {
      targets = absl::StrSplit(value(), ',');
    } else if (arg == "--math") {
      options.math = value();
    } else if (arg == "--precision") {
      options.precision = value();
    } else if (arg == "--disable-rule") {
      options.disabled_rules.insert(value());
    } else if (arg == "--disable-pass") {
      options.disabled_passes.insert(value());
    } else if (arg == "--json") {
      request.json = value();
    } else if (arg == "--plan") {
      request.plan_only = true;
    } else if (arg == "--dim") {
      const std::string binding = value();
      const size_t eq = binding.find('=');
      const std::string name = binding.substr(0, eq);
      std::vector<int64_t> extents;
      if (eq == std::string::npos || options.dims.count(name) + options.specialised_dims.count(name) > 0) {
        return Fail(absl::InvalidArgumentError(absl::StrCat("--dim ", binding, " binds no dimension, or one again")));
      }
      for (const std::string& part : std::vector<std::string>(absl::StrSplit(binding.substr(eq + 1), ','))) {
        if (!absl::SimpleAtoi(part, &extents.emplace_back())) {
          return Fail(absl::InvalidArgumentError(absl::StrCat("--dim ", binding, ": '", part, "' is no number")));
        }
      }
      if (extents.size() == 1) {
        options.dims[name] = extents[0];
      } else {
        options.specialised_dims[name] = extents;
      }
    } else if (arg == "--device") {
      std::ifstream file(value());
      absl::StatusOr<DeviceModel> read =
          DeviceModelFromJson(std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()));
      if (!read.ok()) return Fail(read.status());
      given = *std::move(read);
    } else if (files.model_path.empty()) {
      files.model_path = files.model_name = arg;
    } else {
      request.out = arg;
    }
  }
  if (files.model_path.empty() || (request.out.empty() && !request.plan_only)) {
    std::fprintf(stderr,
                 "usage: fusion-compile MODEL.onnx OUT.fusion [--target cpu,opencl,cuda:sm_90] [--planner P] [--math "
                 "fast|strict] [--precision fp32|fp16|tf32] [--disable-rule ID] "
                 "[--disable-pass rewrite|layout|winograd|beyond-table|elide-copies] [--device FILE] [--plan] [--dim NAME=N[,N…]] "
                 "[--json FILE]\n");
    return 2;
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
