#include "runtime/base/random_inputs.h"

namespace fusion {
namespace {

// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}
constexpr uint64_t kGolden = 0x9e3779b97f4a7c15ull;

}  // namespace

uint64_t DeriveSeed(uint64_t seed, uint64_t index) { return Mix(Mix(seed + kGolden) + kGolden * (index + 1)); }

Tensor RandomTensor(DType dtype, const Shape& shape, uint64_t seed, int64_t integer_limit) {
  Tensor tensor(dtype, shape);
  const int64_t count = tensor.num_elements();
  const uint64_t limit = dtype == DType::kBool ? 2 : static_cast<uint64_t>(integer_limit < 1 ? 1 : integer_limit);
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t bits = Mix(seed + kGolden * (static_cast<uint64_t>(i) + 1));
    // 24 bits are exact in f32, and rounding them to f16 gives the same value on every machine.
    const float unit = static_cast<float>(bits >> 40) * (2.0f / 16777216.0f) - 1.0f;
    if (dtype == DType::kF32) {
      tensor.mutable_as<float>()[i] = unit;
    } else if (IsFloat(dtype)) {
      tensor.SetDouble(i, unit);
    } else {
      tensor.SetInt(i, static_cast<int64_t>((bits >> 11) % limit));
    }
  }
  return tensor;
}

}  // namespace fusion
