#include "compiler/rewrite/axis_functions.h"

#include <algorithm>
#include <numeric>

namespace fusion::rewrite::functions {
namespace {

// Applies `op` element by element.
template <typename Op>
absl::StatusOr<FunctionValue> Zipped(const Call& call, Op op) {
  ASSIGN_OR_RETURN(Ints list, call.List(0));
  ASSIGN_OR_RETURN(const Ints other, call.List(1));
  if (list.size() != other.size()) return DoesNotApply("lists of different lengths");
  for (size_t i = 0; i < list.size(); ++i) {
    if (op(list[i], other[i], &list[i])) return DoesNotApply("too large");
  }
  return FunctionValue(list);
}

}  // namespace

absl::StatusOr<Ints> Listed(const ecg::Value& list, const ecg::Value& x) {
  if (!list.constant.has_value()) return DoesNotApply("axes are not known");
  const auto rank = static_cast<int64_t>(x.type.shape.size());
  Ints axes;
  for (int64_t i = 0; i < list.constant->num_elements(); ++i) {
    const int64_t axis = list.constant->GetInt(i);
    axes.push_back(axis < 0 ? axis + rank : axis);
  }
  return axes;
}

// Returns the axes of X that constant A lists, counted from the front, in the order of A.
absl::StatusOr<FunctionValue> InOrder(const Call& call) {
  ASSIGN_OR_RETURN(const ecg::Value* list, call.Value(0));
  ASSIGN_OR_RETURN(const ecg::Value* value, call.Value(1));
  ASSIGN_OR_RETURN(const Ints axes, Listed(*list, *value));
  return FunctionValue(axes);
}

// The same, sorted.
absl::StatusOr<FunctionValue> AxesOf(const Call& call) {
  ASSIGN_OR_RETURN(const ecg::Value* list, call.Value(0));
  ASSIGN_OR_RETURN(const ecg::Value* value, call.Value(1));
  ASSIGN_OR_RETURN(Ints axes, Listed(*list, *value));
  std::sort(axes.begin(), axes.end());
  return FunctionValue(axes);
}

// Returns the attribute `axis` of `a` for a tensor like X, counted from the front.
absl::StatusOr<FunctionValue> AxisOf(const Call& call) {
  ASSIGN_OR_RETURN(const ecg::Attributes* attrs, call.Attrs(0));
  ASSIGN_OR_RETURN(const ecg::Value* value, call.Value(1));
  ASSIGN_OR_RETURN(const double otherwise, call.Number(2));
  const auto rank = static_cast<int64_t>(value->type.shape.size());
  const int64_t axis = attrs->Int("axis", static_cast<int64_t>(otherwise));
  return FunctionValue(static_cast<double>(axis < 0 ? axis + rank : axis));
}

absl::StatusOr<FunctionValue> AxesFrom(const Call& call) {
  ASSIGN_OR_RETURN(const double first, call.Number(0));
  ASSIGN_OR_RETURN(const ecg::Value* value, call.Value(1));
  Ints axes;
  for (auto axis = static_cast<int64_t>(first); axis < static_cast<int64_t>(value->type.shape.size()); ++axis) {
    axes.push_back(axis);
  }
  return FunctionValue(axes);
}

// Returns the permutation without the `removed` axes of its result; the remaining axes are renumbered from 0.
absl::StatusOr<FunctionValue> Without(const Call& call) {
  ASSIGN_OR_RETURN(const Ints perm, call.List(0));
  ASSIGN_OR_RETURN(const Ints removed, call.List(1));
  Ints left;
  for (int64_t i = 0; i < static_cast<int64_t>(perm.size()); ++i) {
    if (std::find(removed.begin(), removed.end(), i) == removed.end()) left.push_back(perm[i]);
  }
  Ints sorted = left;
  std::sort(sorted.begin(), sorted.end());
  for (int64_t& axis : left) axis = std::lower_bound(sorted.begin(), sorted.end(), axis) - sorted.begin();
  return FunctionValue(left);
}

absl::StatusOr<FunctionValue> At(const Call& call) {
  ASSIGN_OR_RETURN(const Ints list, call.List(0));
  ASSIGN_OR_RETURN(const double index, call.Number(1));
  if (index < 0 || index >= static_cast<double>(list.size())) return DoesNotApply("no such element");
  return FunctionValue(static_cast<double>(list[static_cast<size_t>(index)]));
}

// Returns the elements of a constant of integers.
absl::StatusOr<FunctionValue> ListOf(const Call& call) {
  ASSIGN_OR_RETURN(const ecg::Value* value, call.Value(0));
  if (!value->constant.has_value() || !IsInteger(value->type.dtype) || value->type.shape.size() != 1) {
    return DoesNotApply("no known list");
  }
  Ints list;
  for (int64_t i = 0; i < value->constant->num_elements(); ++i) list.push_back(value->constant->GetInt(i));
  return FunctionValue(list);
}

absl::StatusOr<FunctionValue> Joined(const Call& call) {
  ASSIGN_OR_RETURN(Ints list, call.List(0));
  ASSIGN_OR_RETURN(const Ints more, call.List(1));
  list.insert(list.end(), more.begin(), more.end());
  return FunctionValue(list);
}

absl::StatusOr<FunctionValue> Sums(const Call& call) {
  return Zipped(call, [](int64_t a, int64_t b, int64_t* out) { return __builtin_add_overflow(a, b, out); });
}

absl::StatusOr<FunctionValue> Products(const Call& call) {
  return Zipped(call, [](int64_t a, int64_t b, int64_t* out) { return __builtin_mul_overflow(a, b, out); });
}

absl::StatusOr<FunctionValue> Excludes(const Call& call) {
  ASSIGN_OR_RETURN(const Ints list, call.List(0));
  ASSIGN_OR_RETURN(const double number, call.Number(1));
  return Truth(std::find(list.begin(), list.end(), static_cast<int64_t>(number)) == list.end());
}

absl::StatusOr<FunctionValue> Disjoint(const Call& call) {
  ASSIGN_OR_RETURN(const Ints a, call.List(0));
  ASSIGN_OR_RETURN(const Ints b, call.List(1));
  return Truth(
      std::none_of(a.begin(), a.end(), [&](int64_t x) { return std::find(b.begin(), b.end(), x) != b.end(); }));
}

absl::StatusOr<FunctionValue> LastAxis(const Call& call) {
  ASSIGN_OR_RETURN(const ecg::Value* value, call.Value(0));
  return FunctionValue(static_cast<double>(value->type.shape.size()) - 1);
}

// Returns the permutation of a node with attributes `a` over X, by default the reversal.
absl::StatusOr<FunctionValue> Perm(const Call& call) {
  ASSIGN_OR_RETURN(const ecg::Attributes* attrs, call.Attrs(0));
  ASSIGN_OR_RETURN(const ecg::Value* value, call.Value(1));
  Ints reversal(value->type.shape.size());
  std::iota(reversal.rbegin(), reversal.rend(), 0);
  Ints perm = attrs->Ints("perm", reversal);
  for (int64_t& axis : perm) axis += axis < 0 ? static_cast<int64_t>(perm.size()) : 0;
  return FunctionValue(perm);
}

absl::StatusOr<FunctionValue> Compose(const Call& call) {
  ASSIGN_OR_RETURN(const Ints first, call.List(0));
  ASSIGN_OR_RETURN(const Ints second, call.List(1));
  Ints result;
  for (int64_t axis : second) {
    if (axis < 0 || axis >= static_cast<int64_t>(first.size())) return DoesNotApply("not permutations of one rank");
    result.push_back(first[axis]);
  }
  return FunctionValue(result);
}

}  // namespace fusion::rewrite::functions
