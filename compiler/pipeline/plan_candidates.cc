#include "compiler/pipeline/plan_candidates.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/backends/placement.h"
#include "compiler/bundle/plan_key.h"
#include "compiler/cost/plan_oracle.h"
#include "compiler/pipeline/bundle_parts.h"
#include "compiler/pipeline/pass_runner.h"
#include "compiler/pipeline/plan_account.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

// A plan of the program, with the kernels that a bundle of this program alone would have.
struct Candidate {
  std::string name;
  Prepared* model = nullptr;
  std::vector<PlannedLaunch> launches;
  KernelTexts texts;
};

// Plans the graph of `made` with estimates at typical rates, as fusion-compile does without any device: what this finds
// does not depend on what was measured, nor on which machine.
absl::StatusOr<std::unique_ptr<Prepared>> PlanByEstimates(const Compilation& made) {
  auto plan = std::make_unique<Prepared>();
  plan->planned.graph = made.planned->graph;
  plan->planned.input_symbols = made.planned->input_symbols;
  plan->planned.input_extents = made.planned->input_extents;
  CompileOptions options = made.options;
  options.tune = "off";
  const DeviceModel typical = made.context.device->WithTypicalRates();
  ModelOracle estimates;
  CompileContext context = made.context;
  context.device = &typical;
  context.oracle = &estimates;
  context.progress = nullptr;
  context.plans = nullptr;
  StageClock clock(context, &plan->account);
  GraphBlockOracle oracle(context, Units(options, context), DisabledBlockPasses(options));
  Compilation compilation{made.files,     options,        context, &oracle,        &clock,
                          &plan->account, &plan->planned, nullptr, &plan->launches};
  RETURN_IF_ERROR(RunPasses(Passes(), PassPart::kPlan, &compilation));
  AccountForPlan(&compilation);
  RETURN_IF_ERROR(RunPasses(Passes(), PassPart::kKernels, &compilation));
  for (const PlannedLaunch& launch : plan->launches) {
    RETURN_IF_ERROR(PlaceKernel(launch.block.kernel, typical).backend->CheckSupported(launch.block.kernel));
  }
  RETURN_IF_ERROR(AccountForKernels(&compilation));
  return plan;
}

bool SameArguments(const BlockKernel& a, const BlockKernel& b) {
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
                      return x.block.key == y.block.key && x.concurrent == y.concurrent &&
                             SameArguments(x.block, y.block) &&
                             std::equal(x.others.begin(), x.others.end(), y.others.begin(), y.others.end(),
                                        SameArguments);
                    });
}

// Each candidate is printed alone, so that its files are those of its own bundle: the winner's are then built already.
absl::Status MakeKernels(const Compilation& compilation, Candidate* candidate) {
  candidate->launches = candidate->model->launches;
  CompileContext quiet = compilation.context;
  quiet.progress = nullptr;
  CompileAccount account;
  StageClock clock(quiet, &account);
  std::vector<Compilation> alone;
  alone.push_back({compilation.files, compilation.options, quiet, nullptr, &clock, &account,
                   &candidate->model->planned, nullptr, &candidate->launches});
  RETURN_IF_ERROR(RunBundlePasses(Passes(), absl::MakeSpan(alone)));
  std::vector<const BlockKernel*> kernels;
  for (const PlannedLaunch& launch : candidate->launches) kernels.push_back(&launch.block);
  candidate->texts = PrintKernels(kernels, *compilation.context.device);
  return absl::OkStatus();
}

absl::StatusOr<PlanQuestion> QuestionOf(const Compilation& compilation, const Candidate& candidate) {
  BundleProgram program = ProgramOf(candidate.model->planned, candidate.launches, candidate.texts.places.begin());
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
      programs.push_back(ProgramOf(candidate->model->planned, candidate->launches, place));
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

// What the account says of a plan, apart from how it was found, is that of the other plan.
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

}  // namespace

absl::Status KeepFastestPlan(const Compilation& compilation, const std::map<std::string, int64_t>& dims,
                             Prepared* made) {
  const CompileContext& context = compilation.context;
  CompileAccount& account = made->account;
  if (context.plans == nullptr || account.measured + account.from_database == 0) return absl::OkStatus();
  RETURN_IF_ERROR(compilation.clock->Begin("compare", "planning by estimates"));
  absl::StatusOr<std::unique_ptr<Prepared>> by_estimates = PlanByEstimates(compilation);
  if (absl::IsCancelled(by_estimates.status())) return by_estimates.status();
  if (!by_estimates.ok()) {
    account.not_compared =
        absl::StrCat("there is no plan by estimates: ", std::string(by_estimates.status().message()));
    AccountForAlternatives(&account);
    return absl::OkStatus();
  }
  if (SameLaunches(*made, **by_estimates)) return absl::OkStatus();

  std::vector<Candidate> candidates(2);
  candidates[0].name = "by estimates", candidates[0].model = by_estimates->get();
  candidates[1].name = "by measurements", candidates[1].model = made;
  std::vector<PlanQuestion> questions;
  for (Candidate& candidate : candidates) {
    RETURN_IF_ERROR(MakeKernels(compilation, &candidate));
    ASSIGN_OR_RETURN(questions.emplace_back(), QuestionOf(compilation, candidate));
  }
  if (questions[1].key == questions[0].key) return absl::OkStatus();
  CandidateBundler bundler(compilation, dims, candidates);
  ASSIGN_OR_RETURN(const PlanAnswers answers,
                   context.plans->Compare(questions[0], absl::MakeConstSpan(questions).subspan(1), bundler));
  account.not_compared = answers.not_measured;
  account.alternatives = {AlternativeOf(candidates[0]), AlternativeOf(candidates[1])};
  if (const auto& comparison = answers.comparisons[0]; comparison.has_value()) {
    PlanAlternative& one = account.alternatives[1];
    one.median_ns = comparison->median_ns;
    one.ratio = comparison->ratio, one.ratio_low = comparison->ratio_low, one.ratio_high = comparison->ratio_high;
    one.rounds = comparison->rounds;
    PlanAlternative& reference = account.alternatives[0];
    reference.median_ns = comparison->reference_ns;
    reference.ratio = reference.ratio_low = reference.ratio_high = 1;
    reference.rounds = comparison->rounds;
    // Where they are as fast as each other, the plan by estimates is kept: it is the same on every machine of this kind
    // and whatever was measured before.
    if (comparison->ratio > 1 - kEqualPlans) {
      TakePlan((*by_estimates)->account, &account);
      made->planned = std::move((*by_estimates)->planned);
      made->launches = std::move((*by_estimates)->launches);
      reference.chosen = true;
    }
  }
  account.alternatives[1].chosen = !account.alternatives[0].chosen;
  AccountForAlternatives(&account);
  return absl::OkStatus();
}

}  // namespace fusion
