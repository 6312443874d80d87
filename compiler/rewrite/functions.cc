#include "compiler/rewrite/functions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace fusion::rewrite {
namespace {

constexpr int64_t kMaxInspectedElements = 1 << 16;  // predicates over contents look at constants up to this size

absl::Status DoesNotApply(const std::string& why) { return absl::FailedPreconditionError(why); }

// The arguments of one call.
struct Call {
  const Term& term;
  const Scope& scope;

  absl::StatusOr<const ecg::Value*> Value(int i) const {
    const ecg::Value* value = scope.values[term.args[i].slot];
    if (value == nullptr) return DoesNotApply(absl::StrCat(term.args[i].text, " is absent"));
    return value;
  }
  absl::StatusOr<const ecg::Attributes*> Attrs(int i) const { return scope.attrs[term.args[i].attrs_slot]; }
  absl::StatusOr<double> Number(int i) const {
    ASSIGN_OR_RETURN(const FunctionValue value, Evaluate(term.args[i], scope));
    if (const double* number = std::get_if<double>(&value)) return *number;
    return DoesNotApply("not a number");
  }
  absl::StatusOr<Ints> List(int i) const {
    ASSIGN_OR_RETURN(const FunctionValue value, Evaluate(term.args[i], scope));
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

absl::StatusOr<FunctionValue> Truth(bool value) { return FunctionValue(value ? 1.0 : 0.0); }

absl::StatusOr<FunctionValue> ShapeOf(const Call& call) {
  ASSIGN_OR_RETURN(const ecg::Value* value, call.Value(0));
  return FunctionValue(value->type.shape);
}

absl::StatusOr<FunctionValue> RankOf(const Call& call) {
  ASSIGN_OR_RETURN(const ecg::Value* value, call.Value(0));
  return FunctionValue(static_cast<double>(value->type.shape.size()));
}

absl::StatusOr<FunctionValue> BytesOf(const Call& call) {
  ASSIGN_OR_RETURN(const ecg::Value* value, call.Value(0));
  return FunctionValue(static_cast<double>(DTypeBytes(value->type.dtype)));
}

absl::StatusOr<FunctionValue> ElementsOf(const Call& call) {
  ASSIGN_OR_RETURN(const ecg::Value* value, call.Value(0));
  return FunctionValue(static_cast<double>(NumElements(value->type.shape)));
}

absl::StatusOr<FunctionValue> Extent(const Call& call) {
  ASSIGN_OR_RETURN(const ecg::Value* value, call.Value(0));
  ASSIGN_OR_RETURN(const int axis, call.Axis(1, value->type.shape.size()));
  return FunctionValue(static_cast<double>(value->type.shape[axis]));
}

absl::StatusOr<FunctionValue> Along(const Call& call) {
  ASSIGN_OR_RETURN(const ecg::Value* value, call.Value(0));
  ASSIGN_OR_RETURN(const int axis, call.Axis(1, value->type.shape.size()));
  Ints shape(value->type.shape.size(), 1);
  shape[axis] = -1;
  return FunctionValue(shape);
}

absl::StatusOr<FunctionValue> AttributeOr(const Call& call) {
  ASSIGN_OR_RETURN(const ecg::Attributes* attrs, call.Attrs(0));
  const auto it = attrs->all().find(call.term.args[1].text);
  if (it == attrs->all().end()) return Evaluate(call.term.args[2], call.scope);
  if (const auto* v = std::get_if<int64_t>(&it->second)) return FunctionValue(static_cast<double>(*v));
  if (const auto* v = std::get_if<double>(&it->second)) return FunctionValue(*v);
  if (const auto* v = std::get_if<Ints>(&it->second)) return FunctionValue(*v);
  if (const auto* v = std::get_if<std::string>(&it->second)) return FunctionValue(*v);
  return DoesNotApply("an attribute of another kind");
}

// Does a double hold the element? Beyond 2^53 different integers of 64 bits become one double, so rules, which compute in
// doubles, must not see them.
bool IsExactInDouble(const Tensor& constant, int64_t i) {
  return !IsInteger(constant.dtype()) || std::fabs(constant.GetDouble(i)) <= 0x1p53;
}

absl::StatusOr<FunctionValue> ValueOf(const Call& call) {
  ASSIGN_OR_RETURN(const ecg::Value* value, call.Value(0));
  if (!value->constant.has_value() || value->constant->num_elements() != 1) return DoesNotApply("no known scalar");
  if (!IsExactInDouble(*value->constant, 0)) return DoesNotApply("an integer beyond 2^53");
  return FunctionValue(value->constant->GetDouble(0));
}

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

// Returns whether S, broadcast against X, is constant along those axes.
bool IsConstantAlong(const Shape& s, const Shape& x, const Ints& axes) {
  if (s.size() > x.size()) return false;
  const auto offset = static_cast<int64_t>(x.size() - s.size());
  return std::all_of(axes.begin(), axes.end(), [&](int64_t axis) { return axis < offset || s[axis - offset] == 1; });
}

absl::StatusOr<FunctionValue> ConstantAlong(const Call& call) {
  ASSIGN_OR_RETURN(const ecg::Value* s, call.Value(0));
  ASSIGN_OR_RETURN(const ecg::Value* x, call.Value(1));
  ASSIGN_OR_RETURN(const Ints axes, call.List(2));
  return Truth(IsConstantAlong(s->type.shape, x->type.shape, axes));
}

// Returns whether all axes of S, broadcast against X, lie behind that axis.
absl::StatusOr<FunctionValue> Behind(const Call& call) {
  ASSIGN_OR_RETURN(const ecg::Value* s, call.Value(0));
  ASSIGN_OR_RETURN(const ecg::Value* x, call.Value(1));
  ASSIGN_OR_RETURN(const double axis, call.Number(2));
  return Truth(static_cast<double>(s->type.shape.size()) < static_cast<double>(x->type.shape.size()) - axis);
}

// Returns whether operand S of X passes a reduction of X over axes a, with attributes k, unchanged: S must be constant
// along all reduced axes and still align with the result.
absl::StatusOr<FunctionValue> Unreduced(const Call& call) {
  ASSIGN_OR_RETURN(const ecg::Value* s, call.Value(0));
  ASSIGN_OR_RETURN(const ecg::Value* x, call.Value(1));
  ASSIGN_OR_RETURN(const ecg::Attributes* attrs, call.Attrs(3));
  const ecg::Value* list = call.scope.values[call.term.args[2].slot];
  Ints axes;
  if (list != nullptr) {
    ASSIGN_OR_RETURN(axes, Listed(*list, *x));
  }
  if (axes.empty() && attrs->Int("noop_with_empty_axes") != 0) return Truth(false);
  if (axes.empty()) {
    axes.resize(x->type.shape.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (!IsConstantAlong(s->type.shape, x->type.shape, axes)) return Truth(false);
  if (attrs->Int("keepdims", 1) != 0 || axes.empty()) return Truth(true);
  const int64_t behind = static_cast<int64_t>(x->type.shape.size()) - 1 - *std::max_element(axes.begin(), axes.end());
  return Truth(static_cast<int64_t>(s->type.shape.size()) <= behind);
}

// Returns whether the convolution reads one pixel per output and reads every pixel.
absl::StatusOr<FunctionValue> Pointwise(const Call& call) {
  ASSIGN_OR_RETURN(const ecg::Attributes* attrs, call.Attrs(0));
  ASSIGN_OR_RETURN(const ecg::Value* value, call.Value(1));
  const Shape& shape = value->type.shape;
  const auto all = [](const Ints& list, int64_t wanted) {
    return std::all_of(list.begin(), list.end(), [&](int64_t i) { return i == wanted; });
  };
  return Truth(shape.size() > 2 && all({shape.begin() + 2, shape.end()}, 1) && all(attrs->Ints("strides", {}), 1) &&
               all(attrs->Ints("pads", {}), 0));
}

// Returns whether X is computed by an operator that does not reduce. The kernel of an operator that does (a product, a
// convolution, a sum) takes what follows as its epilogue.
absl::StatusOr<FunctionValue> EpilogueFree(const Call& call) {
  return Truth(!call.scope.reduced(call.term.args[0].slot));
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

// Returns the pads of a convolution with attributes `c` that replace a Pad with amounts P, over all axes, before it.
absl::StatusOr<FunctionValue> MergedPads(const Call& call) {
  ASSIGN_OR_RETURN(const ecg::Attributes* attrs, call.Attrs(0));
  ASSIGN_OR_RETURN(const ecg::Value* amounts, call.Value(1));
  if (attrs->String("auto_pad", "NOTSET") != "NOTSET") return DoesNotApply("automatic padding");
  if (!amounts->constant.has_value()) return DoesNotApply("amounts are not known");
  const auto rank = static_cast<int64_t>(amounts->constant->num_elements() / 2), spatial = rank - 2;
  if (spatial < 1) return DoesNotApply("no spatial axes");
  Ints pads = attrs->Ints("pads", Ints(2 * spatial, 0));
  if (static_cast<int64_t>(pads.size()) != 2 * spatial) return DoesNotApply("amounts do not fit");
  for (int64_t side = 0; side < 2; ++side) {
    for (int64_t axis = 0; axis < rank; ++axis) {
      const int64_t amount = amounts->constant->GetInt(side * rank + axis);
      if (amount < 0 || (axis < 2 && amount != 0)) return DoesNotApply("not padding of spatial axes");
      if (axis >= 2) pads[side * spatial + axis - 2] += amount;
    }
  }
  return FunctionValue(pads);
}

// Returns the amounts of a Pad over all axes of X with which a convolution with attributes `c` needs no pads itself.
absl::StatusOr<FunctionValue> ConvPads(const Call& call) {
  ASSIGN_OR_RETURN(const ecg::Attributes* attrs, call.Attrs(0));
  ASSIGN_OR_RETURN(const ecg::Value* value, call.Value(1));
  const std::string automatic = attrs->String("auto_pad", "NOTSET");
  if (automatic != "NOTSET" && automatic != "VALID") return DoesNotApply("automatic padding");
  const auto rank = static_cast<int64_t>(value->type.shape.size()), spatial = rank - 2;
  if (spatial < 1) return DoesNotApply("no spatial axes");
  const Ints pads = attrs->Ints("pads", Ints(2 * spatial, 0));
  if (static_cast<int64_t>(pads.size()) != 2 * spatial) return DoesNotApply("pads do not fit");
  Ints amounts(2 * rank, 0);
  for (int64_t axis = 0; axis < spatial && automatic == "NOTSET"; ++axis) {
    amounts[axis + 2] = pads[axis];
    amounts[rank + axis + 2] = pads[spatial + axis];
  }
  return FunctionValue(amounts);
}

absl::StatusOr<FunctionValue> NoPads(const Call& call) {
  ASSIGN_OR_RETURN(const ecg::Value* value, call.Value(0));
  if (value->type.shape.size() < 3) return DoesNotApply("no spatial axes");
  return FunctionValue(Ints(2 * (value->type.shape.size() - 2), 0));
}

// Returns the number of elements of one filter of W.
absl::StatusOr<FunctionValue> Taps(const Call& call) {
  ASSIGN_OR_RETURN(const ecg::Value* value, call.Value(0));
  if (value->type.shape.empty() || value->type.shape[0] == 0) return DoesNotApply("no filters");
  const int64_t taps = NumElements(value->type.shape) / value->type.shape[0];
  return FunctionValue(static_cast<double>(taps));
}

// Returns whether scale T of a (de)quantization of W with attributes `e` varies along one axis at most.
absl::StatusOr<FunctionValue> OneAlong(const Call& call) {
  ASSIGN_OR_RETURN(const ecg::Value* scale, call.Value(0));
  ASSIGN_OR_RETURN(const ecg::Value* value, call.Value(1));
  ASSIGN_OR_RETURN(const ecg::Attributes* attrs, call.Attrs(2));
  ASSIGN_OR_RETURN(const int wanted, call.Axis(3, value->type.shape.size()));
  if (NumElements(scale->type.shape) == 1) return Truth(scale->type.shape.size() < 2);
  const int64_t axis = attrs->Int("axis", 1), rank = static_cast<int64_t>(value->type.shape.size());
  return Truth(attrs->Int("block_size") == 0 && (axis < 0 ? axis + rank : axis) == wanted);
}

absl::StatusOr<FunctionValue> Unsigned(const Call& call) {
  ASSIGN_OR_RETURN(const ecg::Value* value, call.Value(0));
  return Truth(IsInteger(value->type.dtype) && !IsSigned(value->type.dtype));
}

absl::StatusOr<FunctionValue> Known(const Call& call) { return Truth(call.scope.known[call.term.args[0].slot]); }

absl::StatusOr<FunctionValue> Scalar(const Call& call) {
  ASSIGN_OR_RETURN(const ecg::Value* value, call.Value(0));
  return Truth(NumElements(value->type.shape) == 1);
}

absl::StatusOr<FunctionValue> Float(const Call& call) {
  ASSIGN_OR_RETURN(const ecg::Value* value, call.Value(0));
  return Truth(IsFloat(value->type.dtype));
}

absl::StatusOr<FunctionValue> Wide(const Call& call) {
  ASSIGN_OR_RETURN(const ecg::Value* value, call.Value(0));
  return Truth(value->type.dtype == DType::kF32 || value->type.dtype == DType::kF64);
}

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

constexpr double kModest = 65536;       // 2^16: how far a rule may move a result towards the ends of the floats' range
constexpr double kModerate = 0x1p40;    // products of three such numbers, and their inverses, are in range
constexpr double kBounded = 0x1p100;    // far less than the last bit of the largest float

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

// Returns whether K, broadcast against X, varies along one axis at most.
absl::StatusOr<FunctionValue> Channelwise(const Call& call) {
  ASSIGN_OR_RETURN(const ecg::Value* k, call.Value(0));
  ASSIGN_OR_RETURN(const ecg::Value* x, call.Value(1));
  const Shape& shape = k->type.shape;
  ASSIGN_OR_RETURN(const int axis, call.Axis(2, x->type.shape.size()));
  if (shape.size() > x->type.shape.size()) return Truth(false);
  const size_t offset = x->type.shape.size() - shape.size();
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] != 1 && (d + offset != static_cast<size_t>(axis) || shape[d] != x->type.shape[axis])) {
      return Truth(false);
    }
  }
  return Truth(true);
}

absl::StatusOr<FunctionValue> SingleUse(const Call& call) {
  ASSIGN_OR_RETURN(const ecg::Value* value, call.Value(0));
  return Truth(value->consumers.size() == 1);
}

// Returns the value that all elements of a small constant share, or NaN when there is none.
double FillOf(const ecg::Value& value) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  if (!value.constant.has_value()) return none;
  const int64_t elements = value.constant->num_elements();
  if (elements == 0 || elements > kMaxInspectedElements) return none;
  if (!IsExactInDouble(*value.constant, 0)) return none;
  const double first = value.constant->GetDouble(0);
  for (int64_t i = 1; i < elements; ++i) {
    const double x = value.constant->GetDouble(i);
    if (x != first || std::signbit(x) != std::signbit(first)) return none;
  }
  return first;
}

struct Function {
  FunctionInfo info;
  FunctionBody body;
};

const Function* Find(const std::string& name) {
  constexpr bool kPredicate = true;
  static const auto* const kFunctions = new std::map<std::string, Function>{
      {"shape", {{"v", false}, ShapeOf}},  // the extents
      {"rank", {{"v", false}, RankOf}},
      {"bytes", {{"v", false}, BytesOf}},  // bytes of an element
      {"elements", {{"v", false}, ElementsOf}},
      {"extent", {{"vn", false}, Extent}},  // extent(X, axis)
      {"along", {{"vn", false}, Along}},  // along(X, axis): [1, …, -1, …, 1] with -1 at the axis, a Reshape's shape
      {"value", {{"v", false}, ValueOf}},        // of a scalar constant
      {"axes", {{"vv", false}, AxesOf}},         // axes(a, X): the constant a, negative axes resolved
      {"in_order", {{"vv", false}, InOrder}},    // in_order(a, X): like axes, in the order of a
      {"axis", {{"avn", false}, AxisOf}},        // axis(a, X, otherwise): the attribute, from the front
      {"axes_from", {{"nv", false}, AxesFrom}},  // axes_from(n, X): axis n and all behind it
      {"without", {{"nn", false}, Without}},     // without(p, r): permutation p of a tensor without its axes r
      {"list", {{"v", false}, ListOf}},          // of a constant
      {"joined", {{"nn", false}, Joined}},       // two lists joined into one
      {"sums", {{"nn", false}, Sums}},           // element by element
      {"products", {{"nn", false}, Products}},
      {"at", {{"nn", false}, At}},  // at(list, index)
      {"last", {{"v", false}, LastAxis}},
      {"attr", {{"asn", false}, AttributeOr}},  // attr(a, name, otherwise)
      {"perm", {{"av", false}, Perm}},          // perm(a, X)
      {"compose", {{"nn", false}, Compose}},    // compose(p, q)[i] = p[q[i]]
      {"merged_pads", {{"av", false}, MergedPads}},
      {"conv_pads", {{"av", false}, ConvPads}},  // conv_pads(c, X): a Pad's amounts
      {"no_pads", {{"v", false}, NoPads}},
      {"taps", {{"v", false}, Taps}},
      {"const", {{"v", kPredicate}, Known}},
      {"scalar", {{"v", kPredicate}, Scalar}},  // one element
      {"float", {{"v", kPredicate}, Float}},
      {"wide", {{"v", kPredicate}, Wide}},  // f32 or f64
      {"positive", {{"v", kPredicate}, Positive}},
      {"nonnegative", {{"v", kPredicate}, NonNegative}},
      {"finite", {{"v", kPredicate}, Finite}},    // no infinity, no NaN
      {"number", {{"v", kPredicate}, Number}},    // never NaN
      {"nonzero", {{"v", kPredicate}, Nonzero}},  // also of one sign
      {"modest", {{"v", kPredicate}, Modest}},      // 0, or of magnitude 2^-16 to 2^16
      {"moderate", {{"v", kPredicate}, Moderate}},  // 0, or of magnitude 2^-40 to 2^40
      {"bounded", {{"v", kPredicate}, Bounded}},    // of magnitude 2^100 at most
      {"light", {{"v", kPredicate}, Light}},        // of magnitude 2^16 at most
      {"foldable", {{"v", kPredicate}, Foldable}},  // 0, or of magnitude 2^-110 to 2^100
      {"normal", {{"v", kPredicate}, Normal}},      // 0, or of magnitude 2^-126 to 2^100
      {"few", {{"v", kPredicate}, Few}},            // 2^16 elements at most: so much larger may a sum of them be
      {"between", {{"vnn", kPredicate}, Between}},  // between(X, least, largest); no NaN
      {"tame", {{"", kPredicate}, Tame}},  // all that pattern and replacement read and compute
      {"channelwise", {{"vvn", kPredicate}, Channelwise}},  // channelwise(K, X, axis)
      {"one_along", {{"vvan", kPredicate}, OneAlong}},      // one_along(t, W, e, axis)
      {"unsigned", {{"v", kPredicate}, Unsigned}},
      {"excludes", {{"nn", kPredicate}, Excludes}},  // excludes(list, number)
      {"disjoint", {{"nn", kPredicate}, Disjoint}},
      {"constant_along", {{"vvn", kPredicate}, ConstantAlong}},  // constant_along(S, X, axes)
      {"behind", {{"vvn", kPredicate}, Behind}},                 // behind(S, X, axis)
      {"unreduced", {{"vvva", kPredicate}, Unreduced}},          // unreduced(S, X, a, k)
      {"pointwise", {{"av", kPredicate}, Pointwise}},            // pointwise(c, W)
      {"epilogue_free", {{"v", kPredicate}, EpilogueFree}},      // not computed by a reducing operator
      {"single_use", {{"v", kPredicate}, SingleUse}},
  };
  const auto it = kFunctions->find(name);
  return it == kFunctions->end() ? nullptr : &it->second;
}

}  // namespace

const FunctionInfo* FindFunction(const std::string& name) {
  const Function* function = Find(name);
  return function == nullptr ? nullptr : &function->info;
}

absl::StatusOr<FunctionValue> Evaluate(const Term& term, const Scope& scope) {
  switch (term.kind) {
    case Term::Kind::kNumber:
      return FunctionValue(term.number);
    case Term::Kind::kString:
      return FunctionValue(term.text);
    case Term::Kind::kList: {
      Ints list;
      for (const Term& arg : term.args) {
        ASSIGN_OR_RETURN(const FunctionValue value, Evaluate(arg, scope));
        if (!std::holds_alternative<double>(value)) return DoesNotApply("not a number");
        list.push_back(static_cast<int64_t>(std::get<double>(value)));
      }
      return FunctionValue(list);
    }
    case Term::Kind::kCall: {
      const Function* function = Find(term.text);
      if (function == nullptr) return absl::InternalError(absl::StrCat("unknown function '", term.text, "'"));
      return function->body({term, scope});
    }
    default:
      return absl::InternalError("an operator or a variable is not a value of its own here");
  }
}

absl::StatusOr<bool> Holds(const Guard& guard, const Scope& scope) {
  ASSIGN_OR_RETURN(const FunctionValue left, Evaluate(guard.left, scope));
  if (guard.relation.empty()) return std::get<double>(left) != 0;
  ASSIGN_OR_RETURN(const FunctionValue right, Evaluate(guard.right, scope));
  if (guard.relation == "=") return left == right;
  if (guard.relation == "!=") return left != right;
  if (!std::holds_alternative<double>(left) || !std::holds_alternative<double>(right)) return false;
  const double a = std::get<double>(left), b = std::get<double>(right);
  return guard.relation == "<" ? a < b : a <= b;
}

bool IsTame(const te::ValueRange& range) { return range.lo >= -kModest && range.hi <= kModest; }

bool IsFilledWith(const ecg::Value& value, double number) {
  if (IsInteger(value.type.dtype) && number != std::floor(number)) return false;
  const double fill = FillOf(value);
  const double wanted = Tensor::From<double>(value.type.dtype, {}, {number}).GetDouble(0);
  return fill == wanted && (fill != 0 || std::signbit(fill) == std::signbit(wanted));
}

}  // namespace fusion::rewrite
