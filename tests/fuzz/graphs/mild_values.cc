#include "tests/fuzz/graphs/mild_values.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/ecg/text.h"
#include "tests/fuzz/graphs/values.h"

namespace fusion::fuzz {

bool IsMild(const Tensor& tensor) {
  constexpr float kMostFinite = 1000;
  const float* const begin = tensor.as<float>();
  return std::all_of(begin, begin + tensor.num_elements(),
                     [](float x) { return !std::isfinite(x) || std::abs(x) <= kMostFinite; });
}

Tensor MildConstant(const Shape& shape, Drawing* draw) {
  for (;;) {
    const uint64_t seed = draw->Bits();
    Tensor drawn = DrawTensor(DType::kF32, shape, seed);
    if (!IsMild(drawn)) continue;
    return NumElements(shape) > ecg::kMaxPrintedElements ? FilledTensor(DType::kF32, shape, seed) : drawn;
  }
}

std::string MildName(const Shape& shape, Drawing* draw) {
  for (;;) {
    std::string name = absl::StrCat("x", draw->Below(1000));
    if (IsMild(DrawInput(name, DType::kF32, shape))) return name;
  }
}

}  // namespace fusion::fuzz
