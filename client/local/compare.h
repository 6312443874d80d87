// CompareTensors: are these the same numbers, as far as floating point can tell? For outputs of whole models; the other
// tolerances and why they differ: tests/README.md.
#ifndef FUSION_CLIENT_LOCAL_COMPARE_H_
#define FUSION_CLIENT_LOCAL_COMPARE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/tensor.h"

namespace fusion {

// Of a whole model's output: 2^13 units in the last place of f32 (9.8e-4) and f64, 2^5 of f16 and bf16; 0 for integers.
// A network rounds a few times per layer and sums a few thousand products, so that errors grow to some hundred units.
double ToleranceOf(DType dtype);

// Of the finite elements; 0 where there is none.
double RootMeanSquare(const Tensor& tensor);

struct Comparison {
  double max_abs_err = 0;
  // |a - b| over the larger of |b| and the root mean square of the whole reference: a sum that happens to cancel near
  // zero is held to the scale of its neighbours.
  double max_rel_err = 0;
  double tolerance = 0;            // of max_rel_err
  int64_t special_mismatches = 0;  // NaN or infinity on one side only, or infinities of different sign
  bool only_nan = false;           // NaN on both sides and nothing finite: agreement that says nothing
  bool ok = false;
};

// `stored`: as what floats were kept on the way, which decides the tolerance where it is coarser than their own type.
// INVALID_ARGUMENT when type or shape differ.
absl::StatusOr<Comparison> CompareTensors(const Tensor& actual, const Tensor& reference, DType stored = DType::kF32);

}  // namespace fusion

#endif  // FUSION_CLIENT_LOCAL_COMPARE_H_
