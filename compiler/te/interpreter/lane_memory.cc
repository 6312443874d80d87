#include "compiler/te/interpreter/lanes.h"

#include <bit>
#include <type_traits>

#include "compiler/te/interpreter/each_lane.h"
#include "runtime/base/narrow_float.h"

namespace fusion::te::lanes {
namespace {

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
LaneKernel LoadOf(bool masked) {
  return masked ? LoadLanes<T, true> : LoadLanes<T, false>;
}

template <typename T>
void StoreAs(const int64_t* a, void* data, int64_t start, int n) {
  T* t = static_cast<T*>(data) + start;
  for (int l = 0; l < n; ++l) t[l] = static_cast<T>(a[l]);
}

}  // namespace

LaneKernel LoadKernel(DType dtype, bool masked) {
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
  EachLane<[](double a) { return a; }>(s, in, n);
}
void MoveI(State& s, const Inst& in, int n) {
  EachLane<[](int64_t a) { return a; }>(s, in, n);
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

LaneKernel CompareZeroKernel(Cmp cmp) {
  switch (cmp) {
    case Cmp::kLt:
      return EachLane<[](int64_t a) { return static_cast<int64_t>(a < 0); }>;
    case Cmp::kGe:
      return EachLane<[](int64_t a) { return static_cast<int64_t>(a >= 0); }>;
    case Cmp::kEq:
      return EachLane<[](int64_t a) { return static_cast<int64_t>(a == 0); }>;
    case Cmp::kNe:
      return EachLane<[](int64_t a) { return static_cast<int64_t>(a != 0); }>;
  }
  return nullptr;
}

void And(State& s, const Inst& in, int n) {
  EachLane<[](int64_t a, int64_t b) { return a & b; }>(s, in, n);
}
void AndNot(State& s, const Inst& in, int n) {
  EachLane<[](int64_t a, int64_t b) { return a & (b ^ 1); }>(s, in, n);
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
