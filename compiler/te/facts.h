// What the predicates on the way to a scalar say about its indices: tighter ranges than Index::Range, by bound
// propagation over linear inequalities whose variables are the terms (axes, //, %, loads).
#ifndef FUSION_COMPILER_TE_FACTS_H_
#define FUSION_COMPILER_TE_FACTS_H_

#include <utility>
#include <vector>

#include "compiler/te/scalar.h"

namespace fusion::te {

class Facts {
 public:
  void Assume(const Comparison& comparison);
  void Assume(const Pred& pred);
  void AssumeNot(const Pred& pred);  // says something only of a single comparison

  // Holds every value of x where the facts hold; empty (lo > hi) where they contradict each other. Never wider than
  // Index::Range.
  Interval RangeOf(const Index& x) const { return RangeOf(x, kDepth); }

 private:
  // A fact added to an index brings its own // and %, inside which facts may be added again: `depth` ends this.
  static constexpr int kDepth = 2;
  Interval RangeOf(const Index& x, int depth) const;
  Interval RangeOfSum(const Index& x, int depth) const;
  Interval RangeOfSplitMod(const Term& mod) const;
  Interval RangeOfTerm(const Term& term, int depth) const;
  void Propagate();

  std::vector<Index> at_most_zero_;
  std::vector<std::pair<Index, Interval>> terms_;  // each a single term with coefficient 1
};

}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_FACTS_H_
