// Does an operator give ONNX's numbers? The other tolerances and why they differ: tests/README.md.
#ifndef FUSION_TESTS_CONFORMANCE_TOLERANCE_H_
#define FUSION_TESTS_CONFORMANCE_TOLERANCE_H_

#include "absl/status/status.h"
#include "runtime/base/tensor.h"

namespace fusion::conformance {

// Those of ONNX's own backend tests: |actual - expected| <= kAbsolute + kRelative * |expected|.
inline constexpr double kRelative = 1e-3;
inline constexpr double kAbsolute = 1e-7;
// Two steps of bfloat16, as there: half of one step is already twice kRelative.
inline constexpr double kRelativeOfBf16 = 1.0 / 64;

// Types and shapes must be equal, NaN matches NaN, infinities must be equal, integers and booleans exact. Otherwise a
// message with the first difference.
absl::Status Compare(const Tensor& expected, const Tensor& actual);

}  // namespace fusion::conformance

#endif  // FUSION_TESTS_CONFORMANCE_TOLERANCE_H_
