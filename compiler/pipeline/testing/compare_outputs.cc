#include <string.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/pipeline/testing/run_fusion_block.h"
#include "runtime/base/narrow_float.h"

namespace fusion::testing {
namespace {

void ForEachPhysical(const Shape& shape, const Layout& layout,
                     const std::function<void(int64_t logical, int64_t physical)>& f) {
  const Shape physical = layout.PhysicalShape(shape);
  const int64_t count = NumElements(shape);
  std::vector<int64_t> at(shape.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i;
    for (size_t d = shape.size(); d-- > 0;) {
      at[d] = rest % shape[d];
      rest /= shape[d];
    }
    std::vector<te::Index> logical;
    for (const int64_t coordinate : at) logical.push_back(te::Index(coordinate));
    int64_t address = 0;
    const std::vector<te::Index> place = layout.Apply(logical);
    for (size_t d = 0; d < place.size(); ++d) address = address * physical[d] + place[d].constant();
    f(i, address);
  }
}

}  // namespace

absl::Status CompareOutputs(const Tensor& expected, const Tensor& actual) {
  if (expected.dtype() != actual.dtype() || expected.shape() != actual.shape())
    return absl::InternalError("another type or shape");
  double relative = 0, absolute = 0;
  switch (expected.dtype()) {
    case DType::kF32:
      relative = 1e-5, absolute = 2e-6;
      break;
    case DType::kF64:
      relative = 1e-12, absolute = 1e-13;
      break;
    case DType::kF16:
      relative = 2e-3, absolute = 1e-3;
      break;
    case DType::kBF16:
      relative = 1.6e-2, absolute = 8e-3;
      break;
    default:
      break;
  }
  double largest = 1;
  for (int64_t i = 0; i < expected.num_elements() && IsFloat(expected.dtype()); ++i) {
    const double e = std::fabs(expected.GetDouble(i));
    if (std::isfinite(e)) largest = std::max(largest, e);
  }
  int64_t wrong = 0, first = -1;
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    bool close;
    if (IsFloat(expected.dtype())) {
      const double e = expected.GetDouble(i), a = actual.GetDouble(i);
      close = std::isnan(e) || std::isnan(a)   ? std::isnan(e) && std::isnan(a)
              : IsByteFloat(expected.dtype())  ? e == a && std::signbit(e) == std::signbit(a)
              : std::isinf(e) || std::isinf(a) ? e == a
                                               : std::fabs(a - e) <= relative * std::fabs(e) + absolute * largest;
    } else {
      close = expected.GetInt(i) == actual.GetInt(i);
    }
    if (close) continue;
    if (wrong++ == 0) first = i;
  }
  if (wrong == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(wrong, " of ", expected.num_elements(), " elements of ",
                                          ShapeToString(expected.shape()), " differ, first at ", first, ": expected ",
                                          expected.GetDouble(first), ", got ", actual.GetDouble(first)));
}

Tensor ToPhysical(const Tensor& logical, const Layout& layout) {
  Tensor physical(logical.dtype(), layout.PhysicalShape(logical.shape()));
  const int64_t bytes = DTypeBytes(logical.dtype());
  char* out = static_cast<char*>(physical.mutable_data());
  const char* in = static_cast<const char*>(logical.data());
  ForEachPhysical(logical.shape(), layout,
                  [&](int64_t l, int64_t p) { memcpy(out + p * bytes, in + l * bytes, bytes); });
  return physical;
}

Tensor FromPhysical(const void* physical, DType dtype, const Shape& shape, const Layout& layout, bool* pad_is_zero) {
  Tensor logical(dtype, shape);
  const int64_t bytes = DTypeBytes(dtype);
  const char* in = static_cast<const char*>(physical);
  char* out = static_cast<char*>(logical.mutable_data());
  std::string rest(in, NumElements(layout.PhysicalShape(shape)) * bytes);
  ForEachPhysical(shape, layout, [&](int64_t l, int64_t p) {
    memcpy(out + l * bytes, in + p * bytes, bytes);
    memset(rest.data() + p * bytes, 0, bytes);
  });
  *pad_is_zero = std::all_of(rest.begin(), rest.end(), [](char c) { return c == 0; });
  return logical;
}

}  // namespace fusion::testing
