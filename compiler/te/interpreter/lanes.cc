#include "compiler/te/interpreter/lanes.h"

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "runtime/base/narrow_float.h"

namespace fusion::te::lanes {
namespace {

// An operand may be the destination itself, but only lane by lane, so that lanes do not depend on each other.
#define FUSION_LANES _Pragma("GCC ivdep") for (int l = 0; l < n; ++l)

template <auto F>
void D1(State& s, const Inst& in, int n) {  // double -> double
  double* d = s.D(in.dst);
  const double* a = s.D(in.a);
  FUSION_LANES d[l] = F(a[l]);
}
template <auto F>
void D2(State& s, const Inst& in, int n) {  // double, double -> double
  double* d = s.D(in.dst);
  const double *a = s.D(in.a), *b = s.D(in.b);
  FUSION_LANES d[l] = F(a[l], b[l]);
}
template <auto F>
void D1I(State& s, const Inst& in, int n) {  // double -> int
  int64_t* d = s.I(in.dst);
  const double* a = s.D(in.a);
  FUSION_LANES d[l] = F(a[l]);
}
template <auto F>
void D2I(State& s, const Inst& in, int n) {  // double, double -> int
  int64_t* d = s.I(in.dst);
  const double *a = s.D(in.a), *b = s.D(in.b);
  FUSION_LANES d[l] = F(a[l], b[l]);
}
template <auto F>
void I1(State& s, const Inst& in, int n) {  // int -> int
  int64_t* d = s.I(in.dst);
  const int64_t* a = s.I(in.a);
  FUSION_LANES d[l] = F(a[l]);
}
template <auto F>
void I1D(State& s, const Inst& in, int n) {  // int -> double
  double* d = s.D(in.dst);
  const int64_t* a = s.I(in.a);
  FUSION_LANES d[l] = F(a[l]);
}
template <auto F>
void I2(State& s, const Inst& in, int n) {  // int, int -> int
  int64_t* d = s.I(in.dst);
  const int64_t *a = s.I(in.a), *b = s.I(in.b);
  FUSION_LANES d[l] = F(a[l], b[l]);
}
template <auto F>
void I2W(State& s, const Inst& in, int n) {  // int, int, width -> int
  int64_t* d = s.I(in.dst);
  const int64_t *a = s.I(in.a), *b = s.I(in.b);
  FUSION_LANES d[l] = F(a[l], b[l], in.imm);
}

using U = uint64_t;
constexpr U Unsigned(int64_t x) { return static_cast<U>(x); }
constexpr int64_t Signed(U x) { return static_cast<int64_t>(x); }

double ModDouble(double a, double b) {  // the result has the sign of the divisor, also where it is zero
  const double r = std::fmod(a, b);
  if (r == 0) return b < 0 ? -0.0 : 0.0;
  return (r < 0) != (b < 0) ? r + b : r;
}
double MaxDouble(double a, double b) { return std::isnan(a) || a > b ? a : b; }  // b may be NaN: then a > b is false
double MinDouble(double a, double b) { return std::isnan(a) || a < b ? a : b; }
double SignDouble(double a) { return a > 0 ? 1 : a < 0 ? -1 : a == 0 ? 0 : a; }

int64_t DivInt(int64_t a, int64_t b) { return b == 0 ? 0 : b == -1 ? Signed(-Unsigned(a)) : a / b; }
int64_t FModInt(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }
int64_t ModInt(int64_t a, int64_t b) {
  const int64_t r = FModInt(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
int64_t PowInt(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  U result = 1, power = Unsigned(base);
  for (U e = Unsigned(exponent); e != 0; e >>= 1, power *= power) {
    if (e & 1) result *= power;
  }
  return Signed(result);
}
int64_t PowUnsigned(int64_t base, int64_t exponent) {
  U result = 1, power = Unsigned(base);
  for (U e = Unsigned(exponent); e != 0; e >>= 1, power *= power) {
    if (e & 1) result *= power;
  }
  return Signed(result);
}

Kernel DoubleOp(Op op) {
  switch (op) {
    case Op::kAdd:
      return D2<[](double a, double b) { return a + b; }>;
    case Op::kSub:
      return D2<[](double a, double b) { return a - b; }>;
    case Op::kMul:
      return D2<[](double a, double b) { return a * b; }>;
    case Op::kDiv:
      return D2<[](double a, double b) { return a / b; }>;
    case Op::kMod:
      return D2<ModDouble>;
    case Op::kFMod:
      return D2<[](double a, double b) { return std::fmod(a, b); }>;
    case Op::kMin:
      return D2<MinDouble>;
    case Op::kMax:
      return D2<MaxDouble>;
    case Op::kPow:
      return D2<[](double a, double b) { return std::pow(a, b); }>;
    case Op::kNeg:
      return D1<[](double a) { return -a; }>;
    case Op::kAbs:
      return D1<[](double a) { return std::fabs(a); }>;
    case Op::kSign:
      return D1<SignDouble>;
    case Op::kFloor:
      return D1<[](double a) { return std::floor(a); }>;
    case Op::kCeil:
      return D1<[](double a) { return std::ceil(a); }>;
    case Op::kRound:
      return D1<[](double a) { return std::nearbyint(a); }>;
    case Op::kSqrt:
      return D1<[](double a) { return std::sqrt(a); }>;
    case Op::kRsqrt:
      return D1<[](double a) { return 1 / std::sqrt(a); }>;
    case Op::kExp:
      return D1<[](double a) { return std::exp(a); }>;
    case Op::kLog:
      return D1<[](double a) { return std::log(a); }>;
    case Op::kErf:
      return D1<[](double a) { return std::erf(a); }>;
    case Op::kSin:
      return D1<[](double a) { return std::sin(a); }>;
    case Op::kCos:
      return D1<[](double a) { return std::cos(a); }>;
    case Op::kTan:
      return D1<[](double a) { return std::tan(a); }>;
    case Op::kAsin:
      return D1<[](double a) { return std::asin(a); }>;
    case Op::kAcos:
      return D1<[](double a) { return std::acos(a); }>;
    case Op::kAtan:
      return D1<[](double a) { return std::atan(a); }>;
    case Op::kSinh:
      return D1<[](double a) { return std::sinh(a); }>;
    case Op::kCosh:
      return D1<[](double a) { return std::cosh(a); }>;
    case Op::kTanh:
      return D1<[](double a) { return std::tanh(a); }>;
    case Op::kAsinh:
      return D1<[](double a) { return std::asinh(a); }>;
    case Op::kAcosh:
      return D1<[](double a) { return std::acosh(a); }>;
    case Op::kAtanh:
      return D1<[](double a) { return std::atanh(a); }>;
    case Op::kIsNan:
      return D1I<[](double a) { return static_cast<int64_t>(std::isnan(a)); }>;
    case Op::kIsInf:
      return D1I<[](double a) { return static_cast<int64_t>(std::isinf(a)); }>;
    case Op::kEq:
      return D2I<[](double a, double b) { return static_cast<int64_t>(a == b); }>;
    case Op::kNe:
      return D2I<[](double a, double b) { return static_cast<int64_t>(a != b); }>;
    case Op::kLt:
      return D2I<[](double a, double b) { return static_cast<int64_t>(a < b); }>;
    case Op::kLe:
      return D2I<[](double a, double b) { return static_cast<int64_t>(a <= b); }>;
    case Op::kGt:
      return D2I<[](double a, double b) { return static_cast<int64_t>(a > b); }>;
    case Op::kGe:
      return D2I<[](double a, double b) { return static_cast<int64_t>(a >= b); }>;
    default:
      return nullptr;
  }
}

Kernel IntOp(Op op, DType dtype) {
  const bool is_signed = IsSigned(dtype);  // u8 … u32 fit into int64; only u64 needs more
  if (dtype == DType::kU64) {
    switch (op) {
      case Op::kDiv:
        return I2<[](int64_t a, int64_t b) { return b == 0 ? 0 : Signed(Unsigned(a) / Unsigned(b)); }>;
      case Op::kMod:
      case Op::kFMod:
        return I2<[](int64_t a, int64_t b) { return b == 0 ? 0 : Signed(Unsigned(a) % Unsigned(b)); }>;
      case Op::kMin:
        return I2<[](int64_t a, int64_t b) { return Unsigned(a) < Unsigned(b) ? a : b; }>;
      case Op::kMax:
        return I2<[](int64_t a, int64_t b) { return Unsigned(b) < Unsigned(a) ? a : b; }>;
      case Op::kLt:
        return I2<[](int64_t a, int64_t b) { return static_cast<int64_t>(Unsigned(a) < Unsigned(b)); }>;
      case Op::kLe:
        return I2<[](int64_t a, int64_t b) { return static_cast<int64_t>(Unsigned(a) <= Unsigned(b)); }>;
      case Op::kGt:
        return I2<[](int64_t a, int64_t b) { return static_cast<int64_t>(Unsigned(a) > Unsigned(b)); }>;
      case Op::kGe:
        return I2<[](int64_t a, int64_t b) { return static_cast<int64_t>(Unsigned(a) >= Unsigned(b)); }>;
      default:
        break;
    }
  }
  switch (op) {
    case Op::kAdd:
      return I2<[](int64_t a, int64_t b) { return Signed(Unsigned(a) + Unsigned(b)); }>;
    case Op::kSub:
      return I2<[](int64_t a, int64_t b) { return Signed(Unsigned(a) - Unsigned(b)); }>;
    case Op::kMul:
      return I2<[](int64_t a, int64_t b) { return Signed(Unsigned(a) * Unsigned(b)); }>;
    case Op::kDiv:
      return I2<DivInt>;
    case Op::kMod:
      return I2<ModInt>;
    case Op::kFMod:
      return I2<FModInt>;
    case Op::kMin:
      return I2<[](int64_t a, int64_t b) { return a < b ? a : b; }>;
    case Op::kMax:
      return I2<[](int64_t a, int64_t b) { return b < a ? a : b; }>;
    case Op::kPow:
      return is_signed ? I2<PowInt> : I2<PowUnsigned>;
    case Op::kNeg:
      return I1<[](int64_t a) { return Signed(-Unsigned(a)); }>;
    case Op::kAbs:
      return is_signed ? I1<[](int64_t a) { return a < 0 ? Signed(-Unsigned(a)) : a; }>
                       : I1<[](int64_t a) { return a; }>;
    case Op::kSign:
      return is_signed ? I1<[](int64_t a) { return static_cast<int64_t>(a > 0) - (a < 0); }>
                       : I1<[](int64_t a) { return static_cast<int64_t>(a != 0); }>;
    case Op::kFloor:
    case Op::kCeil:
    case Op::kRound:
      return I1<[](int64_t a) { return a; }>;
    case Op::kEq:
      return I2<[](int64_t a, int64_t b) { return static_cast<int64_t>(a == b); }>;
    case Op::kNe:
      return I2<[](int64_t a, int64_t b) { return static_cast<int64_t>(a != b); }>;
    case Op::kLt:
      return I2<[](int64_t a, int64_t b) { return static_cast<int64_t>(a < b); }>;
    case Op::kLe:
      return I2<[](int64_t a, int64_t b) { return static_cast<int64_t>(a <= b); }>;
    case Op::kGt:
      return I2<[](int64_t a, int64_t b) { return static_cast<int64_t>(a > b); }>;
    case Op::kGe:
      return I2<[](int64_t a, int64_t b) { return static_cast<int64_t>(a >= b); }>;
    case Op::kAnd:
    case Op::kBitAnd:
      return I2<[](int64_t a, int64_t b) { return a & b; }>;
    case Op::kOr:
    case Op::kBitOr:
      return I2<[](int64_t a, int64_t b) { return a | b; }>;
    case Op::kXor:
    case Op::kBitXor:
      return I2<[](int64_t a, int64_t b) { return a ^ b; }>;
    case Op::kNot:
      return I1<[](int64_t a) { return static_cast<int64_t>(a == 0); }>;
    case Op::kBitNot:
      return I1<[](int64_t a) { return ~a; }>;
    case Op::kShl:
      return I2W<[](int64_t a, int64_t b, int64_t w) {
        return Unsigned(b) < Unsigned(w) ? Signed(Unsigned(a) << b) : 0;
      }>;
    case Op::kShr:
      return is_signed ? I2W<[](int64_t a, int64_t b, int64_t w) { return Unsigned(b) < Unsigned(w) ? (a >> b) : 0; }>
                       : I2W<[](int64_t a, int64_t b, int64_t w) {
                           return Unsigned(b) < Unsigned(w) ? Signed((Unsigned(a) >> b)) : 0;
                         }>;
    default:
      return nullptr;
  }
}

struct Half {
  uint16_t bits;
  explicit operator double() const { return HalfToFloat(bits); }
};
struct BFloat {
  uint16_t bits;
  explicit operator double() const { return BFloat16ToFloat(bits); }
};

template <DType kType>
struct ByteFloat {
  uint8_t code;
  explicit operator double() const { return NarrowToFloat(kType, code); }
};

template <typename T, bool kMasked>
void LoadLanes(State& s, const Inst& in, int n) {
  constexpr bool kFloat = !std::is_integral_v<T>;
  const T* t = static_cast<const T*>(s.data[in.tensor]);
  const int64_t* a = s.I(in.a);
  const int64_t offset = s.I(in.b)[0] + in.imm;
  const int64_t* ok = s.I(in.c);
  using Wide = std::conditional_t<kFloat, double, int64_t>;
  Wide pad, *d;
  if constexpr (kFloat) {
    pad = in.fimm, d = s.D(in.dst);
  } else {
    pad = in.imm2, d = s.I(in.dst);
  }
  FUSION_LANES {
    if constexpr (kMasked) {
      d[l] = ok[l] ? static_cast<Wide>(t[a[l] + offset]) : pad;
    } else {
      d[l] = static_cast<Wide>(t[a[l] + offset]);  // NOLINT(bugprone-signed-char-misuse): an i8 has a sign
    }
  }
}

template <typename T>
Kernel LoadOf(bool masked) {
  return masked ? LoadLanes<T, true> : LoadLanes<T, false>;
}

template <typename T>
void StoreAs(const int64_t* a, void* data, int64_t start, int n) {
  T* t = static_cast<T*>(data) + start;
  for (int l = 0; l < n; ++l) t[l] = static_cast<T>(a[l]);
}

template <bool kUnsigned>
int64_t Saturate(double a) {
  if constexpr (kUnsigned) {
    if (a >= 9223372036854775808.0) return a >= 18446744073709551616.0 ? -1 : Signed(static_cast<U>(a));
  }
  if (std::isnan(a)) return 0;
  if (a >= 9223372036854775808.0) return std::numeric_limits<int64_t>::max();
  if (a <= -9223372036854775808.0) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(a);
}

}  // namespace

Kernel OpKernel(Op op, DType dtype) { return IsFloat(dtype) ? DoubleOp(op) : IntOp(op, dtype); }

Kernel LoadKernel(DType dtype, bool masked) {
  switch (dtype) {
    case DType::kF32:
      return LoadOf<float>(masked);
    case DType::kF64:
      return LoadOf<double>(masked);
    case DType::kF16:
      return LoadOf<Half>(masked);
    case DType::kBF16:
      return LoadOf<BFloat>(masked);
    case DType::kI8:
    case DType::kI4:
    case DType::kI2:
      return LoadOf<int8_t>(masked);
    case DType::kI16:
      return LoadOf<int16_t>(masked);
    case DType::kI32:
      return LoadOf<int32_t>(masked);
    case DType::kI64:
      return LoadOf<int64_t>(masked);
    case DType::kU8:
    case DType::kU4:
    case DType::kU2:
      return LoadOf<uint8_t>(masked);
    case DType::kU16:
      return LoadOf<uint16_t>(masked);
    case DType::kU32:
      return LoadOf<uint32_t>(masked);
    case DType::kU64:
      return LoadOf<uint64_t>(masked);
    case DType::kBool:
      return LoadOf<uint8_t>(masked);
    case DType::kF8E4M3FN:
      return LoadOf<ByteFloat<DType::kF8E4M3FN>>(masked);
    case DType::kF8E4M3FNUZ:
      return LoadOf<ByteFloat<DType::kF8E4M3FNUZ>>(masked);
    case DType::kF8E5M2:
      return LoadOf<ByteFloat<DType::kF8E5M2>>(masked);
    case DType::kF8E5M2FNUZ:
      return LoadOf<ByteFloat<DType::kF8E5M2FNUZ>>(masked);
    case DType::kF8E8M0:
      return LoadOf<ByteFloat<DType::kF8E8M0>>(masked);
    case DType::kF6E2M3:
      return LoadOf<ByteFloat<DType::kF6E2M3>>(masked);
    case DType::kF6E3M2:
      return LoadOf<ByteFloat<DType::kF6E3M2>>(masked);
    case DType::kF4E2M1:
      return LoadOf<ByteFloat<DType::kF4E2M1>>(masked);
  }
  return nullptr;
}

void Store(State& s, int reg, DType dtype, void* data, int64_t start, int n) {
  if (IsFloat(dtype)) {
    const double* a = s.D(reg);
    switch (dtype) {
      case DType::kF32:
        for (int l = 0; l < n; ++l) static_cast<float*>(data)[start + l] = static_cast<float>(a[l]);
        return;
      case DType::kF64:
        for (int l = 0; l < n; ++l) static_cast<double*>(data)[start + l] = a[l];
        return;
      case DType::kF16:
        for (int l = 0; l < n; ++l) static_cast<uint16_t*>(data)[start + l] = FloatToHalf(static_cast<float>(a[l]));
        return;
      case DType::kBF16:
        for (int l = 0; l < n; ++l) static_cast<uint16_t*>(data)[start + l] = FloatToBFloat16(static_cast<float>(a[l]));
        return;
      default:
        for (int l = 0; l < n; ++l) {
          static_cast<uint8_t*>(data)[start + l] = FloatToNarrow(dtype, static_cast<float>(a[l]));
        }
        return;
    }
  }
  const int64_t* a = s.I(reg);
  switch (DTypeBytes(dtype)) {
    case 1:
      return StoreAs<uint8_t>(a, data, start, n);
    case 2:
      return StoreAs<uint16_t>(a, data, start, n);
    case 4:
      return StoreAs<uint32_t>(a, data, start, n);
    default:
      return StoreAs<uint64_t>(a, data, start, n);
  }
}

namespace {

template <DType kType>
Kernel RoundToByte() {
  return D1<[](double a) {
    return static_cast<double>(NarrowToFloat(kType, FloatToNarrow(kType, static_cast<float>(a))));
  }>;
}

}  // namespace

Kernel RoundKernel(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return D1<[](double a) { return static_cast<double>(static_cast<float>(a)); }>;
    case DType::kF16:
      return D1<[](double a) { return static_cast<double>(HalfToFloat(FloatToHalf(static_cast<float>(a)))); }>;
    case DType::kBF16:
      return D1<[](double a) { return static_cast<double>(BFloat16ToFloat(FloatToBFloat16(static_cast<float>(a)))); }>;
    case DType::kF8E4M3FN:
      return RoundToByte<DType::kF8E4M3FN>();
    case DType::kF8E4M3FNUZ:
      return RoundToByte<DType::kF8E4M3FNUZ>();
    case DType::kF8E5M2:
      return RoundToByte<DType::kF8E5M2>();
    case DType::kF8E5M2FNUZ:
      return RoundToByte<DType::kF8E5M2FNUZ>();
    case DType::kF8E8M0:
      return RoundToByte<DType::kF8E8M0>();
    case DType::kF6E2M3:
      return RoundToByte<DType::kF6E2M3>();
    case DType::kF6E3M2:
      return RoundToByte<DType::kF6E3M2>();
    case DType::kF4E2M1:
      return RoundToByte<DType::kF4E2M1>();
    default:
      return nullptr;
  }
}

Kernel WrapKernel(DType dtype) {
  switch (dtype) {
    case DType::kI8:
      return I1<[](int64_t a) { return static_cast<int64_t>(static_cast<int8_t>(a)); }>;
    case DType::kI16:
      return I1<[](int64_t a) { return static_cast<int64_t>(static_cast<int16_t>(a)); }>;
    case DType::kI32:
      return I1<[](int64_t a) { return static_cast<int64_t>(static_cast<int32_t>(a)); }>;
    case DType::kU8:
      return I1<[](int64_t a) { return a & 0xff; }>;
    case DType::kU16:
      return I1<[](int64_t a) { return a & 0xffff; }>;
    case DType::kU32:
      return I1<[](int64_t a) { return a & 0xffffffff; }>;
    case DType::kBool:
      return I1<[](int64_t a) { return static_cast<int64_t>(a != 0); }>;
    case DType::kI4:
      return I1<[](int64_t a) { return WrapNarrowInt(DType::kI4, a); }>;
    case DType::kU4:
      return I1<[](int64_t a) { return a & 15; }>;
    case DType::kI2:
      return I1<[](int64_t a) { return WrapNarrowInt(DType::kI2, a); }>;
    case DType::kU2:
      return I1<[](int64_t a) { return a & 3; }>;
    default:
      return nullptr;
  }
}

namespace {

uint64_t NextRandom(State& s) {  // xorshift64
  s.random ^= s.random << 13;
  s.random ^= s.random >> 7;
  s.random ^= s.random << 17;
  return s.random;
}

// Returns how far a result moves, as a fraction of its bound: in [-1, 1), 0 where it stays.
double NextMove(State& s) {
  const uint64_t random = NextRandom(s);
  if ((random & s.still) != 0) return 0;
  return static_cast<double>(static_cast<int64_t>(random)) * 0x1p-63;
}

// Returns whether x has at most 16 significant bits in f32 or 32 in f64, as small integers and fractions of powers of
// two have, whose sums and products are exact. Of rounded results at most one in 2^8 looks like that.
template <typename F>
bool IsShort(double x) {
  constexpr int kSpare = std::is_same_v<F, float> ? 52 - 15 : 52 - 31;
  return (std::bit_cast<U>(x) & ((U{1} << kSpare) - 1)) == 0;
}

template <typename F>
double Perturbed(State& s, double a, double units) {
  constexpr double kUnit = std::numeric_limits<F>::epsilon();
  const double move = NextMove(s);
  const double x = (units <= 1 && IsShort<F>(a)) || !std::isfinite(a) ? a : a * (1 + move * units * kUnit);
  const bool underflows = std::fabs(x) < 1.5 * static_cast<double>(std::numeric_limits<F>::min()) && move < 0;
  return underflows ? 0 : x;
}

template <typename F>
void Perturb(State& s, const Inst& in, int n) {
  double* d = s.D(in.dst);
  const double* a = s.D(in.a);
  for (int l = 0; l < n; ++l) d[l] = static_cast<double>(static_cast<F>(Perturbed<F>(s, a[l], in.fimm)));
}

void PerturbNarrowProduct(State& s, const Inst& in, int n) {
  double* d = s.D(in.dst);
  const double* a = s.D(in.a);
  for (int l = 0; l < n; ++l) {
    const double x = Perturbed<float>(s, a[l], 1);
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
  for (int l = 0; l < n; ++l) d[l] = select[l] != 0 && std::isfinite(b[l]) ? a[l] + std::fabs(b[l]) : a[l];
}

template <typename F>
void AnyOrderSum(State& s, const Inst& in, int n) {
  double* d = s.D(in.dst);
  const double *a = s.D(in.a), *magnitude = s.D(in.b);
  for (int l = 0; l < n; ++l) {
    const bool leaves = !(magnitude[l] <= static_cast<double>(std::numeric_limits<F>::max()));
    d[l] = leaves && (NextRandom(s) & 1) ? std::numeric_limits<double>::quiet_NaN() : a[l];
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
    d[l] = fits ? Saturate<std::is_same_v<T, uint64_t>>(a[l]) : Signed(NextRandom(s));
  }
}

double RoundHalf(double a) { return HalfToFloat(FloatToHalf(static_cast<float>(a))); }
double RoundBFloat(double a) { return BFloat16ToFloat(FloatToBFloat16(static_cast<float>(a))); }

}  // namespace

Kernel PerturbKernel(DType dtype) { return dtype == DType::kF64 ? Perturb<double> : Perturb<float>; }

Kernel PerturbNarrowProductKernel() { return PerturbNarrowProduct; }

Kernel PerturbProductKernel() { return PerturbProduct; }

Kernel PartialProductKernel(bool above) { return above ? PartialProduct<true> : PartialProduct<false>; }

Kernel AnyOrderProductKernel(DType dtype) {
  return dtype == DType::kF64 ? AnyOrderProduct<double> : AnyOrderProduct<float>;
}

Kernel PartialSumKernel() { return PartialSum; }

Kernel AnyOrderSumKernel(DType dtype) { return dtype == DType::kF64 ? AnyOrderSum<double> : AnyOrderSum<float>; }

Kernel PaddedProductKernel() { return PaddedProduct; }

Kernel RandomZeroKernel(Op op) { return op == Op::kMax ? RandomZero<MaxDouble> : RandomZero<MinDouble>; }

Kernel RandomRoundKernel(DType dtype) {
  if (dtype == DType::kF16) return RandomRound<RoundHalf>;
  if (dtype == DType::kBF16) return RandomRound<RoundBFloat>;
  return RoundKernel(dtype);
}

Kernel RandomDoubleToIntKernel(DType dtype) {
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

Kernel DoubleToIntKernel(DType dtype) {
  if (dtype == DType::kBool) return D1I<[](double a) { return static_cast<int64_t>(a != 0); }>;
  return dtype == DType::kU64 ? D1I<Saturate<true>> : D1I<Saturate<false>>;
}

Kernel IntToDoubleKernel(DType dtype) {
  if (dtype == DType::kU64) return I1D<[](int64_t a) { return static_cast<double>(Unsigned(a)); }>;
  return I1D<[](int64_t a) { return static_cast<double>(a); }>;
}

void SplatImmD(State& s, const Inst& in, int n) {
  double* d = s.D(in.dst);
  FUSION_LANES d[l] = in.fimm;
}
void SplatImmI(State& s, const Inst& in, int n) {
  int64_t* d = s.I(in.dst);
  FUSION_LANES d[l] = in.imm;
}
void SplatD(State& s, const Inst& in, int n) {
  double* d = s.D(in.dst);
  const double value = s.D(in.a)[0];
  FUSION_LANES d[l] = value;
}
void SplatI(State& s, const Inst& in, int n) {
  int64_t* d = s.I(in.dst);
  const int64_t value = s.I(in.a)[0];
  FUSION_LANES d[l] = value;
}
void MoveD(State& s, const Inst& in, int n) {
  D1<[](double a) { return a; }>(s, in, n);
}
void MoveI(State& s, const Inst& in, int n) {
  I1<[](int64_t a) { return a; }>(s, in, n);
}

void SelectD(State& s, const Inst& in, int n) {
  double* d = s.D(in.dst);
  const double *a = s.D(in.a), *b = s.D(in.b);
  const int64_t* c = s.I(in.c);
  FUSION_LANES d[l] = c[l] ? a[l] : b[l];
}
void SelectI(State& s, const Inst& in, int n) {
  int64_t* d = s.I(in.dst);
  const int64_t *a = s.I(in.a), *b = s.I(in.b), *c = s.I(in.c);
  FUSION_LANES d[l] = c[l] ? a[l] : b[l];
}

void AddMul(State& s, const Inst& in, int n) {
  int64_t* d = s.I(in.dst);
  const int64_t *a = s.I(in.a), *b = s.I(in.b);
  FUSION_LANES d[l] = Signed(Unsigned(a[l]) + Unsigned(b[l]) * Unsigned(in.imm));
}
void AddUniform(State& s, const Inst& in, int n) {
  int64_t* d = s.I(in.dst);
  const int64_t* a = s.I(in.a);
  const int64_t offset = s.I(in.b)[0] + in.imm;
  FUSION_LANES d[l] = a[l] + offset;
}

void FloorDivImm(State& s, const Inst& in, int n) {
  int64_t* d = s.I(in.dst);
  const int64_t *a = s.I(in.a), k = in.imm;
  if (std::has_single_bit(Unsigned(k))) {
    const int shift = std::countr_zero(Unsigned(k));
    FUSION_LANES d[l] = a[l] >> shift;
  } else {
    FUSION_LANES d[l] = a[l] / k - (a[l] % k < 0);
  }
}
void ModImm(State& s, const Inst& in, int n) {
  int64_t* d = s.I(in.dst);
  const int64_t *a = s.I(in.a), k = in.imm;
  if (std::has_single_bit(Unsigned(k))) {
    FUSION_LANES d[l] = a[l] & (k - 1);
  } else {
    FUSION_LANES {
      const int64_t r = a[l] % k;
      d[l] = r < 0 ? r + k : r;
    }
  }
}

Kernel CompareZeroKernel(Cmp cmp) {
  switch (cmp) {
    case Cmp::kLt:
      return I1<[](int64_t a) { return static_cast<int64_t>(a < 0); }>;
    case Cmp::kGe:
      return I1<[](int64_t a) { return static_cast<int64_t>(a >= 0); }>;
    case Cmp::kEq:
      return I1<[](int64_t a) { return static_cast<int64_t>(a == 0); }>;
    case Cmp::kNe:
      return I1<[](int64_t a) { return static_cast<int64_t>(a != 0); }>;
  }
  return nullptr;
}

void And(State& s, const Inst& in, int n) {
  I2<[](int64_t a, int64_t b) { return a & b; }>(s, in, n);
}
void AndNot(State& s, const Inst& in, int n) {
  I2<[](int64_t a, int64_t b) { return a & (b ^ 1); }>(s, in, n);
}

void InBox(State& s, const Inst& in, int n) {
  int64_t* d = s.I(in.dst);
  const int64_t *a = s.I(in.a), *c = s.I(in.c);
  const int64_t offset = s.I(in.b)[0] + in.imm;
  const U extent = Unsigned(in.imm2);
  FUSION_LANES d[l] = c[l] & static_cast<int64_t>(Unsigned(a[l] + offset) < extent);
}

void CheckBox(State& s, const Inst& in, int n) {
  const int64_t *a = s.I(in.a), *c = s.I(in.c);
  const int64_t offset = s.I(in.b)[0] + in.imm;
  const U extent = Unsigned(in.imm2);
  for (int l = 0; l < n; ++l) {
    if (c[l] && Unsigned(a[l] + offset) >= extent) {
      s.failed = &in;
      s.failed_value = a[l] + offset;
      return;
    }
  }
}

void CheckValue(State& s, const Inst& in, int n) {
  int64_t* d = s.I(in.dst);
  const int64_t *a = s.I(in.a), *c = s.I(in.c);
  for (int l = 0; l < n; ++l) {
    const bool inside = a[l] >= in.imm && a[l] <= in.imm2;
    d[l] = inside ? a[l] : in.imm;
    if (!inside && c[l]) {
      s.failed = &in;
      s.failed_value = a[l];
      return;
    }
  }
}

}  // namespace fusion::te::lanes
