#include "server/compile_process/process_messages.h"

#include <string>
#include <vector>

namespace fusion {
namespace {

v1::StageSecondsMessage ToMessage(const StageSeconds& stage) {
  v1::StageSecondsMessage message;
  message.set_stage(stage.stage);
  message.set_seconds(stage.seconds);
  return message;
}

std::vector<StageSeconds> StagesFrom(const google::protobuf::RepeatedPtrField<v1::StageSecondsMessage>& messages) {
  std::vector<StageSeconds> stages;
  for (const v1::StageSecondsMessage& message : messages) stages.push_back({message.stage(), message.seconds()});
  return stages;
}

v1::PlanAlternativeMessage ToMessage(const PlanAlternative& one) {
  v1::PlanAlternativeMessage message;
  message.set_specialisation(one.specialisation);
  message.set_plan(one.plan);
  message.set_kernels(one.kernels);
  message.set_estimate_ns(one.estimate_ns);
  message.set_median_ns(one.median_ns);
  message.set_ratio(one.ratio);
  message.set_ratio_low(one.ratio_low);
  message.set_ratio_high(one.ratio_high);
  message.set_rounds(one.rounds);
  message.set_chosen(one.chosen);
  message.set_reason(one.reason);
  return message;
}

PlanAlternative FromMessage(const v1::PlanAlternativeMessage& m) {
  return {m.specialisation(), m.plan(),       m.kernels(), m.estimate_ns(), m.median_ns(), m.ratio(),
          m.ratio_low(),      m.ratio_high(), m.rounds(),  m.chosen(),      m.reason()};
}

v1::RewriteMessage ToMessage(const RewriteAccount& rewrite) {
  v1::RewriteMessage message;
  message.set_specialisation(rewrite.specialisation);
  message.set_rule(rewrite.rule);
  message.set_where(rewrite.where);
  message.set_flops_saved(rewrite.flops_saved);
  message.set_bytes_saved(rewrite.bytes_saved);
  message.set_nodes_saved(rewrite.nodes_saved);
  return message;
}

// Calls visit(member of CompileAccount, getter and setter of the message) for each field that is a number or a text.
template <typename Visit>
void VisitPlainFields(Visit&& visit) {
  using A = CompileAccount;
  using M = v1::CompileAccountMessage;
  visit(&A::nodes_model, &M::nodes_model, &M::set_nodes_model);
  visit(&A::nodes_simplified, &M::nodes_simplified, &M::set_nodes_simplified);
  visit(&A::nodes_rewritten, &M::nodes_rewritten, &M::set_nodes_rewritten);
  visit(&A::kernels, &M::kernels, &M::set_kernels);
  visit(&A::kernels_distinct, &M::kernels_distinct, &M::set_kernels_distinct);
  visit(&A::fused_by_rule, &M::fused_by_rule, &M::set_fused_by_rule);
  visit(&A::fused_by_latency, &M::fused_by_latency, &M::set_fused_by_latency);
  visit(&A::kept_by_latency, &M::kept_by_latency, &M::set_kept_by_latency);
  visit(&A::kept_by_rule, &M::kept_by_rule, &M::set_kept_by_rule);
  visit(&A::questions, &M::questions, &M::set_questions);
  visit(&A::from_database, &M::from_database, &M::set_from_database);
  visit(&A::measured, &M::measured, &M::set_measured);
  visit(&A::from_model, &M::from_model, &M::set_from_model);
  visit(&A::intermediate_bytes_before, &M::intermediate_bytes_before, &M::set_intermediate_bytes_before);
  visit(&A::intermediate_bytes_after, &M::intermediate_bytes_after, &M::set_intermediate_bytes_after);
  visit(&A::arena_bytes, &M::arena_bytes, &M::set_arena_bytes);
  visit(&A::weight_bytes, &M::weight_bytes, &M::set_weight_bytes);
  visit(&A::packed_apart, &M::packed_apart, &M::set_packed_apart);
  visit(&A::sharing_ns, &M::sharing_ns, &M::set_sharing_ns);
  visit(&A::flops, &M::flops, &M::set_flops);
  visit(&A::estimate_ns, &M::estimate_ns, &M::set_estimate_ns);
  visit(&A::trials, &M::trials, &M::set_trials);
  visit(&A::tuned, &M::tuned, &M::set_tuned);
}

}  // namespace

v1::StatusProto ToMessage(const absl::Status& status) {
  v1::StatusProto message;
  message.set_code(static_cast<int>(status.code()));
  message.set_message(std::string(status.message()));
  return message;
}

absl::Status FromMessage(const v1::StatusProto& message) {
  return absl::Status(static_cast<absl::StatusCode>(message.code()), message.message());
}

v1::CompileOptionsMessage ToMessage(const CompileOptions& options) {
  v1::CompileOptionsMessage message;
  message.set_target(options.target);
  message.set_planner(options.planner);
  message.set_math(options.math);
  message.set_precision(options.precision);
  message.set_size(options.size);
  for (const std::string& rule : options.disabled_rules) message.add_disabled_rules(rule);
  for (const std::string& pass : options.disabled_passes) message.add_disabled_passes(pass);
  for (const std::string& name : options.bounded_dims) message.add_bounded_dims(name);
  for (const auto& [name, extent] : options.dims) (*message.mutable_dims())[name] = extent;
  for (const auto& [name, extents] : options.specialised_dims) {
    (*message.mutable_specialised_dims())[name].mutable_extents()->Assign(extents.begin(), extents.end());
  }
  for (const auto& [name, shape] : options.shapes) {
    (*message.mutable_shapes())[name].mutable_extents()->Assign(shape.begin(), shape.end());
  }
  message.set_tune(options.tune);
  message.set_threads(options.threads);
  message.set_group_all_launches(options.group_all_launches);
  return message;
}

CompileOptions FromMessage(const v1::CompileOptionsMessage& message) {
  CompileOptions options;
  options.target = message.target();
  options.planner = message.planner();
  options.math = message.math();
  options.precision = message.precision();
  options.size = message.size();
  options.disabled_rules.insert(message.disabled_rules().begin(), message.disabled_rules().end());
  options.disabled_passes.insert(message.disabled_passes().begin(), message.disabled_passes().end());
  options.bounded_dims.insert(message.bounded_dims().begin(), message.bounded_dims().end());
  options.dims.insert(message.dims().begin(), message.dims().end());
  for (const auto& [name, extents] : message.specialised_dims()) {
    options.specialised_dims[name].assign(extents.extents().begin(), extents.extents().end());
  }
  for (const auto& [name, shape] : message.shapes()) {
    options.shapes[name].assign(shape.extents().begin(), shape.extents().end());
  }
  options.tune = message.tune();
  options.threads = message.threads();
  options.group_all_launches = message.group_all_launches();
  return options;
}

v1::CompileAccountMessage ToMessage(const CompileAccount& account) {
  v1::CompileAccountMessage message;
  VisitPlainFields([&](auto member, auto, auto set) { (message.*set)(account.*member); });
  message.set_weights_model_bytes(account.weights.model_bytes);
  message.set_weights_bundle_bytes(account.weights.bundle_bytes);
  for (const auto& [cause, bytes] : account.weights.causes) (*message.mutable_weights_causes())[cause] = bytes;
  message.set_weights_time_ratio(account.weights.time_ratio);
  for (const StageSeconds& stage : account.stages) *message.add_stages() = ToMessage(stage);
  for (const StageSeconds& pass : account.passes) *message.add_passes() = ToMessage(pass);
  message.set_exact_only(account.exact_only);
  message.set_plan_json(account.plan_json);
  for (const RewriteAccount& rewrite : account.rewrites) *message.add_rewrites() = ToMessage(rewrite);
  for (const PlanAlternative& one : account.alternatives) *message.add_alternatives() = ToMessage(one);
  message.set_not_compared(account.not_compared);
  for (const SpecialisationAccount& one : account.specialisations) {
    v1::SpecialisationMessage* out = message.add_specialisations();
    out->set_name(one.name);
    out->set_kernels(one.kernels);
    out->set_exact_only(one.exact_only);
  }
  return message;
}

CompileAccount FromMessage(const v1::CompileAccountMessage& message) {
  CompileAccount account;
  VisitPlainFields([&](auto member, auto get, auto) { account.*member = (message.*get)(); });
  account.weights.model_bytes = message.weights_model_bytes();
  account.weights.bundle_bytes = message.weights_bundle_bytes();
  account.weights.causes.insert(message.weights_causes().begin(), message.weights_causes().end());
  account.weights.time_ratio = message.weights_time_ratio();
  account.stages = StagesFrom(message.stages());
  account.passes = StagesFrom(message.passes());
  account.exact_only = message.exact_only();
  account.plan_json = message.plan_json();
  for (const v1::RewriteMessage& one : message.rewrites()) {
    account.rewrites.push_back(
        {one.specialisation(), one.rule(), one.where(), one.flops_saved(), one.bytes_saved(), one.nodes_saved()});
  }
  for (const v1::PlanAlternativeMessage& one : message.alternatives()) {
    account.alternatives.push_back(FromMessage(one));
  }
  account.not_compared = message.not_compared();
  for (const v1::SpecialisationMessage& one : message.specialisations()) {
    account.specialisations.push_back({one.name(), one.kernels(), one.exact_only()});
  }
  return account;
}

v1::ProgressMessage ToMessage(const ProgressEvent& event) {
  v1::ProgressMessage message;
  message.set_stage(event.stage);
  message.set_done(event.done);
  message.set_total(event.total);
  message.set_message(event.message);
  return message;
}

ProgressEvent FromMessage(const v1::ProgressMessage& message) {
  return {message.stage(), message.done(), message.total(), message.message()};
}

v1::LatencyQuestionMessage ToMessage(const LatencyQuestion& question) {
  v1::LatencyQuestionMessage message;
  message.set_key(question.key);
  message.set_description(question.description);
  message.set_model_latency_ns(question.model_latency_ns);
  message.set_typical_ns(question.typical_ns);
  message.set_group(question.group);
  message.set_workload(question.workload);
  message.set_structure(question.structure);
  message.set_choices(question.choices);
  return message;
}

LatencyQuestion FromMessage(const v1::LatencyQuestionMessage& message) {
  return {message.key(),   message.description(), message.model_latency_ns(), message.typical_ns(),
          message.group(), message.workload(),    message.structure(),        message.choices()};
}

v1::ModelErrorMessage ToMessage(const ModelError& error) {
  v1::ModelErrorMessage message;
  message.set_kernels(error.kernels);
  message.set_rank_correlation(error.rank_correlation);
  message.set_median_ratio(error.median_ratio);
  message.set_median_error(error.median_error);
  message.set_factor(error.factor);
  return message;
}

ModelError FromMessage(const v1::ModelErrorMessage& message) {
  return {message.kernels(), message.rank_correlation(), message.median_ratio(), message.median_error(),
          message.factor()};
}

v1::PlanQuestionMessage ToMessage(const PlanQuestion& question) {
  v1::PlanQuestionMessage message;
  message.set_key(question.key);
  message.set_description(question.description);
  message.set_typical_ns(question.typical_ns);
  return message;
}

PlanQuestion FromMessage(const v1::PlanQuestionMessage& message) {
  return {message.key(), message.description(), message.typical_ns()};
}

v1::PlansCompared ToMessage(const PlanAnswers& answers) {
  v1::PlansCompared message;
  for (const std::optional<PlanComparison>& one : answers.comparisons) {
    v1::PlanComparisonMessage* out = message.add_comparisons();
    out->set_measured(one.has_value());
    if (!one.has_value()) continue;
    out->set_ratio(one->ratio);
    out->set_ratio_low(one->ratio_low);
    out->set_ratio_high(one->ratio_high);
    out->set_median_ns(one->median_ns);
    out->set_reference_ns(one->reference_ns);
    out->set_rounds(one->rounds);
  }
  message.set_not_measured(answers.not_measured);
  return message;
}

PlanAnswers FromMessage(const v1::PlansCompared& message) {
  PlanAnswers answers;
  for (const v1::PlanComparisonMessage& one : message.comparisons()) {
    auto& out = answers.comparisons.emplace_back();
    if (!one.measured()) continue;
    out = PlanComparison{one.ratio(),     one.ratio_low(),    one.ratio_high(),
                         one.median_ns(), one.reference_ns(), one.rounds()};
  }
  answers.not_measured = message.not_measured();
  return answers;
}

}  // namespace fusion
