// The static types of a model's inputs.
#ifndef FUSION_COMPILER_ONNX_BIND_INPUTS_H_
#define FUSION_COMPILER_ONNX_BIND_INPUTS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"
#include "compiler/onnx/import.h"
#include "onnx/onnx_pb.h"

namespace fusion::onnx_import {

// The graph's inputs that are no initializers, in order, with every symbolic dimension bound. INVALID_ARGUMENT listing
// all unbound dimensions with the options that bind them; also for a binding that binds nothing.
absl::StatusOr<std::vector<std::pair<std::string, ecg::ValueType>>> BindInputs(const onnx::GraphProto& graph,
                                                                               const ImportRequest& request);

}  // namespace fusion::onnx_import

#endif  // FUSION_COMPILER_ONNX_BIND_INPUTS_H_
