#include "compiler/pipeline/pass_runner.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "compiler/pipeline/verify.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

// What the progress says when a stage begins.
std::string StageMessage(const std::string& stage, const Compilation& compilation) {
  if (stage == "import") return "reading the model";
  if (stage == "layout") return "choosing layouts";
  if (stage == "tune") return "trying schedules";
  if (stage == "lower") return absl::StrCat(compilation.planned->launches.size(), " kernels");
  return absl::StrCat(compilation.planned->graph.nodes().size(), " operators");
}

absl::Status Verify(Verifier verifier, const Compilation& compilation) {
  const Planned& planned = *compilation.planned;
  switch (verifier) {
    case Verifier::kGraph:
      return ecg::Verify(planned.graph);
    case Verifier::kLayouts:
      return VerifyLayouts(planned.graph, planned.layouts);
    case Verifier::kPlan:
      return Annotate(CheckPlan(planned.graph, planned.plan), absl::StrCat("planner ", compilation.options.planner));
    case Verifier::kElided:
      return VerifyElided(planned);
    case Verifier::kLaunches:
      return VerifyLaunches(planned);
    case Verifier::kMovement:
      return compilation.launches == nullptr ? absl::OkStatus() : VerifyKernels(*compilation.launches);
    case Verifier::kTe:
    case Verifier::kEnclosing:
      return absl::OkStatus();  // verified where it runs
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunPass(const Pass& pass, Compilation* compilation) {
  if (pass.applies != nullptr && !pass.applies(*compilation)) return absl::OkStatus();
  if (compilation->clock->stage() != pass.stage) {
    RETURN_IF_ERROR(compilation->clock->Begin(pass.stage, StageMessage(pass.stage, *compilation)));
  }
  if (compilation->options.disabled_passes.count(pass.name) > 0) {
    if (pass.can_disable) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("pass '", pass.name, "' cannot be disabled: it stands ", pass.why));
  }
  const auto start = std::chrono::steady_clock::now();
  const absl::Status ran = pass.run(compilation);
  if (absl::IsCancelled(ran)) return ran;
  RETURN_IF_ERROR(Annotate(ran, pass.name));
  if (const absl::Status verified = Verify(pass.verifier, *compilation); !verified.ok()) {
    return absl::InternalError(absl::StrCat("pass '", pass.name, "' made a wrong ", VerifierName(pass.verifier),
                                            " (a fault of the compiler): ", std::string(verified.message())));
  }
  compilation->account->passes.push_back({pass.name, StageClock::SecondsSince(start)});
  return absl::OkStatus();
}

absl::Status RunPasses(absl::Span<const Pass> passes, PassPart part, Compilation* compilation) {
  for (const Pass& pass : passes) {
    if (pass.part == part) RETURN_IF_ERROR(RunPass(pass, compilation));
  }
  return absl::OkStatus();
}

}  // namespace fusion
