// Checks of a run (runtime/base/run_check.h) in a graph: outputs behind those of the model, which nobody is handed. The
// name of such an output is its message behind a prefix, so that passes, which keep the names of outputs, keep it.
#ifndef FUSION_COMPILER_ECG_RUN_CHECKS_H_
#define FUSION_COMPILER_ECG_RUN_CHECKS_H_

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "compiler/ecg/graph.h"

namespace fusion::ecg {

// No output of a model has a name that begins so: import refuses it.
inline constexpr absl::string_view kRunCheckPrefix = "check of the run: ";

inline bool IsRunCheck(absl::string_view output_name) { return absl::StartsWith(output_name, kRunCheckPrefix); }
inline std::string RunCheckMessage(absl::string_view output_name) {
  return std::string(output_name.substr(kRunCheckPrefix.size()));
}
// `values`: an i64 vector. After all outputs of the model.
inline void AddRunCheck(Graph* graph, ValueId values, const std::string& message) {
  graph->AddOutput(values, absl::StrCat(kRunCheckPrefix, message));
}
// Is it an output that the model has, and no extent or check?
inline bool IsModelOutput(const Graph& graph, size_t output) {
  const std::string& name = graph.output_names()[output];
  return !name.empty() && !IsRunCheck(name);
}

}  // namespace fusion::ecg

#endif  // FUSION_COMPILER_ECG_RUN_CHECKS_H_
