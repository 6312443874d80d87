#include "compiler/te/interpreter/perturbation.h"

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "compiler/te/interpreter/each_lane.h"
#include "compiler/te/interpreter/lane_numbers.h"
#include "compiler/te/scalar/op_values.h"
#include "runtime/base/narrow_float.h"

namespace fusion::te::lanes {
namespace {

uint64_t NextRandom(State& s) {  // xorshift64
  s.random ^= s.random << 13;
  s.random ^= s.random >> 7;
  s.random ^= s.random << 17;
  return s.random;
}

// Returns how far a result moves, as a fraction of its bound: in [-1, 1), 0 where it stays.
double MoveBy(uint64_t random, const State& s) {
  if ((random & s.still) != 0) return 0;
  return static_cast<double>(static_cast<int64_t>(random)) * 0x1p-63;
}
double NextMove(State& s) { return MoveBy(NextRandom(s), s); }

// The same for a function's result, from its rounded magnitude alone.
template <typename F>
double AlikeMove(const State& s, double result) {
  const auto magnitude = static_cast<double>(static_cast<F>(std::fabs(result)));
  uint64_t mixed = (std::bit_cast<uint64_t>(magnitude) ^ s.alike) * 0x9e3779b97f4a7c15u;
  mixed = (mixed ^ mixed >> 32) * 0xd6e8feb86659fd93u;
  return MoveBy(mixed ^ mixed >> 32, s);
}

// Returns whether x has at most 16 significant bits in f32 or 32 in f64, as small integers and fractions of powers of
// two have, whose sums and products are exact. At most one rounded result in 2^8 looks like that.
template <typename F>
bool IsShort(double x) {
  constexpr int kSpare = std::is_same_v<F, float> ? 52 - 15 : 52 - 31;
  return (std::bit_cast<U>(x) & ((U{1} << kSpare) - 1)) == 0;
}

// Returns what b + c = sum has lost in double precision (Knuth, The Art of Computer Programming 2, 4.2.2, theorem B).
double LostBySum(double b, double c, double sum) {
  const double of_c = sum - b;
  return (b - (sum - of_c)) + (c - of_c);
}

template <typename F>
double Perturbed(State& s, double a, double units, bool exact) {
  constexpr double kUnit = std::numeric_limits<F>::epsilon();
  const double move = units > 1 && s.alike != 0 ? AlikeMove<F>(s, a) : NextMove(s);
  const double x = exact || !std::isfinite(a) ? a : a * (1 + move * units * kUnit);
  const bool underflows = std::fabs(x) < 1.5 * static_cast<double>(std::numeric_limits<F>::min()) && move < 0;
  return underflows ? 0 : x;
}

template <typename F>
void Perturb(State& s, const Inst& in, int n) {
  double* d = s.D(in.dst);
  const double* a = s.D(in.a);
  for (int l = 0; l < n; ++l) {
    d[l] = static_cast<double>(static_cast<F>(Perturbed<F>(s, a[l], in.fimm, in.fimm <= 1 && IsShort<F>(a[l]))));
  }
}

template <typename F>
void PerturbSum(State& s, const Inst& in, int n) {
  double* d = s.D(in.dst);
  const double *a = s.D(in.a), *b = s.D(in.b), *c = s.D(in.c);
  for (int l = 0; l < n; ++l) {
    const bool exact = IsShort<F>(a[l]) && LostBySum(b[l], in.imm < 0 ? -c[l] : c[l], a[l]) == 0;
    d[l] = static_cast<double>(static_cast<F>(Perturbed<F>(s, a[l], 1, exact)));
  }
}

void PerturbNarrowProduct(State& s, const Inst& in, int n) {
  double* d = s.D(in.dst);
  const double* a = s.D(in.a);
  for (int l = 0; l < n; ++l) {
    const double x = Perturbed<float>(s, a[l], 1, IsShort<float>(a[l]));
    const auto rounded = static_cast<double>(static_cast<float>(x));
    d[l] = s.fuses && std::isinf(rounded) ? x : rounded;
  }
}

void PerturbProduct(State& s, const Inst& in, int n) {
  double* d = s.D(in.dst);
  const double *a = s.D(in.a), *b = s.D(in.b), *c = s.D(in.c);
  for (int l = 0; l < n; ++l) {
    const double move = NextMove(s);
    const bool exact = !std::isfinite(a[l]) || std::fma(b[l], c[l], -a[l]) == 0;
    d[l] = exact ? a[l] : a[l] * (1 + move * std::numeric_limits<double>::epsilon());
  }
}

template <bool kAbove>
void PartialProduct(State& s, const Inst& in, int n) {
  double* d = s.D(in.dst);
  const double *a = s.D(in.a), *b = s.D(in.b);
  const int64_t* select = s.I(in.c);
  for (int l = 0; l < n; ++l) {
    const double factor = std::fabs(b[l]);
    d[l] = select[l] != 0 && (kAbove ? !(factor <= 1) : factor < 1) ? a[l] * factor : a[l];
  }
}

template <typename F>
void AnyOrderProduct(State& s, const Inst& in, int n) {
  double* d = s.D(in.dst);
  const double *a = s.D(in.a), *above = s.D(in.b), *below = s.D(in.c);
  for (int l = 0; l < n; ++l) {
    const bool leaves = !(above[l] <= static_cast<double>(std::numeric_limits<F>::max())) ||
                        !(below[l] >= static_cast<double>(std::numeric_limits<F>::min()));
    const double other = std::isnan(a[l]) ? 0 : std::numeric_limits<double>::quiet_NaN();
    d[l] = leaves && !std::isnan(above[l]) && (NextRandom(s) & 1) ? other : a[l];
  }
}

void PartialSum(State& s, const Inst& in, int n) {
  double* d = s.D(in.dst);
  const double *a = s.D(in.a), *b = s.D(in.b);
  const int64_t* select = s.I(in.c);
  for (int l = 0; l < n; ++l) {
    const bool finite = std::isfinite(b[l]), counts = select[l] != 0;
    const double magnitude = std::fabs(a[l]) + (counts && finite ? std::fabs(b[l]) : 0);
    d[l] = std::signbit(a[l]) || (counts && !finite) ? -magnitude : magnitude;
  }
}

template <typename F>
void AnyOrderSum(State& s, const Inst& in, int n) {
  double* d = s.D(in.dst);
  const double *a = s.D(in.a), *magnitude = s.D(in.b);
  for (int l = 0; l < n; ++l) {
    const bool leaves = !(std::fabs(magnitude[l]) <= static_cast<double>(std::numeric_limits<F>::max()));
    const uint64_t random = leaves ? NextRandom(s) : 0;
    const double infinity = std::copysign(std::numeric_limits<double>::infinity(), (random & 4) != 0 ? 1.0 : -1.0);
    const bool all_finite = !std::signbit(magnitude[l]);
    const bool infinite = all_finite && (s.infinite_overflows || (random & 2) != 0);
    const double other = infinite ? infinity : std::numeric_limits<double>::quiet_NaN();
    d[l] = (random & 1) != 0 ? other : a[l];
  }
}

void PaddedProduct(State& s, const Inst& in, int n) {
  double* d = s.D(in.dst);
  const double *a = s.D(in.a), *b = s.D(in.b);
  for (int l = 0; l < n; ++l) {
    const double product = a[l] * b[l];
    d[l] = s.skips_padding && std::isnan(product) && (a[l] == 0 || b[l] == 0) ? 0 : product;
  }
}

template <double (*kExtreme)(double, double)>
void RandomZero(State& s, const Inst& in, int n) {
  double* d = s.D(in.dst);
  const double *a = s.D(in.a), *b = s.D(in.b);
  for (int l = 0; l < n; ++l) {
    const bool zeros = a[l] == 0 && b[l] == 0;
    d[l] = !zeros ? kExtreme(a[l], b[l]) : NextRandom(s) & 1 ? a[l] : b[l];
  }
}

template <double (*kToward)(double)>
void RandomRound(State& s, const Inst& in, int n) {
  double* d = s.D(in.dst);
  const double* a = s.D(in.a);
  for (int l = 0; l < n; ++l) {
    const double nearest = kToward(a[l]);
    // Takes the neighbour on the other side, unless the value is close to the nearest one.
    const bool stays = nearest == a[l] || !std::isfinite(nearest) || NextMove(s) <= 0;
    d[l] = stays ? nearest : kToward(a[l] + 1.01 * (a[l] - nearest));
  }
}

template <typename T>
void RandomToInt(State& s, const Inst& in, int n) {
  int64_t* d = s.I(in.dst);
  const double* a = s.D(in.a);
  constexpr double kEnd = std::is_same_v<T, int64_t> || std::is_same_v<T, uint64_t>
                              ? (std::is_signed_v<T> ? 0x1p63 : 0x1p64)
                              : static_cast<double>(std::numeric_limits<T>::max()) + 1;
  constexpr double kBegin = static_cast<double>(std::numeric_limits<T>::min()) - (sizeof(T) < 8 ? 1 : 0);
  for (int l = 0; l < n; ++l) {
    const bool fits = a[l] < kEnd && (sizeof(T) < 8 ? a[l] > kBegin : a[l] >= kBegin);
    // Machines saturate often, and uniform draws would miss the extremes of a wide type.
    const bool saturates = fits || NextRandom(s) % 4 == 0;
    d[l] = saturates ? SaturateToInt<std::is_same_v<T, uint64_t>>(a[l]) : Signed(NextRandom(s));
  }
}

double RoundHalf(double a) { return HalfToFloat(FloatToHalf(static_cast<float>(a))); }
double RoundBFloat(double a) { return BFloat16ToFloat(FloatToBFloat16(static_cast<float>(a))); }

}  // namespace

void SwapAtRandom(State& s, const Inst& in, int n) {
  double *d = s.D(in.dst), *a = s.D(in.a);
  for (int l = 0; l < n; ++l) {
    if (NextRandom(s) & 1) std::swap(d[l], a[l]);
  }
}

LaneKernel PerturbKernel(DType dtype) { return dtype == DType::kF64 ? Perturb<double> : Perturb<float>; }

LaneKernel PerturbSumKernel(DType dtype) { return dtype == DType::kF64 ? PerturbSum<double> : PerturbSum<float>; }

LaneKernel PerturbNarrowProductKernel() { return PerturbNarrowProduct; }

LaneKernel PerturbProductKernel() { return PerturbProduct; }

LaneKernel PartialProductKernel(bool above) { return above ? PartialProduct<true> : PartialProduct<false>; }

LaneKernel AnyOrderProductKernel(DType dtype) {
  return dtype == DType::kF64 ? AnyOrderProduct<double> : AnyOrderProduct<float>;
}

LaneKernel PartialSumKernel() { return PartialSum; }

LaneKernel AnyOrderSumKernel(DType dtype) { return dtype == DType::kF64 ? AnyOrderSum<double> : AnyOrderSum<float>; }

LaneKernel PaddedProductKernel() { return PaddedProduct; }

LaneKernel RandomZeroKernel(Op op) { return op == Op::kMax ? RandomZero<values::Max> : RandomZero<values::Min>; }

LaneKernel RandomRoundKernel(DType dtype) {
  if (dtype == DType::kF16) return RandomRound<RoundHalf>;
  if (dtype == DType::kBF16) return RandomRound<RoundBFloat>;
  return RoundKernel(dtype);
}

LaneKernel RandomDoubleToIntKernel(DType dtype) {
  switch (dtype) {
    case DType::kI8:
      return RandomToInt<int8_t>;
    case DType::kI16:
      return RandomToInt<int16_t>;
    case DType::kI32:
      return RandomToInt<int32_t>;
    case DType::kI64:
      return RandomToInt<int64_t>;
    case DType::kU8:
      return RandomToInt<uint8_t>;
    case DType::kU16:
      return RandomToInt<uint16_t>;
    case DType::kU32:
      return RandomToInt<uint32_t>;
    case DType::kU64:
      return RandomToInt<uint64_t>;
    default:
      return DoubleToIntKernel(dtype);
  }
}

}  // namespace fusion::te::lanes
