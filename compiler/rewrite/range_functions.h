// Functions of rules that test what is proven of an operand's values (ranges.h). An integer passes every test but those
// of its sign.
#ifndef FUSION_COMPILER_REWRITE_RANGE_FUNCTIONS_H_
#define FUSION_COMPILER_REWRITE_RANGE_FUNCTIONS_H_

#include "compiler/rewrite/function_call.h"

namespace fusion::rewrite::functions {

// How far a rule may move a result towards the ends of the floats' range.
constexpr double kModest = 65536;  // 2^16

absl::StatusOr<FunctionValue> Positive(const Call& call);
absl::StatusOr<FunctionValue> NonNegative(const Call& call);
absl::StatusOr<FunctionValue> Nonzero(const Call& call);
absl::StatusOr<FunctionValue> Finite(const Call& call);
absl::StatusOr<FunctionValue> Number(const Call& call);
absl::StatusOr<FunctionValue> Modest(const Call& call);
absl::StatusOr<FunctionValue> Moderate(const Call& call);
absl::StatusOr<FunctionValue> Bounded(const Call& call);
absl::StatusOr<FunctionValue> Light(const Call& call);
absl::StatusOr<FunctionValue> Foldable(const Call& call);
absl::StatusOr<FunctionValue> FoldableIfKnown(const Call& call);
absl::StatusOr<FunctionValue> Normal(const Call& call);
absl::StatusOr<FunctionValue> Few(const Call& call);
absl::StatusOr<FunctionValue> Between(const Call& call);
absl::StatusOr<FunctionValue> Tame(const Call& call);

}  // namespace fusion::rewrite::functions

#endif  // FUSION_COMPILER_REWRITE_RANGE_FUNCTIONS_H_
