#include "tests/fuzz/graphs/check.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ecg/text.h"
#include "runtime/devices/cpu/subnormals.h"
#include "tests/fuzz/graphs/eager_values.h"
#include "tests/fuzz/graphs/summary.h"
#include "tests/fuzz/graphs/values.h"

namespace fusion::fuzz {
namespace {

constexpr int kRuns = 6;           // runs in Monte Carlo arithmetic
constexpr int kRunsOnDoubt = 100;  // runs before a difference counts

Subnormal Subnormals(const std::string& math) { return math == "fast" ? Subnormal::kMayBeZero : Subnormal::kKept; }

// Allows for what rules add to rounding at a level of `math`; where there is none, nothing is rewritten.
bool Widen(const ecg::Graph& graph, const std::string& math, Expectation* expectation) {
  if (math.empty()) return false;
  const absl::StatusOr<ecg::Graph> rewritten = Rewritten(graph, math);
  return rewritten.ok() && WidenByRewriting(graph, *rewritten, DrawInputs(graph), kRunsOnDoubt, expectation).ok();
}

// Allows for minimal filtering where compiled kernels may use it. Only the default does, never "strict".
bool Filter(const ecg::Graph& graph, const Mode& mode, Expectation* expectation) {
  if (mode.planner.empty() || mode.math != "fast" || mode.target != "cpu") return false;
  const absl::StatusOr<ecg::Graph> rewritten = Rewritten(graph, mode.math);
  return rewritten.ok() && AddFilteredRuns(*rewritten, DrawInputs(graph), kRunsOnDoubt, expectation).ok();
}

absl::Status CheckText(const ecg::Graph& graph) {
  const absl::StatusOr<ecg::Graph> parsed = ecg::Parse(ecg::Print(graph));
  if (!parsed.ok()) return parsed.status();
  return ecg::Print(*parsed) == ecg::Print(graph) ? absl::OkStatus()
                                                  : absl::InternalError("prints differently once parsed");
}

// A result where the reference has an error that only a run can have, or another error.
absl::Status AgreeOnRefusal(const Outputs& outputs) {
  if (outputs.ok()) return absl::FailedPreconditionError("has outputs where the reference has an error");
  return absl::IsInvalidArgument(outputs.status()) ? absl::OkStatus() : outputs.status();
}

// Does the mode's target say that it does not compute such a graph? The CPU computes all.
bool RefusedByTarget(const Mode& mode, const absl::Status& status) {
  return mode.target != "cpu" && (absl::IsUnimplemented(status) || absl::IsResourceExhausted(status));
}

// Does an index or an extent of the model follow from subnormal numbers, and become one that cannot be?
bool UndecidedIfZero(const onnx::ModelProto& model, const Expectation& expected) {
  if (expected.undecided_if_zero || expected.flushed.empty()) return expected.undecided_if_zero;
  const ScopedSubnormals mode(Subnormals::kZero);
  return absl::IsInvalidArgument(RunEagerly(model).status());
}

}  // namespace

std::vector<Checked> Check(const std::vector<Case>& cases, const std::vector<Mode>& modes,
                           const RunSettings& settings) {
  std::vector<ecg::Graph> real;
  for (const Case& c : cases) real.push_back(c.model ? c.graph : Materialise(c.graph));
  std::vector<Checked> checked(cases.size());
  std::vector<absl::StatusOr<Expectation>> expected;
  const auto judge = [&](size_t c, const Outputs& outputs, const Mode& mode) {
    const Subnormal subnormal = Subnormals(mode.math);
    Coverage coverage;  // of the last judgement, which decides
    const auto agree = [&](const Expectation& expectation) {
      coverage = {};
      return Agree(expectation, *outputs, subnormal, &coverage);
    };
    absl::Status status =
        outputs.ok() ? agree(*expected[c]) : AgreeOnError(*expected[c], outputs.status(), subnormal, &coverage);
    if (outputs.ok() && !status.ok()) {
      absl::StatusOr<Expectation> again = Expect(real[c], DrawInputs(real[c]), kRunsOnDoubt);
      status = again.ok() ? agree(*again) : again.status();
      if (again.ok() && !status.ok() && Widen(real[c], mode.math, &*again)) status = agree(*again);
      if (again.ok() && !status.ok() && Filter(real[c], mode, &*again)) status = agree(*again);
      const bool may_move_factors = mode.math == "fast";
      if (again.ok() && !status.ok() && may_move_factors && AllowForRange(real[c], DrawInputs(real[c]), &*again).ok()) {
        status = agree(*again);
      }
    }
    checked[c].coverage += coverage;
    if (!status.ok()) checked[c].failures.push_back({mode.name, status});
  };
  // Cases whose reference has an error, where it should: nothing is compared then.
  std::vector<bool> refused(cases.size()), undefined(cases.size());
  for (size_t c = 0; c < cases.size(); ++c) {
    expected.push_back(Expect(real[c], DrawInputs(real[c]), kRuns));
    if (cases[c].model) {
      const Outputs eager = RunEagerly(*cases[c].model);
      undefined[c] = expected[c].ok() && absl::IsInvalidArgument(eager.status());
      refused[c] = absl::IsInvalidArgument(expected[c].status()) && absl::IsInvalidArgument(eager.status());
      if (undefined[c] || refused[c]) {
        checked[c].failures.push_back({"import", eager.status()});
      } else if (expected[c].ok()) {
        expected[c]->undecided_if_zero = UndecidedIfZero(*cases[c].model, *expected[c]);
        judge(c, eager, {.name = "import", .planner = "", .math = ""});
      }
    }
    if (!expected[c].ok() && !refused[c]) checked[c].failures.push_back({"interpreter", expected[c].status()});
    if (cases[c].model) continue;
    const absl::Status text = CheckText(cases[c].graph);
    if (!text.ok()) checked[c].failures.push_back({"text", text});
  }
  const auto results = RunGraphs(real, modes, settings);
  for (size_t m = 0; m < modes.size(); ++m) {
    for (size_t c = 0; c < cases.size(); ++c) {
      if (!results[m][c].has_value() || undefined[c]) continue;
      if (!modes[m].form.empty()) {
        const absl::Status& status = results[m][c]->status();
        if (absl::IsFailedPrecondition(status)) {
          ++checked[c].not_one_kernel[absl::StrCat(modes[m].name, ": ", Reason(std::string(status.message())))];
          continue;
        }
        ++checked[c].one_kernel[modes[m].name];
      }
      if (RefusedByTarget(modes[m], results[m][c]->status())) {
        const std::string reason = Reason(std::string(results[m][c]->status().message()));
        ++checked[c].refused_by_target[absl::StrCat(modes[m].name, ": ", reason)];
        continue;
      }
      if (refused[c]) {
        const absl::Status status = AgreeOnRefusal(*results[m][c]);
        if (!status.ok()) checked[c].failures.push_back({modes[m].name, status});
      }
      if (!expected[c].ok()) continue;
      judge(c, *results[m][c], modes[m]);
      checked[c].judged = true;
    }
  }
  return checked;
}

}  // namespace fusion::fuzz
