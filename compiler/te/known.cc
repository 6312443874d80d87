#include "compiler/te/known.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace fusion::te {
namespace {

constexpr double kExact = 9007199254740992.0;  // integers up to here are exact in double
constexpr int64_t kMaxPoints = 1 << 14;        // of a te, folds included

Known Range(double lo, double hi) {
  Known known;
  if (std::isnan(lo) || std::isnan(hi)) return known;
  known.lo = lo;
  known.hi = hi;
  return known;
}

Known Hull(const Known& a, const Known& b) {
  if (a.linear && b.linear && a.constant == b.constant && a.terms == b.terms) return a;
  return Range(std::min(a.lo, b.lo), std::max(a.hi, b.hi));
}

Known Sum(const Known& a, const Known& b, int64_t sign) {
  Known sum = sign > 0 ? Range(a.lo + b.lo, a.hi + b.hi) : Range(a.lo - b.hi, a.hi - b.lo);
  sum.linear = a.linear && b.linear;
  if (!sum.linear) return sum;
  sum.terms = a.terms;
  sum.constant = a.constant + sign * b.constant;
  for (const auto& [symbol, coefficient] : b.terms) {
    if ((sum.terms[symbol] += sign * coefficient) == 0) sum.terms.erase(symbol);
  }
  if (sum.terms.empty()) sum.lo = sum.hi = static_cast<double>(sum.constant);
  return sum;
}

Known Product(const Known& a, const Known& b) {
  double lo = std::numeric_limits<double>::infinity(), hi = -lo;
  for (double x : {a.lo, a.hi}) {
    for (double y : {b.lo, b.hi}) {
      const double p = x == 0 || y == 0 ? 0 : x * y;
      lo = std::min(lo, p);
      hi = std::max(hi, p);
    }
  }
  Known product = Range(lo, hi);
  const Known* factor = a.linear && a.terms.empty() ? &a : b.linear && b.terms.empty() ? &b : nullptr;
  const Known& other = factor == &a ? b : a;
  if (factor == nullptr || !other.linear || std::fabs(product.lo) > kExact || std::fabs(product.hi) > kExact) {
    return product;
  }
  product.linear = true;
  product.constant = other.constant * factor->constant;
  for (const auto& [symbol, coefficient] : other.terms) {
    if (factor->constant != 0) product.terms[symbol] = coefficient * factor->constant;
  }
  return product;
}

// Integers towards zero; only by positive divisors.
Known Quotient(const Known& a, const Known& b, bool integer) {
  if (!(b.lo > 0)) return {};
  double lo = std::numeric_limits<double>::infinity(), hi = -lo;
  for (double x : {a.lo, a.hi}) {
    for (double y : {b.lo, b.hi}) {
      const double q = std::isinf(y) ? 0 : integer ? std::trunc(x / y) : x / y;
      lo = std::min(lo, q);
      hi = std::max(hi, q);
    }
  }
  Known quotient = Range(lo, hi);
  if (!integer || !a.linear || !b.linear || !b.terms.empty()) return quotient;
  bool exact = a.constant % b.constant == 0;
  for (const auto& [symbol, coefficient] : a.terms) exact = exact && coefficient % b.constant == 0;
  if (!exact) return quotient;
  quotient.linear = true;
  quotient.constant = a.constant / b.constant;
  for (const auto& [symbol, coefficient] : a.terms) quotient.terms[symbol] = coefficient / b.constant;
  return quotient;
}

Known Truth(std::optional<bool> truth) {
  return truth.has_value() ? Known::Exactly(*truth ? 1 : 0, true) : Range(0, 1);
}

Known Monotone(const Known& x, double (*f)(double)) { return Range(f(x.lo), f(x.hi)); }

// What rounding and wrapping leave of a value of this type.
Known Stored(Known known, DType dtype, bool arithmetic) {
  if (dtype == DType::kF32) {
    known.lo = static_cast<float>(known.lo);
    known.hi = static_cast<float>(known.hi);
  }
  if (IsNarrowFloat(dtype)) return {};
  if (IsFloat(dtype) || dtype == DType::kBool) return known;
  const int bits = DTypeBits(dtype) - (IsSigned(dtype) ? 1 : 0);
  // Only arithmetic wraps. Of 64 bits a double does not see the last ones, so a little is kept away from the edge.
  const double limit = std::ldexp(1.0, arithmetic && bits >= 63 ? 62 : bits);
  const double lowest = IsSigned(dtype) ? -limit : 0;
  if (arithmetic && !(known.lo >= lowest && known.hi <= limit)) return {};
  known.lo = std::max(known.lo, lowest);
  known.hi = std::min(known.hi, limit);
  if (std::max(std::fabs(known.lo), std::fabs(known.hi)) > kExact) known.linear = false;
  return known;
}

class Evaluator {
 public:
  Evaluator(const Program& program, const std::vector<std::optional<KnownTensor>>& tensors)
      : program_(program), tensors_(tensors) {}

  Known At(const Scalar& s) {
    if (auto it = kept_.find(s.get()); it != kept_.end()) return it->second;
    const bool selects = s->kind != ScalarKind::kCast && s->kind != ScalarKind::kFromIndex &&
                         (s->kind != ScalarKind::kOp || s->op == Op::kMin || s->op == Op::kMax || s->op == Op::kSelect);
    Known known = Stored(Evaluate(*s), s->dtype, !selects);
    if (keep && s.use_count() > 1) kept_.emplace(s.get(), known);
    return known;
  }

  bool keep = false;                      // what is known of shared expressions, while neither axes nor accs change
  std::unordered_map<int, int64_t> axes;  // one that is missing is anywhere in its extent
  std::vector<Known> accs;

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
      const Known known = LoadAt(term.tensor, term.indices, nullptr);
      Interval range = term.load_range;
      if (known.lo > static_cast<double>(range.lo)) range.lo = static_cast<int64_t>(std::min(known.lo, kExact));
      if (known.hi < static_cast<double>(range.hi)) range.hi = static_cast<int64_t>(std::max(known.hi, -kExact));
      return range.lo <= range.hi ? range : term.load_range;
    }
    const Interval inner = At(*term.inner);
    const auto block = [&](int64_t x) { return x / term.divisor - (x % term.divisor < 0 ? 1 : 0); };
    const Interval blocks{block(inner.lo), block(inner.hi)};
    if (term.kind == TermKind::kFloorDiv) return blocks;
    if (blocks.lo != blocks.hi) return {0, term.divisor - 1};
    return {inner.lo - blocks.lo * term.divisor, inner.hi - blocks.lo * term.divisor};
  }

  Known LoadAt(TensorId tensor, const std::vector<Index>& indices, const Scalar& pad) {
    const std::optional<KnownTensor>& elements = tensors_[tensor];
    if (!elements) return {};
    const Shape& shape = program_.tensors[tensor].shape;
    std::optional<Known> all;
    const auto add = [&all](const Known& known) { all = all ? Hull(*all, known) : known; };
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
    if (!inside && pad != nullptr) add(At(pad));  // without a pad, what is around the load keeps it inside
    if (!empty && NumElements(shape) > kMaxKnownElements) add(elements->front());
    for (size_t address = 0; !empty && NumElements(shape) <= kMaxKnownElements && address < elements->size();
         ++address) {
      auto rest = static_cast<int64_t>(address);
      bool in_box = true;
      for (size_t d = box.size(); d-- > 0;) {
        in_box = in_box && rest % shape[d] >= box[d].lo && rest % shape[d] <= box[d].hi;
        rest /= shape[d];
      }
      if (in_box) add((*elements)[address]);
    }
    return all.value_or(Known());
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

  Known Evaluate(const ScalarNode& s) {
    switch (s.kind) {
      case ScalarKind::kImm:
        return IsFloat(s.dtype) ? Known::Exactly(s.fvalue, false) : Known::Exactly(static_cast<double>(s.ivalue), true);
      case ScalarKind::kLoad:
        return LoadAt(s.tensor, s.indices, s.pad);
      case ScalarKind::kIf: {
        const std::optional<bool> taken = At(s.pred);
        if (taken) return At(s.args[*taken ? 0 : 1]);
        return Hull(At(s.args[0]), At(s.args[1]));
      }
      case ScalarKind::kCast: {
        const Known x = At(s.args[0]);
        const DType from = s.args[0]->dtype;
        if (s.dtype == DType::kBool) {
          if (x.lo > 0 || x.hi < 0) return Truth(true);
          return x.IsPoint() ? Truth(false) : Truth(std::nullopt);
        }
        if (IsFloat(s.dtype)) return Range(x.lo, x.hi);
        return IsFloat(from) ? Monotone(x, std::trunc) : x;
      }
      case ScalarKind::kFromIndex: {
        const Interval value = At(s.index);
        return value.lo == value.hi ? Known::Exactly(static_cast<double>(value.lo), true)
                                    : Range(static_cast<double>(value.lo), static_cast<double>(value.hi));
      }
      case ScalarKind::kAcc:
        return s.acc < static_cast<int>(accs.size()) ? accs[s.acc] : Known();
      case ScalarKind::kOp:
        return Operation(s);
    }
    return {};
  }

  Known Operation(const ScalarNode& s) {
    const bool integer = !IsFloat(s.args[0]->dtype);
    Known a = At(s.args[0]);
    if (s.op == Op::kSelect) {
      if (a.IsPoint()) return At(s.args[a.lo != 0 ? 1 : 2]);
      return Hull(At(s.args[1]), At(s.args[2]));
    }
    Known b = s.args.size() > 1 ? At(s.args[1]) : Known();
    const auto less = [](const Known& x, const Known& y) -> std::optional<bool> {
      if (x.hi < y.lo) return true;
      if (x.lo >= y.hi) return false;
      return std::nullopt;
    };
    const auto negated = [](std::optional<bool> x) { return x ? std::optional<bool>(!*x) : x; };
    const auto equal = [&]() -> std::optional<bool> {
      if (integer && a.linear && b.linear && a.constant == b.constant && a.terms == b.terms) return true;
      if (a.hi < b.lo || b.hi < a.lo) return false;
      if (a.IsPoint() && b.IsPoint()) return a.lo == b.lo;
      return std::nullopt;
    };
    switch (s.op) {
      case Op::kAdd:
        return Sum(a, b, 1);
      case Op::kSub:
        return Sum(a, b, -1);
      case Op::kMul:
        return Product(a, b);
      case Op::kDiv:
        return Quotient(a, b, integer);
      case Op::kNeg:
        return Sum(Known::Exactly(0, true), a, -1);
      case Op::kMin:
        if (a.hi <= b.lo) return a;
        if (b.hi <= a.lo) return b;
        return Range(std::min(a.lo, b.lo), std::min(a.hi, b.hi));
      case Op::kMax:
        if (a.lo >= b.hi) return a;
        if (b.lo >= a.hi) return b;
        return Range(std::max(a.lo, b.lo), std::max(a.hi, b.hi));
      case Op::kMod:
      case Op::kFMod:
        if (integer && a.lo >= 0 && a.hi < b.lo) return a;
        if (integer && a.IsPoint() && b.IsPoint() && a.lo >= 0 && b.lo > 0) {
          return Known::Exactly(std::fmod(a.lo, b.lo), true);
        }
        return integer && a.lo >= 0 && b.lo > 0 ? Range(0, std::min(a.hi, b.hi - 1)) : Known();
      case Op::kAbs:
        if (a.lo >= 0) return a;
        return Range(a.hi <= 0 ? -a.hi : 0, std::max(-a.lo, a.hi));
      case Op::kFloor:
        return integer ? a : Monotone(a, std::floor);
      case Op::kCeil:
        return integer ? a : Monotone(a, std::ceil);
      case Op::kRound:
        return integer ? a : Monotone(a, std::nearbyint);
      case Op::kSqrt:
        return a.lo >= 0 ? Monotone(a, std::sqrt) : Known();
      case Op::kSign:
        return a.lo > 0 ? Known::Exactly(1, integer) : a.hi < 0 ? Known::Exactly(-1, integer) : Range(-1, 1);
      case Op::kLt:
        return Truth(less(a, b));
      case Op::kGt:
        return Truth(less(b, a));
      case Op::kGe:
        return Truth(negated(less(a, b)));
      case Op::kLe:
        return Truth(negated(less(b, a)));
      case Op::kEq:
        return Truth(equal());
      case Op::kNe:
        return Truth(negated(equal()));
      case Op::kNot:
        return a.IsPoint() ? Truth(a.lo == 0) : Truth(std::nullopt);
      case Op::kAnd:
        if ((a.IsPoint() && a.lo == 0) || (b.IsPoint() && b.lo == 0)) return Truth(false);
        return a.IsPoint() && b.IsPoint() ? Truth(true) : Truth(std::nullopt);
      case Op::kOr:
        if ((a.IsPoint() && a.lo != 0) || (b.IsPoint() && b.lo != 0)) return Truth(true);
        return a.IsPoint() && b.IsPoint() ? Truth(false) : Truth(std::nullopt);
      default:
        return s.dtype == DType::kBool ? Truth(std::nullopt) : Known();
    }
  }

  const Program& program_;
  const std::vector<std::optional<KnownTensor>>& tensors_;
  std::unordered_map<const ScalarNode*, Known> kept_;
};

// Calls f with every point of the axes bound.
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

Known Combine(FoldKind kind, const Known& a, const Known& b) {
  switch (kind) {
    case FoldKind::kSum:
      return Sum(a, b, 1);
    case FoldKind::kProd:
      return Product(a, b);
    case FoldKind::kMax:
      return Range(std::max(a.lo, b.lo), std::max(a.hi, b.hi));
    case FoldKind::kMin:
      return Range(std::min(a.lo, b.lo), std::min(a.hi, b.hi));
    case FoldKind::kGeneral:
      break;
  }
  return {};
}

bool IsSmall(const Te& te) {
  int64_t points = 1;
  for (const Axis& axis : te.axes) points *= axis.extent;
  if (points > kMaxKnownElements) return false;
  if (te.fold) {
    for (const Axis& axis : te.fold->axes) points *= axis.extent;
    if (!te.fold->pred.empty()) return false;
  }
  return points <= kMaxPoints;
}

// A named fold of elements that all lie in `element`.
Known Folded(const Fold& fold, const Known& element) {
  double count = 1;
  for (const Axis& axis : fold.axes) count *= static_cast<double>(axis.extent);
  if (!fold.pred.empty() || count == 0) return {};
  if (fold.kind == FoldKind::kMax || fold.kind == FoldKind::kMin) return element;
  if (fold.kind != FoldKind::kSum) return {};
  // The rounding of a sum grows with its length.
  const double slack = IsFloat(fold.acc) ? std::ldexp(std::max(std::fabs(element.lo), std::fabs(element.hi)), -23) : 0;
  return Range(count * (element.lo - count * slack), count * (element.hi + count * slack));
}

// Appends what is known of the te's results at one point of its axes, or at all that the evaluator leaves open.
void AtPoint(const Program& program, const Te& te, Evaluator* evaluator, std::vector<KnownTensor>* results) {
  for (size_t o = 0; o < te.outputs.size(); ++o) {
    const Known value = !te.fold           ? evaluator->At(te.body[o])
                        : !te.then.empty() ? evaluator->At(te.then[o])
                                           : evaluator->accs[o];
    (*results)[o].push_back(Stored(value, program.tensors[te.outputs[o]].dtype, false));
  }
}

std::vector<KnownTensor> EachElement(const Program& program, const Te& te, Evaluator evaluator) {
  std::vector<KnownTensor> results(te.outputs.size());
  ForEachPoint(te.axes, &evaluator, [&] {
    evaluator.accs.clear();
    if (te.fold && te.fold->kind == FoldKind::kGeneral) {
      for (const Scalar& init : te.fold->init) evaluator.accs.push_back(evaluator.At(init));
      ForEachPoint(te.fold->axes, &evaluator, [&] {
        std::vector<Known> next;
        for (const Scalar& body : te.body) next.push_back(evaluator.At(body));
        evaluator.accs = std::move(next);
      });
    } else if (te.fold) {
      std::optional<Known> acc;
      ForEachPoint(te.fold->axes, &evaluator, [&] {
        const Known element = evaluator.At(te.body[0]);
        acc = acc ? Stored(Combine(te.fold->kind, *acc, element), te.fold->acc, true) : element;
      });
      const double identity = te.fold->kind == FoldKind::kSum ? 0 : 1;
      const bool known_identity = te.fold->kind == FoldKind::kSum || te.fold->kind == FoldKind::kProd;
      evaluator.accs = {acc ? *acc : known_identity ? Known::Exactly(identity, !IsFloat(te.fold->acc)) : Known()};
    }
    AtPoint(program, te, &evaluator, &results);
  });
  return results;
}

// One range for all elements, repeated where the tensor is small.
std::vector<KnownTensor> AllElements(const Program& program, const Te& te, Evaluator evaluator) {
  std::vector<KnownTensor> results(te.outputs.size());
  evaluator.keep = true;
  if (te.fold && te.fold->kind == FoldKind::kGeneral) {
    evaluator.accs.resize(te.body.size());
  } else if (te.fold) {
    evaluator.accs = {Stored(Folded(*te.fold, evaluator.At(te.body[0])), te.fold->acc, true)};
  }
  AtPoint(program, te, &evaluator, &results);
  int64_t points = 1;
  for (const Axis& axis : te.axes) points *= axis.extent;
  for (KnownTensor& result : results) {
    if (points <= kMaxKnownElements) result.resize(static_cast<size_t>(points), Known(result.front()));
  }
  return results;
}

}  // namespace

Known Known::Exactly(double value, bool integer) {
  Known known;
  if (std::isnan(value)) return known;
  known.lo = known.hi = value;
  known.linear = integer && std::fabs(value) <= kExact;
  if (known.linear) known.constant = static_cast<int64_t>(value);
  return known;
}

std::optional<KnownTensor> KnowTensor(const Tensor& tensor) {
  const bool small = tensor.num_elements() <= kMaxKnownElements;
  if (tensor.num_elements() > kMaxScannedElements) return std::nullopt;
  KnownTensor known;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const Known element = IsFloat(tensor.dtype()) ? Known::Exactly(tensor.GetDouble(i), false)
                                                  : Known::Exactly(static_cast<double>(tensor.GetInt(i)), true);
    if (small || known.empty()) {
      known.push_back(element);
    } else {
      known[0] = Hull(known[0], element);
    }
  }
  return known;
}

std::vector<std::optional<KnownTensor>> Know(const Program& program,
                                             const std::vector<std::optional<KnownTensor>>& inputs) {
  std::vector<std::optional<KnownTensor>> tensors(program.tensors.size());
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const std::optional<Tensor>& constant = program.tensors[program.inputs[i]].constant;
    tensors[program.inputs[i]] = !inputs[i] && constant ? KnowTensor(*constant) : inputs[i];
  }
  for (const Te& te : program.tes) {
    if (te.routine) continue;
    const Evaluator evaluator(program, tensors);
    std::vector<KnownTensor> results =
        IsSmall(te) ? EachElement(program, te, evaluator) : AllElements(program, te, evaluator);
    for (size_t o = 0; o < te.outputs.size(); ++o) tensors[te.outputs[o]] = std::move(results[o]);
  }
  std::vector<std::optional<KnownTensor>> outputs;
  for (TensorId output : program.outputs) outputs.push_back(tensors[output]);
  return outputs;
}

}  // namespace fusion::te
