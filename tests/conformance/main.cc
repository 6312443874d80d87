// onnx_conformance: runs a suite of ONNX's backend test data, or another folder of such tests, through one mode. It
// fails if a test fails that known_gaps.txt does not list, or if a listed test passes. The last line is `N passed, N
// failed, N skipped`; the known gaps are skipped.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "compiler/onnx/limits.h"
#include "runtime/devices/cpu/worker_pool.h"
#include "tests/conformance/modes.h"
#include "tests/conformance/tolerance.h"

namespace fusion::conformance {
namespace {

constexpr char kTestData[] = "/usr/share/libonnx-testdata/data/";

struct Options {
  std::string suite = "node";
  std::string root;  // empty: the suite's folder
  std::string mode = "interpreter";
  std::string gaps;  // empty: known_gaps.txt for a suite; a folder has none, and its ineligible tests are not run
  std::string filter;
  size_t every = 1, first = 0;  // runs only every n-th test, in the order of names, from this one on
  bool verbose = false;
  ModeOptions mode_options;
};

constexpr size_t kBatch = 256;  // bounds memory; compiled modes build this many models per compiler call

// Reads lines `test reason`, `mode:test reason` and `target:test reason`.
std::map<std::string, std::string> ReadGaps(const std::string& path, const std::string& mode,
                                            const std::string& target) {
  std::map<std::string, std::string> gaps;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string name, reason;
    words >> name;
    std::getline(words >> std::ws, reason);
    const size_t colon = name.find(':');
    const std::string of = colon == std::string::npos ? "" : name.substr(0, colon);
    if (of.empty() || of == mode || of == target) gaps[name.substr(colon + 1)] = reason;
  }
  return gaps;
}

absl::Status Judge(const TestCase& test, const absl::StatusOr<Outputs>& outputs) {
  if (!outputs.ok()) return outputs.status();
  if (outputs->size() != test.expected.size()) return absl::InternalError("wrong number of outputs");
  for (size_t i = 0; i < outputs->size(); ++i) {
    absl::Status status = Compare(test.expected[i].tensor, (*outputs)[i]);
    if (!status.ok())
      return absl::FailedPreconditionError("output " + test.expected[i].name + ": " + std::string(status.message()));
  }
  return absl::OkStatus();
}

class Tally {
 public:
  Tally(std::map<std::string, std::string> gaps, bool verbose) : gaps_(std::move(gaps)), verbose_(verbose) {}

  void Add(const std::string& name, const absl::Status& status) {
    const bool listed = gaps_.count(name) != 0;
    if (status.ok() && !listed) {
      ++passed_;
    } else if (!status.ok() && listed) {
      ++skipped_;
    } else {
      ++failed_;
      std::cout << "FAIL " << name << ": " << (listed ? "passes, but known_gaps.txt lists it" : status.ToString())
                << "\n";
    }
    if (verbose_) std::cout << (status.ok() ? "ok   " : "     ") << name << std::endl;
  }

  int Finish() const {
    std::cout << passed_ << " passed, " << failed_ << " failed, " << skipped_ << " skipped" << std::endl;
    return failed_ == 0 && passed_ > 0 ? 0 : 1;
  }

 private:
  std::map<std::string, std::string> gaps_;
  bool verbose_;
  int passed_ = 0, failed_ = 0, skipped_ = 0;
};

int Run(const Options& options) {
  const std::vector<Mode> modes = AllModes();
  const auto mode = std::find_if(modes.begin(), modes.end(), [&](const Mode& m) { return m.name == options.mode; });
  if (mode == modes.end()) {
    std::cerr << "unknown mode '" << options.mode << "'; one of:";
    for (const Mode& m : modes) std::cerr << " " << m.name;
    std::cerr << "\n";
    return 2;
  }
  const std::string root = options.root.empty() ? kTestData + options.suite : options.root;
  const bool by_eligibility = !options.root.empty();
  std::map<std::string, int> ineligible;  // reason → tests
  std::vector<std::string> folders;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(root, error)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_directory() || name.find(options.filter) == std::string::npos) continue;
    const std::string reason = by_eligibility ? WhyIneligible(entry.path().string(), onnx_import::kMaxOpset) : "";
    if (reason.empty()) {
      folders.push_back(entry.path().string());
    } else {
      ++ineligible[reason];
      if (options.verbose) std::cout << "     " << name << " is not run: " << reason << "\n";
    }
  }
  if (folders.empty()) {
    std::cerr << "no tests in " << root << " (Debian package libonnx-testdata)\n";
    return 2;
  }
  std::sort(folders.begin(), folders.end());
  std::vector<std::string> some;
  for (size_t i = options.first; i < folders.size(); i += options.every) some.push_back(folders[i]);
  folders = std::move(some);
  for (const auto& [reason, tests] : ineligible) std::cout << tests << " not run: " << reason << "\n";
  const std::string gaps = options.gaps.empty() && !by_eligibility ? FUSION_KNOWN_GAPS : options.gaps;
  Tally tally(ReadGaps(gaps, options.mode, options.mode_options.target), options.verbose);
  std::vector<TestCase> batch;
  for (size_t i = 0; i < folders.size(); ++i) {
    auto test = ReadTestCase(folders[i]);
    if (test.ok()) {
      batch.push_back(*std::move(test));
    } else {
      tally.Add(std::filesystem::path(folders[i]).filename().string(), test.status());
    }
    if (batch.size() < kBatch && i + 1 < folders.size()) continue;
    const auto results = mode->run(batch, options.mode_options);
    for (size_t k = 0; k < batch.size(); ++k) tally.Add(batch[k].name, Judge(batch[k], results[k]));
    batch.clear();
  }
  return tally.Finish();
}

int Main(int argc, char** argv) {
  FillNewScratch(static_cast<char>(0xfe));  // huge numbers, and places far away
  CLI::App app("onnx_conformance: runs ONNX's node tests in one mode and compares the results with the known gaps");
  Options options;
  CLI::Option* const root = app.add_option("--root", options.root, "folder of tests");
  app.add_option("--suite", options.suite, "suite of Debian's libonnx-testdata")->excludes(root);
  app.add_option("--mode", options.mode, "how to run a test");
  app.add_option("--target", options.mode_options.target, "device to compile for");
  app.add_option("--bundles", options.mode_options.bundles,
                 "keep bundles below this folder; where they are there, run them and compile nothing");
  app.add_option("--group", options.mode_options.group, "tests to compile at once")->check(CLI::PositiveNumber);
  app.add_option("--filter", options.filter, "run only tests whose name contains this");
  app.add_option("--every", options.every, "run only every N-th test")->check(CLI::PositiveNumber);
  app.add_option("--first", options.first, "number of the first test that --every runs, from 0")->needs("--every");
  app.add_option("--gaps", options.gaps, "file that lists the tests that may fail");
  app.add_flag("--verbose", options.verbose, "print each test");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return Run(options);
}

}  // namespace
}  // namespace fusion::conformance

int main(int argc, char** argv) { return fusion::conformance::Main(argc, argv); }
