#include "tests/fuzz/graphs/modes.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "compiler/analysis/interpret.h"
#include "compiler/pipeline/compile.h"
#include "compiler/plan/plan.h"
#include "compiler/rewrite/rewrite.h"
#include "compiler/simplify/passes.h"
#include "runtime/base/status_macros.h"
#include "tests/conformance/compile_and_run.h"
#include "tests/conformance/cut_to_extents.h"
#include "tests/fuzz/graphs/one_kernel.h"
#include "tests/fuzz/graphs/random_windows.h"
#include "tests/fuzz/graphs/values.h"

namespace fusion::fuzz {
namespace {

constexpr int kDeadlineSeconds = 30;  // of one run; most take a millisecond

Outputs RunPasses(const ecg::Graph& graph, const Mode& mode) {
  ASSIGN_OR_RETURN(const ecg::Graph rewritten, Rewritten(graph, mode.math));
  ASSIGN_OR_RETURN(const std::vector<Tensor> all, ecg::Interpret(rewritten, DrawInputs(graph)));
  return conformance::CutToExtents(rewritten, all);
}

// The results of the chains of windows among the graphs, each as one kernel of a form: of all forms, or with `quick` of
// one of them in turn.
void RunForms(const std::vector<ecg::Graph>& graphs, const std::vector<Mode>& modes, const RunSettings& settings,
              std::vector<std::vector<std::optional<Outputs>>>* results) {
  const auto forms = static_cast<size_t>(
      std::count_if(modes.begin(), modes.end(), [](const Mode& mode) { return !mode.form.empty(); }));
  size_t turn = 0;
  for (size_t m = 0; m < modes.size(); ++m) {
    if (modes[m].form.empty()) continue;
    std::vector<size_t> places;
    std::vector<ecg::Graph> chains;
    for (size_t g = 0; g < graphs.size(); ++g) {
      if (!IsChainOfWindows(graphs[g]) || (settings.quick && g % forms != turn)) continue;
      places.push_back(g);
      chains.push_back(graphs[g]);
    }
    ++turn;
    std::vector<Outputs> outputs = RunAsOneKernel(chains, modes[m].form, settings.isa);
    for (size_t c = 0; c < chains.size(); ++c) (*results)[m][places[c]] = std::move(outputs[c]);
  }
}

// Graphs that are compiled together for one target, and the mode and the graph of each job.
struct Jobs {
  std::vector<CompileJob> jobs;
  std::vector<std::pair<size_t, size_t>> places;
};

CompileJob JobOf(const ecg::Graph& graph, const Mode& mode) {
  CompileJob job;
  job.files.graph = &graph;
  job.options.planner = mode.planner;
  job.options.math = mode.math;
  // Half of the graphs, whichever batch they are in, run whatever may run at the same time that way.
  job.options.group_all_launches = mode.target == "cpu" && graph.nodes().size() % 2 == 0;
  return job;
}

bool HasDoubles(const ecg::Graph& graph) {
  return std::any_of(graph.values().begin(), graph.values().end(),
                     [](const ecg::Value& value) { return value.type.dtype == DType::kF64; });
}

}  // namespace

absl::StatusOr<ecg::Graph> Rewritten(const ecg::Graph& graph, const std::string& math) {
  const ecg::Graph simple = simplify::Simplify(graph);
  RETURN_IF_ERROR(Annotate(ecg::Verify(simple), "after simplify"));
  rewrite::Options options;
  options.math = math == "strict" ? rewrite::MathLevel::kStrict : rewrite::MathLevel::kFast;
  ASSIGN_OR_RETURN(rewrite::Result rewritten, rewrite::Rewrite(simple, options));
  RETURN_IF_ERROR(Annotate(ecg::Verify(rewritten.graph), "after rewrite"));
  return std::move(rewritten.graph);
}

const std::vector<Mode>& AllModes() {
  static const auto* modes = [] {
    auto* all = new std::vector<Mode>{{"passes-strict", "", "strict"},
                                      {"passes-fast", "", "fast"},
                                      {"unfused", "none", "strict"},
                                      {"fused", "dnnfusion", "fast"},
                                      {"fused-strict", "dnnfusion", "strict"},
                                      {"halos", "", "strict", "halos"},
                                      {"windows", "", "strict", "windows"},
                                      {.name = "dsa", .planner = "dnnfusion", .math = "fast", .target = "dsa"},
                                      {.name = "dsa-layers", .planner = "none", .math = "strict", .target = "dsa"}};
    // Every other planner is a mode of its name.
    for (const std::string& planner : PlannerNames()) {
      const bool there =
          std::any_of(all->begin(), all->end(), [&](const Mode& mode) { return mode.planner == planner; });
      if (!there) all->push_back({planner, planner, "fast"});
    }
    return all;
  }();
  return *modes;
}

std::vector<std::vector<std::optional<Outputs>>> RunGraphs(const std::vector<ecg::Graph>& graphs,
                                                           const std::vector<Mode>& modes,
                                                           const RunSettings& settings) {
  std::vector<std::vector<std::optional<Outputs>>> results(modes.size(),
                                                           std::vector<std::optional<Outputs>>(graphs.size()));
  std::map<std::string, Jobs> by_target;
  const auto compiled_modes = static_cast<size_t>(
      std::count_if(modes.begin(), modes.end(), [](const Mode& mode) { return !mode.planner.empty(); }));
  size_t turn = 0;  // of the compiled modes
  RunForms(graphs, modes, settings, &results);
  for (size_t m = 0; m < modes.size(); ++m) {
    if (!modes[m].form.empty()) continue;
    for (size_t g = 0; g < graphs.size(); ++g) {
      if (modes[m].planner.empty()) {
        results[m][g] = RunPasses(graphs[g], modes[m]);
        continue;
      }
      if (settings.quick && g % compiled_modes != turn) continue;
      if (modes[m].target == "dsa" && HasDoubles(graphs[g])) {
        results[m][g] = absl::UnimplementedError("the machine keeps f64 as f32, and the judge expects all digits");
        continue;
      }
      Jobs& jobs = by_target[modes[m].target];
      jobs.jobs.push_back(JobOf(graphs[g], modes[m]));
      jobs.places.emplace_back(m, g);
    }
    if (!modes[m].planner.empty()) ++turn;
  }
  conformance::RunOptions options;
  options.deadline_s = kDeadlineSeconds;
  options.isa = settings.isa;
  options.bundles = settings.bundles;
  options.repeats = true;
  if (settings.quick) options.compiler_flags = {"-O1"};
  for (auto& [target, jobs] : by_target) {
    options.target = target;
    const auto& places = jobs.places;
    const std::vector<Outputs> outputs = conformance::CompileAndRun(
        std::move(jobs.jobs), [&](int j) { return DrawInputs(graphs[places[j].second]); }, options);
    for (size_t j = 0; j < outputs.size(); ++j) results[places[j].first][places[j].second] = outputs[j];
  }
  return results;
}

}  // namespace fusion::fuzz
