#include "runtime/verdict/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/base/epsilon.h"
#include "runtime/verdict/local_scale.h"
#include "runtime/verdict/ulps.h"

namespace fusion {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Collects the errors of elements, in order, and keeps the figures that Comparison reports.
class Errors {
 public:
  Errors(const Shape& shape, Comparison* result) : row_elements_(RowElements(shape)), result_(*result) {
    result_.row_errors.assign(static_cast<size_t>(NumElements(shape) / row_elements_), 0);
  }

  void Add(int64_t element, double a, double b, double relative) {
    double& row = result_.row_errors[static_cast<size_t>(element / row_elements_)];
    row = std::max(row, relative);
    if (result_.worst >= 0 && relative <= worst_) return;
    worst_ = relative;
    result_.worst = element;
    result_.worst_actual = a;
    result_.worst_reference = b;
  }

 private:
  const int64_t row_elements_;
  Comparison& result_;
  double worst_ = 0;
};

void CompareIntegers(const Tensor& actual, const Tensor& reference, Comparison* result) {
  Errors errors(reference.shape(), result);
  for (int64_t i = 0; i < reference.num_elements(); ++i) {
    const int64_t x = actual.GetInt(i), y = reference.GetInt(i);
    if (x == y) continue;
    // Neighbouring integers beyond 2^53 convert to the same double, but still differ by at least 1.
    const double a = static_cast<double>(x), b = static_cast<double>(y), difference = std::max(1.0, std::abs(a - b));
    result->max_abs_err = std::max(result->max_abs_err, difference);
    errors.Add(i, a, b, difference);
  }
  result->max_rel_err = result->max_abs_err;
  if (result->max_abs_err > 0) result->verdict = Verdict::kWrong;
}

void CompareFloats(const Tensor& actual, const Tensor& reference, const Slack& slack, Comparison* result) {
  const DType dtype = reference.dtype();
  LocalScale scale(reference, slack);
  Errors errors(reference.shape(), result);
  std::vector<uint64_t> ulps;
  int64_t finite = 0;
  bool any_nan = false;
  for (int64_t i = 0; i < reference.num_elements(); ++i) {
    const double a = actual.GetDouble(i), b = reference.GetDouble(i);
    if (!std::isfinite(a) || !std::isfinite(b)) {
      const bool both_nan = std::isnan(a) && std::isnan(b);
      any_nan = any_nan || both_nan;
      if (a == b || both_nan) {
        ++result->special_matches;
        continue;
      }
      ++result->special_mismatches;
      errors.Add(i, a, b, kInfinity);
      continue;
    }
    ++finite;
    if (a == b) continue;
    ulps.push_back(UlpDistance(dtype, a, b));
    result->max_ulps = std::max(result->max_ulps, ulps.back());
    result->max_abs_err = std::max(result->max_abs_err, std::abs(a - b));
    const double relative = scale.Error(i, a);
    result->max_rel_err = std::max(result->max_rel_err, relative);
    errors.Add(i, a, b, relative);
  }
  result->p999_ulps = finite > 0 ? Percentile999(&ulps, finite) : 0;
  if (result->special_mismatches > 0 || result->max_rel_err > result->tolerance) {
    result->verdict = Verdict::kWrong;
  } else if (finite == 0 && any_nan) {
    result->verdict = Verdict::kNotCompared;
    result->why =
        "it is NaN throughout, in the reference too: give inputs that the model is meant for (--input NAME=FILE), or "
        "smaller random integers (--int-max)";
  }
}

}  // namespace

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

std::vector<int64_t> IndexOf(int64_t element, const Shape& shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t axis = shape.size(); axis-- > 0; element /= shape[axis]) index[axis] = element % shape[axis];
  return index;
}

absl::StatusOr<Comparison> CompareTensors(const Tensor& actual, const Tensor& reference, const Slack& slack) {
  if (actual.dtype() != reference.dtype()) {
    return absl::InvalidArgumentError(absl::StrCat(DTypeName(actual.dtype()), ShapeToString(actual.shape()),
                                                   " against ", DTypeName(reference.dtype()),
                                                   ShapeToString(reference.shape())));
  }
  Comparison result;
  if (actual.shape() != reference.shape()) {
    result.verdict = Verdict::kWrong;
    result.why = absl::StrCat("its shape is ", ShapeToString(actual.shape()), ", the reference's ",
                              ShapeToString(reference.shape()));
    result.max_rel_err = kInfinity;
    return result;
  }
  result.tolerance = ToleranceOf(actual.dtype());
  if (IsFloat(actual.dtype())) result.tolerance = std::max(result.tolerance, ToleranceOf(slack.stored));
  if (reference.num_elements() == 0) {
    result.verdict = Verdict::kNotCompared;
    result.why = "it is empty, in the reference too: give inputs of which something is left";
  } else if (IsFloat(actual.dtype())) {
    CompareFloats(actual, reference, slack, &result);
  } else {
    CompareIntegers(actual, reference, &result);
  }
  return result;
}

}  // namespace fusion
