#include "compiler/simplify/passes.h"

namespace fusion::simplify {

ecg::Graph Simplify(const ecg::Graph& graph, Widening widening, Reordering reordering) {
  ecg::Graph result = RemoveDead(graph);  // first, so that nothing is folded that no output needs
  result = RemoveNoops(result);           // Identity(weight) becomes the weight before folding could copy it
  result = FoldConstants(result, widening, reordering);
  result = RemoveNoops(result);  // a folded shape or pad may have made its user a copy
  result = ShareEqual(result);   // after folding, so that equal results meet as equal constants
  return RemoveDead(result);
}

}  // namespace fusion::simplify
