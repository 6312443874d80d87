#include "compiler/rewrite/functions.h"

#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler/rewrite/axis_functions.h"
#include "compiler/rewrite/function_call.h"
#include "compiler/rewrite/range_functions.h"
#include "compiler/rewrite/window_functions.h"
#include "runtime/base/status_macros.h"

namespace fusion::rewrite {
namespace {

using namespace functions;  // NOLINT(google-build-using-namespace): the table below names all of them

constexpr int64_t kMaxInspectedElements = 1 << 16;  // predicates over contents look at constants up to this size

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

// Does a double hold the element? Beyond 2^53 different integers of 64 bits become one double, so rules, which compute
// in doubles, must not see them.
bool IsExactInDouble(const Tensor& constant, int64_t i) {
  return !IsInteger(constant.dtype()) || std::fabs(constant.GetDouble(i)) <= 0x1p53;
}

absl::StatusOr<FunctionValue> ValueOf(const Call& call) {
  ASSIGN_OR_RETURN(const ecg::Value* value, call.Value(0));
  if (!value->constant.has_value() || value->constant->num_elements() != 1) return DoesNotApply("no known scalar");
  if (!IsExactInDouble(*value->constant, 0)) return DoesNotApply("an integer beyond 2^53");
  return FunctionValue(value->constant->GetDouble(0));
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

// Returns whether X is computed by an operator that does not reduce. The kernel of an operator that does (a product, a
// convolution, a sum) takes what follows as its epilogue.
absl::StatusOr<FunctionValue> EpilogueFree(const Call& call) {
  return Truth(!call.scope.reduced(call.term.args[0].slot));
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
      {"finite", {{"v", kPredicate}, Finite}},                      // no infinity, no NaN
      {"number", {{"v", kPredicate}, Number}},                      // never NaN
      {"nonzero", {{"v", kPredicate}, Nonzero}},                    // also of one sign
      {"modest", {{"v", kPredicate}, Modest}},                      // 0, or of magnitude 2^-16 to 2^16
      {"moderate", {{"v", kPredicate}, Moderate}},                  // 0, or of magnitude 2^-40 to 2^40
      {"bounded", {{"v", kPredicate}, Bounded}},                    // of magnitude 2^100 at most
      {"light", {{"v", kPredicate}, Light}},                        // of magnitude 2^16 at most
      {"foldable", {{"v", kPredicate}, Foldable}},                  // 0, or of magnitude 2^-110 to 2^100
      {"foldable_if_known", {{"v", kPredicate}, FoldableIfKnown}},  // foldable, or no constant
      {"normal", {{"v", kPredicate}, Normal}},                      // 0, or of magnitude 2^-126 to 2^100
      {"few", {{"v", kPredicate}, Few}},            // 2^16 elements at most: so much larger may a sum of them be
      {"between", {{"vnn", kPredicate}, Between}},  // between(X, least, largest); no NaN
      {"tame", {{"", kPredicate}, Tame}},           // all that pattern and replacement read and compute
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
      return function->body({term, scope, Evaluate});
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

bool IsTame(const te::ValueRange& range) { return range.lo >= -functions::kModest && range.hi <= functions::kModest; }

bool IsFilledWith(const ecg::Value& value, double number) {
  const double fill = FillOf(value);
  if (IsInteger(value.type.dtype)) return fill == number;  // an unsigned 255 is no -1
  const double wanted = Tensor::From<double>(value.type.dtype, {}, {number}).GetDouble(0);
  return fill == wanted && (fill != 0 || std::signbit(fill) == std::signbit(wanted));
}

}  // namespace fusion::rewrite
