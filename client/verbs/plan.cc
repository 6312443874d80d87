#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "client/cli/exit_codes.h"
#include "client/cli/proto_json.h"
#include "client/cli/words.h"
#include "client/verbs/alternatives.h"
#include "client/verbs/planner_comparison.h"
#include "client/verbs/submission.h"
#include "client/verbs/verbs.h"

namespace fusion {
namespace {

class PlanVerb : public Verb {
 public:
  std::string name() const override { return "plan"; }
  std::string help() const override { return "show which operators would share which kernel, and why"; }
  std::vector<Option> Options() override {
    std::vector<Option> options = {
        {"MODEL", "the .onnx file", &model_, true},
        {"--explain",
         "list the rewrite rules that fired, where, and what each saved, and at which scope "
         "each kernel hands values over",
         &explain_},
        {"--compare",
         "plan with every planner of the server, and show launches, barriers, bytes, estimates "
         "and planning time side by side",
         &compare_},
        {"--measure",
         "with --compare: compile the model with every planner, and time each bundle and its unfused form on a worker",
         &measure_},
        OutputOption(&format_)};
    AddPlanFlags(&flags_, &options);
    return options;
  }

  int Run(const CommonOptions& common) override {
    if (measure_ && !compare_) return Fail(UsageError("--measure is for --compare; `submit` measures one plan"));
    auto connection = Connection::Open(common.endpoint);
    absl::StatusOr<v1::PlanResponse> plan = absl::UnknownError("");
    {
      Progress progress(common.progress);
      auto request = PrepareSubmission(*connection, model_, flags_, progress);
      if (!request.ok()) return Fail(request.status());
      if (compare_) return Compare(*connection, *std::move(request), progress);
      progress.Now("planning", "");
      plan = connection->Plan(*request);
      if (plan.ok()) PrintAccount(plan->account(), progress);
    }
    if (!plan.ok()) return Fail(plan.status());
    if (format_ == "json") {
      std::printf("%s\n", ProtoToJson(*plan).c_str());
    } else {
      std::fputs(plan->text().c_str(), stdout);
      if (explain_) {
        PrintRewrites(*plan);
        PrintHandOvers(*plan);
        PrintAlternatives(*plan);
      }
    }
    return kExitOk;
  }

 private:
  // Asks for the plan of each planner that the server has.
  int Compare(Connection& connection, v1::SubmitRequest request, Progress& progress) {
    const absl::StatusOr<v1::Capabilities> capabilities = connection.GetCapabilities();
    if (!capabilities.ok()) return Fail(capabilities.status());
    std::vector<PlannerRow> rows;
    for (const std::string& planner : capabilities->planners()) {
      progress.Now("planning", planner);
      request.mutable_options()->set_planner(planner);
      const absl::StatusOr<v1::PlanResponse> plan = connection.Plan(request);
      rows.push_back(plan.ok() ? RowOf(planner, *plan) : FailedRow(planner, std::string(plan.status().message())));
      if (measure_ && plan.ok()) Measure(connection, request, progress, &rows.back());
    }
    if (format_ == "json") {
      std::printf("%s\n", ComparisonToJson(rows).dump(2).c_str());
    } else {
      std::fputs(ComparisonTable(rows).c_str(), stdout);
    }
    return kExitOk;
  }

  // Compiles the request, and takes what a worker found when it ran the bundle.
  static void Measure(Connection& connection, v1::SubmitRequest request, Progress& progress, PlannerRow* row) {
    request.set_measure(true);
    const absl::StatusOr<Compilation> done = CompileRemotely(connection, request, progress);
    if (!done.ok()) {
      row->not_measured = std::string(done.status().message());
    } else if (!done->last.checks().has_measurement()) {
      row->not_measured = "it joined a job that measures nothing; ask again when that has ended";
    } else {
      TakeMeasurement(done->last.checks().measurement(), row);
    }
  }

  static std::string Saved(double count) {
    return absl::StrCat(count < 0 ? "-" : "", CountInWords(static_cast<int64_t>(std::abs(count))));
  }

  static void PrintRewrites(const v1::PlanResponse& plan) {
    if (plan.rewrites_total() == 0) {
      std::puts("\nno rewrite rule fired");
      return;
    }
    std::vector<std::vector<std::string>> rows;
    std::vector<std::string> header{"RULE", "FLOP SAVED", "BYTES SAVED", "OPERATORS SAVED", "WHERE"};
    const bool several = plan.account().specialisations_size() > 0;
    if (several) header.insert(header.begin(), "WITH");
    double flops = 0, bytes = 0;
    int64_t nodes = 0;
    for (const v1::RewriteProto& one : plan.rewrites()) {
      rows.push_back({one.rule(), Saved(one.flops_saved()), Saved(one.bytes_saved()),
                      Saved(static_cast<double>(one.nodes_saved())), Printable(one.where())});
      if (several) rows.back().insert(rows.back().begin(), one.specialisation());
      flops += one.flops_saved();
      bytes += one.bytes_saved();
      nodes += one.nodes_saved();
    }
    std::printf("\n%s", Table(header, rows).c_str());
    const int64_t more = plan.rewrites_total() - plan.rewrites_size();
    if (more > 0) std::printf("… %s more\n", CountInWords(more).c_str());
    std::printf("%s saved %s FLOP, %s bytes, %s\n", Plural(plan.rewrites_size(), "rewrite").c_str(),
                Saved(flops).c_str(), Saved(bytes).c_str(), Plural(nodes, "operator").c_str());
  }

  // The hand-overs inside kernels, of the first specialisation. Those that were merged away need no line each.
  static void PrintHandOvers(const v1::PlanResponse& plan) {
    nlohmann::json json = nlohmann::json::parse(plan.plan_json(), nullptr, /*allow_exceptions=*/false);
    if (json.is_object() && json.contains("specialisations") && !json["specialisations"].empty()) {
      json = json["specialisations"][0].value("plan", nlohmann::json());
    }
    if (!json.is_object() || !json.contains("fusion_blocks")) return;
    std::vector<std::vector<std::string>> rows;
    int64_t merged = 0;
    for (size_t b = 0; b < json["fusion_blocks"].size(); ++b) {
      const nlohmann::json hand_overs = json["fusion_blocks"][b].value("hand_overs", nlohmann::json::array());
      for (const nlohmann::json& one : hand_overs) {
        const std::string scope = one.value("realised", "");
        if (scope == "lane") {
          ++merged;
          continue;
        }
        rows.push_back({absl::StrCat(b), Printable(one.value("producer", "")), Printable(one.value("consumer", "")),
                        one.value("planned", ""), scope});
      }
    }
    if (!rows.empty()) std::printf("\n%s", Table({"BLOCK", "FROM", "TO", "PLANNED", "SCOPE"}, rows).c_str());
    if (merged > 0) std::printf("\n%s inside kernels at lane scope\n", Plural(merged, "hand-over").c_str());
  }

  // The plans from which a submission chooses.
  static void PrintAlternatives(const v1::PlanResponse& plan) {
    const v1::Account& account = plan.account();
    const std::string table = AlternativesTable(account);
    if (!table.empty()) std::printf("\nplans of the latest equal submission, measured as a whole:\n%s", table.c_str());
    if (!account.not_compared().empty()) {
      std::printf("not measured as a whole: %s\n", Printable(account.not_compared()).c_str());
    } else if (table.empty() && account.measured() + account.from_database() > 0) {
      std::puts(
          "\nsubmit tunes this plan, measures it as a whole beside the plans by estimates, and returns the fastest");
    }
  }

  std::string model_, format_ = "table";
  bool explain_ = false, compare_ = false, measure_ = false;
  CompilationFlags flags_;
};

}  // namespace

std::unique_ptr<Verb> MakePlanVerb() { return std::make_unique<PlanVerb>(); }

}  // namespace fusion
