// fusion-compile MODEL.onnx OUT.fusion [--target cpu|opencl] [--planner P] [--math fast|strict] [--disable-rule ID]
// [--device MODEL.json]
//                [--disable-pass rewrite|layout] [--plan] [--dim NAME=N[,N…]] [--json FILE]
// The whole compiler without a server or workers, for development: builds with this machine's clang or OpenCL driver,
// and the cost model answers the yellow cases.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/backends/cpu/toolchain/clang_toolchain.h"
#include "compiler/backends/opencl/toolchain/opencl_toolchain.h"
#include "compiler/pipeline/compile.h"
#include "compiler/tools/offline_device.h"
#include "runtime/base/atomic_file.h"

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

int Main(int argc, char** argv) {
  ModelFiles files;
  CompileOptions options;
  DeviceModel device = OfflineDevice();
  std::string out, json;
  bool plan_only = false;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    auto value = [&] { return i + 1 < argc ? std::string(argv[++i]) : std::string(); };
    if (arg == "--planner") {
      options.planner = value();
    } else if (arg == "--target") {
      options.target = value();
      if (options.target != "cpu" && options.target != "opencl") {
        return Fail(absl::InvalidArgumentError(absl::StrCat("no target '", options.target, "': use cpu or opencl")));
      }
      if (options.target == "opencl") device = OfflineOpenClDevice();
    } else if (arg == "--math") {
      options.math = value();
    } else if (arg == "--disable-rule") {
      options.disabled_rules.insert(value());
    } else if (arg == "--disable-pass") {
      options.disabled_passes.insert(value());
    } else if (arg == "--json") {
      json = value();
    } else if (arg == "--plan") {
      plan_only = true;
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
      device = *read;
    } else if (files.model_path.empty()) {
      files.model_path = files.model_name = arg;
    } else {
      out = arg;
    }
  }
  if (files.model_path.empty() || (out.empty() && !plan_only)) {
    std::fprintf(stderr,
                 "usage: fusion-compile MODEL.onnx OUT.fusion [--target cpu|opencl] [--planner P] [--math fast|strict] "
                 "[--disable-rule ID] "
                 "[--disable-pass rewrite|layout] [--device FILE] [--plan] [--dim NAME=N[,N…]] [--json FILE]\n");
    return 2;
  }
  std::unique_ptr<LocalToolchain> toolchain;
  if (device.kind == "opencl") {
    toolchain = MakeOpenClToolchain();
  } else {
    absl::StatusOr<std::unique_ptr<ClangToolchain>> clang = ClangToolchain::Create();
    if (!clang.ok()) return Fail(clang.status());
    toolchain = *std::move(clang);
  }
  ModelOracle oracle;
  CompileContext context;
  context.device = &device;
  context.oracle = &oracle;
  context.toolchain = toolchain.get();
  context.progress = [](const ProgressEvent& event) {
    if (event.done == 0) std::fprintf(stderr, "%-10s %s\n", event.stage.c_str(), event.message.c_str());
  };
  CompileAccount account;
  if (plan_only) {
    absl::StatusOr<PlanReport> report = PlanOnly(files, options, context);
    if (!report.ok()) return Fail(report.status());
    std::printf("%s", report->text.c_str());
    account = report->account;
  } else {
    absl::StatusOr<CompileAccount> compiled = Compile(files, options, context, out);
    if (!compiled.ok()) return Fail(compiled.status());
    account = *compiled;
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
  if (!json.empty()) {
    const absl::Status written = WriteFileAtomically(json, AccountJson(account));
    if (!written.ok()) return Fail(written);
  }
  return 0;
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) { return fusion::Main(argc, argv); }
