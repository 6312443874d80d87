// One call of a function in a rule: its arguments, by kind. The functions themselves stand in axis_functions.h,
// range_functions.h, window_functions.h and, with the table of all of them, in functions.cc.
#ifndef FUSION_COMPILER_REWRITE_FUNCTION_CALL_H_
#define FUSION_COMPILER_REWRITE_FUNCTION_CALL_H_

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "compiler/ecg/graph.h"
#include "compiler/rewrite/rule.h"
#include "compiler/te/ranges/value_ranges.h"
#include "runtime/base/status_macros.h"

namespace fusion::rewrite {

using Ints = std::vector<int64_t>;

// The values and attributes that a match has bound, as functions see them.
struct Scope {
  std::vector<const ecg::Value*> values;          // by slot of Rule::variables; nullptr where absent
  std::vector<const ecg::Attributes*> attrs;      // by slot of Rule::attr_variables
  std::vector<bool> known;                        // by slot: known at compile time
  std::function<bool(int slot)> reduced;          // whether a many-to-many operator computes it
  std::function<te::ValueRange(int slot)> range;  // value range of the variable
  // Whether all values that the pattern and its replacement read and compute are tame. Only `provided` may use it.
  std::function<bool()> tame;
};

// The result of a term: a number, integers, or a string. An error means that the rule does not apply here.
using FunctionValue = std::variant<double, Ints, std::string>;
using Evaluator = absl::StatusOr<FunctionValue> (*)(const Term& term, const Scope& scope);

// The error that says why a rule does not apply here.
inline absl::Status DoesNotApply(const std::string& why) { return absl::FailedPreconditionError(why); }

// The arguments of one call.
struct Call {
  const Term& term;
  const Scope& scope;
  Evaluator evaluate;  // of an argument

  absl::StatusOr<const ecg::Value*> Value(int i) const {
    const ecg::Value* value = scope.values[term.args[i].slot];
    if (value == nullptr) return DoesNotApply(absl::StrCat(term.args[i].text, " is absent"));
    return value;
  }
  absl::StatusOr<const ecg::Attributes*> Attrs(int i) const { return scope.attrs[term.args[i].attrs_slot]; }
  absl::StatusOr<double> Number(int i) const {
    ASSIGN_OR_RETURN(const FunctionValue value, evaluate(term.args[i], scope));
    if (const double* number = std::get_if<double>(&value)) return *number;
    return DoesNotApply("not a number");
  }
  absl::StatusOr<Ints> List(int i) const {
    ASSIGN_OR_RETURN(const FunctionValue value, evaluate(term.args[i], scope));
    if (const Ints* list = std::get_if<Ints>(&value)) return *list;
    return DoesNotApply("not a list");
  }
  // Returns an axis of a tensor of `rank` axes; a negative one counts from the end.
  absl::StatusOr<int> Axis(int i, size_t rank) const {
    ASSIGN_OR_RETURN(double axis, Number(i));
    if (axis < 0) axis += static_cast<double>(rank);
    if (axis < 0 || axis >= static_cast<double>(rank)) return DoesNotApply("no such axis");
    return static_cast<int>(axis);
  }
};

using FunctionBody = absl::StatusOr<FunctionValue> (*)(const Call&);

inline absl::StatusOr<FunctionValue> Truth(bool value) { return FunctionValue(value ? 1.0 : 0.0); }

}  // namespace fusion::rewrite

#endif  // FUSION_COMPILER_REWRITE_FUNCTION_CALL_H_
