// Run checks (runtime/base/run_check.h) in a graph: outputs after those of the model, which no caller receives. The
// name of such an output is a prefix and the check's message; passes keep the names of outputs, so the message
// survives.
#ifndef FUSION_COMPILER_ECG_RUN_CHECKS_H_
#define FUSION_COMPILER_ECG_RUN_CHECKS_H_

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "compiler/ecg/graph.h"

namespace fusion::ecg {

// Import refuses a model that has an output whose name begins like this.
inline constexpr absl::string_view kRunCheckPrefix = "check of the run: ";

inline bool IsRunCheck(absl::string_view output_name) { return absl::StartsWith(output_name, kRunCheckPrefix); }
inline std::string RunCheckMessage(absl::string_view output_name) {
  return std::string(output_name.substr(kRunCheckPrefix.size()));
}
// `values` is an i64 vector. Call it after all outputs of the model are added.
inline void AddRunCheck(Graph* graph, ValueId values, const std::string& message) {
  graph->AddOutput(values, absl::StrCat(kRunCheckPrefix, message));
}
// Is it an output of the model itself, not an extent or a run check?
inline bool IsModelOutput(const Graph& graph, size_t output) {
  const std::string& name = graph.output_names()[output];
  return !name.empty() && !IsRunCheck(name);
}

}  // namespace fusion::ecg

#endif  // FUSION_COMPILER_ECG_RUN_CHECKS_H_
