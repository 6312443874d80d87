#include "compiler/pipeline/plan_candidates.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/backends/placement.h"
#include "compiler/bundle/plan_key.h"
#include "compiler/cost/known_answers.h"
#include "compiler/cost/plan_oracle.h"
#include "compiler/cost/typical_core.h"
#include "compiler/pipeline/bundle_parts.h"
#include "compiler/pipeline/kernel_passes.h"
#include "compiler/pipeline/pass_runner.h"
#include "compiler/pipeline/plan_account.h"
#include "compiler/pipeline/verify.h"
#include "compiler/plan/planners/auto/auto.h"
#include "compiler/plan/planners/none/none.h"
#include "compiler/simplify/passes.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

// A plan of the program, with the kernels that a bundle of this program alone would have.
struct Candidate {
  std::string name;
  std::unique_ptr<Prepared> own;  // null: the plan that was made
  const Prepared* model = nullptr;
  std::vector<PlannedLaunch> launches = {};
  LoopPlan loops = {};
  KernelTexts texts = {};
};

// The most plans of a planner that chooses among plans (`auto`) that are measured beside the one that was made and that
// of `none`. Comparing drops those that are certainly slower after a few rounds.
constexpr size_t kMostOffers = 7;
// An offer whose estimate exceeds the best one's by more than this is not measured: four times the median error of such
// estimates (decision 35).
constexpr double kHopelessEstimate = 0.25;

// A way to plan without measuring.
struct Way {
  std::string name;
  DeviceModel device;
  int threads = 1;
  const FusionPlan* given = nullptr;  // of which only the kernels are to be made; null: the options' planner
  std::optional<ecg::Graph> graph = std::nullopt;  // that computes the same; nullopt: the one that was planned
  const ValueLayouts* layouts = nullptr;           // null: those that are chosen for the device
  LatencyOracle* tuning = nullptr;                 // whose answers choose schedules; null: the scheduler chooses
  std::string planner = {};                        // without a given plan; empty: the options'
  bool or_for_this_device = false;                 // where it cannot be made
};

absl::StatusOr<std::unique_ptr<Prepared>> MakeWay(const Compilation& made, const Way& way) {
  const DeviceModel& device = way.device;
  auto plan = std::make_unique<Prepared>();
  plan->planned.graph = way.graph ? *way.graph : made.planned->graph;
  plan->planned.input_symbols = made.planned->input_symbols;
  plan->planned.input_extents = made.planned->input_extents;
  CompileOptions options = made.options;
  if (way.tuning == nullptr) options.tune = "off";
  if (!way.planner.empty()) options.planner = way.planner;
  options.threads = way.threads;
  ModelOracle estimates;
  CompileContext context = made.context;
  context.device = &device;
  context.oracle = way.tuning == nullptr ? &estimates : way.tuning;
  context.progress = nullptr;
  context.plans = nullptr;
  StageClock clock(context, &plan->account);
  GraphFusionOracle oracle(context, Units(options, context), DisabledFusionBlockPasses(options));
  Compilation compilation{made.files,     options, context,         &oracle,   &clock,     &plan->account,
                          &plan->planned, nullptr, &plan->launches, way.given, way.layouts};
  RETURN_IF_ERROR(RunPasses(Passes(), PassPart::kPlan, &compilation));
  AccountForPlan(&compilation);
  RETURN_IF_ERROR(RunPasses(Passes(), PassPart::kKernels, &compilation));
  for (const PlannedLaunch& launch : plan->launches) {
    RETURN_IF_ERROR(
        PlaceKernel(launch.fusion_kernel.kernel, device).backend->CheckSupported(launch.fusion_kernel.kernel));
  }
  RETURN_IF_ERROR(AccountForKernels(&compilation));
  return plan;
}

bool SameArguments(const FusionKernel& a, const FusionKernel& b) {
  return std::equal(a.args.begin(), a.args.end(), b.args.begin(), b.args.end(),
                    [](const KernelArg& x, const KernelArg& y) {
                      return x.kind == y.kind && x.value == y.value && x.pack == y.pack;
                    });
}

// Are the two plans of one graph the same launches of the same kernels?
bool SameLaunches(const Prepared& a, const Prepared& b) {
  return a.planned.elided.values.size() == b.planned.elided.values.size() &&
         std::equal(a.launches.begin(), a.launches.end(), b.launches.begin(), b.launches.end(),
                    [](const PlannedLaunch& x, const PlannedLaunch& y) {
                      return x.fusion_kernel.key == y.fusion_kernel.key && x.concurrent == y.concurrent &&
                             SameArguments(x.fusion_kernel, y.fusion_kernel) &&
                             std::equal(x.others.begin(), x.others.end(), y.others.begin(), y.others.end(),
                                        SameArguments);
                    });
}

// Each candidate is printed alone, so that its files are those of its own bundle: the winner's are then built already.
absl::Status MakeKernels(const Compilation& compilation, Candidate* candidate) {
  candidate->launches = candidate->model->launches;
  Planned planned = candidate->model->planned;  // of which the passes change the loops alone
  CompileContext quiet = compilation.context;
  quiet.progress = nullptr;
  CompileAccount account;
  StageClock clock(quiet, &account);
  std::vector<Compilation> alone;
  alone.push_back({compilation.files, compilation.options, quiet, nullptr, &clock, &account, &planned, nullptr,
                   &candidate->launches});
  RETURN_IF_ERROR(RunBundlePasses(Passes(), absl::MakeSpan(alone)));
  candidate->loops = std::move(planned.loops);
  std::vector<const FusionKernel*> kernels;
  for (const PlannedLaunch& launch : candidate->launches) kernels.push_back(&launch.fusion_kernel);
  candidate->texts = PrintKernels(kernels, *compilation.context.device);
  return absl::OkStatus();
}

absl::StatusOr<PlanQuestion> QuestionOf(const Compilation& compilation, const Candidate& candidate) {
  BundleProgram program =
      ProgramOf(candidate.model->planned, candidate.launches, candidate.loops, candidate.texts.places.begin());
  Specialise({}, candidate.model->planned, &program);
  Weights weights;
  ASSIGN_OR_RETURN(const LaidOut laid_out, LayOut(candidate.texts, program, &weights));
  return PlanQuestion{PlanKey(laid_out, candidate.launches, *compilation.context.device, compilation.options.threads,
                              compilation.options.math),
                      absl::StrCat("plan ", candidate.name, ", ", candidate.launches.size(),
                                   candidate.launches.size() == 1 ? " kernel" : " kernels"),
                      candidate.model->account.estimate_ns};
}

class CandidateBundler : public PlanBundler {
 public:
  CandidateBundler(const Compilation& compilation, const std::map<std::string, int64_t>& dims,
                   const std::vector<Candidate>& candidates)
      : compilation_(compilation), dims_(dims), candidates_(candidates) {}

  absl::Status WriteBundle(absl::Span<const size_t> plans, const std::string& path) override {
    std::vector<const Candidate*> chosen = {&candidates_[0]};
    for (const size_t plan : plans) chosen.push_back(&candidates_[1 + plan]);
    KernelTexts texts;
    for (const Candidate* candidate : chosen) AppendTexts(candidate->texts, &texts);
    compilation_.clock->Report(0, 0, absl::StrCat("building ", chosen.size(), " plans"));
    ASSIGN_OR_RETURN(const std::vector<std::string> binaries, BuildTexts(texts, compilation_.context.toolchain));
    std::vector<BundleProgram> programs;
    auto place = texts.places.cbegin();
    for (const Candidate* candidate : chosen) {
      programs.push_back(ProgramOf(candidate->model->planned, candidate->launches, candidate->loops, place));
      Specialise(dims_, candidate->model->planned, &programs.back());
      place += static_cast<std::ptrdiff_t>(candidate->launches.size());
    }
    CompileAccount account;
    account.weights.model_bytes = compilation_.account->weights.model_bytes;
    return fusion::WriteBundle(programs, texts, binaries,
                               BundleHead(compilation_.files, compilation_.options, *compilation_.context.device), path,
                               &account, /*durable=*/false);
  }

 private:
  const Compilation& compilation_;
  const std::map<std::string, int64_t>& dims_;
  const std::vector<Candidate>& candidates_;
};

PlanAlternative AlternativeOf(const Candidate& candidate) {
  PlanAlternative one;
  one.plan = candidate.name;
  one.kernels = static_cast<int64_t>(candidate.launches.size());
  one.estimate_ns = candidate.model->account.estimate_ns;
  return one;
}

// Copies the account of the other plan, except for how the plan was found.
void TakePlan(const CompileAccount& other, CompileAccount* account) {
  for (int64_t CompileAccount::*count :
       {&CompileAccount::kernels, &CompileAccount::fused_by_rule, &CompileAccount::fused_by_latency,
        &CompileAccount::kept_by_latency, &CompileAccount::kept_by_rule, &CompileAccount::intermediate_bytes_before,
        &CompileAccount::intermediate_bytes_after, &CompileAccount::tuned}) {
    account->*count = other.*count;
  }
  account->flops = other.flops;
  account->estimate_ns = other.estimate_ns;
  account->plan_json = other.plan_json;
}

constexpr char kOffline[] = "offline", kByEstimates[] = "by estimates", kTuned[] = " with tuned schedules";
constexpr char kAutoOffline[] = "auto offline";

// A plan for this device and its threads, at typical rates.
Way ForThisDevice(const Compilation& compilation, std::string name, const FusionPlan* given) {
  return {std::move(name), WithTypicalRates(*compilation.context.device), compilation.options.threads, given};
}

// Makes a plan the next candidate, unless it cannot be made or has the kernels of `made` or of another candidate.
// Returns whether it is one.
absl::StatusOr<bool> AddCandidate(const Compilation& compilation, const Prepared& made, const Way& way,
                                  std::vector<Candidate>* candidates) {
  absl::StatusOr<std::unique_ptr<Prepared>> plan = MakeWay(compilation, way);
  if (!plan.ok() && !absl::IsCancelled(plan.status()) && way.or_for_this_device) {
    plan = MakeWay(compilation, ForThisDevice(compilation, way.name, way.given));
  }
  if (absl::IsCancelled(plan.status())) return plan.status();
  if (!plan.ok()) return false;
  if (way.tuning != nullptr && (*plan)->account.tuned == 0) return false;
  const auto is_same = [&](const Prepared& other) { return !way.graph && SameLaunches(other, **plan); };
  if (is_same(made) ||
      std::any_of(candidates->begin(), candidates->end(), [&](const Candidate& one) { return is_same(*one.model); })) {
    return false;
  }
  Candidate& candidate = candidates->emplace_back();
  candidate.name = way.name;
  candidate.own = *std::move(plan);
  candidate.model = candidate.own.get();
  return true;
}

// The structure and the layouts of a candidate, with the schedules that tuning found for equal kernels.
Way Tuned(const Compilation& compilation, const Candidate& candidate, LatencyOracle* known) {
  const Planned& planned = candidate.own->planned;
  return {absl::StrCat(candidate.name, kTuned),
          *compilation.context.device,
          compilation.options.threads,
          &planned.plan,
          std::nullopt,
          &planned.layouts,
          known};
}

// The offers beside the first, which was made, that may be measured: `none`'s, since no plan that is returned may be
// slower, and then the others, the best first.
std::vector<const OfferedPlan*> OffersToMeasure(const std::vector<OfferedPlan>& offers) {
  std::vector<const OfferedPlan*> some;
  double least = std::numeric_limits<double>::infinity();
  for (const OfferedPlan& offer : offers) {
    if (!offer.plan.fusion_blocks.empty()) least = std::min(least, offer.estimate.ns);
  }
  for (size_t o = 1; o < offers.size(); ++o) {
    const bool is_unfused = offers[o].name == kUnfusedPlanner;
    if (offers[o].plan.fusion_blocks.empty()) continue;
    if (is_unfused) some.insert(some.begin(), &offers[o]);
    if (!is_unfused && offers[o].estimate.ns <= (1 + kHopelessEstimate) * least) some.push_back(&offers[o]);
  }
  return some;
}

// Makes the plans of the list in plan_candidates.h whose kernels differ from those of `made` and from each other's, in
// the order of that list; instead of the plan by estimates the best plans that its planner was offered. A plan that
// cannot be made is left out.
absl::StatusOr<std::vector<Candidate>> CandidatesBeside(const Compilation& compilation, const Prepared& made) {
  const DeviceModel& device = *compilation.context.device;
  std::vector<Way> ways;
  const bool cpu = device.kind == "cpu";
  const DeviceModel typical = WithTypicalRates(device);
  const std::vector<OfferedPlan>& offers = made.planned.plan.offers;
  if (cpu) {
    ways.push_back({kOffline, TypicalCoreLike(device), 1});
    if (!offers.empty()) {
      ways.back().planner = kPreferredPlanner;  // fusion-compile's
      ways.push_back({kAutoOffline, TypicalCoreLike(device), 1});
    }
  }
  if (offers.empty()) ways.push_back(ForThisDevice(compilation, kByEstimates, nullptr));
  for (const OfferedPlan* offer : OffersToMeasure(offers)) {
    Way& way = ways.emplace_back(ForThisDevice(compilation, NameOf(*offer), &offer->plan));
    if (!cpu) continue;
    // As the offline plan, beside which they are measured. One thread of a typical core divides some kernels that were
    // planned for several threads.
    way.device = TypicalCoreLike(device), way.threads = 1;
    way.or_for_this_device = true;
  }
  // A permuted weight that others read in its own order is held twice, which small bundles should not.
  if (compilation.options.disabled_passes.count("carry-permutations") == 0 && compilation.options.size != "small") {
    if (std::optional<ecg::Graph> carried = simplify::MovedPermutations(made.planned.graph)) {
      if (const absl::Status verified = ecg::Verify(*carried); !verified.ok()) {
        return MadeWrong("carry-permutations", "graph", verified);
      }
      if (compilation.constants != nullptr) carried = compilation.constants->Share(*carried);
      ways.push_back({"permutations carried", cpu ? TypicalCoreLike(device) : typical,
                      cpu ? 1 : compilation.options.threads, nullptr, std::move(carried)});
    }
  }
  std::vector<Candidate> candidates;
  size_t offered = 0;
  for (const Way& way : ways) {
    if (way.given != nullptr && offered == 1 + kMostOffers) continue;
    ASSIGN_OR_RETURN(const bool added, AddCandidate(compilation, made, way, &candidates));
    offered += added && way.given != nullptr ? 1 : 0;
  }
  if (!passes::MayTune(compilation)) return candidates;
  KnownAnswers known(compilation.context.oracle);
  for (const char* structure : {kOffline, kAutoOffline, kByEstimates}) {
    const auto of =
        std::find_if(candidates.begin(), candidates.end(), [&](const Candidate& one) { return one.name == structure; });
    if (of == candidates.end()) continue;
    RETURN_IF_ERROR(AddCandidate(compilation, made, Tuned(compilation, *of, &known), &candidates).status());
  }
  return candidates;
}

// Is the plan faster than the reference, whose ratio is 1, for certain?
bool IsFaster(const PlanAlternative& plan) { return plan.rounds > 0 && plan.ratio_high < 1; }

// Returns the first plan that is as fast as the fastest one. Plans other than the reference, which is the first, count
// where they are faster for certain.
size_t FastestOf(const std::vector<PlanAlternative>& plans) {
  double least = 1;
  for (const PlanAlternative& plan : plans) {
    if (IsFaster(plan)) least = std::min(least, plan.ratio);
  }
  for (size_t p = 1; p < plans.size() && 1 - kEqualPlans > least; ++p) {
    if (IsFaster(plans[p]) && plans[p].ratio * (1 - kEqualPlans) <= least) return p;
  }
  return 0;
}

void SetTimes(const PlanComparison& comparison, PlanAlternative* one) {
  one->median_ns = comparison.median_ns;
  one->ratio = comparison.ratio, one->ratio_low = comparison.ratio_low, one->ratio_high = comparison.ratio_high;
  one->rounds = comparison.rounds;
}

// Where the chosen plan is an offer, compares it with its own structure, scheduled for this device and in tuned
// schedules, and makes the faster of these the chosen one if it is faster for certain. Their ratios to the reference
// are products.
absl::Status CompareSchedules(const Compilation& compilation, const std::map<std::string, int64_t>& dims,
                              const Prepared& made, std::vector<Candidate>* candidates,
                              std::vector<PlanAlternative>* alternatives, size_t* chosen) {
  const bool is_offer = (*candidates)[*chosen].own != nullptr && (*alternatives)[*chosen].rounds > 0 &&
                        std::any_of(made.planned.plan.offers.begin(), made.planned.plan.offers.end(),
                                    [&](const OfferedPlan& one) { return NameOf(one) == (*candidates)[*chosen].name; });
  if (!is_offer) return absl::OkStatus();
  const size_t first = candidates->size();
  KnownAnswers known(compilation.context.oracle);
  const DeviceModel& device = *compilation.context.device;
  std::vector<Way> ways;
  if (device.kind == "cpu") {
    const Candidate& offer = (*candidates)[*chosen];
    ways.push_back(ForThisDevice(compilation, absl::StrCat(offer.name, " for this device"), &offer.own->planned.plan));
  }
  if (passes::MayTune(compilation)) ways.push_back(Tuned(compilation, (*candidates)[*chosen], &known));
  for (const Way& way : ways) RETURN_IF_ERROR(AddCandidate(compilation, made, way, candidates).status());
  std::vector<Candidate> compared;
  std::vector<PlanQuestion> questions;
  const auto add = [&](const Candidate& one) -> absl::Status {
    Candidate& copy = compared.emplace_back();
    copy.name = one.name, copy.model = one.model, copy.launches = one.launches, copy.texts = one.texts;
    copy.loops = one.loops;
    ASSIGN_OR_RETURN(questions.emplace_back(), QuestionOf(compilation, copy));
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(add((*candidates)[*chosen]));
  for (size_t c = first; c < candidates->size();) {
    RETURN_IF_ERROR(MakeKernels(compilation, &(*candidates)[c]));
    RETURN_IF_ERROR(add((*candidates)[c]));
    const bool again = std::any_of(questions.begin(), questions.end() - 1,
                                   [&](const PlanQuestion& earlier) { return earlier.key == questions.back().key; });
    if (!again) {
      ++c;
      continue;
    }
    candidates->erase(candidates->begin() + static_cast<std::ptrdiff_t>(c));
    compared.pop_back();
    questions.pop_back();
  }
  if (compared.size() == 1) return absl::OkStatus();
  CandidateBundler bundler(compilation, dims, compared);
  ASSIGN_OR_RETURN(const PlanAnswers answers, compilation.context.plans->Compare(
                                                  questions[0], absl::MakeConstSpan(questions).subspan(1), bundler));
  std::vector<PlanAlternative> ways_compared = {AlternativeOf(compared[0])};
  for (size_t a = 0; a < answers.comparisons.size(); ++a) {
    PlanAlternative& one = ways_compared.emplace_back(AlternativeOf(compared[1 + a]));
    if (answers.comparisons[a].has_value()) SetTimes(*answers.comparisons[a], &one);
  }
  const size_t fastest = FastestOf(ways_compared);
  const double ratio = (*alternatives)[*chosen].ratio;
  for (size_t w = 1; w < ways_compared.size(); ++w) {
    PlanAlternative& one = ways_compared[w];
    for (double* of : {&one.ratio, &one.ratio_low, &one.ratio_high}) *of *= ratio;
    alternatives->push_back(std::move(one));
  }
  if (fastest > 0) *chosen = first + fastest - 1;
  return absl::OkStatus();
}

}  // namespace

absl::Status KeepFastestPlan(const Compilation& compilation, const std::map<std::string, int64_t>& dims,
                             Prepared* made) {
  const CompileContext& context = compilation.context;
  CompileAccount& account = made->account;
  const std::vector<OfferedPlan>& offers = made->planned.plan.offers;
  if (context.plans == nullptr || (account.measured + account.from_database == 0 && offers.empty())) {
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(compilation.clock->Begin("compare", "planning by estimates"));
  ASSIGN_OR_RETURN(std::vector<Candidate> candidates, CandidatesBeside(compilation, *made));
  if (candidates.empty()) return absl::OkStatus();
  candidates.push_back({offers.empty() ? "by measurements" : NameOf(offers[0]), nullptr, made});
  std::vector<PlanQuestion> questions;
  for (Candidate& candidate : candidates) {
    RETURN_IF_ERROR(MakeKernels(compilation, &candidate));
    ASSIGN_OR_RETURN(questions.emplace_back(), QuestionOf(compilation, candidate));
  }
  // The passes over the bundle may have made two plans one.
  for (size_t c = candidates.size() - 1; c-- > 0;) {
    const bool again = std::any_of(questions.begin() + static_cast<std::ptrdiff_t>(c) + 1, questions.end(),
                                   [&](const PlanQuestion& later) { return later.key == questions[c].key; });
    if (!again) continue;
    questions.erase(questions.begin() + static_cast<std::ptrdiff_t>(c));
    candidates.erase(candidates.begin() + static_cast<std::ptrdiff_t>(c));
  }
  if (candidates.size() == 1) return absl::OkStatus();
  std::vector<PlanAlternative> estimated = std::exchange(account.alternatives, {});  // of offers
  for (const Candidate& candidate : candidates) {
    account.alternatives.push_back(AlternativeOf(candidate));
    const auto offer = std::find_if(estimated.begin(), estimated.end(),
                                    [&](const PlanAlternative& one) { return one.plan == candidate.name; });
    if (offer == estimated.end()) continue;
    account.alternatives.back().reason = std::move(offer->reason);
    estimated.erase(offer);
  }
  CandidateBundler bundler(compilation, dims, candidates);
  ASSIGN_OR_RETURN(const PlanAnswers answers,
                   context.plans->Compare(questions[0], absl::MakeConstSpan(questions).subspan(1), bundler));
  account.not_compared = answers.not_measured;
  for (size_t c = 1; c < candidates.size(); ++c) {
    const std::optional<PlanComparison>& comparison = answers.comparisons[c - 1];
    if (!comparison.has_value()) continue;
    SetTimes(*comparison, &account.alternatives[c]);
    PlanAlternative& reference = account.alternatives[0];
    reference.median_ns = comparison->reference_ns;
    reference.ratio = reference.ratio_low = reference.ratio_high = 1;
    reference.rounds = std::max(reference.rounds, comparison->rounds);
  }
  // Where the plan that was made has no answer, nothing speaks against it.
  size_t chosen = account.alternatives.back().rounds > 0 ? FastestOf(account.alternatives) : candidates.size() - 1;
  RETURN_IF_ERROR(CompareSchedules(compilation, dims, *made, &candidates, &account.alternatives, &chosen));
  account.alternatives[chosen].chosen = true;
  for (PlanAlternative& one : estimated) {
    one.chosen = false;
    account.alternatives.push_back(std::move(one));
  }
  if (Prepared* own = candidates[chosen].own.get(); own != nullptr) {
    TakePlan(own->account, &account);
    made->planned = std::move(own->planned);
    made->launches = std::move(own->launches);
  }
  AccountForAlternatives(&account);
  return absl::OkStatus();
}

}  // namespace fusion
