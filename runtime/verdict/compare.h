// CompareTensors: are these the same numbers, as far as floating point can tell? It is meant for the outputs of whole
// models; tests/README.md lists the other tolerances and says why they differ.
#ifndef FUSION_RUNTIME_VERDICT_COMPARE_H_
#define FUSION_RUNTIME_VERDICT_COMPARE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/tensor.h"
#include "runtime/verdict/local_scale.h"

namespace fusion {

// Tolerance for a whole model's output: 2^13 units in the last place of f32 (9.8e-4) and f64, 2^5 of f16 and bf16, and
// 0 for integers. A network rounds a few times per layer and sums a few thousand products, so errors grow to some
// hundred units.
double ToleranceOf(DType dtype);

enum class Verdict {
  kOk,
  kWrong,
  kNotCompared,  // a verdict would say nothing
};

struct Comparison {
  Verdict verdict = Verdict::kOk;
  std::string why;  // for kNotCompared, and for kWrong where the numbers below do not tell

  double max_abs_err = 0;
  // See LocalScale::Error. A sum that happens to cancel near zero is compared at the scale of its neighbours, except
  // huge ones among them. For integers this is the difference itself.
  double max_rel_err = 0;
  double tolerance = 0;            // for max_rel_err: the largest tolerance that any row got
  int64_t special_mismatches = 0;  // NaN or infinity on one side only, or infinities of different sign
  int64_t special_matches = 0;     // NaN on both sides, or the same infinity
  uint64_t max_ulps = 0;           // in the output's type, over the elements that are finite on both sides
  uint64_t p999_ulps = 0;          // 99.9% of these elements differ by at most this
  int64_t worst = -1;  // the element of max_rel_err, or of a special mismatch if there is one; -1: all are equal
  double worst_actual = 0, worst_reference = 0;
  std::vector<double> row_errors;  // max_rel_err of each row (RowElements); infinite for a special mismatch

  bool ok() const { return verdict == Verdict::kOk; }
};

// Compares element by element. An empty tensor, or one with NaN and nothing finite on both sides, is not compared.
// Other extents are wrong. `slack.stored` decides the tolerance where it is coarser than the tensors' own type. Fails
// with INVALID_ARGUMENT when the types differ.
absl::StatusOr<Comparison> CompareTensors(const Tensor& actual, const Tensor& reference, const Slack& slack = {});

// Returns an element's index along each axis.
std::vector<int64_t> IndexOf(int64_t element, const Shape& shape);

}  // namespace fusion

#endif  // FUSION_RUNTIME_VERDICT_COMPARE_H_
