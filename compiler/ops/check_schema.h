// Number of inputs and outputs and attributes of a node against its operator's schema.
#ifndef FUSION_COMPILER_OPS_CHECK_SCHEMA_H_
#define FUSION_COMPILER_OPS_CHECK_SCHEMA_H_

#include "compiler/ops/op_def.h"

namespace fusion::ops {

// The operator must be known. INVALID_ARGUMENT naming the node. Inference begins with this; `normalize` of an operator
// that is always replaced calls it itself.
absl::Status CheckSchema(const OpContext& context, int num_outputs);

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_CHECK_SCHEMA_H_
