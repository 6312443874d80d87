// Construction and traversal of scalar expressions. The foldings of the constructors stand in scalar_fold.cc.
#include "compiler/te/scalar/scalar.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "compiler/te/scalar/op_table.h"
#include "compiler/te/scalar/scalar_fold.h"
#include "runtime/base/check.h"

namespace fusion::te {
namespace {

// Rewrites bottom-up, each distinct node once. `leaf` maps indices and tensors; `load` may replace rewritten loads.
class Rewriter {
 public:
  std::function<Index(const Index&)> on_index;
  std::function<TensorId(TensorId)> on_tensor;
  std::function<Scalar(const Scalar&)> on_load, on_acc;

  Scalar Rewrite(const Scalar& s) {
    if (s->kind == ScalarKind::kImm) return s;
    if (s->kind == ScalarKind::kAcc) return on_acc ? on_acc(s) : s;
    if (auto it = memo_.find(s.get()); it != memo_.end()) return it->second;
    Scalar out = Rebuild(s);
    memo_.emplace(s.get(), out);
    return out;
  }

 private:
  bool Changes(const Index& x, Index* out) {
    if (!on_index || x.IsConstant()) return false;
    *out = on_index(x);
    return !(*out == x);
  }

  Scalar Rebuild(const Scalar& s) {
    bool changed = false;
    std::vector<Scalar> args = s->args;
    for (Scalar& arg : args) {
      Scalar value = Rewrite(arg);
      changed |= value != arg;
      arg = std::move(value);
    }
    Index value;
    switch (s->kind) {
      case ScalarKind::kLoad: {
        std::vector<Index> indices = s->indices;
        for (Index& i : indices) {
          if (Changes(i, &value)) {
            i = value;
            changed = true;
          }
        }
        const TensorId tensor = on_tensor ? on_tensor(s->tensor) : s->tensor;
        changed |= tensor != s->tensor;
        const Scalar load = changed ? Load(tensor, s->dtype, std::move(indices), s->pad) : s;
        Scalar replacement = on_load ? on_load(load) : nullptr;
        return replacement ? replacement : load;
      }
      case ScalarKind::kIf: {
        Pred pred = s->pred;
        for (Comparison& c : pred) {
          if (Changes(c.lhs, &value)) {
            c.lhs = value;
            changed = true;
          }
          if (Changes(c.rhs, &value)) {
            c.rhs = value;
            changed = true;
          }
        }
        return changed ? If(std::move(pred), std::move(args[0]), std::move(args[1])) : s;
      }
      case ScalarKind::kOp:
        return changed ? Call(s->op, std::move(args)) : s;
      case ScalarKind::kCast:
        if (!changed) return s;
        if (s->dtype == s->args[0]->dtype) {  // a rounding (rounded.h), which Cast would drop
          auto rounded = NewNode(ScalarKind::kCast, s->dtype);
          rounded->args = std::move(args);
          return rounded;
        }
        return Cast(s->dtype, std::move(args[0]));
      case ScalarKind::kFromIndex:
        return Changes(s->index, &value) ? FromIndex(std::move(value)) : s;
      default:
        return s;
    }
  }

  std::unordered_map<const ScalarNode*, Scalar> memo_;
};

struct PairHash {
  size_t operator()(const std::pair<const ScalarNode*, const ScalarNode*>& p) const {
    return std::hash<const void*>()(p.first) * 31 + std::hash<const void*>()(p.second);
  }
};

class Equality {
 public:
  bool Equal(const Scalar& a, const Scalar& b) {
    if (a == b) return true;
    if (!a || !b || a->kind != b->kind || a->dtype != b->dtype) return false;
    if (a->op != b->op || a->tensor != b->tensor || a->acc != b->acc || a->ivalue != b->ivalue) return false;
    if (std::bit_cast<uint64_t>(a->fvalue) != std::bit_cast<uint64_t>(b->fvalue)) return false;
    if (a->args.size() != b->args.size() || !(a->index == b->index) || a->indices != b->indices) return false;
    if (a->pred.size() != b->pred.size()) return false;
    for (size_t i = 0; i < a->pred.size(); ++i) {
      const Comparison &x = a->pred[i], &y = b->pred[i];
      if (x.cmp != y.cmp || !(x.lhs == y.lhs) || !(x.rhs == y.rhs)) return false;
    }
    if (!Equal(a->pad, b->pad)) return false;
    if (a->args.empty()) return true;
    if (!seen_.insert({a.get(), b.get()}).second) return true;  // equal, or the whole comparison has failed
    for (size_t i = 0; i < a->args.size(); ++i) {
      if (!Equal(a->args[i], b->args[i])) return false;
    }
    return true;
  }

 private:
  std::unordered_set<std::pair<const ScalarNode*, const ScalarNode*>, PairHash> seen_;
};

void VisitNew(const Scalar& s, absl::flat_hash_set<const ScalarNode*>* seen,
              const std::function<void(const ScalarNode&)>& f) {
  // A node with one owner is reached once, so that it need not be recorded.
  if (s.use_count() > 1 && !seen->insert(s.get()).second) return;
  f(*s);
  for (const Scalar& arg : s->args) VisitNew(arg, seen, f);
}

}  // namespace

Scalar Load(TensorId tensor, DType dtype, std::vector<Index> indices, Scalar pad) {
  FUSION_CHECK(!pad || (pad->kind == ScalarKind::kImm && pad->dtype == dtype),
               "a pad is an immediate of the load's type");
  auto node = NewNode(ScalarKind::kLoad, dtype);
  node->tensor = tensor;
  node->indices = std::move(indices);
  node->pad = std::move(pad);
  return node;
}

Scalar If(Pred pred, Scalar then_value, Scalar else_value) {
  FUSION_CHECK(then_value->dtype == else_value->dtype, "both branches of an if have one type");
  bool never;
  pred = Simplify(pred, &never);
  if (never) return else_value;
  if (pred.empty() || then_value == else_value) return then_value;
  auto node = NewNode(ScalarKind::kIf, then_value->dtype);
  node->pred = std::move(pred);
  node->args = {std::move(then_value), std::move(else_value)};
  return node;
}

Scalar Call(Op op, std::vector<Scalar> args) {
  const OpRow& row = RowOf(op);
  const OpInfo& info = row.info;
  FUSION_CHECK(args.size() == static_cast<size_t>(info.arity), info.name);
  if (op == Op::kSelect) FUSION_CHECK(args[0]->dtype == DType::kBool, "select needs a bool");
  const size_t first = op == Op::kSelect ? 1 : 0;
  for (size_t i = first + 1; i < args.size(); ++i) FUSION_CHECK(args[i]->dtype == args[first]->dtype, info.name);
  const DType in = args[first]->dtype;
  // Verify (te/program) checks the other types.
  if (row.types == Types::kBools || row.types == Types::kIntegers) FUSION_CHECK(IsDefinedOn(row, in), info.name);
  const DType dtype = YieldsBool(row) ? DType::kBool : in;
  if (Scalar folded = FoldCall(op, dtype, args)) return folded;
  auto node = NewNode(ScalarKind::kOp, dtype);
  node->op = op;
  node->args = std::move(args);
  return node;
}

Scalar Cast(DType dtype, Scalar x) {
  if (x->dtype == dtype) return x;
  if (Scalar folded = FoldCast(dtype, *x)) return folded;
  auto node = NewNode(ScalarKind::kCast, dtype);
  node->args = {std::move(x)};
  return node;
}

Scalar FromIndex(Index index) {
  if (index.IsConstant()) return ImmInt(DType::kI64, index.constant());
  auto node = NewNode(ScalarKind::kFromIndex, DType::kI64);
  node->index = std::move(index);
  return node;
}

Scalar Acc(int acc, DType dtype) {
  auto node = NewNode(ScalarKind::kAcc, dtype);
  node->acc = acc;
  return node;
}

Scalar operator+(const Scalar& a, const Scalar& b) { return Call(Op::kAdd, {a, b}); }
Scalar operator-(const Scalar& a, const Scalar& b) { return Call(Op::kSub, {a, b}); }
Scalar operator*(const Scalar& a, const Scalar& b) { return Call(Op::kMul, {a, b}); }
Scalar operator/(const Scalar& a, const Scalar& b) { return Call(Op::kDiv, {a, b}); }
Scalar Max(const Scalar& a, const Scalar& b) { return Call(Op::kMax, {a, b}); }
Scalar Min(const Scalar& a, const Scalar& b) { return Call(Op::kMin, {a, b}); }
Scalar Select(const Scalar& condition, const Scalar& a, const Scalar& b) {
  return Call(Op::kSelect, {condition, a, b});
}

bool StructurallyEqual(const Scalar& a, const Scalar& b) { return Equality().Equal(a, b); }

Scalar Substitute(const Scalar& s, const std::function<const Index*(const Axis&)>& map) {
  Rewriter rewriter;
  rewriter.on_index = [&](const Index& x) { return Substitute(x, map); };
  return rewriter.Rewrite(s);
}

Scalar MapTensors(const Scalar& s, const std::function<TensorId(TensorId)>& map) {
  Rewriter rewriter;
  rewriter.on_index = [&](const Index& x) { return MapTensors(x, map); };
  rewriter.on_tensor = map;
  return rewriter.Rewrite(s);
}

Scalar MapAccs(const Scalar& s, const std::function<Scalar(const Scalar& acc)>& f) {
  Rewriter rewriter;
  rewriter.on_acc = f;
  return rewriter.Rewrite(s);
}

Scalar MapLoads(const Scalar& s, const std::function<Scalar(const Scalar& load)>& f) {
  Rewriter rewriter;
  rewriter.on_load = f;
  return rewriter.Rewrite(s);
}

void Visit(const Scalar& s, const std::function<void(const ScalarNode&)>& f) {
  absl::flat_hash_set<const ScalarNode*> seen;
  VisitNew(s, &seen, f);
}

double OpCost(const Scalar& s) {
  double cost = 0;
  Visit(s, [&](const ScalarNode& node) {
    if (node.kind == ScalarKind::kOp) cost += GetOpInfo(node.op).cost;
    if (node.kind == ScalarKind::kCast) cost += 1;
  });
  return cost;
}

}  // namespace fusion::te
