// Evaluation of one operator at compile time: its lowering, run by the te interpreter.
#ifndef FUSION_COMPILER_ECG_EVALUATE_H_
#define FUSION_COMPILER_ECG_EVALUATE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"

namespace fusion::ecg {

// What a fold may cost; beyond it the node stays.
struct FoldLimits {
  int64_t output_bytes = 64 << 10;
  double flops = 1e8;
};

// May `node` (of `graph`) be replaced by its value? True when each present input is a constant, or no input's value is
// read at all (Shape, Size: only types count), and the limits hold; and when no output has any element.
bool IsFoldable(const Graph& graph, const Node& node, const FoldLimits& limits);

// Do the outputs, all floats, hold no more elements than a constant input of 8 or 16 bit integers? Then folding would
// make a narrow constant (the weight of a dequantisation) wide, and rewriting could not find it again.
bool OnlyWidens(const Graph& graph, const Node& node);

// Has the node one output, made of one input's elements, each once, in another order (Transpose)?
bool OnlyReorders(const Graph& graph, const Node& node);

// The outputs of a foldable node.
absl::StatusOr<std::vector<Tensor>> EvaluateNode(const Graph& graph, const Node& node);

// The inputs whose bytes, in order and in the same type, are the node's outputs (Identity, Reshape, Transpose that
// moves only axes of extent 1, Cast to the same type, …), parallel to the outputs; empty when it is not so for each
// output. The lowering decides, not the operator's name.
std::vector<ValueId> AliasesOf(const Graph& graph, const Node& node);

}  // namespace fusion::ecg

#endif  // FUSION_COMPILER_ECG_EVALUATE_H_
