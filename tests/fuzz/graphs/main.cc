// graph_fuzz: random graphs, or those of files, through every mode; each must agree with the interpreter.
#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "tests/fuzz/graphs/judge.h"
#include "tests/fuzz/graphs/modes.h"
#include "tests/fuzz/graphs/random_graph.h"
#include "tests/fuzz/graphs/shrink.h"
#include "tests/fuzz/graphs/values.h"

namespace fusion::fuzz {
namespace {

constexpr int kRuns = 6;            // in Monte Carlo arithmetic
constexpr int kRunsOnDoubt = 100;   // before a difference counts
constexpr double kCompared = 0.75;  // of all elements, at least
constexpr double kRefused = 0.02;   // of all random graphs, at most

struct Options {
  int64_t seed = 1, count = 100, batch = 50;
  std::vector<Mode> modes = AllModes();
  std::vector<std::string> files;
  bool print = false, shrink = true, quick = false;
  GraphLimits limits;
};

struct Case {
  std::string name;
  ecg::Graph graph;  // as its text
};

struct Failure {
  std::string mode;
  absl::Status why;
  // Where the graph computes its own indices, they may lie outside: bad input, which only constant folding notices.
  bool Refusal() const { return mode != "interpreter" && absl::IsInvalidArgument(why); }
};

// The failures of each graph; empty where all is well.
std::vector<std::vector<Failure>> Check(const std::vector<ecg::Graph>& graphs, const std::vector<Mode>& modes,
                                        bool quick, Coverage* coverage) {
  std::vector<ecg::Graph> real;
  for (const ecg::Graph& graph : graphs) real.push_back(Materialise(graph));
  std::vector<std::vector<Failure>> failures(graphs.size());
  std::vector<absl::StatusOr<Expectation>> expected;
  for (size_t g = 0; g < graphs.size(); ++g) {
    expected.push_back(Expect(real[g], DrawInputs(real[g]), kRuns));
    if (!expected[g].ok()) failures[g].push_back({"interpreter", expected[g].status()});
    const absl::StatusOr<ecg::Graph> parsed = ecg::Parse(ecg::Print(graphs[g]));
    if (!parsed.ok()) {
      failures[g].push_back({"text", parsed.status()});
    } else if (ecg::Print(*parsed) != ecg::Print(graphs[g])) {
      failures[g].push_back({"text", absl::InternalError("prints differently once parsed")});
    }
  }
  const auto results = RunGraphs(real, modes, quick);
  for (size_t m = 0; m < modes.size(); ++m) {
    for (size_t g = 0; g < graphs.size(); ++g) {
      if (!expected[g].ok() || !results[m][g].has_value()) continue;
      const Outputs& outputs = *results[m][g];
      if (outputs.ok() && modes[m].math == "fast" && !expected[g]->tame) continue;
      absl::Status status = outputs.ok() ? Agree(*expected[g], *outputs, coverage) : outputs.status();
      if (outputs.ok() && !status.ok()) {
        const absl::StatusOr<Expectation> again = Expect(real[g], DrawInputs(real[g]), kRunsOnDoubt);
        Coverage ignored;
        status = again.ok() ? Agree(*again, *outputs, &ignored) : again.status();
      }
      if (!status.ok()) failures[g].push_back({modes[m].name, status});
    }
  }
  return failures;
}

ecg::Graph ShrinkCase(const ecg::Graph& graph, const Failure& failure) {
  std::vector<Mode> modes;
  for (const Mode& mode : AllModes()) {
    if (mode.name == failure.mode) modes.push_back(mode);
  }
  return Shrink(graph, [&](const std::vector<ecg::Graph>& candidates) {
    Coverage ignored;
    std::vector<bool> fails;
    for (const std::vector<Failure>& found : Check(candidates, modes, /*quick=*/false, &ignored)) {
      // Another error of another kind is another matter.
      fails.push_back(std::any_of(found.begin(), found.end(), [&](const Failure& f) {
        return f.mode == failure.mode && f.why.code() == failure.why.code();
      }));
    }
    return fails;
  });
}

void Report(const Case& failed, const std::vector<Failure>& failures, bool shrink) {
  std::cout << "FAIL " << failed.name << "\n";
  for (const Failure& failure : failures) std::cout << "; " << failure.mode << ": " << failure.why.ToString() << "\n";
  std::cout << ecg::Print(shrink ? ShrinkCase(failed.graph, failures[0]) : failed.graph) << std::endl;
}

absl::StatusOr<std::vector<Case>> ReadCases(const std::vector<std::string>& files) {
  std::vector<Case> cases;
  for (const std::string& path : files) {
    std::ifstream file(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (text.empty()) return absl::NotFoundError(absl::StrCat("cannot read ", path));
    absl::StatusOr<ecg::Graph> graph = ecg::Parse(text);
    RETURN_IF_ERROR(Annotate(graph.status(), path));
    RETURN_IF_ERROR(Annotate(ecg::Verify(*graph), path));
    cases.push_back({path, *std::move(graph)});
  }
  return cases;
}

int Run(const Options& options) {
  auto given = ReadCases(options.files);
  if (!given.ok()) {
    std::cerr << given.status().message() << "\n";
    return 2;
  }
  const bool random = options.files.empty();
  const auto total = random ? options.count : static_cast<int64_t>(given->size());
  int64_t failed = 0, refused = 0, nodes = 0;
  Coverage coverage;
  std::map<std::string, int> operators;
  for (int64_t begin = 0; begin < total; begin += options.batch) {
    std::vector<Case> cases;
    for (int64_t k = begin; k < std::min(begin + options.batch, total); ++k) {
      if (random) {
        const int64_t seed = options.seed + k;
        cases.push_back({absl::StrCat("seed ", seed), RandomGraph(static_cast<uint64_t>(seed), options.limits)});
      } else {
        cases.push_back((*given)[static_cast<size_t>(k)]);
      }
    }
    std::vector<ecg::Graph> graphs;
    for (const Case& c : cases) {
      graphs.push_back(c.graph);
      nodes += static_cast<int64_t>(c.graph.nodes().size());
      CountOperators(c.graph, &operators);
      if (options.print) std::cout << "; " << c.name << "\n" << ecg::Print(c.graph) << "\n";
    }
    const std::vector<std::vector<Failure>> failures = Check(graphs, options.modes, options.quick, &coverage);
    for (size_t c = 0; c < cases.size(); ++c) {
      if (failures[c].empty()) continue;
      if (random && std::all_of(failures[c].begin(), failures[c].end(), [](const Failure& f) { return f.Refusal(); })) {
        ++refused;
        std::cout << "refused " << cases[c].name << ": " << failures[c][0].why.message() << "\n";
        continue;
      }
      ++failed;
      Report(cases[c], failures[c], options.shrink);
    }
  }
  std::vector<std::string> never;
  for (const auto& [name, count] : operators) {
    if (count == 0) never.push_back(name);
  }
  const auto elements = static_cast<double>(coverage.exact + coverage.rounded + coverage.uncertain);
  const double compared = elements > 0 ? 1 - static_cast<double>(coverage.uncertain) / elements : 1;
  if (random) {
    std::cout << "seeds " << options.seed << " to " << options.seed + total - 1 << ", " << nodes << " operators, "
              << operators.size() - never.size() << " of " << operators.size() << " kinds"
              << (never.empty() ? "" : absl::StrCat("; never: ", absl::StrJoin(never, " "))) << "\n";
  }
  std::cout << "elements: " << coverage.exact << " equal, " << coverage.rounded << " within rounding, "
            << coverage.uncertain << " that rounding decides\n"
            << total - failed - refused << " passed, " << failed << " failed, " << refused << " refused" << std::endl;
  if (static_cast<double>(refused) > std::max(1.0, kRefused * static_cast<double>(total))) {
    std::cout << "too many graphs were refused as bad input" << std::endl;
    return 1;
  }
  if (compared < kCompared) {
    std::cout << "only " << 100 * compared << "% of all elements were compared" << std::endl;
    return 1;
  }
  return failed == 0 ? 0 : 1;
}

int Usage() {
  std::cerr << "usage: graph_fuzz [--seed N] [--count N] [--batch N] [--max-nodes N] [--mode MODE,...] [--quick] "
               "[--no-shrink] "
               "[--print]\n"
               "                  [FILE.ecg...]\n"
               "  modes: interpreter";
  for (const Mode& mode : AllModes()) std::cerr << ", " << mode.name;
  std::cerr << "; all of them when none is given\n";
  return 2;
}

int Main(int argc, char** argv) {
  Options options;
  int64_t max_nodes = options.limits.max_nodes;
  const std::map<std::string, int64_t*> numbers = {
      {"--seed", &options.seed}, {"--count", &options.count}, {"--batch", &options.batch}, {"--max-nodes", &max_nodes}};
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const auto number = numbers.find(arg);
    if (arg == "--print") {
      options.print = true;
    } else if (arg == "--quick") {
      options.quick = true;
    } else if (arg == "--no-shrink") {
      options.shrink = false;
    } else if (number != numbers.end() && i + 1 < argc) {
      if (!absl::SimpleAtoi(argv[++i], number->second) || *number->second < 1) return Usage();
    } else if (arg == "--mode" && i + 1 < argc) {
      const std::string wanted = absl::StrCat(",", argv[++i], ",");
      options.modes.clear();
      for (const Mode& mode : AllModes()) {
        if (wanted.find(absl::StrCat(",", mode.name, ",")) != std::string::npos) options.modes.push_back(mode);
      }
      if (options.modes.empty() && wanted != ",interpreter,") return Usage();
    } else if (arg.empty() || arg[0] == '-') {
      return Usage();
    } else {
      options.files.push_back(arg);
    }
  }
  options.limits.max_nodes = static_cast<int>(std::max<int64_t>(max_nodes, options.limits.min_nodes));
  return Run(options);
}

}  // namespace
}  // namespace fusion::fuzz

int main(int argc, char** argv) { return fusion::fuzz::Main(argc, argv); }
