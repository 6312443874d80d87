// The values of indices and conditions at a point, for tests that hold an analysis against all points.
#ifndef FUSION_COMPILER_TE_TESTING_INDEX_VALUES_H_
#define FUSION_COMPILER_TE_TESTING_INDEX_VALUES_H_

#include <cstdint>
#include <vector>

#include "compiler/te/index/index.h"
#include "compiler/te/scalar/pred.h"
#include "runtime/base/check.h"

namespace fusion::te::testing {

// `at`: the value of each axis, by its id. The index has no loads.
inline int64_t ValueOf(const Index& x, const std::vector<int64_t>& at) {
  int64_t value = x.constant();
  for (const Index::Part& part : x.parts()) {
    FUSION_CHECK(part.term.kind != TermKind::kLoad, "a load has no value here");
    int64_t term = 0;
    if (part.term.kind == TermKind::kAxis) {
      term = at[part.term.axis.id];
    } else {
      const int64_t inner = ValueOf(*part.term.inner, at), divisor = part.term.divisor;
      const int64_t quotient = inner / divisor - (inner % divisor < 0 ? 1 : 0);
      term = part.term.kind == TermKind::kFloorDiv ? quotient : inner - quotient * divisor;
    }
    value += part.coefficient * term;
  }
  return value;
}

inline bool Holds(const Comparison& c, const std::vector<int64_t>& at) {
  const int64_t lhs = ValueOf(c.lhs, at), rhs = ValueOf(c.rhs, at);
  switch (c.cmp) {
    case Cmp::kLt:
      return lhs < rhs;
    case Cmp::kGe:
      return lhs >= rhs;
    case Cmp::kEq:
      return lhs == rhs;
    case Cmp::kNe:
      return lhs != rhs;
  }
  return false;
}

inline bool Holds(const Pred& pred, const std::vector<int64_t>& at) {
  for (const Comparison& c : pred) {
    if (!Holds(c, at)) return false;
  }
  return true;
}

}  // namespace fusion::te::testing

#endif  // FUSION_COMPILER_TE_TESTING_INDEX_VALUES_H_
