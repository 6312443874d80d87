// Simplification: passes that need no mathematics. Each accepts any verified graph and returns an equal one with the
// same inputs and outputs; each output stays a value of its own (ecg::AddOwnOutput). None asks for an operator by name:
// the lowering decides.
#ifndef FUSION_COMPILER_SIMPLIFY_PASSES_H_
#define FUSION_COMPILER_SIMPLIFY_PASSES_H_

#include <cstdint>

#include "compiler/ecg/graph.h"

namespace fusion::simplify {

// Drops nodes that change nothing: each output is an input, element by element, in the same type and shape.
ecg::Graph RemoveNoops(const ecg::Graph& graph);

// Replaces nodes whose inputs are all constants (or whose inputs' types alone count) by their value, unless that would
// be much larger than what it is made of. Reshaped constants share their bytes.
//
// Widening::kKeep: a constant of 8 or 16 bit integers that a node only widens (a dequantised weight) stays narrow,
// since the wide value holds nothing more and its narrow origin could not be found again. For what runs before
// rewriting.
//
// Reordering::kHoldOnce: a large constant that a node only brings into another order stays as it is where others read
// it (a table of embeddings that is also a transposed right operand). What else is computed of the result then stays,
// too.
enum class Widening : uint8_t { kFold, kKeep };
enum class Reordering : uint8_t { kFold, kHoldOnce };
ecg::Graph FoldConstants(const ecg::Graph& graph, Widening widening, Reordering reordering = Reordering::kFold);
inline ecg::Graph FoldConstants(const ecg::Graph& graph) { return FoldConstants(graph, Widening::kFold); }

// Common subexpressions: one node for equal operator, inputs and attributes; one constant for equal type and bytes.
ecg::Graph ShareEqual(const ecg::Graph& graph);

// Drops nodes and constants that no output needs.
ecg::Graph RemoveDead(const ecg::Graph& graph);

// Of nodes that read one value at many places, each at a constant one (the iterations of an unrolled loop), the indices
// become opaque constants: they are then of one structure, and one kernel serves them all. The last pass: to all others
// an opaque constant is one like any other.
ecg::Graph OpenIndices(const ecg::Graph& graph);

// All but OpenIndices, in the order that lets each see what the one before uncovered. Idempotent.
ecg::Graph Simplify(const ecg::Graph& graph, Widening widening, Reordering reordering = Reordering::kFold);
inline ecg::Graph Simplify(const ecg::Graph& graph) { return Simplify(graph, Widening::kFold); }

}  // namespace fusion::simplify

#endif  // FUSION_COMPILER_SIMPLIFY_PASSES_H_
