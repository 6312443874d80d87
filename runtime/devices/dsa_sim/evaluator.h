// Evaluates parts of tensor expressions for the simulator, which knows no language of expressions: whoever lowers to
// programs knows the one that it prints.
#ifndef FUSION_RUNTIME_DEVICES_DSA_SIM_EVALUATOR_H_
#define FUSION_RUNTIME_DEVICES_DSA_SIM_EVALUATOR_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace fusion::dsa {

// A box of a tensor.
struct TensorBox {
  std::vector<int64_t> origin, extents;  // one of each a dimension
};

struct EvaluationRequest {
  int expression = 0;                        // of Program::expressions
  std::vector<TensorBox> results, operands;  // boxes of the expression's outputs, in their order, and of its inputs
  std::vector<int> outputs;                  // of the expression, parallel to `results`, ascending; empty: all of them
  std::vector<int> inputs;                   // of the expression, parallel to `operands`
  std::vector<std::vector<float>> values;    // of the operands, row-major
  // The output of the expression that a result is.
  int OutputOf(size_t result) const { return outputs.empty() ? static_cast<int>(result) : outputs[result]; }

  int64_t reduce_begin = 0, reduce_end = 0;  // of the first reduction axis, half-open; both 0: all of it
};

class Evaluator {
 public:
  virtual ~Evaluator() = default;
  // The values of the results, row-major. An operand's box holds all elements of its tensor that the results need.
  virtual absl::StatusOr<std::vector<std::vector<float>>> Evaluate(const EvaluationRequest& request) = 0;
  // Is a result of the expression (by its number among an instruction's) a tensor of integers? They must stay exact.
  virtual bool MakesIntegers(int expression, size_t result) const = 0;
};

}  // namespace fusion::dsa

#endif  // FUSION_RUNTIME_DEVICES_DSA_SIM_EVALUATOR_H_
