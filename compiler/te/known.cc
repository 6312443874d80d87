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
  if (dtype == DType::kF16 || dtype == DType::kBF16) return {};
  if (IsFloat(dtype) || dtype == DType::kBool) return known;
  const int bits = static_cast<int>(8 * DTypeBytes(dtype)) - (IsSigned(dtype) ? 1 : 0);
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
  Evaluator(const Program& program, const std::vector<std::optional<KnownTensor>>& tensors, const Te& te)
      : program_(program), tensors_(tensors), te_(te) {}

  Known At(const Scalar& s) {
    const bool selects = s->kind != ScalarKind::kCast && s->kind != ScalarKind::kFromIndex &&
                         (s->kind != ScalarKind::kOp || s->op == Op::kMin || s->op == Op::kMax || s->op == Op::kSelect);
    return Stored(Evaluate(*s), s->dtype, !selects);
  }

  std::unordered_map<int, int64_t> axes;
  std::vector<Known> accs;

 private:
  std::optional<int64_t> At(const Index& x) {
    int64_t sum = x.constant();
    for (const Index::Part& part : x.parts()) {
      const Term& term = part.term;
      std::optional<int64_t> value;
      if (term.kind == TermKind::kAxis) {
        value = axes.at(term.axis.id);
      } else if (term.kind == TermKind::kLoad) {
        const Known known = LoadAt(term.tensor, term.indices, nullptr);
        if (known.IsPoint()) value = static_cast<int64_t>(known.lo);
      } else if (const std::optional<int64_t> inner = At(*term.inner)) {
        const int64_t mod = (*inner % term.divisor + term.divisor) % term.divisor;
        value = term.kind == TermKind::kMod ? mod : (*inner - mod) / term.divisor;
      }
      if (!value) return std::nullopt;
      sum += part.coefficient * *value;
    }
    return sum;
  }

  Known LoadAt(TensorId tensor, const std::vector<Index>& indices, const Scalar& pad) {
    const std::optional<KnownTensor>& elements = tensors_[tensor];
    if (!elements) return {};
    const Shape& shape = program_.tensors[tensor].shape;
    int64_t address = 0;
    for (size_t d = 0; d < indices.size(); ++d) {
      const std::optional<int64_t> index = At(indices[d]);
      if (!index) {  // any of them
        if (elements->empty() || pad != nullptr) return {};
        Known all = elements->front();
        for (const Known& element : *elements) all = Hull(all, element);
        return all;
      }
      if (*index < 0 || *index >= shape[d]) return pad == nullptr ? Known() : At(pad);
      address = address * shape[d] + *index;
    }
    return (*elements)[address];
  }

  std::optional<bool> At(const Pred& pred) {
    bool holds = true;
    for (const Comparison& c : pred) {
      const std::optional<int64_t> lhs = At(c.lhs), rhs = At(c.rhs);
      if (!lhs || !rhs) return std::nullopt;
      holds = holds && (c.cmp == Cmp::kLt   ? *lhs < *rhs
                        : c.cmp == Cmp::kGe ? *lhs >= *rhs
                        : c.cmp == Cmp::kEq ? *lhs == *rhs
                                            : *lhs != *rhs);
    }
    return holds;
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
        const std::optional<int64_t> value = At(s.index);
        return value ? Known::Exactly(static_cast<double>(*value), true) : Known();
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
    const Known a = At(s.args[0]);
    if (s.op == Op::kSelect) {
      if (a.IsPoint()) return At(s.args[a.lo != 0 ? 1 : 2]);
      return Hull(At(s.args[1]), At(s.args[2]));
    }
    const Known b = s.args.size() > 1 ? At(s.args[1]) : Known();
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
  const Te& te_;
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
  if (te.routine || points > kMaxKnownElements) return false;
  if (te.fold) {
    for (const Axis& axis : te.fold->axes) points *= axis.extent;
    if (!te.fold->pred.empty()) return false;
  }
  return points <= kMaxPoints;
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
  if (tensor.num_elements() > kMaxKnownElements) return std::nullopt;
  KnownTensor known;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    known.push_back(IsFloat(tensor.dtype()) ? Known::Exactly(tensor.GetDouble(i), false)
                                            : Known::Exactly(static_cast<double>(tensor.GetInt(i)), true));
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
    if (!IsSmall(te)) continue;
    std::vector<KnownTensor> results(te.outputs.size());
    Evaluator evaluator(program, tensors, te);
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
      for (size_t o = 0; o < te.outputs.size(); ++o) {
        const Known value = !te.fold           ? evaluator.At(te.body[o])
                            : !te.then.empty() ? evaluator.At(te.then[o])
                                               : evaluator.accs[o];
        results[o].push_back(Stored(value, program.tensors[te.outputs[o]].dtype, false));
      }
    });
    for (size_t o = 0; o < te.outputs.size(); ++o) tensors[te.outputs[o]] = std::move(results[o]);
  }
  std::vector<std::optional<KnownTensor>> outputs;
  for (TensorId output : program.outputs) outputs.push_back(tensors[output]);
  return outputs;
}

}  // namespace fusion::te
