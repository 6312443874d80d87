#include "compiler/te/index/reciprocals.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler/te/scalar/rounded.h"

namespace fusion::te {
namespace {

bool IsReciprocal(const ScalarNode& s) {
  return s.kind == ScalarKind::kOp && s.op == Op::kDiv && IsFloat(s.dtype) && IsImm(s.args[0], 1);
}

class Merger {
 public:
  explicit Merger(const std::vector<Scalar>& values) {
    for (const Scalar& value : values) ++readers_[value.get()];
    for (const Scalar& value : values) Count(value);
  }

  bool any() const { return !reciprocals_.empty(); }

  Scalar Merge(const Scalar& s) {
    if (s->args.empty()) return s;
    if (const auto it = merged_.find(s.get()); it != merged_.end()) return it->second;
    return merged_[s.get()] = Compute(s);
  }

 private:
  void Count(const Scalar& s) {
    if (!seen_.insert(s.get()).second) return;
    if (IsReciprocal(*s)) reciprocals_.push_back(s);
    for (const Scalar& arg : s->args) {
      ++readers_[arg.get()];
      Count(arg);
    }
  }

  // A reciprocal that equals another counts as read twice, because the kernel's compiler computes equal values once.
  bool ReadOnce(const Scalar& s) const {
    if (readers_.at(s.get()) != 1) return false;
    return std::none_of(reciprocals_.begin(), reciprocals_.end(),
                        [&](const Scalar& other) { return other != s && StructurallyEqual(other, s); });
  }

  Scalar Compute(const Scalar& s) {
    if (s->kind == ScalarKind::kOp && s->op == Op::kMul) {
      for (int side = 0; side < 2; ++side) {
        const Scalar& reciprocal = s->args[side];
        if (IsReciprocal(*reciprocal) && ReadOnce(reciprocal)) {
          return Merge(s->args[1 - side]) / Merge(reciprocal->args[1]);
        }
      }
    }
    std::vector<Scalar> args;
    for (const Scalar& arg : s->args) args.push_back(Merge(arg));
    return WithOperands(s, std::move(args));
  }

  std::set<const ScalarNode*> seen_;
  std::map<const ScalarNode*, int> readers_;
  std::vector<Scalar> reciprocals_;
  std::map<const ScalarNode*, Scalar> merged_;
};

}  // namespace

std::vector<Scalar> MergeReciprocals(const std::vector<Scalar>& values) {
  Merger merger(values);
  if (!merger.any()) return values;
  std::vector<Scalar> merged;
  for (const Scalar& value : values) merged.push_back(merger.Merge(value));
  return merged;
}

}  // namespace fusion::te
