// A whole graph by the tensor expression interpreter: what every compiled form of it is compared with.
#ifndef FUSION_COMPILER_ECG_INTERPRET_H_
#define FUSION_COMPILER_ECG_INTERPRET_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"
#include "compiler/te/interpreter.h"

namespace fusion::ecg {

// `inputs` parallel to graph.inputs(); the result to graph.outputs(). The graph is verified first.
// An output may be a constant or an input, as passes leave them.
absl::StatusOr<std::vector<Tensor>> Interpret(const Graph& graph, const std::vector<Tensor>& inputs,
                                              const te::InterpretOptions& options = {});

}  // namespace fusion::ecg

#endif  // FUSION_COMPILER_ECG_INTERPRET_H_
