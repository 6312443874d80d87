// The schema of an operator against a node.
#ifndef FUSION_COMPILER_OPS_SCHEMA_H_
#define FUSION_COMPILER_OPS_SCHEMA_H_

#include "absl/status/status.h"
#include "compiler/ops/op_def.h"

namespace fusion::ops {

// Counts of inputs and outputs, required inputs, names and kinds of attributes; INVALID_ARGUMENT naming the node.
absl::Status CheckSchema(const OpDef& def, const OpContext& context, int num_outputs);

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_SCHEMA_H_
