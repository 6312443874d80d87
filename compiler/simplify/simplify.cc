#include "compiler/simplify/passes.h"
#include "runtime/base/status_macros.h"

namespace fusion::simplify {

absl::StatusOr<ecg::Graph> SimplifyInParts(const ecg::Graph& graph, Widening widening, Reordering reordering,
                                           const PartCheck& check) {
  ecg::Graph result = RemoveDead(graph);  // first, so that nothing is folded that no output needs
  RETURN_IF_ERROR(check("remove-dead", result));
  result = RemoveNoops(result);  // Identity(weight) becomes the weight before folding could copy it
  RETURN_IF_ERROR(check("remove-noops", result));
  result = FoldConstants(result, widening, reordering);
  RETURN_IF_ERROR(check("fold-constants", result));
  result = RemoveNoops(result);  // a folded shape or pad may have made its user a copy
  RETURN_IF_ERROR(check("remove-noops", result));
  result = ShareEqual(result);  // after folding, so that equal results meet as equal constants
  RETURN_IF_ERROR(check("share-equal", result));
  result = RemoveDead(result);
  RETURN_IF_ERROR(check("remove-dead", result));
  return result;
}

ecg::Graph Simplify(const ecg::Graph& graph, Widening widening, Reordering reordering) {
  const PartCheck none = [](const char*, const ecg::Graph&) { return absl::OkStatus(); };
  return *SimplifyInParts(graph, widening, reordering, none);
}

}  // namespace fusion::simplify
