// Simplification: passes that need no mathematics. Each accepts any verified graph and returns an equal one with the
// same inputs and outputs; each output stays a value of its own (ecg::AddOwnOutput). No pass asks for an operator by
// name: the lowering decides.
#ifndef FUSION_COMPILER_SIMPLIFY_PASSES_H_
#define FUSION_COMPILER_SIMPLIFY_PASSES_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"

namespace fusion::simplify {

// Drops nodes that change nothing: each output is an input, element by element, in the same type and shape.
ecg::Graph RemoveNoops(const ecg::Graph& graph);

// Replaces a node by its value if all its inputs are constants, or if only the types of its inputs count, unless the
// value would be much larger than what it is made of. Reshaped constants share their bytes.
//
// Widening::kKeep leaves a constant of 8 or 16 bit integers narrow where a node only widens it (a dequantised weight):
// the wide value holds nothing more, and a later pass could not find the narrow one again. Use it before rewriting.
//
// Reordering::kHoldOnce leaves a node that only reorders a large constant, if others read that constant (a table of
// embeddings that is also a transposed right operand). Whatever is computed from the node's result then stays, too.
enum class Widening : uint8_t { kFold, kKeep };
enum class Reordering : uint8_t { kFold, kHoldOnce };
ecg::Graph FoldConstants(const ecg::Graph& graph, Widening widening, Reordering reordering = Reordering::kFold);
inline ecg::Graph FoldConstants(const ecg::Graph& graph) { return FoldConstants(graph, Widening::kFold); }

// Common subexpressions: one node for equal operator, inputs and attributes; one constant for equal type and bytes.
ecg::Graph ShareEqual(const ecg::Graph& graph);

// Drops nodes and constants that no output needs.
ecg::Graph RemoveDead(const ecg::Graph& graph);

// Moves permutations of slices (channel shuffles, gathers by a constant table) into the constants of those who read
// them: where the slices of a value are runs of other values' slices once they are sorted, it becomes these runs behind
// each other, and a reader's weights are permuted in their place. Elementwise operators, depthwise convolutions and
// poolings are passed on the way. A value keeps its order where anybody who computes with it needs that order, or where
// sorting makes no longer runs. Sums add the same terms in another order. Returns nullopt where nothing moves.
std::optional<ecg::Graph> MovedPermutations(const ecg::Graph& graph);
inline ecg::Graph CarryPermutations(const ecg::Graph& graph) { return MovedPermutations(graph).value_or(graph); }

// Makes one strided read (ops::kExpression) of each value that is put together from slices of one other value, if the
// slices have one shape and their places advance evenly, in up to as many nested steps as there are dimensions: shifted
// views of an image that are stacked (a convolution or a correlation by hand), every second row and column behind each
// other (space to depth). Slices may be reshaped or transposed on the way. It loses what rewriting knows about them.
ecg::Graph MergeSlices(const ecg::Graph& graph);

// Some nodes read one value at many places, each at a constant index (the iterations of an unrolled loop). OpenIndices
// makes these indices opaque constants: the nodes then have one structure, and one kernel serves them all. It must be
// the last pass, because other passes treat an opaque constant like any other.
ecg::Graph OpenIndices(const ecg::Graph& graph);

// Gives each value that a loop takes or returns a kernel of its own that writes it, so that the memory plan can place
// it where the iterations find it (compiler/launch/loop_memory.h): adds copies where LoopBegin takes a constant, an
// input or a shared value, where LoopEnd takes a value that does not come from the loop's body or takes one twice, and
// where a result of LoopEnd is an output. Idempotent only up to such copies: run it once, behind the passes that remove
// copies.
absl::StatusOr<ecg::Graph> SeparateLoopValues(const ecg::Graph& graph);

// Replaces every operator that hands values over inside itself (Softmax, a norm, attention, a convolution before its
// bias) by one operator for each expression of its lowering (ops::kExpression), so that a planner can cut between them.
// Fused again, they are the kernel of the operator. It loses what rewriting knows about the operator.
ecg::Graph OpenComposites(const ecg::Graph& graph);

// All passes except CarryPermutations, MergeSlices, OpenIndices and OpenComposites, ordered so that each pass sees what the one before uncovered.
// Idempotent.
ecg::Graph Simplify(const ecg::Graph& graph, Widening widening, Reordering reordering = Reordering::kFold);
inline ecg::Graph Simplify(const ecg::Graph& graph) { return Simplify(graph, Widening::kFold); }

// Simplify, with a look at the graph after each part. `part` is its name in the table of passes
// (compiler/pipeline/passes.h). An error of `check` ends the simplification and is returned as it is.
using PartCheck = std::function<absl::Status(const char* part, const ecg::Graph& graph)>;
absl::StatusOr<ecg::Graph> SimplifyInParts(const ecg::Graph& graph, Widening widening, Reordering reordering,
                                           const PartCheck& check);

}  // namespace fusion::simplify

#endif  // FUSION_COMPILER_SIMPLIFY_PASSES_H_
