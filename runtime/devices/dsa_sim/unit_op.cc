#include "runtime/devices/dsa_sim/unit_op.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <type_traits>

#include "runtime/base/dtype.h"
#include "runtime/base/narrow_float.h"
#include "runtime/base/number_ops.h"

namespace fusion::dsa {
namespace {

using In = UnitInstruction;

// An operand may be the destination itself, but only lane by lane, so that lanes do not depend on each other.
#define UNIT_LANES _Pragma("GCC ivdep") for (int l = 0; l < n; ++l)

// Integers are kept signed; functions of uint64_t or bool see them as such.
template <typename T>
using Held = std::conditional_t<std::is_same_v<T, double>, double, int64_t>;
template <typename T>
Held<T>* Register(UnitState& s, int r) {
  if constexpr (std::is_same_v<T, double>) {
    return s.D(r);
  } else {
    return s.I(r);
  }
}
template <typename T>
constexpr char KindOf() {
  return std::is_same_v<T, double> ? 'f' : 'i';
}

template <auto F, typename T>
void Unary(UnitState& s, const In& in, int n) {
  using R = std::invoke_result_t<decltype(F), T>;
  Held<R>* d = Register<R>(s, in.dst);
  const Held<T>* a = Register<T>(s, in.a);
  UNIT_LANES d[l] = static_cast<Held<R>>(F(static_cast<T>(a[l])));
}
template <auto F, typename T>
void Binary(UnitState& s, const In& in, int n) {
  using R = std::invoke_result_t<decltype(F), T, T>;
  Held<R>* d = Register<R>(s, in.dst);
  const Held<T>*a = Register<T>(s, in.a), *b = Register<T>(s, in.b);
  UNIT_LANES d[l] = static_cast<Held<R>>(F(static_cast<T>(a[l]), static_cast<T>(b[l])));
}
// `imm` is the width of the type.
template <auto F, typename T>
void Shift(UnitState& s, const In& in, int n) {
  Held<T>* d = Register<T>(s, in.dst);
  const Held<T>*a = Register<T>(s, in.a), *b = Register<T>(s, in.b);
  UNIT_LANES d[l] = static_cast<Held<T>>(F(static_cast<T>(a[l]), static_cast<T>(b[l]), in.imm));
}

// The row of a function of one or two values of type T.
template <typename T, auto F>
constexpr UnitOp On(const char* name) {
  if constexpr (std::is_invocable_v<decltype(F), T>) {
    return {name, Unary<F, T>, KindOf<std::invoke_result_t<decltype(F), T>>(), KindOf<T>()};
  } else if constexpr (std::is_invocable_v<decltype(F), T, T>) {
    return {name, Binary<F, T>, KindOf<std::invoke_result_t<decltype(F), T, T>>(), KindOf<T>(), KindOf<T>()};
  } else {
    return {name, Shift<F, T>, 'i', 'i', 'i'};
  }
}

// Addresses within this distance from 0 can be added without overflow.
constexpr int64_t kFar = int64_t{1} << 61;

// Do all lanes find an element, masked or not?
bool AllInside(const UnitState::LaneFacts& facts, int64_t offset, int64_t elements) {
  if (facts.least < -kFar || facts.most > kFar || offset < -kFar || offset > kFar) return false;
  return facts.least + offset >= 0 && facts.most + offset < elements;
}

// Fails the state where an unmasked lane is outside of the tensor.
template <bool kMasked>
bool EachInside(UnitState& s, const In& in, int n) {
  const int64_t *a = s.I(in.a), *ok = s.I(in.c);
  const int64_t offset = s.I(in.b)[0] + in.imm;
  const auto elements = static_cast<uint64_t>(s.arrays[in.tensor].elements);
  const auto lies_outside = [&](int l) {
    return (!kMasked || ok[l] != 0) && static_cast<uint64_t>(numbers::Add(a[l], offset)) >= elements;
  };
  bool outside = false;
  for (int l = 0; l < n; ++l) outside |= lies_outside(l);
  if (!outside) return true;
  s.failed = &in;
  for (int l = 0; l < n; ++l) {
    if (lies_outside(l)) s.failed_value = numbers::Add(a[l], offset);
  }
  return false;
}

template <bool kFloat, bool kMasked>
void Load(UnitState& s, const In& in, int n) {
  const UnitState::Array& array = s.arrays[in.tensor];
  const int64_t offset = s.I(in.b)[0] + in.imm;
  const UnitState::LaneFacts& facts = s.FactsOf(in.a, n);
  const bool inside = AllInside(facts, offset, array.elements);
  if (!inside && !EachInside<kMasked>(s, in, n)) return;
  const int64_t *a = s.I(in.a), *ok = s.I(in.c);
  using Wide = std::conditional_t<kFloat, double, int64_t>;
  Wide* d;
  Wide pad;
  if constexpr (kFloat) {
    d = s.D(in.dst), pad = in.fimm;
  } else {
    d = s.I(in.dst), pad = in.imm2;
  }
  // A lane that is masked out has an address that nothing is known of.
  const auto form = inside ? facts.form : UnitState::LaneFacts::kAny;
  if (form == UnitState::LaneFacts::kConsecutive) {
    const float* const from = array.data + a[0] + offset;
    UNIT_LANES d[l] = !kMasked || ok[l] ? static_cast<Wide>(from[l]) : pad;
  } else if (form == UnitState::LaneFacts::kEqual) {
    const auto value = static_cast<Wide>(array.data[a[0] + offset]);
    UNIT_LANES d[l] = !kMasked || ok[l] ? value : pad;
  } else {
    UNIT_LANES d[l] = !kMasked || ok[l] ? static_cast<Wide>(array.data[a[l] + offset]) : pad;
  }
}

template <bool kFloat>
void SplatImmediate(UnitState& s, const In& in, int n) {
  if constexpr (kFloat) {
    double* d = s.D(in.dst);
    UNIT_LANES d[l] = in.fimm;
  } else {
    int64_t* d = s.I(in.dst);
    UNIT_LANES d[l] = in.imm;
  }
}
template <typename T>
void Splat(UnitState& s, const In& in, int n) {
  Held<T>* d = Register<T>(s, in.dst);
  const Held<T> value = Register<T>(s, in.a)[0];
  UNIT_LANES d[l] = value;
}
template <typename T>
void Select(UnitState& s, const In& in, int n) {
  Held<T>* d = Register<T>(s, in.dst);
  const Held<T>*a = Register<T>(s, in.a), *b = Register<T>(s, in.b);
  const int64_t* c = s.I(in.c);
  UNIT_LANES d[l] = c[l] ? a[l] : b[l];
}
void AddMul(UnitState& s, const In& in, int n) {  // a + b · imm
  int64_t* d = s.I(in.dst);
  const int64_t *a = s.I(in.a), *b = s.I(in.b);
  UNIT_LANES d[l] = numbers::Add(a[l], numbers::Mul(b[l], in.imm));
}
void AddUniform(UnitState& s, const In& in, int n) {  // a + b[0] + imm
  int64_t* d = s.I(in.dst);
  const int64_t* a = s.I(in.a);
  const int64_t offset = s.I(in.b)[0] + in.imm;
  UNIT_LANES d[l] = numbers::Add(a[l], offset);
}
template <bool kQuotient>
void FloorDivMod(UnitState& s, const In& in, int n) {  // by imm > 0
  int64_t* d = s.I(in.dst);
  const int64_t *a = s.I(in.a), k = in.imm;
  for (int l = 0; l < n; ++l) {
    const int64_t r = a[l] % k < 0 ? a[l] % k + k : a[l] % k;
    d[l] = kQuotient ? (a[l] - r) / k : r;
  }
}
void InBox(UnitState& s, const In& in, int n) {  // c & (0 <= a + b[0] + imm < imm2)
  int64_t* d = s.I(in.dst);
  const int64_t *a = s.I(in.a), *c = s.I(in.c);
  const int64_t offset = s.I(in.b)[0] + in.imm;
  const auto extent = static_cast<uint64_t>(in.imm2);
  UNIT_LANES d[l] = c[l] & static_cast<int64_t>(static_cast<uint64_t>(a[l] + offset) < extent);
}
void CheckBox(UnitState& s, const In& in, int n) {  // fails where c and not 0 <= a + b[0] + imm < imm2
  const int64_t *a = s.I(in.a), *c = s.I(in.c);
  const int64_t offset = s.I(in.b)[0] + in.imm;
  for (int l = 0; l < n; ++l) {
    if (!c[l] || static_cast<uint64_t>(a[l] + offset) < static_cast<uint64_t>(in.imm2)) continue;
    s.failed = &in;
    s.failed_value = a[l] + offset;
    return;
  }
}
void CheckValue(UnitState& s, const In& in, int n) {  // a where it lies in [imm, imm2], else imm; fails where c
  int64_t* d = s.I(in.dst);
  const int64_t *a = s.I(in.a), *c = s.I(in.c);
  for (int l = 0; l < n; ++l) {
    const bool inside = a[l] >= in.imm && a[l] <= in.imm2;
    d[l] = inside ? a[l] : in.imm;
    if (inside || !c[l]) continue;
    s.failed = &in;
    s.failed_value = a[l];
    return;
  }
}

template <DType kType>
double Round(double a) {
  if constexpr (kType == DType::kF32) return static_cast<float>(a);
  if constexpr (kType == DType::kF16) return HalfToFloat(FloatToHalf(static_cast<float>(a)));
  if constexpr (kType == DType::kBF16) return BFloat16ToFloat(FloatToBFloat16(static_cast<float>(a)));
  return NarrowToFloat(kType, FloatToNarrow(kType, static_cast<float>(a)));
}

using I = int64_t;
using U = uint64_t;

// The rows of a function of numbers: floats, integers, unsigned integers.
#define ON_FLOATS(name, ...) On<double, (__VA_ARGS__)>(name ".f")
#define ON_INTEGERS(name, ...) On<I, (__VA_ARGS__)>(name ".i"), On<U, (__VA_ARGS__)>(name ".u")
#define ON_NUMBERS(name, ...) ON_FLOATS(name, __VA_ARGS__), ON_INTEGERS(name, __VA_ARGS__)

constexpr UnitOp kOps[] = {
    ON_NUMBERS("add", [](auto a, auto b) { return numbers::Add(a, b); }),
    ON_NUMBERS("sub", [](auto a, auto b) { return numbers::Sub(a, b); }),
    ON_NUMBERS("mul", [](auto a, auto b) { return numbers::Mul(a, b); }),
    ON_FLOATS("div", [](double a, double b) { return a / b; }),
    ON_INTEGERS("div", [](auto a, auto b) { return numbers::Quotient(a, b); }),
    ON_NUMBERS("mod", [](auto a, auto b) { return numbers::Modulo(a, b); }),
    ON_FLOATS("fmod", [](double a, double b) { return std::fmod(a, b); }),
    ON_INTEGERS("fmod", [](auto a, auto b) { return numbers::Remainder(a, b); }),
    ON_FLOATS("min", [](double a, double b) { return numbers::Min(a, b); }),
    ON_INTEGERS("min", [](auto a, auto b) { return a < b ? a : b; }),
    ON_FLOATS("max", [](double a, double b) { return numbers::Max(a, b); }),
    ON_INTEGERS("max", [](auto a, auto b) { return b < a ? a : b; }),
    ON_FLOATS("pow", [](double a, double b) { return std::pow(a, b); }),
    ON_INTEGERS("pow", [](auto a, auto b) { return numbers::Power(a, b); }),
    ON_NUMBERS("neg", [](auto a) { return numbers::Neg(a); }),
    ON_FLOATS("abs", [](double a) { return std::fabs(a); }),
    ON_INTEGERS("abs", [](auto a) { return a < 0 ? numbers::Neg(a) : a; }),
    ON_FLOATS("sign", [](double a) { return numbers::Sign(a); }),
    ON_INTEGERS("sign", [](auto a) { return static_cast<decltype(a)>((a > 0) - (a < 0)); }),
    ON_FLOATS("floor", [](double a) { return std::floor(a); }),
    ON_INTEGERS("floor", [](auto a) { return a; }),
    ON_FLOATS("ceil", [](double a) { return std::ceil(a); }),
    ON_INTEGERS("ceil", [](auto a) { return a; }),
    ON_FLOATS("round", [](double a) { return std::nearbyint(a); }),
    ON_INTEGERS("round", [](auto a) { return a; }),
    ON_FLOATS("sqrt", [](double a) { return std::sqrt(a); }),
    ON_FLOATS("rsqrt", [](double a) { return 1 / std::sqrt(a); }),
    ON_FLOATS("exp", [](double a) { return std::exp(a); }),
    ON_FLOATS("log", [](double a) { return std::log(a); }),
    ON_FLOATS("erf", [](double a) { return std::erf(a); }),
    ON_FLOATS("sin", [](double a) { return std::sin(a); }),
    ON_FLOATS("cos", [](double a) { return std::cos(a); }),
    ON_FLOATS("tan", [](double a) { return std::tan(a); }),
    ON_FLOATS("asin", [](double a) { return std::asin(a); }),
    ON_FLOATS("acos", [](double a) { return std::acos(a); }),
    ON_FLOATS("atan", [](double a) { return std::atan(a); }),
    ON_FLOATS("sinh", [](double a) { return std::sinh(a); }),
    ON_FLOATS("cosh", [](double a) { return std::cosh(a); }),
    ON_FLOATS("tanh", [](double a) { return std::tanh(a); }),
    ON_FLOATS("asinh", [](double a) { return std::asinh(a); }),
    ON_FLOATS("acosh", [](double a) { return std::acosh(a); }),
    ON_FLOATS("atanh", [](double a) { return std::atanh(a); }),
    ON_FLOATS("isnan", [](double a) { return std::isnan(a); }),
    ON_FLOATS("isinf", [](double a) { return std::isinf(a); }),
    ON_NUMBERS("eq", [](auto a, auto b) { return a == b; }),
    ON_NUMBERS("ne", [](auto a, auto b) { return a != b; }),
    ON_NUMBERS("lt", [](auto a, auto b) { return a < b; }),
    ON_NUMBERS("le", [](auto a, auto b) { return a <= b; }),
    ON_NUMBERS("gt", [](auto a, auto b) { return a > b; }),
    ON_NUMBERS("ge", [](auto a, auto b) { return a >= b; }),
    ON_INTEGERS("and", [](auto a, auto b) { return a & b; }),
    ON_INTEGERS("or", [](auto a, auto b) { return a | b; }),
    ON_INTEGERS("xor", [](auto a, auto b) { return a ^ b; }),
    ON_INTEGERS("not", [](auto a) { return static_cast<decltype(a)>(a == 0); }),
    ON_INTEGERS("bitand", [](auto a, auto b) { return a & b; }),
    ON_INTEGERS("bitor", [](auto a, auto b) { return a | b; }),
    ON_INTEGERS("bitxor", [](auto a, auto b) { return a ^ b; }),
    ON_INTEGERS("bitnot", [](auto a) { return ~a; }),
    ON_INTEGERS("shl",
                [](auto a, auto b, int64_t bits) {
                  const bool inside = static_cast<U>(b) < static_cast<U>(bits);
                  return inside ? static_cast<decltype(a)>(static_cast<U>(a) << b) : 0;
                }),
    ON_INTEGERS("shr",
                [](auto a, auto b, int64_t bits) { return static_cast<U>(b) < static_cast<U>(bits) ? a >> b : 0; }),

    // Conversions between integers and floats, which round towards zero and saturate; rounding of floats; wrapping.
    On<double, numbers::SaturateToInt<false>>("to_int"),
    On<double, numbers::SaturateToInt<true>>("to_uint"),
    On<double, [](double a) { return a != 0; }>("to_bool"),
    On<I, [](I a) { return static_cast<double>(a); }>("from_int"),
    On<U, [](U a) { return static_cast<double>(a); }>("from_uint"),
    On<I, [](I a) { return static_cast<double>(static_cast<float>(a)); }>("from_int_f32"),
    On<U, [](U a) { return static_cast<double>(static_cast<float>(a)); }>("from_uint_f32"),
    On<double, Round<DType::kF32>>("round_f32"),
    On<double, Round<DType::kF16>>("round_f16"),
    On<double, Round<DType::kBF16>>("round_bf16"),
    On<double, Round<DType::kF8E4M3FN>>("round_f8e4m3fn"),
    On<double, Round<DType::kF8E4M3FNUZ>>("round_f8e4m3fnuz"),
    On<double, Round<DType::kF8E5M2>>("round_f8e5m2"),
    On<double, Round<DType::kF8E5M2FNUZ>>("round_f8e5m2fnuz"),
    On<double, Round<DType::kF8E8M0>>("round_f8e8m0"),
    On<double, Round<DType::kF6E2M3>>("round_f6e2m3"),
    On<double, Round<DType::kF6E3M2>>("round_f6e3m2"),
    On<double, Round<DType::kF4E2M1>>("round_f4e2m1"),
    On<I, [](I a) { return static_cast<I>(static_cast<int8_t>(a)); }>("wrap_i8"),
    On<I, [](I a) { return static_cast<I>(static_cast<int16_t>(a)); }>("wrap_i16"),
    On<I, [](I a) { return static_cast<I>(static_cast<int32_t>(a)); }>("wrap_i32"),
    On<I, [](I a) { return a & 0xff; }>("wrap_u8"),
    On<I, [](I a) { return a & 0xffff; }>("wrap_u16"),
    On<I, [](I a) { return a & 0xffffffff; }>("wrap_u32"),
    On<I, [](I a) { return a != 0; }>("wrap_bool"),
    On<I, [](I a) { return WrapNarrowInt(DType::kI4, a); }>("wrap_i4"),
    On<I, [](I a) { return a & 15; }>("wrap_u4"),
    On<I, [](I a) { return WrapNarrowInt(DType::kI2, a); }>("wrap_i2"),
    On<I, [](I a) { return a & 3; }>("wrap_u2"),

    // Registers, addresses, tensors.
    {"splat_imm.f", SplatImmediate<true>, 'f'},
    {"splat_imm.i", SplatImmediate<false>, 'i'},
    {"splat.f", Splat<double>, 'f', 'f'},
    {"splat.i", Splat<I>, 'i', 'i'},
    On<double, [](double a) { return a; }>("move.f"),
    On<I, [](I a) { return a; }>("move.i"),
    {"select.f", Select<double>, 'f', 'f', 'f', 'i'},
    {"select.i", Select<I>, 'i', 'i', 'i', 'i'},
    {"add_mul", AddMul, 'i', 'i', 'i'},
    {"add_uniform", AddUniform, 'i', 'i', 'i'},
    {"floor_div", FloorDivMod<true>, 'i', 'i'},
    {"floor_mod", FloorDivMod<false>, 'i', 'i'},
    On<I, [](I a) { return a < 0; }>("below_zero"),
    On<I, ([](I a) { return a >= 0; })>("from_zero"),
    On<I, [](I a) { return a == 0; }>("zero"),
    On<I, [](I a) { return a != 0; }>("not_zero"),
    On<I, [](I a, I b) { return a & b; }>("mask_and"),
    On<I, [](I a, I b) { return a & (b ^ 1); }>("mask_and_not"),
    {"in_box", InBox, 'i', 'i', 'i', 'i'},
    {"check_box", CheckBox, '-', 'i', 'i', 'i'},
    {"check_value", CheckValue, 'i', 'i', '-', 'i'},
    {"load.f", Load<true, false>, 'f', 'i', 'i', '-', true},
    {"load.i", Load<false, false>, 'i', 'i', 'i', '-', true},
    {"load_masked.f", Load<true, true>, 'f', 'i', 'i', 'i', true},
    {"load_masked.i", Load<false, true>, 'i', 'i', 'i', 'i', true},
};

const std::map<std::string, const UnitOp*, std::less<>>& ByName() {
  static const auto* const kByName = [] {
    auto* names = new std::map<std::string, const UnitOp*, std::less<>>();
    for (const UnitOp& op : kOps) names->emplace(op.name, &op);
    return names;
  }();
  return *kByName;
}

}  // namespace

const UnitState::LaneFacts& UnitState::FactsOf(int r, int lanes) {
  if (static_cast<size_t>(r) >= facts.size()) facts.resize(static_cast<size_t>(r) + 1);
  LaneFacts& known = facts[r];
  if (known.lanes >= lanes) return known;
  const int64_t* const a = I(r);
  known.lanes = lanes;
  known.least = known.most = a[0];
  bool equal = true, consecutive = true;
  for (int l = 0; l < lanes; ++l) {
    known.least = std::min(known.least, a[l]);
    known.most = std::max(known.most, a[l]);
    equal = equal && a[l] == a[0];
    consecutive = consecutive && a[l] == numbers::Add(a[0], int64_t{l});
  }
  known.form = equal ? LaneFacts::kEqual : consecutive ? LaneFacts::kConsecutive : LaneFacts::kAny;
  return known;
}

const UnitOp* FindUnitOp(absl::string_view name) {
  const auto it = ByName().find(std::string(name));
  return it == ByName().end() ? nullptr : it->second;
}

std::vector<std::string> UnitOpNames() {
  std::vector<std::string> names;
  for (const auto& [name, op] : ByName()) names.push_back(name);
  return names;
}

}  // namespace fusion::dsa
