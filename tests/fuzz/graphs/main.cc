// graph_fuzz: runs random graphs and models, or those in files, through every mode; each must agree with the
// interpreter.
#include <google/protobuf/text_format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ecg/text.h"
#include "runtime/base/status_macros.h"
#include "runtime/devices/cpu/worker_pool.h"
#include "tests/fuzz/graphs/check.h"
#include "tests/fuzz/graphs/model_run.h"
#include "tests/fuzz/graphs/random_experts.h"
#include "tests/fuzz/graphs/random_graph.h"
#include "tests/fuzz/graphs/random_model.h"
#include "tests/fuzz/graphs/random_recurrence.h"
#include "tests/fuzz/graphs/random_windows.h"
#include "tests/fuzz/graphs/shrink.h"
#include "tests/fuzz/graphs/summary.h"

namespace fusion::fuzz {
namespace {

struct Options {
  int64_t seed = 1, count = 100, batch = 50;
  std::vector<Mode> modes = AllModes();
  std::vector<std::string> files;
  std::string kind;            // "graphs", "models", "windows", "experts", "recurrences"; empty: all of them
  std::string target = "cpu";  // of the modes that compile for the CPU
  bool print = false, shrink = true;
  RunSettings settings;
  GraphLimits limits;
};

std::string Text(const Case& c) {
  if (!c.model) return ecg::Print(c.graph);
  std::string text;
  google::protobuf::TextFormat::Printer printer;
  printer.SetUseShortRepeatedPrimitives(true);
  printer.PrintToString(*c.model, &text);
  return text;
}

bool FailsAlike(const Checked& checked, const Failure& failure) {
  return std::any_of(checked.failures.begin(), checked.failures.end(), [&](const Failure& f) {
    // A smaller case counts only if it fails in the same mode with the same code; another error is another defect.
    return f.mode == failure.mode && f.why.code() == failure.why.code();
  });
}

Case ShrinkCase(const Case& failed, const Failure& failure, const Options& options) {
  RunSettings settings = options.settings;
  settings.quick = false;
  std::vector<Mode> modes;
  for (const Mode& mode : options.modes) {
    if (mode.name == failure.mode) modes.push_back(mode);
  }
  const auto fail = [&](const std::vector<Case>& candidates) {
    std::vector<bool> fails;
    for (const Checked& checked : Check(candidates, modes, settings)) fails.push_back(FailsAlike(checked, failure));
    return fails;
  };
  if (failed.model) return ShrinkModel(failed, fail);
  return {failed.name,
          Shrink(failed.graph,
                 [&](const std::vector<ecg::Graph>& graphs) {
                   std::vector<Case> cases;
                   for (const ecg::Graph& graph : graphs) cases.push_back({"", graph, {}});
                   return fail(cases);
                 }),
          {}};
}

void Report(const Case& failed, const std::vector<Failure>& failures, const Options& options) {
  std::cout << "FAIL " << failed.name << "\n";
  for (const Failure& failure : failures) std::cout << "; " << failure.mode << ": " << failure.why.ToString() << "\n";
  if (absl::StartsWith(failed.name, "seed ")) {
    std::cout << "; again: graph_fuzz --seed " << failed.name.substr(5) << " --count 1"
              << (options.kind.empty() ? "" : absl::StrCat(" --kind ", options.kind))
              << (options.target == "cpu" ? "" : absl::StrCat(" --target ", options.target))
              << (options.settings.isa.empty() ? "" : absl::StrCat(" --isa ", options.settings.isa))
              << (options.limits.max_nodes == GraphLimits().max_nodes
                      ? ""
                      : absl::StrCat(" --max-nodes ", options.limits.max_nodes))
              << "\n";
  }
  std::cout << Text(options.shrink ? ShrinkCase(failed, failures[0], options) : failed) << std::endl;
}

absl::StatusOr<Case> ReadCase(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (text.empty()) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  if (!absl::EndsWith(path, ".ecg")) {
    onnx::ModelProto model;
    if (!google::protobuf::TextFormat::ParseFromString(text, &model)) {
      return absl::InvalidArgumentError(absl::StrCat(path, " is no text of a model"));
    }
    absl::StatusOr<ecg::Graph> graph = ImportModel(model);
    RETURN_IF_ERROR(Annotate(graph.status(), path));
    return Case{path, *std::move(graph), std::move(model)};
  }
  absl::StatusOr<ecg::Graph> graph = ecg::Parse(text);
  RETURN_IF_ERROR(Annotate(graph.status(), path));
  RETURN_IF_ERROR(Annotate(ecg::Verify(*graph), path));
  return Case{path, *std::move(graph), {}};
}

// Draws a model for every fourth seed, a chain of windows for every eighth, experts and recurrences for every 32nd, and
// a graph with extents beyond the caches and beyond one task for every 32nd.
Case DrawCase(int64_t seed, const Options& options, Summary* summary) {
  const auto number = static_cast<uint64_t>(seed);
  const std::string name = absl::StrCat("seed ", seed);
  if (options.kind.empty() ? seed % 4 == 3 : options.kind == "models") {
    DrawnModel drawn = RandomModel(number, options.limits);
    summary->LeftOut(drawn.left_out);
    return {name, std::move(drawn.graph), std::move(drawn.model)};
  }
  if (options.kind.empty() ? seed % 8 == 5 : options.kind == "windows") return {name, RandomWindows(number), {}};
  if (options.kind.empty() ? seed % 32 == 10 : options.kind == "experts") return {name, RandomExperts(number), {}};
  if (options.kind.empty() ? seed % 32 == 26 : options.kind == "recurrences") {
    return {name, RandomRecurrence(number), {}};
  }
  GraphLimits limits = options.limits;
  if (seed % 32 == 16) limits = LargeLimits(limits);
  return {name, RandomGraph(number, limits), {}};
}

void CountAll(const Case& c, std::map<std::string, int>* operators) {
  c.model ? CountOperators(c.model->graph(), operators) : CountOperators(c.graph, operators);
}

int Run(const Options& options) {
  std::vector<Case> given;
  for (const std::string& path : options.files) {
    absl::StatusOr<Case> read = ReadCase(path);
    if (!read.ok()) {
      std::cerr << read.status().message() << "\n";
      return 2;
    }
    given.push_back(*std::move(read));
  }
  const bool random = options.files.empty();
  const auto total = random ? options.count : static_cast<int64_t>(given.size());
  int64_t nodes = 0;
  Summary summary;
  std::map<std::string, int> operators;
  for (int64_t begin = 0; begin < total; begin += options.batch) {
    std::vector<Case> cases;
    for (int64_t k = begin; k < std::min(begin + options.batch, total); ++k) {
      cases.push_back(random ? DrawCase(options.seed + k, options, &summary) : given[static_cast<size_t>(k)]);
      nodes += static_cast<int64_t>(cases.back().graph.nodes().size());
      CountAll(cases.back(), &operators);
      if (options.print) std::cout << "; " << cases.back().name << "\n" << Text(cases.back()) << "\n";
    }
    const std::vector<Checked> checked = Check(cases, options.modes, options.settings);
    for (size_t c = 0; c < cases.size(); ++c) {
      const std::vector<Failure>& failures = checked[c].failures;
      summary.OneKernel(checked[c].one_kernel, checked[c].not_one_kernel);
      const bool nowhere = failures.empty() && !checked[c].refused_by_target.empty() && !checked[c].judged;
      summary.RefusedByTarget(checked[c].refused_by_target, /*judged=*/!nowhere);
      if (failures.empty()) {
        if (!nowhere) summary.Passed(checked[c].coverage);
      } else if (random &&
                 std::all_of(failures.begin(), failures.end(), [](const Failure& f) { return f.Refusal(); })) {
        summary.Refused(failures[0].why);
        std::cout << "refused " << cases[c].name << ": " << failures[0].why.message() << "\n";
      } else {
        summary.Failed();
        Report(cases[c], failures, options);
      }
    }
  }
  std::vector<std::string> never;
  for (const auto& [name, count] : operators) {
    if (count == 0) never.push_back(name);
  }
  if (random) {
    std::cout << "seeds " << options.seed << " to " << options.seed + total - 1 << ", " << nodes << " operators, "
              << operators.size() - never.size() << " of " << operators.size() << " kinds"
              << (never.empty() ? "" : absl::StrCat("; never: ", absl::StrJoin(never, " "))) << "\n";
  }
  std::cout << summary.Text() << std::flush;
  const std::string shortcoming = random ? summary.Shortcoming() : "";
  if (!shortcoming.empty()) std::cout << shortcoming << std::endl;
  return summary.failed() == 0 && shortcoming.empty() ? 0 : 1;
}

// "interpreter" stands for no compiled mode: the reference runs alone.
std::vector<std::string> ModeNames() {
  std::vector<std::string> names = {"interpreter"};
  for (const Mode& mode : AllModes()) names.push_back(mode.name);
  return names;
}

void AddFlags(CLI::App* app, Options* options, std::vector<std::string>* modes) {
  app->add_option("--seed", options->seed, "the first graph's seed")->check(CLI::PositiveNumber)->capture_default_str();
  app->add_option("--count", options->count, "graphs to draw")->check(CLI::PositiveNumber)->capture_default_str();
  app->add_option("--batch", options->batch, "graphs to compile at once")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app->add_option("--max-nodes", options->limits.max_nodes, "operators of the largest graph")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app->add_option("--kind", options->kind, "draw only these (default: all)")
      ->check(CLI::IsMember({"graphs", "models", "windows", "experts", "recurrences"}));
  app->add_option("--mode", *modes, "ways to run a graph, separated by commas (default: all)")
      ->delimiter(',')
      ->allow_extra_args(false)  // what follows is a file
      ->check(CLI::IsMember(ModeNames()));
  app->add_option("--target", options->target, "compile for this instead of the CPU: cuda:sm_90, opencl, cuda-shim");
  app->add_option("--bundles", options->settings.bundles,
                  "keep bundles below this folder; where they are there, run them and compile nothing");
  app->add_option("--isa", options->settings.isa, "instruction set to compile for (default: this machine's)");
  app->add_flag("--quick", options->settings.quick,
                "one compiled mode for each graph, in turn, and little optimisation");
  app->add_flag("!--no-shrink", options->shrink, "print a graph that fails as it is");
  app->add_flag("--print", options->print, "print every graph");
  app->add_option("files", options->files,
                  "graphs (.ecg) or models (text of a ModelProto) to run instead of drawn ones");
}

int Main(int argc, char** argv) {
  FillNewScratch(static_cast<char>(0xfe));  // huge numbers, and places far away
  CLI::App app(
      "graph_fuzz: runs random graphs and models, or those in files, through every mode; each must agree with the "
      "interpreter");
  Options options;
  std::vector<std::string> modes;
  AddFlags(&app, &options, &modes);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (!modes.empty()) {
    options.modes.clear();
    for (const Mode& mode : AllModes()) {
      if (std::count(modes.begin(), modes.end(), mode.name) > 0) options.modes.push_back(mode);
    }
  }
  for (Mode& mode : options.modes) {
    if (!mode.planner.empty() && mode.target == "cpu") mode.target = options.target;
  }
  options.limits.max_nodes = std::max(options.limits.max_nodes, options.limits.min_nodes);
  return Run(options);
}

}  // namespace
}  // namespace fusion::fuzz

int main(int argc, char** argv) { return fusion::fuzz::Main(argc, argv); }
