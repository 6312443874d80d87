// A layer as the units of an accelerator see it: segments of its tensor expressions, each for one kind of unit
// (GraphTurbo, OSDI 2023, section 4.1). A sum of products is a segment of its own, for the matrix unit; what stands
// between such sums is fused into one segment, for a vector unit; a map that loads at addresses which depend on data
// from a weight is a segment for the DMA engine, which gathers. Expressions decide, never the names of operators.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_LAYER_H_
#define FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_LAYER_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "compiler/plan/planners/graph_turbo/op_graph.h"

namespace fusion::graph_turbo {

enum class SegmentUnit : uint8_t {
  kMatrix,   // a sum of products in which each operand has an index of its own
  kVector,   // arithmetic that costs no more than a multiplication
  kSpecial,  // with functions such as exp
  kGather,
};

struct Segment {
  SegmentUnit unit = SegmentUnit::kVector;
  std::vector<int> tes;          // of the layer's program
  te::Program expression;        // these alone
  std::vector<te::TensorId> in;  // of the layer's program, parallel to expression.inputs
  std::vector<te::TensorId> out;
  std::vector<bool> table;  // parallel to `in`: of a gather, a weight that is read at addresses from data

  // The work of a tensor expression as a whole. That of a part is its share of the elements.
  struct WholeWork {
    std::vector<te::TensorId> outputs;  // of the layer's program
    double work = 0, elements = 1;
    bool routine = false;  // its work is the number of elements that it makes
  };
  std::vector<WholeWork> whole = {};  // parallel to `tes`

  // The work of its unit for these parts of the layer's tensors: multiply-adds, or scalar operations.
  double Work(absl::Span<const Region> tensors) const;
};

struct Layer {
  // The layer's program, in which what follows a sum of products is an expression of its own.
  AccessMap access;
  std::vector<Segment> segments;
  // The reduction axis that can be taken in parts, whose products are added up; -1: none. It belongs to segment 0.
  int chunk_axis = -1;
  int64_t chunk_extent = 1;
  // By tensor of the program: the number among its inputs and among its outputs, or kNone.
  std::vector<int> input_of = {}, output_of = {};
};

Layer MakeLayer(const Op& op);

// Is the expression a sum of products with an index of each operand's own, so that operands are used several times?
bool IsMatrixProduct(const te::Te& te);

}  // namespace fusion::graph_turbo

#endif  // FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_LAYER_H_
