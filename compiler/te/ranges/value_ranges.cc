#include "compiler/te/ranges/value_ranges.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "compiler/te/scalar/op_table.h"

namespace fusion::te {
namespace {

using ranges::HoldsZero;
using ranges::Hull;
using ranges::kExact;
using ranges::Largest;
using ranges::Product;
using ranges::Range;
using ranges::Sum;
using ranges::Truth;

constexpr int64_t kMaxPoints = 1 << 14;  // points of a te, reduction axes included

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The volatile keeps GCC 12 at -O2 from using the unrounded double: where it converts two neighbours at once, it goes
// on with either value, so that 6e38 did not become infinite.
double RoundedToFloat(double x) {
  const volatile float rounded = static_cast<float>(x);
  return rounded;
}

// Returns what remains known after a value is rounded or wrapped to this type.
ValueRange Stored(ValueRange value_range, DType dtype, bool arithmetic) {
  if (dtype == DType::kF32) {
    const bool negative = value_range.lo < 0;
    value_range.lo = RoundedToFloat(value_range.lo);
    value_range.hi = RoundedToFloat(value_range.hi);
    // Devices may treat subnormal values as zero.
    if (value_range.least < std::numeric_limits<float>::min()) value_range.least = 0;
    if (std::fabs(value_range.lo) < std::numeric_limits<float>::min()) value_range.lo = std::min(value_range.lo, 0.0);
    if (std::fabs(value_range.hi) < std::numeric_limits<float>::min()) value_range.hi = std::max(value_range.hi, 0.0);
    // A negative number that is rounded to zero, or subnormal and treated as zero, is -0.
    if (negative && value_range.hi >= 0 && value_range.least == 0) value_range.negative_zero = true;
  }
  if (IsNarrowFloat(dtype)) return {};
  if (!IsFloat(dtype)) value_range.number = true;
  if (IsFloat(dtype) || dtype == DType::kBool) return value_range;
  const int bits = DTypeBits(dtype) - (IsSigned(dtype) ? 1 : 0);
  // Only arithmetic wraps. A double does not hold the last bits of 64-bit integers, so arithmetic in 64 bits uses the
  // limit 2^62, which keeps a distance from the edge.
  const double limit = std::ldexp(1.0, arithmetic && bits >= 63 ? 62 : bits);
  const double lowest = IsSigned(dtype) ? -limit : 0;
  if (arithmetic && !(value_range.lo >= lowest && value_range.hi <= limit)) return Range(-kInfinity, kInfinity, true);
  value_range.lo = std::max(value_range.lo, lowest);
  value_range.hi = std::min(value_range.hi, limit);
  if (std::max(std::fabs(value_range.lo), std::fabs(value_range.hi)) > kExact) value_range.linear = false;
  return value_range;
}

class Evaluator {
 public:
  Evaluator(const Program& program, const std::vector<std::optional<TensorRanges>>& tensors)
      : program_(program), tensors_(tensors) {}

  ValueRange At(const Scalar& s) {
    if (auto it = kept_.find(s.get()); it != kept_.end()) return it->second;
    const bool selects = s->kind != ScalarKind::kCast && s->kind != ScalarKind::kFromIndex &&
                         (s->kind != ScalarKind::kOp || s->op == Op::kMin || s->op == Op::kMax || s->op == Op::kSelect);
    ValueRange value_range = Stored(Evaluate(*s), s->dtype, !selects);
    if (keep && s.use_count() > 1) kept_.emplace(s.get(), value_range);
    return value_range;
  }

  bool keep = false;                      // keeps ranges of shared expressions while neither axes nor accs change
  std::unordered_map<int, int64_t> axes;  // an axis that is missing may be anywhere in its extent
  std::vector<ValueRange> accs;

 private:
  Interval At(const Index& x) {
    Interval sum{x.constant(), x.constant()};
    for (const Index::Part& part : x.parts()) {
      Interval range = At(part.term);
      if (part.coefficient < 0) std::swap(range.lo, range.hi);
      sum.lo += part.coefficient * range.lo;
      sum.hi += part.coefficient * range.hi;
    }
    return sum;
  }

  Interval At(const Term& term) {
    if (term.kind == TermKind::kAxis) {
      auto it = axes.find(term.axis.id);
      return it == axes.end() ? Interval{0, term.axis.extent - 1} : Interval{it->second, it->second};
    }
    if (term.kind == TermKind::kLoad) {
      const ValueRange value_range = LoadAt(term.tensor, term.indices, nullptr);
      Interval range = term.load_range;
      if (value_range.lo > static_cast<double>(range.lo))
        range.lo = static_cast<int64_t>(std::min(value_range.lo, kExact));
      if (value_range.hi < static_cast<double>(range.hi))
        range.hi = static_cast<int64_t>(std::max(value_range.hi, -kExact));
      return range.lo <= range.hi ? range : term.load_range;
    }
    const Interval inner = At(*term.inner);
    const auto block = [&](int64_t x) { return x / term.divisor - (x % term.divisor < 0 ? 1 : 0); };
    const Interval blocks{block(inner.lo), block(inner.hi)};
    if (term.kind == TermKind::kFloorDiv) return blocks;
    if (blocks.lo != blocks.hi) return {0, term.divisor - 1};
    return {inner.lo - blocks.lo * term.divisor, inner.hi - blocks.lo * term.divisor};
  }

  ValueRange LoadAt(TensorId tensor, const std::vector<Index>& indices, const Scalar& pad) {
    const std::optional<TensorRanges>& elements = tensors_[tensor];
    if (!elements) return {};
    const Shape& shape = program_.tensors[tensor].shape;
    std::optional<ValueRange> all;
    const auto add = [&all](const ValueRange& value_range) { all = all ? Hull(*all, value_range) : value_range; };
    std::vector<Interval> box;
    bool inside = true, empty = false;
    for (size_t d = 0; d < indices.size(); ++d) {
      Interval range = At(indices[d]);
      inside = inside && range.lo >= 0 && range.hi < shape[d];
      range.lo = std::max<int64_t>(range.lo, 0);
      range.hi = std::min<int64_t>(range.hi, shape[d] - 1);
      empty = empty || range.lo > range.hi;
      box.push_back(range);
    }
    if (!inside && pad != nullptr) add(At(pad));  // without a pad, the code around the load keeps it inside
    const bool one_for_all = NumElements(shape) > kMaxRangedElements || elements->size() == 1;
    if (!empty && one_for_all) add(elements->front());
    for (size_t address = 0; !empty && !one_for_all && address < elements->size(); ++address) {
      auto rest = static_cast<int64_t>(address);
      bool in_box = true;
      for (size_t d = box.size(); d-- > 0;) {
        in_box = in_box && rest % shape[d] >= box[d].lo && rest % shape[d] <= box[d].hi;
        rest /= shape[d];
      }
      if (in_box) add((*elements)[address]);
    }
    return all.value_or(ValueRange());
  }

  static std::optional<bool> Holds(const Interval& a, Cmp cmp, const Interval& b) {
    const bool apart = a.hi < b.lo || b.hi < a.lo;
    const bool same = a.lo == a.hi && b.lo == b.hi && a.lo == b.lo;
    switch (cmp) {
      case Cmp::kLt:
        return a.hi < b.lo ? std::optional(true) : a.lo >= b.hi ? std::optional(false) : std::nullopt;
      case Cmp::kGe:
        return a.lo >= b.hi ? std::optional(true) : a.hi < b.lo ? std::optional(false) : std::nullopt;
      case Cmp::kEq:
        return same ? std::optional(true) : apart ? std::optional(false) : std::nullopt;
      case Cmp::kNe:
        return apart ? std::optional(true) : same ? std::optional(false) : std::nullopt;
    }
    return std::nullopt;
  }

  std::optional<bool> At(const Pred& pred) {
    std::optional<bool> all = true;
    for (const Comparison& c : pred) {
      const std::optional<bool> holds = Holds(At(c.lhs), c.cmp, At(c.rhs));
      if (holds == false) return false;
      if (!holds) all = std::nullopt;
    }
    return all;
  }

  ValueRange Evaluate(const ScalarNode& s) {
    switch (s.kind) {
      case ScalarKind::kImm:
        return IsFloat(s.dtype) ? ValueRange::Exactly(s.fvalue, false)
                                : ValueRange::Exactly(static_cast<double>(s.ivalue), true);
      case ScalarKind::kLoad:
        return LoadAt(s.tensor, s.indices, s.pad);
      case ScalarKind::kIf: {
        const std::optional<bool> taken = At(s.pred);
        if (taken) return At(s.args[*taken ? 0 : 1]);
        return Hull(At(s.args[0]), At(s.args[1]));
      }
      case ScalarKind::kCast: {
        const ValueRange x = At(s.args[0]);
        const DType from = s.args[0]->dtype;
        if (s.dtype == DType::kBool) {
          if (x.lo > 0 || x.hi < 0) return Truth(true);
          return x.IsPoint() ? Truth(false) : Truth(std::nullopt);
        }
        if (IsFloat(s.dtype)) {
          ValueRange cast = Range(x.lo, x.hi, x.number);
          cast.least = std::max(cast.least, x.least);
          cast.negative_zero = cast.negative_zero && IsFloat(from) && x.negative_zero;
          return cast;
        }
        return ranges::OfRounding({.a = x, .b = x, .integer = !IsFloat(from)}, std::trunc);
      }
      case ScalarKind::kFromIndex: {
        const Interval value = At(s.index);
        return value.lo == value.hi ? ValueRange::Exactly(static_cast<double>(value.lo), true)
                                    : Range(static_cast<double>(value.lo), static_cast<double>(value.hi));
      }
      case ScalarKind::kAcc:
        return s.acc < static_cast<int>(accs.size()) ? accs[s.acc] : ValueRange();
      case ScalarKind::kOp:
        return Operation(s);
    }
    return {};
  }

  ValueRange Operation(const ScalarNode& s) {
    const bool integer = !IsFloat(s.args[0]->dtype);
    const ValueRange a = At(s.args[0]);
    if (s.op == Op::kSelect) {  // the other operand is not looked at where the condition is known
      if (a.IsPoint()) return At(s.args[a.lo != 0 ? 1 : 2]);
      return Hull(At(s.args[1]), At(s.args[2]));
    }
    const auto range = RowOf(s.op).range;
    if (range == nullptr) return s.dtype == DType::kBool ? Truth(std::nullopt) : ValueRange();
    const bool two = s.args.size() > 1;
    const ValueRange b = two ? At(s.args[1]) : ValueRange();
    return range({.a = a, .b = b, .integer = integer, .equal = two && !integer && SameLoad(*s.args[0], *s.args[1])});
  }

  // Returns whether both are loads of one element: of one tensor, at one place.
  static bool SameLoad(const ScalarNode& a, const ScalarNode& b) {
    if (&a == &b) return true;
    if (a.kind == ScalarKind::kCast && b.kind == ScalarKind::kCast && a.dtype == b.dtype) {
      return SameLoad(*a.args[0], *b.args[0]);
    }
    return a.kind == ScalarKind::kLoad && b.kind == ScalarKind::kLoad && a.tensor == b.tensor &&
           a.indices == b.indices && a.pad == b.pad;
  }

  const Program& program_;
  const std::vector<std::optional<TensorRanges>>& tensors_;
  std::unordered_map<const ScalarNode*, ValueRange> kept_;
};

// Calls f at every point of the axes, with their values bound.
template <typename F>
void ForEachPoint(const std::vector<Axis>& axes, Evaluator* evaluator, F f) {
  int64_t points = 1;
  for (const Axis& axis : axes) points *= axis.extent;
  for (int64_t p = 0; p < points; ++p) {
    int64_t rest = p;
    for (size_t a = axes.size(); a-- > 0;) {
      evaluator->axes[axes[a].id] = rest % axes[a].extent;
      rest /= axes[a].extent;
    }
    f();
  }
}

ValueRange Combine(ReductionKind kind, const ValueRange& a, const ValueRange& b) {
  switch (kind) {
    case ReductionKind::kSum:
      return Sum(a, b, 1);
    case ReductionKind::kProd:
      return Product(a, b);
    case ReductionKind::kMax:
      return Range(std::max(a.lo, b.lo), std::max(a.hi, b.hi));
    case ReductionKind::kMin:
      return Range(std::min(a.lo, b.lo), std::min(a.hi, b.hi));
    case ReductionKind::kGeneral:
      break;
  }
  return {};
}

bool IsSmall(const Te& te) {
  int64_t points = 1;
  for (const Axis& axis : te.axes) points *= axis.extent;
  if (points > kMaxRangedElements) return false;
  if (te.reduction) {
    for (const Axis& axis : te.reduction->axes) points *= axis.extent;
    if (!te.reduction->pred.empty()) return false;
  }
  return points <= kMaxPoints;
}

// A named reduction of elements that all lie in `element`.
ValueRange Reduced(const Reduction& reduction, const ValueRange& element) {
  double count = 1;
  for (const Axis& axis : reduction.axes) count *= static_cast<double>(axis.extent);
  if (count == 0) return {};
  const bool some = !reduction.pred.empty();  // the reduction leaves out some or all elements
  if (reduction.kind == ReductionKind::kMax || reduction.kind == ReductionKind::kMin) {
    if (!some) return element;
    return reduction.kind == ReductionKind::kMax ? Range(-kInfinity, element.hi, element.number)
                                                 : Range(element.lo, kInfinity, element.number);
  }
  if (reduction.kind != ReductionKind::kSum) return {};
  // The rounding error of a sum grows with its length and never changes the sign of a sum whose summands have one sign.
  // The sum begins with +0.
  const double slack = IsFloat(reduction.acc) ? count * std::ldexp(Largest(element), -23) : 0;
  double lo = count * (element.lo - slack), hi = count * (element.hi + slack);
  if (element.lo >= 0) lo = some ? 0 : std::max(lo, 0.0);
  if (element.hi <= 0) hi = some ? 0 : std::min(hi, 0.0);
  if (some) lo = std::min(lo, 0.0), hi = std::max(hi, 0.0);
  const double largest =
      reduction.acc == DType::kF64 ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
  const bool overflows = !(std::fabs(lo) <= largest && std::fabs(hi) <= largest);
  const bool one_sign = element.lo >= 0 || element.hi <= 0;
  ValueRange sum = Range(lo, hi, element.number && (one_sign || !overflows));
  if (!one_sign && overflows && IsFloat(reduction.acc)) sum = Range(-kInfinity, kInfinity);
  sum.negative_zero = sum.negative_zero && !(IsFloat(reduction.acc) && element.lo >= 0);
  return sum;
}

// Appends the value ranges of the te's results at one point of its axes, or for all points that the evaluator leaves
// open.
void AtPoint(const Program& program, const Te& te, Evaluator* evaluator, std::vector<TensorRanges>* results) {
  for (size_t o = 0; o < te.outputs.size(); ++o) {
    const ValueRange value = !te.reduction      ? evaluator->At(te.body[o])
                             : !te.then.empty() ? evaluator->At(te.then[o])
                                                : evaluator->accs[o];
    (*results)[o].push_back(Stored(value, program.tensors[te.outputs[o]].dtype, false));
  }
}

std::vector<TensorRanges> EachElement(const Program& program, const Te& te, Evaluator evaluator) {
  std::vector<TensorRanges> results(te.outputs.size());
  ForEachPoint(te.axes, &evaluator, [&] {
    evaluator.accs.clear();
    if (te.reduction && te.reduction->kind == ReductionKind::kGeneral) {
      for (const Scalar& init : te.reduction->init) evaluator.accs.push_back(evaluator.At(init));
      ForEachPoint(te.reduction->axes, &evaluator, [&] {
        std::vector<ValueRange> next;
        for (const Scalar& body : te.body) next.push_back(evaluator.At(body));
        evaluator.accs = std::move(next);
      });
    } else if (te.reduction) {
      std::optional<ValueRange> acc;
      ForEachPoint(te.reduction->axes, &evaluator, [&] {
        const ValueRange element = evaluator.At(te.body[0]);
        acc = acc ? Stored(Combine(te.reduction->kind, *acc, element), te.reduction->acc, true) : element;
      });
      const double identity = te.reduction->kind == ReductionKind::kSum ? 0 : 1;
      const bool known_identity =
          te.reduction->kind == ReductionKind::kSum || te.reduction->kind == ReductionKind::kProd;
      evaluator.accs = {acc              ? *acc
                        : known_identity ? ValueRange::Exactly(identity, !IsFloat(te.reduction->acc))
                                         : ValueRange()};
    }
    AtPoint(program, te, &evaluator, &results);
  });
  return results;
}

// Makes the evaluator answer for all elements of the te at once, behind its reduction where it has one.
void OpenAllElements(const Te& te, Evaluator* evaluator) {
  evaluator->keep = true;
  if (te.reduction && te.reduction->kind == ReductionKind::kGeneral) {
    evaluator->accs.resize(te.body.size());
  } else if (te.reduction) {
    evaluator->accs = {Stored(Reduced(*te.reduction, evaluator->At(te.body[0])), te.reduction->acc, true)};
  }
}

// Uses one range for all elements and repeats it where the tensor is small.
std::vector<TensorRanges> AllElements(const Program& program, const Te& te, Evaluator evaluator, Detail detail) {
  std::vector<TensorRanges> results(te.outputs.size());
  OpenAllElements(te, &evaluator);
  AtPoint(program, te, &evaluator, &results);
  int64_t points = 1;
  for (const Axis& axis : te.axes) points *= axis.extent;
  for (TensorRanges& result : results) {
    if (points <= kMaxRangedElements && detail == Detail::kElements)
      result.resize(static_cast<size_t>(points), ValueRange(result.front()));
  }
  return results;
}

}  // namespace

std::optional<TensorRanges> RangesOfConstant(const Tensor& tensor) {
  const bool small = tensor.num_elements() <= kMaxRangedElements;
  if (tensor.num_elements() > kMaxScannedElements) return std::nullopt;
  TensorRanges value_range;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const ValueRange element = IsFloat(tensor.dtype())
                                   ? ValueRange::Exactly(tensor.GetDouble(i), false)
                                   : ValueRange::Exactly(static_cast<double>(tensor.GetInt(i)), true);
    if (small || value_range.empty()) {
      value_range.push_back(element);
    } else {
      value_range[0] = Hull(value_range[0], element);
    }
  }
  return value_range;
}

ValueRange RangeOf(const Tensor& tensor) {
  const int64_t count = tensor.num_elements();
  if (count == 0) return {};
  double lo = kInfinity, hi = -kInfinity, least = kInfinity;
  bool number = true, negative_zero = false;
  const auto look = [&](double x) {
    number = number && !std::isnan(x);
    lo = std::min(lo, x);
    hi = std::max(hi, x);
    negative_zero = negative_zero || (x == 0 && std::signbit(x));
    if (x != 0) least = std::min(least, std::fabs(x));
  };
  if (tensor.dtype() == DType::kF32) {
    const auto* data = static_cast<const float*>(static_cast<const void*>(tensor.data()));
    float least32 = std::numeric_limits<float>::infinity(), lo32 = least32, hi32 = -least32;
    bool same32 = true, minus32 = false;
    for (int64_t i = 0; i < count; ++i) {
      const float x = data[i], magnitude = std::fabs(x);
      same32 &= x == x;
      lo32 = x < lo32 ? x : lo32;
      hi32 = x > hi32 ? x : hi32;
      minus32 |= std::signbit(x);
      least32 = magnitude > 0 && magnitude < least32 ? magnitude : least32;
    }
    number = same32, lo = lo32, hi = hi32, least = least32, negative_zero = minus32;
  } else {
    for (int64_t i = 0; i < count; ++i)
      look(IsFloat(tensor.dtype()) ? tensor.GetDouble(i) : static_cast<double>(tensor.GetInt(i)));
  }
  if (lo > hi) return {};  // all are NaN
  ValueRange value_range = Range(lo, hi, number);
  value_range.least = std::max(value_range.least, least);
  value_range.negative_zero = negative_zero && HoldsZero(value_range);
  return value_range;
}

namespace {

// Returns the ranges of all tensors of the program.
std::vector<std::optional<TensorRanges>> RangesOfTensors(const Program& program,
                                                         const std::vector<std::optional<TensorRanges>>& inputs,
                                                         Detail detail) {
  std::vector<std::optional<TensorRanges>> tensors(program.tensors.size());
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const std::optional<Tensor>& constant = program.tensors[program.inputs[i]].constant;
    if (!inputs[i] && constant) {
      tensors[program.inputs[i]] =
          detail == Detail::kElements ? RangesOfConstant(*constant) : TensorRanges{RangeOf(*constant)};
    } else {
      tensors[program.inputs[i]] = inputs[i];
    }
  }
  for (const Te& te : program.tes) {
    if (te.routine) continue;
    const Evaluator evaluator(program, tensors);
    std::vector<TensorRanges> results = detail == Detail::kElements && IsSmall(te)
                                            ? EachElement(program, te, evaluator)
                                            : AllElements(program, te, evaluator, detail);
    for (size_t o = 0; o < te.outputs.size(); ++o) tensors[te.outputs[o]] = std::move(results[o]);
  }
  return tensors;
}

}  // namespace

ExpressionRanges::ExpressionRanges(const Program& program, const std::vector<std::optional<TensorRanges>>& inputs)
    : program_(program), tensors_(RangesOfTensors(program, inputs, Detail::kRanges)) {}

ValueRange ExpressionRanges::Of(const Te& te, const Scalar& s) const {
  Evaluator evaluator(program_, tensors_);
  OpenAllElements(te, &evaluator);
  return evaluator.At(s);
}

std::vector<std::optional<TensorRanges>> InferRanges(const Program& program,
                                                     const std::vector<std::optional<TensorRanges>>& inputs,
                                                     Detail detail) {
  const std::vector<std::optional<TensorRanges>> tensors = RangesOfTensors(program, inputs, detail);
  std::vector<std::optional<TensorRanges>> outputs;
  for (TensorId output : program.outputs) outputs.push_back(tensors[output]);
  return outputs;
}

}  // namespace fusion::te
