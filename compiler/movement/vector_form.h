// The one list of operations that exist on whole vectors: lanes of f32, and masks of lanes for booleans. The scheduler
// puts nothing else on lanes, and every printer has a text for each of them.
#ifndef FUSION_COMPILER_MOVEMENT_VECTOR_FORM_H_
#define FUSION_COMPILER_MOVEMENT_VECTOR_FORM_H_

#include "compiler/te/scalar.h"

namespace fusion::movement {

// `node` is an operation (kOp). Powers have a form for the immediate exponents 2, 3 and 0.5 alone. What the types of
// the operands allow is the caller's question.
bool HasVectorForm(const te::ScalarNode& node);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_VECTOR_FORM_H_
