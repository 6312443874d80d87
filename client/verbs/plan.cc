#include <cstdio>

#include "client/cli/exit_codes.h"
#include "client/cli/proto_json.h"
#include "client/verbs/submission.h"
#include "client/verbs/verbs.h"

namespace fusion {
namespace {

class PlanVerb : public Verb {
 public:
  std::string name() const override { return "plan"; }
  std::string help() const override { return "show which operators would share which kernel, and why"; }
  std::vector<Option> Options() override {
    std::vector<Option> options = {{"MODEL", "the .onnx file", &model_, true}, OutputOption(&format_)};
    AddCompilationFlags(&flags_, &options);
    return options;
  }

  int Run(const CommonOptions& common) override {
    auto connection = Connection::Open(common.server);
    absl::StatusOr<v1::PlanResponse> plan = absl::UnknownError("");
    {
      Progress progress(common.progress);
      auto request = PrepareSubmission(*connection, model_, flags_, progress);
      if (!request.ok()) return Fail(request.status());
      progress.Now("planning", "");
      plan = connection->Plan(*request);
      if (plan.ok()) PrintAccount(plan->account(), progress);
    }
    if (!plan.ok()) return Fail(plan.status());
    if (format_ == "json") {
      std::printf("%s\n", ProtoToJson(*plan).c_str());
    } else {
      std::fputs(plan->text().c_str(), stdout);
    }
    return kExitOk;
  }

 private:
  std::string model_, format_ = "table";
  CompilationFlags flags_;
};

}  // namespace

std::unique_ptr<Verb> MakePlanVerb() { return std::make_unique<PlanVerb>(); }

}  // namespace fusion
