// GIR-Graph rewriting (PowerFusion §5): synchronisation insertion, merging and swapping of gOperators, and Algorithm 1,
// which applies them to a fixpoint.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_POWER_FUSION_REWRITE_GIR_H_
#define FUSION_COMPILER_PLAN_PLANNERS_POWER_FUSION_REWRITE_GIR_H_

#include <vector>

#include "compiler/plan/planners/power_fusion/basic_operators.h"
#include "compiler/plan/planners/power_fusion/gir.h"

namespace fusion::power_fusion {

struct RewriteCounts {
  int inserted = 0;  // synchronisations of less than device scope
  int swapped = 0;   // elementwise gOperators that moved behind a synchronisation
  int merged = 0;    // pairs of data movements that became one, or none
};

// Rewrites a graph of MergeGirs until no two data movements can be merged. `operators`: by node; they give the index
// maps with which patterns are composed. Values and arithmetic stay the same. The bytes of DRAM never grow.
RewriteCounts RewriteGir(const std::vector<BasicOperator>& operators, const Units& units, Gir* gir);

}  // namespace fusion::power_fusion

#endif  // FUSION_COMPILER_PLAN_PLANNERS_POWER_FUSION_REWRITE_GIR_H_
