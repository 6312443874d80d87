// Settles the layouts that votes leave open: of groups of values that some operators would have blocked and others
// plain. Every assignment of layouts has a length, the estimated time of the operators that touch these groups, and the
// shortest is found by dynamic programming over the graph of operators: on a chain it is the shortest path through as
// many states a group as there are layouts, where paths meet again the states of the groups between them are carried
// along together.
#ifndef FUSION_COMPILER_PIPELINE_LAYOUT_PATH_H_
#define FUSION_COMPILER_PIPELINE_LAYOUT_PATH_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"
#include "compiler/pipeline/layout_pass.h"

namespace fusion {

// What an operator takes as a kernel of its own where its values have these layouts, in any unit.
using LayoutCost = std::function<absl::StatusOr<double>(ecg::NodeId, const ValueLayouts&)>;

// `layouts` plus one of `others` for every value of the groups that are better off so than plain; of equal ones the
// first. Groups are disjoint and plain in `layouts`.
absl::StatusOr<ValueLayouts> ShortestLayouts(const ecg::Graph& graph,
                                             const std::vector<std::vector<ecg::ValueId>>& groups,
                                             const std::vector<Layout>& others, ValueLayouts layouts,
                                             const LayoutCost& cost);

}  // namespace fusion

#endif  // FUSION_COMPILER_PIPELINE_LAYOUT_PATH_H_
