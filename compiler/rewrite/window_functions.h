// Functions of rules about windows: what a convolution reads, and its padding.
#ifndef FUSION_COMPILER_REWRITE_WINDOW_FUNCTIONS_H_
#define FUSION_COMPILER_REWRITE_WINDOW_FUNCTIONS_H_

#include "compiler/rewrite/function_call.h"

namespace fusion::rewrite::functions {

absl::StatusOr<FunctionValue> Pointwise(const Call& call);
absl::StatusOr<FunctionValue> MergedPads(const Call& call);
absl::StatusOr<FunctionValue> ConvPads(const Call& call);
absl::StatusOr<FunctionValue> NoPads(const Call& call);
absl::StatusOr<FunctionValue> Taps(const Call& call);

}  // namespace fusion::rewrite::functions

#endif  // FUSION_COMPILER_REWRITE_WINDOW_FUNCTIONS_H_
