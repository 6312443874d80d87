// Evaluates a program whose expressions are unit code (unit_code.h).
#ifndef FUSION_RUNTIME_DEVICES_DSA_SIM_UNIT_EVALUATOR_H_
#define FUSION_RUNTIME_DEVICES_DSA_SIM_UNIT_EVALUATOR_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/devices/dsa_sim/evaluator.h"
#include "runtime/devices/dsa_sim/program.h"
#include "runtime/devices/dsa_sim/unit_code.h"
#include "runtime/devices/dsa_sim/unit_op.h"

namespace fusion::dsa {

// One thread evaluates at a time.
class UnitEvaluator : public Evaluator {
 public:
  // Parses the program's expressions. INVALID_ARGUMENT names the expression that is no unit code, and an instruction
  // whose operands or results are not those of its code.
  static absl::StatusOr<UnitEvaluator> Create(const Program& program);

  // UNIMPLEMENTED for an integer that a float does not hold; OUT_OF_RANGE for an address from data that lies outside
  // the tensor that it is of.
  absl::StatusOr<std::vector<std::vector<float>>> Evaluate(const EvaluationRequest& request) override;
  bool MakesIntegers(int expression, size_t result) const override;

 private:
  absl::Status RunStep(const UnitCode& code, const UnitStep& step, std::vector<std::vector<float>>* arrays);

  std::vector<std::string> names_;
  std::vector<UnitCode> codes_;
  UnitState state_;                         // of the step that runs
  std::vector<std::vector<float>> arrays_;  // by tensor of the code that runs; their memory stays
};

}  // namespace fusion::dsa

#endif  // FUSION_RUNTIME_DEVICES_DSA_SIM_UNIT_EVALUATOR_H_
