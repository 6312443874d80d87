#include "compiler/te/program/extrema.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "compiler/te/scalar/op_table.h"
#include "compiler/te/scalar/rounded.h"

namespace fusion::te {
namespace {

// Returns whether the last operation of the value may be a multiplication when a kernel computes it. Functions of a
// mathematics library count, since kernels have polynomials for them.
bool MayEndInProduct(const Scalar& s) {
  const auto arms = [&](size_t first) { return std::any_of(s->args.begin() + first, s->args.end(), MayEndInProduct); };
  if (s->kind == ScalarKind::kIf) return arms(0);
  if (s->kind != ScalarKind::kOp || (s->dtype != DType::kF32 && s->dtype != DType::kF64)) return false;
  if (s->op == Op::kSelect) return arms(1);
  if (s->op == Op::kNeg) return arms(0);
  return s->op == Op::kMul || RowOf(s->op).units == kLibrary;
}

std::set<TensorId> Loaded(const Scalar& s) {
  std::set<TensorId> tensors;
  Visit(s, [&](const ScalarNode& node) {
    if (node.kind == ScalarKind::kLoad) tensors.insert(node.tensor);
  });
  return tensors;
}

class Rounder {
 public:
  // `extrema`: for each tensor that holds maxima or minima, the tensors of which its elements are computed.
  explicit Rounder(const std::unordered_map<TensorId, std::set<TensorId>>& extrema) : extrema_(extrema) {}

  Scalar Rewrite(const Scalar& s) {
    if (s->args.empty()) return s;
    if (const auto it = rewritten_.find(s.get()); it != rewritten_.end()) return it->second;
    return rewritten_[s.get()] = Compute(s);
  }

 private:
  Scalar Compute(const Scalar& s) {
    std::vector<Scalar> args;
    for (const Scalar& arg : s->args) args.push_back(Rewrite(arg));
    if (s->kind == ScalarKind::kOp && s->op == Op::kSub &&
        (IsOwnExtremum(s->args[1], s->args[0]) || IsOwnExtremum(s->args[0], s->args[1]))) {
      for (Scalar& arg : args) {
        if (MayEndInProduct(arg)) arg = Rounded(arg);
      }
    }
    return WithOperands(s, std::move(args));
  }

  // Returns whether `extremum` reads a maximum or minimum of values that share an operand with `value`. This covers
  // every extremum of the value itself, scaled ones too; more than that would cost a fused operation only.
  bool IsOwnExtremum(const Scalar& extremum, const Scalar& value) const {
    const std::set<TensorId> loaded = Loaded(extremum);
    return std::any_of(loaded.begin(), loaded.end(), [&](TensorId tensor) {
      const auto it = extrema_.find(tensor);
      if (it == extrema_.end()) return false;
      const std::set<TensorId> operands = Loaded(value);
      return std::any_of(operands.begin(), operands.end(), [&](TensorId t) { return it->second.count(t) > 0; });
    });
  }

  const std::unordered_map<TensorId, std::set<TensorId>>& extrema_;
  std::unordered_map<const ScalarNode*, Scalar> rewritten_;
};

}  // namespace

void RoundBesideExtrema(Program* program) {
  std::unordered_map<TensorId, std::set<TensorId>> extrema;
  for (const Te& te : program->tes) {
    const bool extremum =
        te.reduction && (te.reduction->kind == ReductionKind::kMax || te.reduction->kind == ReductionKind::kMin);
    if (extremum && te.then.empty()) extrema[te.outputs[0]] = Loaded(te.body[0]);
  }
  if (extrema.empty()) return;
  for (Te& te : program->tes) {
    Rounder rounder(extrema);
    for (Scalar& s : te.body) s = rounder.Rewrite(s);
    for (Scalar& s : te.then) s = rounder.Rewrite(s);
  }
}

}  // namespace fusion::te
