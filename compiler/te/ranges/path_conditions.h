// Path conditions: what the predicates on the path to a scalar imply about its indices. They give tighter ranges than
// Index::Range, by bound propagation over linear inequalities whose variables are the terms (axes, //, %, loads).
#ifndef FUSION_COMPILER_TE_RANGES_PATH_CONDITIONS_H_
#define FUSION_COMPILER_TE_RANGES_PATH_CONDITIONS_H_

#include <utility>
#include <vector>

#include "compiler/te/scalar/scalar.h"

namespace fusion::te {

class PathConditions {
 public:
  void Assume(const Comparison& comparison);
  void Assume(const Pred& pred);
  void AssumeNot(const Pred& pred);  // ignores a pred of more than one comparison

  // Returns a range that holds every value of x where the conditions hold; empty (lo > hi) where they contradict each
  // other. It is never wider than Index::Range.
  Interval RangeOf(const Index& x) const { return RangeOf(x, kDepth); }

 private:
  // A condition that is added to an index brings its own // and %, inside which conditions may be added again; `depth`
  // ends this recursion.
  static constexpr int kDepth = 2;
  Interval RangeOf(const Index& x, int depth) const;
  Interval RangeOfSum(const Index& x, int depth) const;
  Interval RangeOfSplitMod(const Term& mod) const;
  Interval RangeOfTerm(const Term& term, int depth) const;
  void Propagate();

  std::vector<Index> at_most_zero_;
  std::vector<std::pair<Index, Interval>> terms_;  // each Index is a single term with coefficient 1
};

}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_RANGES_PATH_CONDITIONS_H_
