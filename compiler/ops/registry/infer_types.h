// Type inference: the types of a node's outputs, which its operator declares.
#ifndef FUSION_COMPILER_OPS_REGISTRY_INFER_TYPES_H_
#define FUSION_COMPILER_OPS_REGISTRY_INFER_TYPES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"
#include "compiler/ops/registry/op_def.h"

namespace fusion::ops {

// Checks the number of inputs and the attributes against the schema, then infers the types and checks them:
// INVALID_ARGUMENT, naming the node, where the operator does not compute with these element types or an output is too
// large. UNIMPLEMENTED for an unknown operator.
absl::StatusOr<std::vector<ecg::ValueType>> InferTypes(const OpContext& context, int num_outputs);

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_REGISTRY_INFER_TYPES_H_
