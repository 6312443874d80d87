#include "tests/fuzz/graphs/check.h"

#include "compiler/ecg/text.h"
#include "tests/fuzz/graphs/eager_values.h"
#include "tests/fuzz/graphs/values.h"

namespace fusion::fuzz {
namespace {

constexpr int kRuns = 6;           // in Monte Carlo arithmetic
constexpr int kRunsOnDoubt = 100;  // before a difference counts

Subnormal Subnormals(const std::string& math) { return math == "strict" ? Subnormal::kKept : Subnormal::kMayBeZero; }

absl::Status CheckText(const ecg::Graph& graph) {
  const absl::StatusOr<ecg::Graph> parsed = ecg::Parse(ecg::Print(graph));
  if (!parsed.ok()) return parsed.status();
  return ecg::Print(*parsed) == ecg::Print(graph) ? absl::OkStatus()
                                                  : absl::InternalError("prints differently once parsed");
}

}  // namespace

std::vector<Checked> Check(const std::vector<Case>& cases, const std::vector<Mode>& modes,
                           const RunSettings& settings) {
  std::vector<ecg::Graph> real;
  for (const Case& c : cases) real.push_back(c.model ? c.graph : Materialise(c.graph));
  std::vector<Checked> checked(cases.size());
  std::vector<absl::StatusOr<Expectation>> expected;
  const auto judge = [&](size_t c, const Outputs& outputs, const std::string& mode, Subnormal subnormal) {
    absl::Status status = outputs.status();
    if (outputs.ok()) status = Agree(*expected[c], *outputs, subnormal, &checked[c].coverage);
    if (outputs.ok() && !status.ok()) {
      const absl::StatusOr<Expectation> again = Expect(real[c], DrawInputs(real[c]), kRunsOnDoubt);
      Coverage ignored;
      status = again.ok() ? Agree(*again, *outputs, subnormal, &ignored) : again.status();
    }
    if (!status.ok()) checked[c].failures.push_back({mode, status});
  };
  for (size_t c = 0; c < cases.size(); ++c) {
    expected.push_back(Expect(real[c], DrawInputs(real[c]), kRuns));
    if (!expected[c].ok()) {
      checked[c].failures.push_back({"interpreter", expected[c].status()});
    } else if (cases[c].model) {
      judge(c, RunEagerly(*cases[c].model), "import", Subnormal::kKept);
    }
    if (cases[c].model) continue;
    const absl::Status text = CheckText(cases[c].graph);
    if (!text.ok()) checked[c].failures.push_back({"text", text});
  }
  const auto results = RunGraphs(real, modes, settings);
  for (size_t m = 0; m < modes.size(); ++m) {
    for (size_t c = 0; c < cases.size(); ++c) {
      if (!expected[c].ok() || !results[m][c].has_value()) continue;
      judge(c, *results[m][c], modes[m].name, Subnormals(modes[m].math));
    }
  }
  return checked;
}

}  // namespace fusion::fuzz
