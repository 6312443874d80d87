#include "compiler/te/ranges/contractions.h"

#include <cmath>
#include <utility>

#include "compiler/te/scalar/op_table.h"

namespace fusion::te {
namespace {

// Narrower floats are rounded wherever they are tensors.
bool Contracts(DType dtype) { return dtype == DType::kF32 || dtype == DType::kF64; }

int64_t Terms(const Reduction& reduction) {
  int64_t terms = 1;
  for (const Axis& axis : reduction.axes) terms *= axis.extent;
  return terms;
}

// Returns whether kernels may end the operation with a multiplication. They have polynomials for exponentials and
// powers; other functions of a mathematics library stay far inside the range of a float.
bool EndsInProduct(const ScalarNode& s) {
  switch (s.op) {
    case Op::kMul:
    case Op::kExp:
    case Op::kPow:
    case Op::kSinh:
    case Op::kCosh:
      return true;
    case Op::kDiv:  // by a constant: a product with its reciprocal
      return s.args[1]->kind == ScalarKind::kImm || s.args[1]->kind == ScalarKind::kLoad;
    default:
      return false;
  }
}

// Follows values backwards to what computes them.
class Search {
 public:
  explicit Search(const Program& program) : program_(program) {}

  void Tensor(TensorId tensor) {
    if (!Contracts(program_.tensors[tensor].dtype)) return;
    const int defining = program_.DefiningTe(tensor);
    if (defining < 0) {
      found.inputs.insert(tensor);
      return;
    }
    const Te& te = program_.tes[defining];
    if (te.routine) return;
    for (size_t o = 0; o < te.outputs.size(); ++o) {
      if (te.outputs[o] != tensor) continue;
      if (!te.reduction) {
        Value(te, te.body[o]);
      } else if (!te.then.empty()) {
        Value(te, te.then[o]);
      } else {
        Accumulated(te, o);
      }
    }
  }

  void Value(const Te& te, const Scalar& s) {
    if (!Contracts(s->dtype) || !visited_.insert(s.get()).second) return;
    switch (s->kind) {
      case ScalarKind::kLoad:
        return Tensor(s->tensor);
      case ScalarKind::kAcc:
        return Accumulated(te, static_cast<size_t>(s->acc));
      case ScalarKind::kIf:
        Value(te, s->args[0]);
        return Value(te, s->args[1]);
      case ScalarKind::kCast:
        if (s->dtype != s->args[0]->dtype) Value(te, s->args[0]);
        return;
      case ScalarKind::kOp:
        return Operation(te, s);
      case ScalarKind::kImm:
      case ScalarKind::kFromIndex:
        return;
    }
  }

  LastOperation found;

 private:
  void Operation(const Te& te, const Scalar& s) {
    if (s->op == Op::kSelect) {
      Value(te, s->args[1]);
      Value(te, s->args[2]);
    } else if (s->op == Op::kNeg || s->op == Op::kAbs) {
      Value(te, s->args[0]);
    } else if (EndsInProduct(*s)) {
      found.products.push_back({&te, s});
    }
  }

  void Accumulated(const Te& te, size_t acc) {
    const Reduction& reduction = *te.reduction;
    if (reduction.kind == ReductionKind::kProd) {
      if (Contracts(reduction.acc)) found.products.push_back({&te, Acc(0, reduction.acc)});
    } else if (reduction.kind == ReductionKind::kGeneral || Terms(reduction) == 1) {
      Value(te, te.body[acc]);  // a sum of one term is that term
    }
  }

  const Program& program_;
  std::set<const ScalarNode*> visited_;
};

// The operands of sums, without what they can be.
void CollectSums(const Te& te, std::vector<Addend>* sums) {
  std::set<const ScalarNode*> visited;
  VisitScalars(te, [&](const Scalar& root) {
    Visit(root, [&](const ScalarNode& s) {
      const bool sum = s.kind == ScalarKind::kOp && (s.op == Op::kAdd || s.op == Op::kSub) && Contracts(s.dtype);
      if (!sum || !visited.insert(&s).second) return;
      const bool difference = s.op == Op::kSub;
      sums->push_back({-1, &te, s.args[0], s.args[1], difference});
      sums->push_back({-1, &te, s.args[1], s.args[0], difference});
    });
  });
  if (te.reduction && te.reduction->kind == ReductionKind::kSum && Contracts(te.reduction->acc)) {
    sums->push_back({-1, &te, te.body[0], nullptr});
  }
}

// The largest number of the other operand that a rounding of the largest float hides.
double Small(DType dtype) { return dtype == DType::kF64 ? 0x1p960 : 0x1p100; }

bool IsFinite(const ValueRange& range) { return std::isfinite(range.lo) && std::isfinite(range.hi); }

}  // namespace

std::vector<Addend> AddendsOf(const Program& program) {
  std::vector<Addend> sums, found;
  for (const Te& te : program.tes) {
    if (!te.routine) CollectSums(te, &sums);
  }
  for (Addend& sum : sums) {
    Search search(program);
    search.Value(*sum.te, sum.operand);
    for (const TensorId input : search.found.inputs) {
      found.push_back(sum);
      found.back().input = input;
    }
  }
  return found;
}

LastOperation LastOperationOf(const Program& program, TensorId tensor) {
  Search search(program);
  search.Tensor(tensor);
  return std::move(search.found);
}

bool CanBringBack(const ExpressionRanges& ranges, const Addend& addend) {
  const ValueRange operand = ranges.Of(*addend.te, addend.operand);
  const bool positive = operand.lo >= 0, negative = operand.hi <= 0;
  // The partial sum has the sign of its terms.
  if (addend.other == nullptr) return !positive && !negative;
  const ValueRange other = ranges.Of(*addend.te, addend.other);
  if (ranges::Largest(other) <= Small(addend.operand->dtype)) return false;
  const bool same_sign = addend.difference ? (positive && other.hi <= 0) || (negative && other.lo >= 0)
                                           : (positive && other.lo >= 0) || (negative && other.hi <= 0);
  return !same_sign;
}

bool CanOverflow(const ExpressionRanges& ranges, const LastOperation::Product& product) {
  const auto of = [&](const Scalar& s) { return ranges.Of(*product.te, s); };
  const ScalarNode& s = *product.value;
  if (s.kind == ScalarKind::kOp && s.op == Op::kMul) {
    if (ranges::Largest(of(s.args[0])) <= 1 || ranges::Largest(of(s.args[1])) <= 1) return false;
  }
  if (s.kind == ScalarKind::kOp && s.op == Op::kDiv) {
    const ValueRange divisor = of(s.args[1]);
    if (!divisor.IsPoint() || std::fabs(divisor.lo) >= 1) return false;  // others are divided by
  }
  return !IsFinite(of(product.value));
}

}  // namespace fusion::te
