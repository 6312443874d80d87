// Functions of rules that compute with axes, permutations and other lists of integers.
#ifndef FUSION_COMPILER_REWRITE_AXIS_FUNCTIONS_H_
#define FUSION_COMPILER_REWRITE_AXIS_FUNCTIONS_H_

#include "compiler/rewrite/function_call.h"

namespace fusion::rewrite::functions {

// The axes of X that a constant lists, counted from the front, in its order.
absl::StatusOr<Ints> Listed(const ecg::Value& list, const ecg::Value& x);

absl::StatusOr<FunctionValue> InOrder(const Call& call);
absl::StatusOr<FunctionValue> AxesOf(const Call& call);
absl::StatusOr<FunctionValue> AxisOf(const Call& call);
absl::StatusOr<FunctionValue> AxesFrom(const Call& call);
absl::StatusOr<FunctionValue> Without(const Call& call);
absl::StatusOr<FunctionValue> At(const Call& call);
absl::StatusOr<FunctionValue> ListOf(const Call& call);
absl::StatusOr<FunctionValue> Joined(const Call& call);
absl::StatusOr<FunctionValue> Sums(const Call& call);
absl::StatusOr<FunctionValue> Products(const Call& call);
absl::StatusOr<FunctionValue> Excludes(const Call& call);
absl::StatusOr<FunctionValue> Disjoint(const Call& call);
absl::StatusOr<FunctionValue> LastAxis(const Call& call);
absl::StatusOr<FunctionValue> Perm(const Call& call);
absl::StatusOr<FunctionValue> Compose(const Call& call);

}  // namespace fusion::rewrite::functions

#endif  // FUSION_COMPILER_REWRITE_AXIS_FUNCTIONS_H_
