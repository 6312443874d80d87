#include "compiler/rewrite/range_functions.h"

#include <cmath>
#include <limits>

namespace fusion::rewrite::functions {
namespace {

constexpr double kModerate = 0x1p40;  // products of three such numbers, and their inverses, are in range
constexpr double kBounded = 0x1p100;  // far less than the last bit of the largest float

// Tests the range that ranges.h proves. An integer passes every such test, because integers wrap and round nothing;
// only their signs matter, which other functions test.
template <typename Test>
absl::StatusOr<FunctionValue> Proven(const Call& call, Test test) {
  ASSIGN_OR_RETURN(const ecg::Value* value, call.Value(0));
  const int slot = call.term.args[0].slot;
  return Truth(!IsFloat(value->type.dtype) || test(call.scope.range(slot)));
}

// Returns whether the value is never NaN and no magnitude exceeds `largest`.
bool StaysWithin(const te::ValueRange& range, double largest) {
  return range.number && range.lo >= -largest && range.hi <= largest;
}

// The same, and no magnitude but 0 is below 1 / `largest`.
bool StaysNear1(const te::ValueRange& range, double largest) {
  return StaysWithin(range, largest) && range.least >= 1 / largest;
}

}  // namespace

absl::StatusOr<FunctionValue> Positive(const Call& call) {
  const te::ValueRange range = call.scope.range(call.term.args[0].slot);
  return Truth(range.number && range.lo > 0 && std::isfinite(range.hi));
}

absl::StatusOr<FunctionValue> NonNegative(const Call& call) {
  return Truth(call.scope.range(call.term.args[0].slot).lo >= 0);
}

absl::StatusOr<FunctionValue> Nonzero(const Call& call) {
  const te::ValueRange range = call.scope.range(call.term.args[0].slot);
  return Truth(range.lo > 0 || range.hi < 0);
}

absl::StatusOr<FunctionValue> Finite(const Call& call) {
  return Proven(call,
                [](const te::ValueRange& range) { return StaysWithin(range, std::numeric_limits<double>::max()); });
}

absl::StatusOr<FunctionValue> Number(const Call& call) {
  return Proven(call, [](const te::ValueRange& range) { return range.number; });
}

absl::StatusOr<FunctionValue> Modest(const Call& call) {
  return Proven(call, [](const te::ValueRange& range) { return StaysNear1(range, kModest); });
}

absl::StatusOr<FunctionValue> Moderate(const Call& call) {
  return Proven(call, [](const te::ValueRange& range) { return StaysNear1(range, kModerate); });
}

absl::StatusOr<FunctionValue> Bounded(const Call& call) {
  return Proven(call, [](const te::ValueRange& range) { return StaysWithin(range, kBounded); });
}

// A product with such a value, which is at most as large as kModest, is not at the end of the range if the other
// factors are not.
absl::StatusOr<FunctionValue> Light(const Call& call) {
  return Proven(call, [](const te::ValueRange& range) { return StaysWithin(range, kModest); });
}

// Weights that stay normal numbers when multiplied by a modest factor.
absl::StatusOr<FunctionValue> Foldable(const Call& call) {
  return Proven(call,
                [](const te::ValueRange& range) { return StaysWithin(range, kBounded) && range.least >= 0x1p-110; });
}

// A constant is scaled once and for all, so that an element that overflows then is infinite in every run, also where it
// meets nothing but zeros.
absl::StatusOr<FunctionValue> FoldableIfKnown(const Call& call) {
  ASSIGN_OR_RETURN(const ecg::Value* value, call.Value(0));
  return value->constant ? Foldable(call) : Truth(true);
}

absl::StatusOr<FunctionValue> Normal(const Call& call) {
  return Proven(call,
                [](const te::ValueRange& range) { return StaysWithin(range, kBounded) && range.least >= 0x1p-126; });
}

absl::StatusOr<FunctionValue> Few(const Call& call) {
  ASSIGN_OR_RETURN(const ecg::Value* value, call.Value(0));
  return Truth(static_cast<double>(NumElements(value->type.shape)) <= kModest);
}

absl::StatusOr<FunctionValue> Between(const Call& call) {
  ASSIGN_OR_RETURN(const double lo, call.Number(1));
  ASSIGN_OR_RETURN(const double hi, call.Number(2));
  return Proven(call, [&](const te::ValueRange& range) { return range.number && range.lo >= lo && range.hi <= hi; });
}

absl::StatusOr<FunctionValue> Tame(const Call& call) { return Truth(call.scope.tame()); }

}  // namespace fusion::rewrite::functions
