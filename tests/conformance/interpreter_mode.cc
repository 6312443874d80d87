#include <utility>

#include "compiler/analysis/interpret.h"
#include "compiler/simplify/passes.h"
#include "runtime/base/status_macros.h"
#include "tests/conformance/cut_to_extents.h"
#include "tests/conformance/modes.h"

namespace fusion::conformance {
namespace {

absl::StatusOr<Outputs> InterpretModel(const ecg::Graph& graph, const std::vector<Tensor>& inputs) {
  ASSIGN_OR_RETURN(const Outputs all, ecg::Interpret(graph, inputs));
  return CutToExtents(graph, all);
}

ModeFunction InterpretEach(ecg::Graph (*prepare)(const ecg::Graph&)) {
  return [prepare](const std::vector<TestCase>& cases, const ModeOptions&) {
    std::vector<absl::StatusOr<Outputs>> results;
    for (const TestCase& test : cases) {
      auto imported = ImportCase(test);
      if (!imported.ok()) {
        results.push_back(imported.status());
      } else {
        results.push_back(
            InterpretModel(prepare == nullptr ? imported->graph : prepare(imported->graph), imported->inputs));
      }
    }
    return results;
  };
}

}  // namespace

std::vector<Mode> InterpreterModes() {
  return {{"interpreter", InterpretEach(nullptr)}, {"simplified", InterpretEach(simplify::Simplify)}};
}

}  // namespace fusion::conformance
