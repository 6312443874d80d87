#include "tests/conformance/tolerance.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"

namespace fusion::conformance {
namespace {

std::string TypeText(const Tensor& tensor) {
  return absl::StrCat(DTypeName(tensor.dtype()), ShapeToString(tensor.shape()));
}

bool Close(double expected, double actual, double relative) {
  if (std::isnan(expected) || std::isnan(actual)) return std::isnan(expected) && std::isnan(actual);
  if (std::isinf(expected) || std::isinf(actual)) return expected == actual;
  return std::fabs(actual - expected) <= kAbsolute + relative * std::fabs(expected);
}

}  // namespace

absl::Status Compare(const Tensor& expected, const Tensor& actual) {
  if (expected.dtype() != actual.dtype() || expected.shape() != actual.shape()) {
    return absl::FailedPreconditionError(absl::StrCat("expected ", TypeText(expected), ", got ", TypeText(actual)));
  }
  const double relative = expected.dtype() == DType::kBF16 ? kRelativeOfBf16 : kRelative;
  int64_t wrong = 0, first = -1;
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    const bool close = IsFloat(expected.dtype()) ? Close(expected.GetDouble(i), actual.GetDouble(i), relative)
                                                 : expected.GetInt(i) == actual.GetInt(i);
    if (close) continue;
    if (wrong++ == 0) first = i;
  }
  if (wrong == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(wrong, " of ", expected.num_elements(),
                                                    " elements differ, first at ", first, ": expected ",
                                                    expected.GetDouble(first), ", got ", actual.GetDouble(first)));
}

}  // namespace fusion::conformance
