// The part of a tensor expression that an instruction computes, as a program of its own over the boxes of its operands
// and results.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_PART_OF_EXPRESSION_H_
#define FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_PART_OF_EXPRESSION_H_

#include <cstdint>
#include <set>
#include <vector>

#include "compiler/plan/planners/graph_turbo/access_map.h"
#include "compiler/te/program/program.h"
#include "runtime/devices/dsa_sim/evaluator.h"

namespace fusion::graph_turbo {

// A box of an operand or a result, and where it lies in a tensor of the part's program.
struct PlacedBox {
  te::TensorId tensor = -1;
  std::vector<int64_t> at, extents;
};

struct PartOfExpression {
  te::Program program;
  std::vector<PlacedBox> operands, results;  // parallel to those of the request
};

// Makes the parts of one expression. Values of requests do not matter.
class ExpressionParts {
 public:
  explicit ExpressionParts(te::Program expression);

  const te::Program& expression() const { return access_.program(); }
  PartOfExpression PartOf(const dsa::EvaluationRequest& request) const;

  // Requests with equal keys have equal parts. The key is found without making the part. Where all indices are affine
  // and nothing else depends on coordinates, it says where boxes lie relative to each other, so that tiles inside of a
  // tensor share one; elsewhere it says where they lie.
  std::vector<int64_t> KeyOf(const dsa::EvaluationRequest& request) const;

 private:
  AccessMap access_;
  std::set<te::TensorId> kept_;  // tensors whose elements are addresses: parts have them whole
  bool shifts_alike_ = true;
};

}  // namespace fusion::graph_turbo

#endif  // FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_PART_OF_EXPRESSION_H_
