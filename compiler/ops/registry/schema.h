// Checks a node against the schema of its operator.
#ifndef FUSION_COMPILER_OPS_REGISTRY_SCHEMA_H_
#define FUSION_COMPILER_OPS_REGISTRY_SCHEMA_H_

#include "absl/status/status.h"
#include "compiler/ops/registry/op_def.h"

namespace fusion::ops {

// Checks the counts of inputs and outputs, required inputs, and the names and kinds of attributes. INVALID_ARGUMENT
// names the node.
absl::Status CheckSchema(const OpDef& def, const OpContext& context, int num_outputs);

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_REGISTRY_SCHEMA_H_
