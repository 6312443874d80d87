#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/exit_codes.h"
#include "client/cli/words.h"
#include "client/verbs/submission.h"
#include "client/verbs/verbs.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

using Json = nlohmann::ordered_json;

// What scripts read; names are kept stable.
std::string Report(const Compilation& compilation, const std::string& model, const std::string& bundle_path,
                   double seconds) {
  const v1::Account& account = compilation.last.account();
  const bool stored = compilation.submitted.from_store();
  Json stages = Json::object();
  for (const v1::StageTime& stage : account.stages()) stages[stage.stage()] = stage.seconds();
  Json report = {{"job", compilation.submitted.job_id()},
                 {"key", compilation.submitted.key()},
                 {"model", model},
                 {"from_store", stored},
                 {"joined", compilation.submitted.joined()},
                 {"nodes", account.nodes_model()},
                 {"nodes_simplified", account.nodes_simplified()},
                 {"nodes_rewritten", account.nodes_rewritten()},
                 {"kernels", account.kernels()},
                 {"kernels_distinct", account.kernels_distinct()},
                 {"blocks",
                  {{"green", account.green()},
                   {"yellow", account.yellow_fused() + account.yellow_kept()},
                   {"yellow_fused", account.yellow_fused()},
                   {"yellow_kept", account.yellow_kept()},
                   {"red", account.red()}}},
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
                 {"flops", account.flops()},
                 {"stages", stages},
                 {"seconds", seconds},
                 {"bundle",
                  {{"path", bundle_path},
                   {"size_bytes", compilation.last.bundle().size_bytes()},
                   {"sha256", compilation.last.bundle().digest()}}}};
  for (const v1::SpecialisationAccount& one : account.specialisations()) {
    report["specialisations"].push_back(
        {{"name", one.name()}, {"kernels", one.kernels()}, {"exact_only", one.exact_only()}});
  }
  return report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

class SubmitVerb : public Verb {
 public:
  std::string name() const override { return "submit"; }
  std::string help() const override { return "compile an ONNX model on the server and fetch the bundle"; }
  std::vector<Option> Options() override {
    std::vector<Option> options = {
        {"MODEL", "the .onnx file", &model_, true},
        {"-o,--output", "where the bundle goes (default: MODEL's name with .fusion)", &output_},
        {"--json", "write a report for scripts to this file (-: stdout)", &json_},
        {"--detach", "print the job's name and return at once", &detach_}};
    AddCompilationFlags(&flags_, &options);
    return options;
  }

  int Run(const CommonOptions& common) override {
    const absl::Time start = absl::Now();
    if (output_.empty()) output_ = std::filesystem::path(model_).stem().string() + ".fusion";
    const absl::Status writable = CheckOutputPath(output_);
    if (!detach_ && !writable.ok()) return Fail(writable);
    Progress progress(common.progress);
    auto connection = Connection::Open(common.server);
    auto request = PrepareSubmission(*connection, model_, flags_, progress);
    if (!request.ok()) return Fail(request.status());
    if (detach_) return Detached(*connection, *request);
    auto compilation = CompileRemotely(*connection, *request, progress);
    if (!compilation.ok()) return Fail(compilation.status());
    const v1::BundleInfo& bundle = compilation->last.bundle();
    const absl::Status fetched = DownloadBundle(*connection, bundle, output_, progress);
    if (!fetched.ok()) return FailLocal(fetched);
    PrintAccount(compilation->last.account(), progress);
    const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
    if (!json_.empty()) {
      const std::string report = Report(*compilation, request->model_name(), output_, seconds);
      if (json_ == "-") {
        std::fputs(report.c_str(), stdout);
      } else if (absl::Status written = WriteFileAtomically(json_, report); !written.ok()) {
        return FailLocal(written);
      }
    }
    if (json_ != "-") {
      std::printf("%s  %s  sha256:%s\n", output_.c_str(), BytesInWords(bundle.size_bytes()).c_str(),
                  ShortDigest(bundle.digest()).c_str());
      std::fflush(stdout);
    }
    progress.Headline(absl::StrCat("done in ", SecondsInWords(seconds)));
    return kExitOk;
  }

 private:
  int Detached(Connection& connection, v1::SubmitRequest& request) {
    request.set_detach(true);
    auto submitted = connection.Submit(request);
    if (!submitted.ok()) return Fail(submitted.status());
    std::printf("%s\n", submitted->job_id().c_str());
    return kExitOk;
  }

  std::string model_, output_, json_;
  bool detach_ = false;
  CompilationFlags flags_;
};

}  // namespace

std::unique_ptr<Verb> MakeSubmitVerb() { return std::make_unique<SubmitVerb>(); }

}  // namespace fusion
