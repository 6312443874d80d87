#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cli/exit_codes.h"
#include "client/cli/words.h"
#include "client/verbs/alternatives.h"
#include "client/verbs/checks.h"
#include "client/verbs/submission.h"
#include "client/verbs/verbs.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/steady_clock.h"
#include "runtime/bundle/target_path.h"

namespace fusion {
namespace {

using Json = nlohmann::ordered_json;

// The JSON for scripts; its names do not change.
Json Report(const Compilation& compilation, const std::string& model, const std::string& bundle_path, double seconds) {
  const v1::Account& account = compilation.last.account();
  const bool stored = compilation.submitted.from_store();
  Json stages = Json::object();
  for (const v1::StageTime& stage : account.stages()) stages[stage.stage()] = stage.seconds();
  Json report = {
      {"job", compilation.submitted.job_id()},
      {"key", compilation.submitted.key()},
      {"trace", compilation.submitted.trace_id()},
      {"model", model},
      {"from_store", stored},
      {"joined", compilation.submitted.joined()},
      {"nodes", account.nodes_model()},
      {"nodes_simplified", account.nodes_simplified()},
      {"nodes_rewritten", account.nodes_rewritten()},
      {"kernels", account.kernels()},
      {"kernels_distinct", account.kernels_distinct()},
      {"decisions",
       {{"fused_by_rule", account.fused_by_rule()},
        {"fused_by_latency", account.fused_by_latency()},
        {"kept_by_latency", account.kept_by_latency()},
        {"kept_by_rule", account.kept_by_rule()}}},
      {"questions", account.questions()},
      {"trials", account.trials()},
      {"tuned", account.tuned()},
      {"measurement_tasks", stored ? 0 : account.measured()},
      {"from_database", account.from_database()},
      {"from_model", account.from_model()},
      {"intermediate_bytes",
       {{"before", account.intermediate_bytes_before()}, {"after", account.intermediate_bytes_after()}}},
      {"arena_bytes", account.arena_bytes()},
      {"weight_bytes", account.weight_bytes()},
      {"model_weight_bytes", account.model_weight_bytes()},
      {"weight_causes", std::map<std::string, int64_t>(account.weight_causes().begin(), account.weight_causes().end())},
      {"size_time_ratio", account.size_time_ratio()},
      {"flops", account.flops()},
      {"stages", stages},
      {"seconds", seconds},
      {"bundle",
       {{"path", bundle_path},
        {"size_bytes", compilation.last.bundle().size_bytes()},
        {"sha256", compilation.last.bundle().digest()}}}};
  if (account.alternatives_size() > 0) report["alternatives"] = AlternativesToJson(account);
  if (!account.not_compared().empty()) report["not_compared"] = account.not_compared();
  AddChecks(compilation.last.checks(), &report);
  for (const v1::SpecialisationAccount& one : account.specialisations()) {
    report["specialisations"].push_back(
        {{"name", one.name()}, {"kernels", one.kernels()}, {"exact_only", one.exact_only()}});
  }
  return report;
}

class SubmitVerb : public Verb {
 public:
  std::string name() const override { return "submit"; }
  std::string help() const override { return "compile an ONNX model on the server and fetch the bundle"; }
  std::vector<Option> Options() override {
    std::vector<Option> options = {
        {"MODEL", "the .onnx file", &model_, true},
        {"-o,--output",
         "where the bundle goes (default: MODEL's name with .fusion); of several targets: NAME.TARGET.fusion",
         &output_},
        {"--json", "write a report for scripts to this file (-: stdout)", &json_},
        {"--no-measure", "do not time the whole model beside its unfused form when it is compiled", &no_measure_},
        {"--no-verify", "do not compare it with its strict reference when it is compiled", &no_verify_},
        {"--async", "fetch an unfused bundle as soon as it is there; the job goes on and makes the tuned one", &async_},
        {"--detach", "print the job's name (of several targets: each with its target) and return at once", &detach_}};
    AddPlanFlags(&flags_, &options);
    AddJobFlags(&flags_, &options);
    return options;
  }

  int Run(const CommonOptions& common) override {
    start_ = SteadyNow();
    if (output_.empty()) output_ = std::filesystem::path(model_).stem().string() + ".fusion";
    const absl::Status writable = CheckOutputPath(output_);
    if (!detach_ && !writable.ok()) return Fail(writable);
    if (detach_ && async_) return Fail(UsageError("--async and --detach: --detach fetches no bundle; leave one out"));
    const auto targets = TargetsOf(flags_);
    if (!targets.ok()) return Fail(targets.status());
    Progress progress(common.progress);
    auto connection = Connection::Open(common.endpoint);
    CompilationFlags flags = flags_;
    flags.target = targets->front();
    auto request = PrepareSubmission(*connection, model_, flags, progress);
    if (!request.ok()) return Fail(request.status());
    request->set_measure(!no_measure_);
    request->set_verify(!no_verify_);
    request->set_early_bundle(async_);
    if (targets->size() > 1) return RunAll(*connection, *targets, *request, progress);
    if (detach_) {
      auto submitted = SubmitPatiently(*connection, *request, progress);
      if (!submitted.ok()) return Fail(submitted.status());
      std::printf("%s\n", submitted->job_id().c_str());
      return kExitOk;
    }
    auto submitted = SubmitJob(*connection, *request, progress);
    if (!submitted.ok()) return Fail(submitted.status());
    const Outcome outcome = Collect(*connection, *submitted, *request, output_, progress);
    return outcome.status.ok() ? Finish(outcome.report, progress, outcome.verdict) : FailOf(outcome, "");
  }

 private:
  struct Outcome {
    absl::Status status;
    bool local = false;  // the status concerns a file of this machine
    Json report = {};
    ExitCode verdict = kExitOk;  // of what workers found in the bundle
  };

  static int FailOf(const Outcome& outcome, const std::string& context) {
    const absl::Status status = context.empty() ? outcome.status : Annotate(outcome.status, context);
    return outcome.local ? FailLocal(status) : Fail(status);
  }

  // Follows one job to its end and fetches its bundle.
  Outcome Collect(Connection& connection, const v1::SubmitResponse& submitted, const v1::SubmitRequest& request,
                  const std::string& path, Progress& progress) {
    Compilation compilation;
    compilation.submitted = submitted;
    auto last = async_ ? FollowToFirstBundle(connection, submitted.job_id(), progress)
                       : FollowJob(connection, submitted.job_id(), 0, progress);
    if (!last.ok()) return {last.status()};
    compilation.last = *std::move(last);
    if (!IsFinal(compilation.last.state())) return CollectEarly(connection, compilation, request, path, progress);
    if (submitted.joined() && LacksChecks(compilation.last.checks(), request)) {
      // The job that this one joined was asked for less. The bundle is in the store by now, and only checks are
      // missing.
      auto more = SubmitJob(connection, request, progress);
      if (!more.ok()) return {more.status()};
      last = FollowJob(connection, more->job_id(), 0, progress);
      if (!last.ok()) return {last.status()};
      *compilation.last.mutable_checks() = last->checks();
    }
    const v1::BundleInfo& bundle = compilation.last.bundle();
    const absl::Status fetched = FetchBundle(connection, submitted.job_id(), bundle, false, path, progress);
    if (!fetched.ok()) return {fetched, /*local=*/true};
    PrintAccount(compilation.last.account(), progress);
    PrintChecks(compilation.last.checks(), progress);
    if (json_ != "-") PrintFetched(path, bundle);
    return {absl::OkStatus(), false,
            Report(compilation, request.model_name(), path, absl::ToDoubleSeconds(SteadyNow() - start_)),
            JudgeChecks(compilation.last.checks())};
  }

  // Fetches the early bundle of a job that goes on.
  Outcome CollectEarly(Connection& connection, const Compilation& compilation, const v1::SubmitRequest& request,
                       const std::string& path, Progress& progress) {
    const v1::BundleInfo& bundle = compilation.last.early_bundle();
    const std::string& job = compilation.submitted.job_id();
    const absl::Status fetched = FetchBundle(connection, job, bundle, true, path, progress);
    if (!fetched.ok()) return {fetched, /*local=*/true};
    progress.Line("next", absl::StrCat("`fusionctl job watch ", job, " -o ", path,
                                       "` fetches the tuned bundle when it is ready, `fusionctl bundle get ", job,
                                       " --best` the best that is there"));
    if (json_ != "-") PrintFetched(path, bundle, "early: unfused");
    Json report = {
        {"job", job},
        {"key", compilation.submitted.key()},
        {"model", request.model_name()},
        {"early", true},
        {"kernels", compilation.last.account().kernels()},
        {"seconds", absl::ToDoubleSeconds(SteadyNow() - start_)},
        {"bundle",
         {{"path", path}, {"size_bytes", bundle.size_bytes()}, {"sha256", bundle.digest()}, {"key", bundle.key()}}}};
    return {absl::OkStatus(), false, std::move(report)};
  }

  static bool LacksChecks(const v1::Checks& checks, const v1::SubmitRequest& request) {
    return (request.measure() && !checks.has_measurement()) || (request.verify() && !checks.has_verification());
  }

  int Finish(const Json& report, Progress& progress, int code) {
    if (!json_.empty()) {
      const std::string text = report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
      if (json_ == "-") {
        std::fputs(text.c_str(), stdout);
      } else if (absl::Status written = WriteFileAtomically(json_, text); !written.ok()) {
        return FailLocal(written);
      }
    }
    progress.Headline(absl::StrCat("done in ", SecondsInWords(absl::ToDoubleSeconds(SteadyNow() - start_))));
    return code;
  }

  // Runs one job for each target, all at the same time. A failed job does not affect the others. The exit code is that
  // of the first one that failed.
  int RunAll(Connection& connection, const std::vector<std::string>& targets, v1::SubmitRequest request,
             Progress& progress) {
    std::vector<absl::StatusOr<v1::SubmitResponse>> jobs;
    for (const std::string& target : targets) {
      request.mutable_options()->set_target(target);
      jobs.push_back(SubmitJob(connection, request, progress, target + "  "));
    }
    int code = kExitOk;
    Json reports = Json::object();
    for (size_t t = 0; t < targets.size(); ++t) {
      if (detach_ && jobs[t].ok()) {
        std::printf("%s  %s\n", jobs[t]->job_id().c_str(), targets[t].c_str());
        continue;
      }
      Outcome outcome{jobs[t].status()};
      if (jobs[t].ok()) {
        progress.Line("target", targets[t]);
        request.mutable_options()->set_target(targets[t]);
        outcome = Collect(connection, *jobs[t], request, PathForTarget(output_, targets[t]), progress);
        if (code == kExitOk) code = outcome.verdict;
      }
      if (!outcome.status.ok()) {
        const int failed = FailOf(outcome, targets[t]);
        if (code == kExitOk) code = failed;
        outcome.report = {{"error", std::string(outcome.status.message())}};
      }
      reports[targets[t]] = std::move(outcome.report);
    }
    return detach_ ? code : Finish({{"targets", reports}}, progress, code);
  }

  absl::Time start_;
  std::string model_, output_, json_;
  bool async_ = false, detach_ = false, no_measure_ = false, no_verify_ = false;
  CompilationFlags flags_;
};

}  // namespace

std::unique_ptr<Verb> MakeSubmitVerb() { return std::make_unique<SubmitVerb>(); }

}  // namespace fusion
