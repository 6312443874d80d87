#include "tests/fuzz/graphs/modes.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "absl/strings/str_cat.h"
#include "compiler/backends/cpu/toolchain/clang_toolchain.h"
#include "compiler/ecg/interpret.h"
#include "compiler/pipeline/compile.h"
#include "compiler/rewrite/rewrite.h"
#include "compiler/simplify/passes.h"
#include "runtime/base/status_macros.h"
#include "runtime/loader/session.h"
#include "tests/conformance/host_device.h"
#include "tests/conformance/isolated.h"
#include "tests/fuzz/graphs/values.h"

namespace fusion::fuzz {
namespace {

constexpr int kDeadlineSeconds = 30;  // one run; most take a millisecond

Outputs RunPasses(const ecg::Graph& graph, const Mode& mode) {
  const ecg::Graph simple = simplify::Simplify(graph);
  RETURN_IF_ERROR(Annotate(ecg::Verify(simple), "after simplify"));
  rewrite::Options options;
  options.strict = mode.math == "strict";
  ASSIGN_OR_RETURN(const rewrite::Result rewritten, rewrite::Rewrite(simple, options));
  RETURN_IF_ERROR(Annotate(ecg::Verify(rewritten.graph), "after rewrite"));
  return ecg::Interpret(rewritten.graph, DrawInputs(graph));
}

Outputs RunBundle(const std::string& path, const ecg::Graph& graph) {
  ASSIGN_OR_RETURN(const auto bundle, Bundle::Open(path));
  ASSIGN_OR_RETURN(const auto session, Session::Create(bundle, 1));
  return session->Run(DrawInputs(graph));
}

}  // namespace

const std::vector<Mode>& AllModes() {
  static const auto* modes = new std::vector<Mode>{{"passes-strict", "", "strict"},
                                                   {"passes-fast", "", "fast"},
                                                   {"unfused", "none", "strict"},
                                                   {"fused", "dnnfusion", "fast"},
                                                   {"fused-strict", "dnnfusion", "strict"}};
  return *modes;
}

std::vector<std::vector<std::optional<Outputs>>> RunGraphs(const std::vector<ecg::Graph>& graphs,
                                                           const std::vector<Mode>& modes, bool quick) {
  using Results = std::vector<std::optional<Outputs>>;
  std::vector<Results> results(modes.size(), Results(graphs.size()));
  ClangToolchainOptions options;
  if (quick) options.more_flags = {"-O1"};
  auto toolchain = ClangToolchain::Create(options);
  std::string folder = (std::filesystem::temp_directory_path() / "fusion-fuzz-XXXXXX").string();
  if (!toolchain.ok()) return std::vector<Results>(modes.size(), Results(graphs.size(), toolchain.status()));
  if (mkdtemp(folder.data()) == nullptr) {
    return std::vector<Results>(modes.size(),
                                Results(graphs.size(), absl::ResourceExhaustedError("no folder in /tmp")));
  }
  const DeviceModel device = conformance::HostDevice();
  ModelOracle oracle;
  CompileContext context;
  context.device = &device;
  context.oracle = &oracle;
  context.toolchain = toolchain->get();
  std::vector<CompileJob> jobs;
  std::vector<std::pair<size_t, size_t>> places;  // mode, graph
  const auto compiled_modes = static_cast<size_t>(
      std::count_if(modes.begin(), modes.end(), [](const Mode& mode) { return !mode.planner.empty(); }));
  size_t turn = 0;  // of the compiled modes
  for (size_t m = 0; m < modes.size(); ++m) {
    for (size_t g = 0; g < graphs.size(); ++g) {
      if (modes[m].planner.empty()) {
        results[m][g] = RunPasses(graphs[g], modes[m]);
        continue;
      }
      if (quick && g % compiled_modes != turn) continue;
      CompileJob job;
      job.files.graph = &graphs[g];
      job.options.planner = modes[m].planner;
      job.options.math = modes[m].math;
      job.bundle_path = absl::StrCat(folder, "/", jobs.size(), ".fusion");
      jobs.push_back(std::move(job));
      places.emplace_back(m, g);
    }
    if (!modes[m].planner.empty()) ++turn;
  }
  const std::vector<absl::StatusOr<CompileAccount>> compiled = CompileMany(jobs, context);
  const std::vector<Outputs> outputs =
      conformance::RunIsolated(static_cast<int>(jobs.size()), kDeadlineSeconds, [&](int j) -> Outputs {
        if (!compiled[j].ok()) return compiled[j].status();
        return RunBundle(jobs[j].bundle_path, graphs[places[j].second]);
      });
  for (size_t j = 0; j < jobs.size(); ++j) results[places[j].first][places[j].second] = outputs[j];
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return results;
}

}  // namespace fusion::fuzz
