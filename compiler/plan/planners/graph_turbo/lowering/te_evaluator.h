// Evaluates parts of tensor expressions for the simulator of accelerators with the reference interpreter.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_TE_EVALUATOR_H_
#define FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_TE_EVALUATOR_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/plan/planners/graph_turbo/lowering/part_of_expression.h"
#include "compiler/te/program/program.h"
#include "runtime/devices/dsa_sim/evaluator.h"
#include "runtime/devices/dsa_sim/program.h"

namespace fusion::graph_turbo {

// Each request becomes a program of tensor expressions over the boxes alone.
class TeEvaluator : public dsa::Evaluator {
 public:
  explicit TeEvaluator(const std::vector<te::Program>& expressions);
  // Parses the texts that a program carries.
  static absl::StatusOr<TeEvaluator> FromTexts(const dsa::Program& program);

  absl::StatusOr<std::vector<std::vector<float>>> Evaluate(const dsa::EvaluationRequest& request) override;
  bool MakesIntegers(int expression, size_t result) const override;

 private:
  std::vector<ExpressionParts> expressions_;
};

}  // namespace fusion::graph_turbo

#endif  // FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_TE_EVALUATOR_H_
