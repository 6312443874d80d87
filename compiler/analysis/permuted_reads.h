// Permuted operands: which constants of a node have to follow where the slices of an operand stand in another order.
#ifndef FUSION_COMPILER_ANALYSIS_PERMUTED_READS_H_
#define FUSION_COMPILER_ANALYSIS_PERMUTED_READS_H_

#include <map>
#include <optional>
#include <vector>

#include "compiler/ecg/graph.h"

namespace fusion::ecg {

// Where the slices of `value` along `axis` are permuted, and those of each of these constants along its dimension in
// the same way, the node computes the same: a sum adds the same terms in another order, and the slices of an output
// along its dimension are permuted in the same way, too.
struct PermutedReads {
  std::map<ValueId, int> constants;  // the dimension of each constant
  std::vector<int> outputs;          // the dimension of each output, -1: its order stays
  bool KeepsOutputs() const;
};

// Returns nullopt where the node has no such constants: it tests the index along the axis, computes with it, passes a
// value on along the axis, or reads another operand there that is no constant.
std::optional<PermutedReads> PermuteReads(const Graph& graph, NodeId node, ValueId value, int axis);

}  // namespace fusion::ecg

#endif  // FUSION_COMPILER_ANALYSIS_PERMUTED_READS_H_
