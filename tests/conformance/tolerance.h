// Decides whether an operator gives ONNX's numbers. tests/README.md lists the other tolerances and why they differ.
#ifndef FUSION_TESTS_CONFORMANCE_TOLERANCE_H_
#define FUSION_TESTS_CONFORMANCE_TOLERANCE_H_

#include "absl/status/status.h"
#include "runtime/base/tensor.h"

namespace fusion::conformance {

// The tolerance of ONNX's own backend tests: |actual - expected| <= kAbsolute + kRelative * |expected|.
inline constexpr double kRelative = 1e-3;
inline constexpr double kAbsolute = 1e-7;
// Two steps of bfloat16, as in ONNX's tests: half of one step is already twice kRelative.
inline constexpr double kRelativeOfBf16 = 1.0 / 64;

// Types and shapes must be equal, NaN matches NaN, infinities must be equal, integers and booleans must be exact.
// Otherwise fails with a message that describes the first difference.
absl::Status Compare(const Tensor& expected, const Tensor& actual);

}  // namespace fusion::conformance

#endif  // FUSION_TESTS_CONFORMANCE_TOLERANCE_H_
