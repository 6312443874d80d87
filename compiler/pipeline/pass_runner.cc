#include "compiler/pipeline/pass_runner.h"

#include <chrono>
#include <functional>

#include "absl/strings/str_cat.h"
#include "compiler/pipeline/verify.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

// The progress message at the beginning of a stage.
std::string StageMessage(const Pass& pass, const Compilation& compilation) {
  const std::string stage = pass.stage;
  if (pass.part == PassPart::kBundle) return "sharing weights among kernels";
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

// Runs `run`, which is the pass over these programs, as RunPass says.
absl::Status RunOver(const Pass& pass, absl::Span<Compilation> programs, const std::function<absl::Status()>& run) {
  const Compilation& first = programs[0];
  if (first.clock->stage() != pass.stage) {
    RETURN_IF_ERROR(first.clock->Begin(pass.stage, StageMessage(pass, first)));
  }
  if (first.options.disabled_passes.count(pass.name) > 0) {
    if (pass.can_disable) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("pass '", pass.name, "' cannot be disabled: it stands ", pass.why));
  }
  const auto start = std::chrono::steady_clock::now();
  const absl::Status ran = run();
  if (absl::IsCancelled(ran)) return ran;
  RETURN_IF_ERROR(Annotate(ran, pass.name));
  for (const Compilation& program : programs) {
    const absl::Status verified = Verify(pass.verifier, program);
    if (!verified.ok()) return MadeWrong(pass.name, VerifierName(pass.verifier), verified);
  }
  first.account->passes.push_back({pass.name, StageClock::SecondsSince(start)});
  return absl::OkStatus();
}

}  // namespace

absl::Status RunPass(const Pass& pass, Compilation* compilation) {
  if (pass.applies != nullptr && !pass.applies(*compilation)) return absl::OkStatus();
  return RunOver(pass, {compilation, 1}, [&] { return pass.run(compilation); });
}

absl::Status RunPasses(absl::Span<const Pass> passes, PassPart part, Compilation* compilation) {
  for (const Pass& pass : passes) {
    if (pass.part == part) RETURN_IF_ERROR(RunPass(pass, compilation));
  }
  return absl::OkStatus();
}

absl::Status RunBundlePasses(absl::Span<const Pass> passes, absl::Span<Compilation> programs) {
  for (const Pass& pass : passes) {
    if (pass.part != PassPart::kBundle) continue;
    if (pass.applies != nullptr && !pass.applies(programs[0])) continue;  // all programs are for one device
    RETURN_IF_ERROR(RunOver(pass, programs, [&] { return pass.run_bundle(programs); }));
  }
  return absl::OkStatus();
}

}  // namespace fusion
