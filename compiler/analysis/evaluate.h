// Evaluation of one operator at compile time: its lowering, run by the te interpreter.
#ifndef FUSION_COMPILER_ANALYSIS_EVALUATE_H_
#define FUSION_COMPILER_ANALYSIS_EVALUATE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"

namespace fusion::ecg {

// Limits of constant folding; a node beyond them stays.
struct FoldLimits {
  int64_t output_bytes = 64 << 10;
  double flops = 1e8;
};

// May `node` (of `graph`) be replaced by its value? True when no output has any element. Also true within the limits
// when each present input is a constant, or when no input's value is read at all (Shape, Size: only types count).
bool IsFoldable(const Graph& graph, const Node& node, const FoldLimits& limits);

// Do the outputs, all floats, hold no more elements than a constant input of 8 or 16 bit integers? Folding would then
// make a narrow constant (the weight of a dequantisation) wide, and rewriting could not find the narrow one again.
bool OnlyWidens(const Graph& graph, const Node& node);

// Does the node have one output, which consists of one input's elements, each once, in another order (Transpose)?
bool OnlyReorders(const Graph& graph, const Node& node);

// Does the node only reorder a large constant that others read in its own order? Folding it would hold the constant
// twice, while the readers of the result can read the constant itself in the new order.
bool ReordersShared(const Graph& graph, const Node& node);

// Computes the outputs of a foldable node.
absl::StatusOr<std::vector<Tensor>> EvaluateNode(const Graph& graph, const Node& node);

// Returns, parallel to the outputs, the inputs whose bytes they are, in the same order and type (Identity, Reshape,
// Transpose that moves only axes of extent 1, Cast to the same type, …). Returns an empty list unless every output has
// such an input. The lowering decides, not the operator's name.
std::vector<ValueId> AliasesOf(const Graph& graph, const Node& node);

}  // namespace fusion::ecg

#endif  // FUSION_COMPILER_ANALYSIS_EVALUATE_H_
