// Functions that rules may call: in guards (predicates and values) and in replacements (shapes, attributes, numbers).
#ifndef FUSION_COMPILER_REWRITE_FUNCTIONS_H_
#define FUSION_COMPILER_REWRITE_FUNCTIONS_H_

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"
#include "compiler/rewrite/rule.h"
#include "compiler/te/ranges/value_ranges.h"

namespace fusion::rewrite {

using Ints = std::vector<int64_t>;

// The values and attributes that a match has bound, as functions see them.
struct Scope {
  std::vector<const ecg::Value*> values;      // by slot of Rule::variables; nullptr where absent
  std::vector<const ecg::Attributes*> attrs;  // by slot of Rule::attr_variables
  std::vector<bool> known;                    // by slot: known at compile time
  std::function<bool(int slot)> reduced;      // whether a many-to-many operator computes it
  std::function<te::ValueRange(int slot)> range;  // value range of the variable
  // Whether all values that the pattern and its replacement read and compute are tame. Only `provided` may use it.
  std::function<bool()> tame;
};

// The result of a term: a number, integers, or a string. An error means that the rule does not apply here.
using FunctionValue = std::variant<double, Ints, std::string>;
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

// Returns whether the value is a small constant whose elements all are `number`, rounded to its type.
bool IsFilledWith(const ecg::Value& value, double number);

}  // namespace fusion::rewrite

#endif  // FUSION_COMPILER_REWRITE_FUNCTIONS_H_
