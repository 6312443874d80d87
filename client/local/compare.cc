#include "client/local/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/base/epsilon.h"

namespace fusion {

double ToleranceOf(DType dtype) {
  switch (dtype) {
    case DType::kF64:
    case DType::kF32:
      return 8192 * Epsilon(dtype);
    case DType::kF16:
    case DType::kBF16:
      return 32 * Epsilon(dtype);
    default:
      return 0;
  }
}

double RootMeanSquare(const Tensor& tensor) {
  double squares = 0;
  int64_t finite = 0;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const double value = tensor.GetDouble(i);
    if (!std::isfinite(value)) continue;
    squares += value * value;
    ++finite;
  }
  return finite > 0 ? std::sqrt(squares / static_cast<double>(finite)) : 0;
}

absl::StatusOr<Comparison> CompareTensors(const Tensor& actual, const Tensor& reference, DType stored) {
  if (actual.dtype() != reference.dtype() || actual.shape() != reference.shape()) {
    return absl::InvalidArgumentError(absl::StrCat(DTypeName(actual.dtype()), ShapeToString(actual.shape()),
                                                   " against ", DTypeName(reference.dtype()),
                                                   ShapeToString(reference.shape())));
  }
  Comparison result;
  result.tolerance = ToleranceOf(actual.dtype());
  const int64_t n = actual.num_elements();
  if (!IsFloat(actual.dtype())) {
    for (int64_t i = 0; i < n; ++i) {
      const double difference =
          std::abs(static_cast<double>(actual.GetInt(i)) - static_cast<double>(reference.GetInt(i)));
      result.max_abs_err = std::max(result.max_abs_err, difference);
    }
    result.max_rel_err = result.max_abs_err;
    result.ok = result.max_abs_err == 0;
    return result;
  }
  result.tolerance = std::max(result.tolerance, ToleranceOf(stored));
  const double scale = RootMeanSquare(reference);
  bool any_finite = false, any_nan = false;
  for (int64_t i = 0; i < n; ++i) {
    const double a = actual.GetDouble(i), b = reference.GetDouble(i);
    any_finite = any_finite || std::isfinite(b);
    any_nan = any_nan || (std::isnan(a) && std::isnan(b));
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (!std::isfinite(a) || !std::isfinite(b)) {
      ++result.special_mismatches;
      continue;
    }
    const double difference = std::abs(a - b);
    const double magnitude = std::max(std::abs(b), scale);
    result.max_abs_err = std::max(result.max_abs_err, difference);
    result.max_rel_err =
        std::max(result.max_rel_err, magnitude > 0 ? difference / magnitude : std::numeric_limits<double>::infinity());
  }
  result.only_nan = any_nan && !any_finite;
  result.ok = result.special_mismatches == 0 && !result.only_nan && result.max_rel_err <= result.tolerance;
  return result;
}

}  // namespace fusion
