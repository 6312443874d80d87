// Decides the layouts that votes leave open: those of groups of values that some operators want blocked and others
// plain. The length of an assignment is the estimated time of the operators that touch these groups. Dynamic
// programming over the graph of operators finds the shortest assignment. On a chain it is a shortest path with one
// state for each layout of a group; where paths meet again, the states of the groups between them are carried along
// together.
#ifndef FUSION_COMPILER_CHOOSE_LAYOUTS_LAYOUT_SEARCH_H_
#define FUSION_COMPILER_CHOOSE_LAYOUTS_LAYOUT_SEARCH_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/layout/value_layouts.h"
#include "compiler/ecg/graph.h"

namespace fusion {

// The time of an operator as a kernel of its own when its values have these layouts, in any unit.
using LayoutCost = std::function<absl::StatusOr<double>(ecg::NodeId, const ValueLayouts&)>;

// Returns `layouts`, plus one of `others` for every value of the groups that are faster with it than plain; among
// equals, the first. Groups must be disjoint and plain in `layouts`.
absl::StatusOr<ValueLayouts> ShortestLayouts(const ecg::Graph& graph,
                                             const std::vector<std::vector<ecg::ValueId>>& groups,
                                             const std::vector<Layout>& others, ValueLayouts layouts,
                                             const LayoutCost& cost);

}  // namespace fusion

#endif  // FUSION_COMPILER_CHOOSE_LAYOUTS_LAYOUT_SEARCH_H_
