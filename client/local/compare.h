// CompareTensors: are these the same numbers, as far as floating point can tell? For outputs of whole models; the other
// tolerances and why they differ: tests/README.md.
#ifndef FUSION_CLIENT_LOCAL_COMPARE_H_
#define FUSION_CLIENT_LOCAL_COMPARE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/local/local_scale.h"
#include "runtime/base/tensor.h"

namespace fusion {

// Of a whole model's output: 2^13 units in the last place of f32 (9.8e-4) and f64, 2^5 of f16 and bf16; 0 for integers.
// A network rounds a few times per layer and sums a few thousand products, so that errors grow to some hundred units.
double ToleranceOf(DType dtype);

enum class Verdict {
  kOk,
  kWrong,
  kNotCompared,  // neither agreement nor disagreement would say anything
};

struct Comparison {
  Verdict verdict = Verdict::kOk;
  std::string why;  // of kNotCompared, and of kWrong where the numbers below do not tell

  double max_abs_err = 0;
  // LocalScale::Error: a sum that happens to cancel near zero is held to the scale of its neighbours, but not to what is
  // huge among them. The difference itself for integers.
  double max_rel_err = 0;
  double tolerance = 0;            // of max_rel_err: the largest that any row was given
  int64_t special_mismatches = 0;  // NaN or infinity on one side only, or infinities of different sign
  int64_t special_matches = 0;     // NaN on both sides, or the same infinity
  uint64_t max_ulps = 0;           // of the output's type, over the elements that are finite on both sides
  uint64_t p999_ulps = 0;          // 99.9% of those are no further apart
  int64_t worst = -1;              // element of max_rel_err; of a special mismatch if there is one; -1: all are equal
  double worst_actual = 0, worst_reference = 0;
  std::vector<double> row_errors;  // for each row (RowElements) its max_rel_err; infinite for a special mismatch

  bool ok() const { return verdict == Verdict::kOk; }
};

// Element by element. Not compared: what is empty, and what holds NaN and nothing finite on both sides. Wrong: other extents.
// `slack.stored` decides the tolerance where it is coarser than their own type.
// INVALID_ARGUMENT when the type differs.
absl::StatusOr<Comparison> CompareTensors(const Tensor& actual, const Tensor& reference, const Slack& slack = {});

// An element's index along each axis.
std::vector<int64_t> IndexOf(int64_t element, const Shape& shape);

}  // namespace fusion

#endif  // FUSION_CLIENT_LOCAL_COMPARE_H_
