// Predicates over indices: the conditions of scalar expressions, reductions and padding.
#ifndef FUSION_COMPILER_TE_SCALAR_PRED_H_
#define FUSION_COMPILER_TE_SCALAR_PRED_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "compiler/te/index/index.h"

namespace fusion::te {

enum class Cmp : uint8_t { kLt, kGe, kEq, kNe };
struct Comparison {
  Index lhs;
  Cmp cmp = Cmp::kLt;
  Index rhs;
};
using Pred = std::vector<Comparison>;  // conjunction; empty is true

// Returns the truth of a comparison where the ranges of its axes decide it.
std::optional<bool> Decide(const Comparison& comparison);
// The cut `axis < at` that a pred with one comparison of one axis expresses.
struct AxisCut {
  Axis axis;
  int64_t at = 0;
};
std::optional<AxisCut> CutOf(const Pred& pred);
// Drops repeated comparisons and those that always hold; sets *never when one cannot hold.
Pred Simplify(const Pred& pred, bool* never);
Pred Substitute(const Pred& pred, const std::function<const Index*(const Axis&)>& map);
Pred MapTensors(const Pred& pred, const std::function<TensorId(TensorId)>& map);

}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_SCALAR_PRED_H_
