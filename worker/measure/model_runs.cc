#include "worker/measure/model_runs.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/quantile.h"
#include "runtime/base/status_macros.h"
#include "runtime/loader/paired_runs.h"
#include "runtime/loader/session.h"
#include "runtime/verdict/judge.h"

namespace fusion {
namespace {

using Json = nlohmann::ordered_json;

// The seeds and the limit are those of `fusionctl bench` and `fusionctl verify`, so that a user can repeat a check.
constexpr uint64_t kTimingSeed = 0, kVerifyingSeed = 1;
constexpr int64_t kIntegerLimit = 2;
constexpr size_t kMostOutputs = 64;

// Two models whose first runs take longer than this together are timed for a few rounds only.
constexpr double kSlowNs = 1e9, kVerySlowNs = 10e9;

Json Number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";  // as protobuf writes them
}

Json TimesToJson(const std::vector<double>& latencies_ns, const ManifestProgram& program) {
  return {{"runs", latencies_ns.size()},
          {"median_ns", Quantile(latencies_ns, 0.5)},
          {"p25_ns", Quantile(latencies_ns, 0.25)},
          {"p75_ns", Quantile(latencies_ns, 0.75)},
          {"min_ns", Quantile(latencies_ns, 0)},
          {"kernels", program.launches.size()}};
}

std::string ToText(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// One run of each, which touches their memory, decides how much time there is for more.
absl::StatusOr<PairedLimits> LimitsFor(PreparedRun& bundle, PreparedRun& unfused) {
  ASSIGN_OR_RETURN(const double bundle_ns, bundle.Run());
  ASSIGN_OR_RETURN(const double unfused_ns, unfused.Run());
  PairedLimits limits;
  limits.time = absl::Seconds(2);
  limits.settled = 0.005;
  if (bundle_ns + unfused_ns > kSlowNs) {
    limits.warmup = 0;
    limits.least_rounds = bundle_ns + unfused_ns > kVerySlowNs ? 2 : 3;
  }
  return limits;
}

// Plans are compared more exactly than a model with its unfused form, since one of them is chosen.
constexpr double kCertain = 0.005;
constexpr absl::Duration kLeastPlanTime = absl::Seconds(4), kMostPlanTime = absl::Seconds(30);
constexpr double kPlanRounds = 60;
// A plan that is certainly slower than another one by more than this is not measured further.
constexpr double kHopeless = 0.02;

// One run of each, which touches their memory, decides how much time there is for more.
absl::StatusOr<PairedLimits> LimitsFor(absl::Span<PreparedRun> plans) {
  double round_ns = 0;
  for (PreparedRun& plan : plans) {
    ASSIGN_OR_RETURN(const double first_ns, plan.Run());
    round_ns += first_ns;
  }
  PairedLimits limits;
  limits.time = std::clamp(absl::Nanoseconds(kPlanRounds * round_ns), kLeastPlanTime, kMostPlanTime);
  limits.certain = kCertain;
  limits.hopeless = kHopeless;
  if (round_ns > kSlowNs) limits.warmup = 0;
  return limits;
}

// The type in which the bundle stores floats on the way: halves and tf32 both have mantissas of 10 bits.
DType StoredType(const Manifest& manifest) {
  return manifest.options.count("precision") > 0 ? DType::kF16 : DType::kF32;
}

const char* NameOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "OUTPUT_OK";
    case Verdict::kWrong:
      return "OUTPUT_WRONG";
    case Verdict::kNotCompared:
      return "OUTPUT_NOT_COMPARED";
  }
  return "";
}

struct Verified {
  std::string program, name;
  Comparison comparison;
};

// The outputs of one specialisation that got one verdict without a comparison of numbers.
void Append(const ManifestProgram& program, Verdict verdict, const std::string& why, std::vector<Verified>* all) {
  for (const Binding& output : program.outputs) {
    Verified one{ProgramName(program), output.name, {}};
    one.comparison.verdict = verdict;
    one.comparison.why = why;
    all->push_back(std::move(one));
  }
}

absl::Status JudgeProgram(const Manifest& manifest, const ManifestProgram& program, const std::vector<Tensor>& inputs,
                          const absl::StatusOr<std::vector<Tensor>>& actual, Session& reference,
                          std::vector<Verified>* all) {
  const absl::StatusOr<std::vector<Tensor>> expected = reference.Run(inputs);
  if (!expected.ok() && !actual.ok()) {
    Append(program, Verdict::kNotCompared,
           absl::StrCat("neither runs on inputs drawn from a seed: ", std::string(expected.status().message())), all);
    return absl::OkStatus();
  }
  if (!actual.ok()) {
    Append(program, Verdict::kWrong,
           absl::StrCat("the reference runs, the bundle does not: ", std::string(actual.status().message())), all);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(Annotate(expected.status(), "reference"));
  for (size_t i = 0; i < std::min(actual->size(), expected->size()); ++i) {
    if ((*actual)[i].dtype() == (*expected)[i].dtype()) continue;
    return absl::InvalidArgumentError(absl::StrCat("output '", program.outputs[i].name, "' is ",
                                                   DTypeName((*actual)[i].dtype()), ", the reference's ",
                                                   DTypeName((*expected)[i].dtype())));
  }
  Slack slack;
  slack.stored = StoredType(manifest);
  const ModelRun run = [&](const std::vector<Tensor>& nudged) { return reference.Run(nudged); };
  ASSIGN_OR_RETURN(Judgement judgement, JudgeOutputs(inputs, *actual, *expected, run, MadeByRun::kReference, slack));
  for (size_t i = 0; i < judgement.outputs.size(); ++i) {
    Comparison& compared = judgement.outputs[i];
    if (compared.special_matches > 0) {
      absl::StrAppend(&compared.why, compared.why.empty() ? "" : "; ", compared.special_matches,
                      " of its elements are NaN or infinite on both sides");
    }
    all->push_back({ProgramName(program), program.outputs[i].name, std::move(judgement.outputs[i])});
  }
  return absl::OkStatus();
}

std::string VerifiedToJson(std::vector<Verified> all) {
  const auto of = [&](Verdict verdict) {
    return std::any_of(all.begin(), all.end(), [&](const Verified& one) { return one.comparison.verdict == verdict; });
  };
  const Verdict verdict = of(Verdict::kWrong)                        ? Verdict::kWrong
                          : of(Verdict::kNotCompared) || all.empty() ? Verdict::kNotCompared
                                                                     : Verdict::kOk;
  const size_t total = all.size();
  // The worst outputs are told first: wrong, not compared, right.
  const auto badness = [](const Verified& one) {
    return one.comparison.verdict == Verdict::kWrong ? 0 : one.comparison.verdict == Verdict::kNotCompared ? 1 : 2;
  };
  std::stable_sort(all.begin(), all.end(),
                   [&](const Verified& a, const Verified& b) { return badness(a) < badness(b); });
  if (all.size() > kMostOutputs) all.resize(kMostOutputs);
  Json outputs = Json::array();
  for (const Verified& one : all) {
    outputs.push_back({{"program", one.program},
                       {"name", one.name},
                       {"verdict", NameOf(one.comparison.verdict)},
                       {"why", one.comparison.why},
                       {"max_abs_err", Number(one.comparison.max_abs_err)},
                       {"max_rel_err", Number(one.comparison.max_rel_err)},
                       {"tolerance", Number(one.comparison.tolerance)}});
  }
  return ToText({{"verdict", NameOf(verdict)},
                 {"outputs", outputs},
                 {"outputs_total", total},
                 {"seed", kVerifyingSeed},
                 {"integer_limit", kIntegerLimit}});
}

}  // namespace

absl::StatusOr<std::string> TimeModels(const std::string& bundle, const std::string& unfused, int threads) {
  ASSIGN_OR_RETURN(auto first_bundle, Bundle::Open(bundle));
  ASSIGN_OR_RETURN(auto second_bundle, Bundle::Open(unfused));
  const std::vector<Tensor> inputs = RandomInputs(first_bundle->manifest(), kTimingSeed, kIntegerLimit);
  ASSIGN_OR_RETURN(PreparedRun first, PreparedRun::Create(first_bundle, inputs, threads));
  ASSIGN_OR_RETURN(PreparedRun second, PreparedRun::Create(second_bundle, inputs, threads));
  ASSIGN_OR_RETURN(const PairedLimits limits, LimitsFor(first, second));
  ASSIGN_OR_RETURN(const PairedTimes times, RunPaired(first, second, limits));
  return ToText({{"program", ProgramName(first.program())},
                 {"simulated", first.simulated_time().has_value()},
                 {"threads", first.threads()},
                 {"bundle", TimesToJson(times.latencies_ns[0], first.program())},
                 {"unfused", TimesToJson(times.latencies_ns[1], second.program())},
                 {"rounds", times.ratios.size()},
                 {"ratio", Quantile(times.ratios, 0.5)},
                 {"ratio_p25", Quantile(times.ratios, 0.25)},
                 {"ratio_p75", Quantile(times.ratios, 0.75)}});
}

absl::StatusOr<std::string> TimePlans(const std::string& path, int threads) {
  ASSIGN_OR_RETURN(auto bundle, Bundle::Open(path));
  const size_t count = bundle->manifest().program_count();
  if (count < 2) return absl::InvalidArgumentError("the bundle has one program: there is nothing to compare");
  const std::vector<Tensor> inputs = RandomInputs(bundle->manifest(), kTimingSeed, kIntegerLimit);
  std::vector<PreparedRun> plans;
  for (size_t p = 0; p < count; ++p) {
    ASSIGN_OR_RETURN(PreparedRun plan, PreparedRun::CreateProgram(bundle, p, inputs, threads));
    plans.push_back(std::move(plan));
  }
  ASSIGN_OR_RETURN(const PairedLimits limits, LimitsFor(absl::MakeSpan(plans)));
  ASSIGN_OR_RETURN(const TurnTimes times, RunInTurns(absl::MakeSpan(plans), limits));
  Json list = Json::array();
  for (size_t p = 0; p < count; ++p) {
    Json& one = list.emplace_back(Json{{"median_ns", Quantile(times.latencies_ns[p], 0.5)}});
    const std::vector<double> ratios = p == 0 ? std::vector<double>{1} : times.ratios[p - 1];
    const Interval interval = MedianInterval(ratios);
    one["ratio"] = Quantile(ratios, 0.5);
    one["ratio_low"] = interval.low;
    one["ratio_high"] = interval.high;
    one["rounds"] = p == 0 ? static_cast<size_t>(times.rounds) : ratios.size();
  }
  return ToText({{"rounds", times.rounds}, {"plans", list}});
}

absl::StatusOr<std::string> VerifyModel(const std::string& bundle, const std::string& reference, int threads) {
  Manifest manifest;
  std::vector<std::vector<Tensor>> inputs;
  std::vector<absl::StatusOr<std::vector<Tensor>>> actual;
  {  // holds only one model in memory at a time
    ASSIGN_OR_RETURN(auto opened, Bundle::Open(bundle));
    manifest = opened->manifest();
    ASSIGN_OR_RETURN(const auto session, Session::Create(opened, threads));
    for (size_t p = 0; p < manifest.program_count(); ++p) {
      inputs.push_back(RandomInputs(manifest.program(p), kVerifyingSeed, kIntegerLimit));
      actual.push_back(session->Run(inputs.back()));
    }
  }
  auto opened = Bundle::Open(reference);
  RETURN_IF_ERROR(Annotate(opened.status(), "reference"));
  auto session = Session::Create(*opened, threads);
  RETURN_IF_ERROR(Annotate(session.status(), "reference"));
  std::vector<Verified> all;
  for (size_t p = 0; p < manifest.program_count(); ++p) {
    RETURN_IF_ERROR(JudgeProgram(manifest, manifest.program(p), inputs[p], actual[p], **session, &all));
  }
  return VerifiedToJson(std::move(all));
}

}  // namespace fusion
