// Functions that rules may call: in guards (predicates and values) and in replacements (shapes, attributes, numbers).
#ifndef FUSION_COMPILER_REWRITE_FUNCTIONS_H_
#define FUSION_COMPILER_REWRITE_FUNCTIONS_H_

#include <string>

#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"
#include "compiler/rewrite/function_call.h"
#include "compiler/rewrite/rule.h"
#include "compiler/te/ranges/value_ranges.h"

namespace fusion::rewrite {

// Returns what the term is where its variables have these values.
absl::StatusOr<FunctionValue> Evaluate(const Term& term, const Scope& scope);
absl::StatusOr<bool> Holds(const Guard& guard, const Scope& scope);

// Describes a function; FindFunction returns nullptr when there is none of this name. `signature` has one letter per
// argument: v a variable, a an attribute variable, s a bare name, n a value.
struct FunctionInfo {
  const char* signature;
  bool predicate;
};
const FunctionInfo* FindFunction(const std::string& name);

// Returns whether the value is NaN or of a magnitude of 2^16 at most. Products and sums of a few such numbers are far
// from the ends of the range of floats, and what a subnormal one loses is below 2^-110. As no operand is infinite, NaN
// results only from NaN, before and after rewriting.
bool IsTame(const te::ValueRange& range);

// Returns whether the value is a small constant whose elements all are `number`: of floats, rounded to their type.
bool IsFilledWith(const ecg::Value& value, double number);

}  // namespace fusion::rewrite

#endif  // FUSION_COMPILER_REWRITE_FUNCTIONS_H_
