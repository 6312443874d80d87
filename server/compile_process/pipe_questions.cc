#include "server/compile_process/pipe_questions.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "server/compile_process/process_messages.h"

namespace fusion {
namespace {

// Makes what fusiond asks for while it looks for an answer.
struct Bundlers {
  MeasurementBundler* measurements = nullptr;
  PlanBundler* plans = nullptr;
};

void MakeBundles(MessagePipe& pipe, const v1::MakeBundles& asked, MeasurementBundler& bundler) {
  const std::vector<std::string> keys(asked.keys().begin(), asked.keys().end());
  absl::StatusOr<std::vector<std::string>> bundles = bundler.MakeBundles(keys);
  if (bundles.ok() && bundles->size() != keys.size()) {
    bundles = absl::InternalError(absl::StrCat(bundles->size(), " bundles were made for ", keys.size(), " questions"));
  }
  v1::FromCompiler message;
  if (!bundles.ok()) {
    *message.mutable_made_bundle()->mutable_status() = ToMessage(bundles.status());
    return SendOrExit(pipe, message);
  }
  for (std::string& bundle : *bundles) {
    message.mutable_made_bundle()->set_bundle(std::move(bundle));
    SendOrExit(pipe, message);
  }
}

absl::StatusOr<v1::Answer> Ask(MessagePipe& pipe, const v1::FromCompiler& question, v1::Answer::ValueCase expected,
                               const Bundlers& bundlers = {}) {
  SendOrExit(pipe, question);
  while (true) {
    v1::ToCompiler message = ReceiveOrExit(pipe);
    if (message.has_make_bundles() && bundlers.measurements != nullptr) {
      MakeBundles(pipe, message.make_bundles(), *bundlers.measurements);
    } else if (message.has_write_plan_bundle() && bundlers.plans != nullptr) {
      const v1::WritePlanBundle& asked = message.write_plan_bundle();
      const std::vector<size_t> plans(asked.plans().begin(), asked.plans().end());
      v1::FromCompiler wrote;
      *wrote.mutable_wrote_plan_bundle() = ToMessage(bundlers.plans->WriteBundle(plans, asked.path()));
      SendOrExit(pipe, wrote);
    } else if (message.has_answer()) {
      v1::Answer answer = std::move(*message.mutable_answer());
      RETURN_IF_ERROR(FromMessage(answer.status()));
      if (answer.value_case() != expected) return absl::InternalError("fusiond answered another question");
      return answer;
    } else {
      return absl::InternalError("fusiond sent a message that has no place here");
    }
  }
}

}  // namespace

void SendOrExit(MessagePipe& pipe, const v1::FromCompiler& message) {
  const absl::Status sent = pipe.Send(message);
  if (sent.ok()) return;
  if (!absl::IsUnavailable(sent)) dprintf(STDERR_FILENO, "%s\n", sent.ToString().c_str());
  _exit(kExitServerGone);
}

v1::ToCompiler ReceiveOrExit(MessagePipe& pipe) {
  v1::ToCompiler message;
  const absl::StatusOr<bool> received = pipe.Receive(&message);
  if (received.ok() && *received) return message;
  if (!received.ok()) dprintf(STDERR_FILENO, "%s\n", received.status().ToString().c_str());
  _exit(kExitServerGone);
}

absl::StatusOr<std::vector<LatencyAnswer>> PipeOracle::Latency(absl::Span<const LatencyQuestion> questions,
                                                               MeasurementBundler& bundler) {
  v1::FromCompiler message;
  v1::LatencyAsked& asked = *message.mutable_latency();
  for (const LatencyQuestion& question : questions) *asked.add_questions() = ToMessage(question);
  ASSIGN_OR_RETURN(const v1::Answer answer, Ask(*pipe_, message, v1::Answer::kLatencies, {&bundler, nullptr}));
  std::vector<LatencyAnswer> answers;
  for (const v1::LatencyAnswerMessage& one : answer.latencies().answers()) {
    answers.push_back({one.latency_ns(), static_cast<LatencySource>(one.source())});
  }
  return answers;
}

absl::StatusOr<bool> PipeOracle::Knows(const std::string& key) {
  v1::FromCompiler message;
  message.set_knows(key);
  ASSIGN_OR_RETURN(const v1::Answer answer, Ask(*pipe_, message, v1::Answer::kKnows));
  return answer.knows();
}

absl::StatusOr<ModelError> PipeOracle::Error() {
  v1::FromCompiler message;
  message.set_model_error(true);
  ASSIGN_OR_RETURN(const v1::Answer answer, Ask(*pipe_, message, v1::Answer::kModelError));
  return FromMessage(answer.model_error());
}

int PipeOracle::Devices() const {
  v1::FromCompiler message;
  message.set_devices(true);
  const absl::StatusOr<v1::Answer> answer = Ask(*pipe_, message, v1::Answer::kDevices);
  return answer.ok() ? std::max(1, answer->devices()) : 1;
}

absl::StatusOr<std::vector<KnownTrial>> PipeOracle::Trials(const std::string& workload) {
  v1::FromCompiler message;
  message.set_trials(workload);
  ASSIGN_OR_RETURN(const v1::Answer answer, Ask(*pipe_, message, v1::Answer::kTrials));
  std::vector<KnownTrial> trials;
  for (const v1::Trial& trial : answer.trials().trials()) trials.push_back({trial.choices(), trial.latency_ns()});
  return trials;
}

absl::StatusOr<std::vector<std::string>> PipeOracle::NeighbourChoices(const std::string& structure,
                                                                      const std::string& workload, int limit) {
  v1::FromCompiler message;
  message.mutable_neighbours()->set_structure(structure);
  message.mutable_neighbours()->set_workload(workload);
  message.mutable_neighbours()->set_limit(limit);
  ASSIGN_OR_RETURN(const v1::Answer answer, Ask(*pipe_, message, v1::Answer::kChoices));
  return std::vector<std::string>(answer.choices().strings().begin(), answer.choices().strings().end());
}

absl::StatusOr<PlanAnswers> PipePlans::Compare(const PlanQuestion& reference, absl::Span<const PlanQuestion> plans,
                                               PlanBundler& bundler) {
  v1::FromCompiler message;
  v1::PlansAsked& asked = *message.mutable_compare_plans();
  *asked.mutable_reference() = ToMessage(reference);
  for (const PlanQuestion& plan : plans) *asked.add_plans() = ToMessage(plan);
  ASSIGN_OR_RETURN(const v1::Answer answer, Ask(*pipe_, message, v1::Answer::kPlans, {nullptr, &bundler}));
  return FromMessage(answer.plans());
}

absl::StatusOr<std::vector<std::string>> PipeToolchain::Build(absl::Span<const BuildUnit> units) {
  v1::FromCompiler message;
  v1::UnitsAsked& asked = *message.mutable_build();
  for (const BuildUnit& unit : units) {
    v1::Unit* out = asked.add_units();
    out->set_kind(unit.kind);
    out->set_march(unit.march);
    out->set_source(unit.source);
  }
  ASSIGN_OR_RETURN(const v1::Answer answer, Ask(*pipe_, message, v1::Answer::kBinaries));
  return std::vector<std::string>(answer.binaries().binaries().begin(), answer.binaries().binaries().end());
}

}  // namespace fusion
