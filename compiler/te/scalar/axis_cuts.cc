#include "compiler/te/scalar/axis_cuts.h"

#include <optional>

namespace fusion::te {

void VisitCuts(const Scalar& s, const std::function<void(const AxisCut& cut)>& f) {
  Visit(s, [&](const ScalarNode& node) {
    if (node.kind != ScalarKind::kIf) return;
    if (const std::optional<AxisCut> cut = CutOf(node.pred)) f(*cut);
  });
}

}  // namespace fusion::te
