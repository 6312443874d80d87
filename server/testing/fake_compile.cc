#include "server/testing/fake_compile.h"

#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

class FakeBundler : public MeasurementBundler {
 public:
  absl::StatusOr<std::vector<std::string>> MakeBundles(absl::Span<const std::string> keys) override {
    std::vector<std::string> bundles;
    for (const std::string& key : keys) bundles.push_back(absl::StrCat("bundle of ", key));
    return bundles;
  }
};

class FakePlanBundler : public PlanBundler {
 public:
  absl::Status WriteBundle(absl::Span<const size_t> plans, const std::string& path) override {
    std::ofstream(path) << "bundle of the reference and " << plans.size() << " plans";
    return absl::OkStatus();
  }
};

}  // namespace

absl::StatusOr<CompileAccount> FakeCompile(const ModelFiles& files, const CompileOptions& options,
                                           const CompileContext& context, const std::string& bundle_path) {
  std::ifstream model(files.model_path);
  std::string line, word;
  std::getline(model, line);
  std::istringstream command(line);
  command >> word;
  CompileAccount account;
  context.progress({"import", 1, 1, ""});
  if (word == "fail") return absl::InvalidArgumentError(line.substr(5));
  while (word == "slow") {
    if (context.cancelled()) return absl::CancelledError("cancelled");
    absl::SleepFor(absl::Milliseconds(5));
  }
  std::string report = absl::StrCat("model ", line, "\nexternal ", files.external.size(), "\n");
  if (options.planner == "none") absl::StrAppend(&report, "unfused ", options.math, " ", options.tune, "\n");
  for (int64_t count; word == "ask" || word == "compare" || word == "plans" || word == "build"; command >> word) {
    if (!(command >> count)) break;
    if (word == "plans") {
      const auto question = [&](const std::string& name) {
        return PlanQuestion{Sha256Hex(name + context.device->Fingerprint()), name, 1e6};
      };
      std::vector<PlanQuestion> plans;
      for (int64_t i = 0; i < count; ++i) plans.push_back(question(absl::StrCat("plan ", i)));
      FakePlanBundler bundler;
      ASSIGN_OR_RETURN(const PlanAnswers answers, context.plans->Compare(question("reference"), plans, bundler));
      for (const auto& answer : answers.comparisons) {
        absl::StrAppend(&report, "plan ", answer.has_value() ? absl::StrCat(answer->ratio) : answers.not_measured,
                        "\n");
      }
      account.not_compared = answers.not_measured;
      account.alternatives.push_back({"", "offline", 2, 5e6, 1000, 1, 1, 1, 20, true});
    } else if (word != "build") {
      std::vector<LatencyQuestion> questions;
      for (int64_t i = 0; i < count; ++i) {
        questions.push_back({Sha256Hex(absl::StrCat("question ", i, context.device->Fingerprint())),
                             absl::StrCat("block ", i), 1e6, 1e6, word == "compare" ? "group" : ""});
      }
      FakeBundler bundler;
      ASSIGN_OR_RETURN(auto answers, context.oracle->Latency(questions, bundler));
      for (const LatencyAnswer& answer : answers) {
        ++account.questions;
        ++(answer.source == LatencySource::kDatabase   ? account.from_database
           : answer.source == LatencySource::kMeasured ? account.measured
                                                       : account.from_model);
        absl::StrAppend(&report, LatencySourceName(answer.source), " ", answer.latency_ns, "\n");
      }
    } else {
      std::vector<BuildUnit> units;
      for (int64_t i = 0; i < count; ++i) {
        units.push_back({options.target, context.device->march, absl::StrCat("int k_", i, ";")});
      }
      ASSIGN_OR_RETURN(auto binaries, context.toolchain->Build(units));
      for (const std::string& binary : binaries) absl::StrAppend(&report, "binary ", binary, "\n");
      account.kernels = count;
    }
  }
  account.estimate_ns = options.planner == "none" ? 2000 : 500;
  account.stages = {{"import", 0.001}, {"write", 0.001}};
  std::ofstream(bundle_path) << report;
  return account;
}

absl::StatusOr<PlanReport> FakePlan(const ModelFiles& files, const CompileOptions&, const CompileContext&) {
  std::ifstream model(files.model_path);
  PlanReport report;
  std::getline(model, report.text);
  return report;
}

absl::Status FakeCheckRule(const std::string& id) {
  return id == "factor" || id == "other" ? absl::OkStatus() : absl::NotFoundError(absl::StrCat("no rule '", id, "'"));
}

}  // namespace fusion
