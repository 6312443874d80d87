#include "compiler/backends/cpu/prelude.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/backends/text/scalar_helpers.h"

namespace fusion::cpu {
namespace {

// Placeholders: $L lanes, $B bytes of a vector, $S a list of $L times `s`, $I 0..$L-1, $ZL and $ZH the zipped lanes of
// two vectors (low and high half), $ZBL and $ZBH the same of 16 bytes, $E every second and $T1, $T2 every third lane,
// $H the helpers for single values, $OE every second lane of two vectors of which the second begins with the last
// element of the first.
//
// Accuracy and method of the functions:
// - exp: Cody-Waite with an exact high part, so that the result does not depend on contraction; 1.7e-7 relative.
//   Where the exponent is added as an integer, results beyond its range are arbitrary until the end, which replaces
//   them: a maximum is one instruction and takes its second operand where the first is NaN, a choice by a mask is
//   three. Its limits are the last floats whose exponential is a normal number.
//   exp_no_overflow (of at most 88), exp_no_underflow (of at least -86): the operand is cut at the other end, where the
//   power of two that scales is 0, or makes an infinity of twice the fraction; NaN goes through every step. What rounds
//   the exponent has its bias, too.
// - erf, tanh: rational minimax in x*P(x^2)/Q(x^2), about 3e-7 relative. P and Q are scaled so that x*P(x^2) is normal
//   where x is: a processor that flushes subnormal numbers would make it 0. x is cut where the quotient is 1 exactly,
//   in this order of operations, and no smaller x makes it more: 1 - erf(x) is never negative, and 0 far out.
// - log: Cephes' polynomial on [sqrt(1/2), sqrt(2)].
// - atan: Cephes' polynomial on [0, tan(pi/8)], quotients beyond it, about 1.5e-7 relative.
// - sin, cos: quarter turns are subtracted in f64, exact to |x| < 2^20, then Cephes' polynomials: 1.6 ulp. Lanes beyond
//   go to libm, which knows enough digits of pi.
// - asin, acos: Cephes' polynomial, half-angle beyond 1/2: 2.3 and 1.1 ulp.
// - tan: the angle of sin, Cephes' polynomial, one division: 2.7 ulp.
// - sinh, cosh: half of the exponential, which is finite where the exponential is not, and a quarter of its inverse;
//   below 1, sinh is Cephes' polynomial: 2.8 and 2.6 ulp.
// - asinh, acosh, atanh: logarithms; near zero, polynomials: 2.3, 2.2 and 1.3 ulp. That of asinh is a least-squares fit
//   as far as 1, because the logarithm of what is near 1 loses digits; the others are Cephes'.
// - pow: exp2(y·log2 x) in f64, 0.56 ulp, with IEEE's special cases.
// - fmod: exact in f64 where the quotient is below 2^28; other lanes go to libm.
//
// Other names:
// - dot_..: (c, a, b) -> c + Σ a·b, the sum of four products of bytes in each lane, by signedness of a and b. dot_ss
//   leaves out the −128·Σb that dot_128 collects (compiler/backends/text/print_tile.cc); where no instruction needs
//   this, dot_128 adds nothing.
// - widen_u, widen_s: widen the bytes of a vector to 16 bits, the first and third of each four, then the second and
//   fourth. evens_., odds_.: one of these. add_pairs: adds two products of 16 bits in each lane; an empty
//   instruction follows, because clang would add the products of several steps to each other first, and keep all of
//   them.
// - IN_MEMORY: what the pointer points to is in memory, and the compiler knows neither.
// - ld_i64_f32: exact in f64 below 2^53, so that one rounding follows; other lanes are converted alone.
// - vf2i_low: only the low 16 bits of the result are used. They are 0 for NaN, which the instruction makes 0x80000000.
// - vf2i_any: a value that does not fit an i32 keeps the low 32 bits of its i64, as f2i gives them.
// - ld_T_part, st_T_part: access the first n elements of a vector, and no byte behind them.
// - hmax, hmin: look for NaN beside the comparisons instead of in each, because each comparison waits for the one
//   before.
//   _beside: the mask says where a row, whose maxima of numbers these are, has NaN.
// - ld_f16, st_f16: convert in hardware, since every ISA in use can.
// - rounded_f32, rounded_f64, vrounded: an empty instruction, across which clang contracts nothing. Under
//   -ffp-contract=fast it ignores pragmas, and arithmetic fences, too.
// - vsqrt, root_f32, root_f64: clang 14 takes a root for no number below zero, and therefore 1 / sqrt(-0), the negative
//   infinity, too: it folded comparisons of that with zero. It knows neither the result of an empty instruction nor x
//   itself. Neither takes time; the former would keep loops over single values from becoming vectors.
// - log_of, power_of: the library takes a subnormal number apart by a product, which is 0 where such numbers are
//   flushed, and gives the logarithm of no number at hand. Comparisons flush, too: x is 0 as elsewhere in the kernel.
// - vmax(a, b): vmaxps returns its second operand when unordered, so that only a NaN in `a` is lost.
// - or_nan: m, or a NaN where x is one. All bits set are a NaN, too; a choice by a mask is two instructions with AVX2.
// - ld2_inside: two whole vectors that overlap end with the last element that is needed.
constexpr char kText[] =
    R"(typedef unsigned char u8; typedef signed char i8; typedef unsigned short u16; typedef short i16;
typedef unsigned int u32; typedef int i32; typedef unsigned long u64; typedef long i64; typedef long ix;
typedef float vf __attribute__((vector_size($B)));
typedef float vfu __attribute__((vector_size($B), aligned(4), may_alias));
typedef int vi __attribute__((vector_size($B)));
typedef int viu __attribute__((vector_size($B), aligned(4), may_alias));
typedef unsigned int vu __attribute__((vector_size($B)));
extern "C" { float expf(float); float logf(float); float erff(float); float sinf(float); float cosf(float); float tanf(float);
float asinf(float); float acosf(float); float atanf(float); float sinhf(float); float coshf(float); float tanhf(float);
float asinhf(float); float acoshf(float); float atanhf(float); float powf(float, float); float fmodf(float, float);
double exp(double); double log(double); double erf(double); double sin(double); double cos(double); double tan(double);
double asin(double); double acos(double); double atan(double); double sinh(double); double cosh(double); double tanh(double);
double asinh(double); double acosh(double); double atanh(double); double pow(double, double); double fmod(double, double); }
#define SI static inline __attribute__((always_inline))
#define GLOBAL
#define SCRATCH
#define STEP_BOUNDARY asm volatile("" ::: "memory");
#define PREFETCH_L1(p) __builtin_prefetch(p)
#define PREFETCH_L2(p) __builtin_prefetch(p, 0, 2)
#define UNROLL
#define UNROLL_BY(n)
#define vsel(c, a, b) ((c) ? (a) : (b))
#define lane_vf(v, l) (v)[l]
SI u32 not_finite(float x) { return (__builtin_bit_cast(u32, x) & 0x7f800000u) == 0x7f800000u; }
#define lane_vi(v, l) (v)[l]
#define inf_f32 __builtin_inff()
#define inf_f64 __builtin_inf()
#define nan_f32 __builtin_nanf("")
#define nan_f64 __builtin_nan("")
$HSI vf ld_f32(const float* p) { return *(const vfu*)p; }
SI void st_f32(float* p, vf v) { *(vfu*)p = v; }
SI void st_stream_f32(float* p, vf v) { if (((unsigned long)p & ($B - 1)) == 0) __builtin_nontemporal_store(v, (vf*)p); else st_f32(p, v); }
#ifdef __x86_64__
#define STORES_DONE __builtin_ia32_sfence();
#else
#define STORES_DONE __sync_synchronize();
#endif
SI vf bc(float s) { return (vf){$S}; }
SI vi bi(int s) { return (vi){$S}; }
SI vi iota() { return (vi){$I}; }
SI vi ld_i32(const i32* p) { return *(const viu*)p; }
SI void st_i32(i32* p, vi v) { *(viu*)p = v; }
#define NARROW(T, V) typedef T V __attribute__((vector_size($L * sizeof(T)))); \
typedef T V##_u __attribute__((vector_size($L * sizeof(T)), aligned(sizeof(T)), may_alias)); \
SI vi ld_##T(const T* p) { return __builtin_convertvector(*(const V##_u*)p, vi); } \
SI void st_##T(T* p, vi v) { *(V##_u*)p = __builtin_convertvector(v, V); }
NARROW(i8, v_i8) NARROW(u8, v_u8) NARROW(i16, v_i16) NARROW(u16, v_u16)
typedef __fp16 v_f16 __attribute__((vector_size(2 * $L)));
typedef __fp16 v_f16_u __attribute__((vector_size(2 * $L), aligned(2), may_alias));
SI vf ld_f16(const u16* p) { return __builtin_convertvector(*(const v_f16_u*)p, vf); }
SI void st_f16(u16* p, vf v) { *(v_f16_u*)p = __builtin_convertvector(v, v_f16); }
#define PART(T, S, V) SI V ld_##T##_part(const S* p, ix n) { S t[$L] = {}; for (ix l = 0; l < n; ++l) t[l] = p[l]; return ld_##T(t); } \
SI void st_##T##_part(S* p, V v, ix n) { S t[$L]; st_##T(t, v); for (ix l = 0; l < n; ++l) p[l] = t[l]; }
PART(i32, i32, vi) PART(i8, i8, vi) PART(u8, u8, vi) PART(i16, i16, vi) PART(u16, u16, vi) PART(f16, u16, vf)
#if $L == 16 && defined(__AVX512F__)
SI vf ld_f32_part(const float* p, ix n) { return __builtin_ia32_loadups512_mask(p, bc(0.f), (unsigned short)((1u << n) - 1)); }
SI void st_f32_part(float* p, vf v, ix n) { __builtin_ia32_storeups512_mask(p, v, (unsigned short)((1u << n) - 1)); }
#elif $L == 8 && defined(__AVX2__)
SI vf ld_f32_part(const float* p, ix n) { return __builtin_ia32_maskloadps256((const vf*)p, iota() < bi((int)n)); }
SI void st_f32_part(float* p, vf v, ix n) { __builtin_ia32_maskstoreps256((vf*)p, iota() < bi((int)n), v); }
#else
PART(f32, float, vf)
#endif
SI vf round_f16(vf v) { return __builtin_convertvector(__builtin_convertvector(v, v_f16), vf); }
SI vi to_b(vf v) { vu b = (vu)v, r = (b + 0x7fff + ((b >> 16) & 1)) >> 16; return v != v ? (vi)((b >> 16) | 0x40) : (vi)r; }
SI vf ld_bf16(const u16* p) { return (vf)(ld_u16(p) << 16); }
SI void st_bf16(u16* p, vf v) { st_u16(p, to_b(v)); }
SI vf round_bf16(vf v) { return (vf)(to_b(v) << 16); }
SI vi ld_bool(const u8* p) { return ld_u8(p) != bi(0); }
SI void st_bool(u8* p, vi v) { st_u8(p, v & 1); }
PART(bf16, u16, vf) PART(bool, u8, vi)
SI vi wrap_i8(vi v) { return (vi)((vu)v << 24) >> 24; }
SI vi wrap_i16(vi v) { return (vi)((vu)v << 16) >> 16; }
SI vi wrap_u8(vi v) { return v & 0xff; }
SI vi wrap_u16(vi v) { return v & 0xffff; }
SI vf vi2f(vi v) { return __builtin_convertvector(v, vf); }
SI vi vf2i(vf v) { return __builtin_convertvector(v == v ? v : bc(0.f), vi); }
#if $L == 16 && defined(__AVX512F__)
SI vi vf2i_low(vf v) { return (vi)__builtin_ia32_cvttps2dq512_mask(v, bi(0), (unsigned short)-1, 4); }
#elif $L == 8 && defined(__AVX__)
SI vi vf2i_low(vf v) { return (vi)__builtin_ia32_cvttps2dq256(v); }
#else
#define vf2i_low vf2i
#endif
SI vi iadd(vi a, vi b) { return (vi)((vu)a + (vu)b); }
SI vi isub(vi a, vi b) { return (vi)((vu)a - (vu)b); }
SI vi imul(vi a, vi b) { return (vi)((vu)a * (vu)b); }
typedef short vs __attribute__((vector_size($B)));
typedef unsigned short vus __attribute__((vector_size($B)));
typedef int i32_u __attribute__((aligned(1), may_alias));
typedef int v_4_u __attribute__((vector_size($B), aligned(1), may_alias));
SI vi ld4(const void* p) { return *(const v_4_u*)p; }
SI vi bc4(const void* p) { return bi(*(const i32_u*)p); }
#if $L == 16 && defined(__AVX512BW__)
SI vi madd(vs a, vs b) { return __builtin_ia32_pmaddwd512(a, b); }
#elif $L == 8 && defined(__AVX2__)
SI vi madd(vs a, vs b) { return __builtin_ia32_pmaddwd256(a, b); }
#else
SI vi madd(vs a, vs b) { vi r; for (int l = 0; l < $L; ++l) r[l] = a[2 * l] * b[2 * l] + a[2 * l + 1] * b[2 * l + 1]; return r; }
#endif
SI vs even_u(vi x) { return (vs)x & 0xff; }
SI vs odd_u(vi x) { return (vs)((vus)x >> 8); }
SI vs even_s(vi x) { return (vs)((vus)x << 8) >> 8; }
SI vs odd_s(vi x) { return (vs)x >> 8; }
SI vi evens_u(vi x) { return (vi)even_u(x); }
SI vi odds_u(vi x) { return (vi)odd_u(x); }
SI vi evens_s(vi x) { return (vi)even_s(x); }
SI vi odds_s(vi x) { return (vi)odd_s(x); }
SI void widen_u(i32* to, const void* p) { vi x = ld4(p); st_i32(to, evens_u(x)); st_i32(to + $L, odds_u(x)); }
SI void widen_s(i32* to, const void* p) { vi x = ld4(p); st_i32(to, evens_s(x)); st_i32(to + $L, odds_s(x)); }
#define IN_MEMORY(p) asm volatile("" : "+r"(p) : : "memory");
#define DOT(name, A, B) SI vi name(vi c, vi a, vi b) { return iadd(c, iadd(madd(even_##A(a), even_##B(b)), madd(odd_##A(a), odd_##B(b)))); }
DOT(dot_uu, u, u) DOT(dot_ss_exact, s, s)
#if $L == 16 && defined(__AVX512VNNI__)
#define VNNI __builtin_ia32_vpdpbusd512
#elif $L == 8 && (defined(__AVXVNNI__) || (defined(__AVX512VNNI__) && defined(__AVX512VL__)))
#define VNNI __builtin_ia32_vpdpbusd256
#endif
#ifdef VNNI
SI vi dot_us(vi c, vi a, vi b) { return VNNI(c, a, b); }
SI vi dot_su(vi c, vi a, vi b) { return VNNI(c, b, a); }
SI vi dot_ss(vi c, vi a, vi b) { return VNNI(c, (vi)((vu)a ^ 0x80808080u), b); }
SI vi dot_128(vi o, vi b) { return VNNI(o, bi((int)0x80808080u), b); }
#else
DOT(dot_us, u, s) DOT(dot_su, s, u) DOT(dot_ss, s, s)
SI vi dot_128(vi o, vi b) { return o; }
#endif
#if $L == 16
SI vf or_nan(vf m, vf x) { return x != x ? x : m; }
#else
SI vf or_nan(vf m, vf x) { return (vf)((vi)m | (x != x)); }
#endif
SI vf vmax(vf a, vf b) { return or_nan(a > b ? a : b, a); }
SI vf vmin(vf a, vf b) { return or_nan(a < b ? a : b, a); }
SI vf vabs(vf x) { return (vf)((vi)x & 0x7fffffff); }
SI vf vsign(vf x) { vf z = bc(0.f); vf r = x > z ? bc(1.f) : x < z ? bc(-1.f) : z; return x != x ? x : r; }
#define LANEWISE(name, f) SI vf name(vf x) { vf r; for (int l = 0; l < $L; ++l) r[l] = f(x[l]); return r; }
LANEWISE(lanes_sqrt, __builtin_sqrtf)
LANEWISE(vfloor, __builtin_floorf)
LANEWISE(vceil, __builtin_ceilf)
LANEWISE(vround, __builtin_nearbyintf)
#if defined(__x86_64__)
#define OPAQUE "+v"
#elif defined(__aarch64__)
#define OPAQUE "+w"
#else
#define OPAQUE "+m"
#endif
#define ROUNDED(T, name) SI T name(T x) { asm("" : OPAQUE(x)); return x; }
SI vi add_pairs(vi c, vi a, vi b) { c = iadd(c, madd((vs)a, (vs)b)); asm("" : OPAQUE(c)); return c; }
ROUNDED(vf, vrounded) ROUNDED(float, rounded_f32) ROUNDED(double, rounded_f64)
SI vf vsqrt(vf x) { return vrounded(lanes_sqrt(x)); }
SI float root_f32(float x) { return x == 0 ? x : __builtin_sqrtf(x); }
SI double root_f64(double x) { return x == 0 ? x : __builtin_sqrt(x); }
SI float log_of_f32(float x) { return x == 0 ? -inf_f32 : logf(x); }
SI double log_of_f64(double x) { return x == 0 ? -inf_f64 : log(x); }
SI float power_of_f32(float x, float y) { return powf(x == 0 ? x * 0 : x, y == 0 ? y * 0 : y); }
SI double power_of_f64(double x, double y) { return pow(x == 0 ? x * 0 : x, y == 0 ? y * 0 : y); }
SI vf zip_low(vf a, vf b) { return __builtin_shufflevector(a, b, $ZL); }
SI vf zip_high(vf a, vf b) { return __builtin_shufflevector(a, b, $ZH); }
#define BITS(V, T, N, S) typedef T V __attribute__((vector_size(N * sizeof(T)))); \
typedef T V##_u __attribute__((vector_size(N * sizeof(T)), aligned(S), may_alias)); \
SI V ld_##V(const void* p) { return *(const V##_u*)p; } \
SI void st_##V(void* p, V v) { *(V##_u*)p = v; }
BITS(vb, u8, 16, 1) BITS(vw, u16, $L, 2) BITS(v32, float, $L, 4)
SI vb zip_vb_low(vb a, vb b) { return __builtin_shufflevector(a, b, $ZBL); }
SI vb zip_vb_high(vb a, vb b) { return __builtin_shufflevector(a, b, $ZBH); }
SI vw zip_vw_low(vw a, vw b) { return __builtin_shufflevector(a, b, $ZL); }
SI vw zip_vw_high(vw a, vw b) { return __builtin_shufflevector(a, b, $ZH); }
#define ld_bits_u8 ld_vb
#define ld_bits_i8 ld_vb
#define ld_bits_bool ld_vb
#define ld_bits_u16 ld_vw
#define ld_bits_i16 ld_vw
#define ld_bits_f16 ld_vw
#define ld_bits_bf16 ld_vw
#define ld_bits_i32 ld_v32
#define ld_bits_u32 ld_v32
#define st_bits_u8 st_vb
#define st_bits_i8 st_vb
#define st_bits_bool st_vb
#define st_bits_u16 st_vw
#define st_bits_i16 st_vw
#define st_bits_f16 st_vw
#define st_bits_bf16 st_vw
#define st_bits_i32 st_v32
#define st_bits_u32 st_v32
SI vf even(vf a, vf b) { return __builtin_shufflevector(a, b, $E); }
#if $L == 16 && defined(__AVX512F__)
SI u16 first_lanes(ix n) { return (u16)((1u << (n < 0 ? 0 : n > 16 ? 16 : n)) - 1); }
SI void ld_inside_f32(vf* v, const float* p, ix from, ix to) { *v = __builtin_ia32_loadups512_mask(p, *v, first_lanes(to) & ~first_lanes(from)); }
SI void st_first_f32(float* p, vf v, ix n) { __builtin_ia32_storeups512_mask(p, v, first_lanes(n)); }
#else
#if $L == 8 && defined(__AVX__)
SI void ld_inside_f32(vf* v, const float* p, ix from, ix to) {
  vi in = (iota() >= bi((int)from)) & (iota() < bi((int)to));
  *v = in ? (vf)__builtin_ia32_maskloadps256((const vf*)p, in) : *v;
}
#else
SI void ld_inside_f32(vf* v, const float* p, ix from, ix to) {
  if (from <= 0 && to >= $L) *v = ld_f32(p);
  else for (ix l = 0; l < $L; ++l) if (l >= from && l < to) (*v)[l] = p[l];
}
#endif
SI void st_first_f32(float* p, vf v, ix n) {
  float all[$L]; st_f32(all, v);
  const float* from = all;
  for (ix part = $L / 2; part > 0; part /= 2) if (n & part) { __builtin_memcpy(p, from, 4 * part); p += part; from += part; }
}
#endif
SI void ld2_inside_f32(vf* v, const float* p, ix from, ix to) {
#if $L == 8
  if (from <= 0 && to > 2 * ($L - 1)) { *v = __builtin_shufflevector(ld_f32(p), ld_f32(p + $L - 1), $OE); return; }
#endif
  vf low = *v, high = *v;
  ld_inside_f32(&low, p, from, to); ld_inside_f32(&high, p + $L, from - $L, to - $L);
  *v = even(low, high);
}
SI void ld3_inside_f32(vf* v, const float* p, ix from, ix to) {
  if (from <= 0 && to > 3 * ($L - 1)) {
    vf two = __builtin_shufflevector(ld_f32(p), ld_f32(p + $L), $T1);
    *v = __builtin_shufflevector(two, ld_f32(p + 2 * $L - 2), $T2);
  } else for (ix l = 0; l < $L; ++l) if (3 * l >= from && 3 * l < to) (*v)[l] = p[3 * l];
}
SI void ldn_inside_f32(vf* v, const float* p, ix n, ix from, ix to) {
#if $L == 16 && defined(__AVX512F__)
  if (from <= 0 && to > n * ($L - 1)) {
    UNROLL for (ix first = 0; first <= n * ($L - 1); first += 2 * $L) {
      vf low = bc(0.f), high = low;
      ld_inside_f32(&low, p + first, 0, n * ($L - 1) + 1 - first);
      ld_inside_f32(&high, p + first + $L, 0, n * ($L - 1) + 1 - first - $L);
      const vi at = iota() * bi((int)n) - bi((int)first);
      *v = at >= bi(0) ? (vf)__builtin_ia32_vpermi2varps512(low, at, high) : *v;
    }
    return;
  }
#endif
  for (ix l = 0; l < $L; ++l) if (n * l >= from && n * l < to) (*v)[l] = p[n * l];
}
SI vf vrsqrt(vf x) { return bc(1.f) / vsqrt(x); }
SI vf exp_fraction(vf y, float bias, float s, vf* n, vf* m) {
  const vf round = bc(12582912.f + bias);
  *n = y * bc(1.44269504f) + round; *m = *n - round;
  vf r = y - *m * bc(0.693359375f); r = r + *m * bc(2.12194440e-4f);
  vf p = (bc(s * .00831247971f) * r + bc(s * .0418905531f)) * r + bc(s * .166671163f);
  return ((p * r + bc(s * .499992288f)) * r + bc(s)) * r + bc(s);
}
SI vf vexp(vf x) {
#if $L == 16 && defined(__AVX512F__)
  vf y = x < bc(-104.f) ? bc(-104.f) : x; y = y > bc(89.f) ? bc(89.f) : y;
#else
  vf y = x;
#endif
  vf n, m, p = exp_fraction(y, 0.f, 1.f, &n, &m);
#if $L == 16 && defined(__AVX512F__)
  return (vf)__builtin_ia32_scalefps512_mask(p, m, bc(0.f), -1, 4);
#else
  vf e = (vf)((vu)p + ((vu)n << 23));
  e = x < bc(-87.3365402f) ? bc(0.f) : e;
  vf beyond = (vf)(~(x <= bc(88.7228317f)) & (vi)(x + bc(__builtin_inff())));
  return e > beyond ? e : beyond;
#endif
}
SI vf vexp_no_overflow(vf x) {
#if $L == 16 && defined(__AVX512F__)
  vf n, m, p = exp_fraction(bc(-104.f) > x ? bc(-104.f) : x, 0.f, 1.f, &n, &m);
  return (vf)__builtin_ia32_scalefps512_mask(p, m, bc(0.f), -1, 4);
#else
  vf n, m, p = exp_fraction(bc(-88.f) > x ? bc(-88.f) : x, 127.f, 1.f, &n, &m);
  return p * (vf)((vu)n << 23);
#endif
}
SI vf vexp_no_underflow(vf x) {
#if $L == 16 && defined(__AVX512F__)
  vf n, m, p = exp_fraction(bc(89.f) < x ? bc(89.f) : x, 0.f, 1.f, &n, &m);
  return (vf)__builtin_ia32_scalefps512_mask(p, m, bc(0.f), -1, 4);
#else
  vf n, m, p = exp_fraction(bc(89.f) < x ? bc(89.f) : x, 126.f, 2.f, &n, &m);
  return p * (vf)((vu)n << 23);
#endif
}
SI vf vlog(vf x) {
  vf s = x < bc(1.17549435e-38f) ? x * bc(8388608.f) : x;
  vi i = (vi)s - 0x3f3504f3; vi e = i >> 23;
  vf f = (vf)((i & 0x007fffff) + 0x3f3504f3) - bc(1.f);
  vf k = __builtin_convertvector(e, vf); k = x < bc(1.17549435e-38f) ? k - bc(23.f) : k;
  vf z = f * f;
  vf p = bc(7.0376836292e-2f); p = p * f + bc(-1.1514610310e-1f); p = p * f + bc(1.1676998740e-1f);
  p = p * f + bc(-1.2420140846e-1f); p = p * f + bc(1.4249322787e-1f); p = p * f + bc(-1.6668057665e-1f);
  p = p * f + bc(2.0000714765e-1f); p = p * f + bc(-2.4999993993e-1f); p = p * f + bc(3.3333331174e-1f);
  vf y = p * f * z; y = y + k * bc(-2.12194440e-4f); y = y - z * bc(.5f);
  vf r = f + y; r = r + k * bc(0.693359375f);
  r = x == bc(__builtin_inff()) ? x : r; r = x == bc(0.f) ? bc(-__builtin_inff()) : r;
  return ((x < bc(0.f)) | (x != x)) ? bc(__builtin_nanf("")) : r;
}
SI vf verf(vf x) {
  vf c = x > bc(3.6730485f) ? bc(3.6730485f) : x; c = c < bc(-3.6730485f) ? bc(-3.6730485f) : c;
  vf s = c * c;
  vf p = bc(-256 * 2.72614225801306e-10f); p = p * s + bc(256 * 2.77068142495902e-08f); p = p * s + bc(-256 * 2.10102402082508e-06f);
  p = p * s + bc(-256 * 5.69250639462346e-05f); p = p * s + bc(-256 * 7.34990630326855e-04f); p = p * s + bc(-256 * 2.95459980854025e-03f);
  p = p * s + bc(-256 * 1.60960333262415e-02f);
  vf q = bc(-256 * 1.45660718464996e-05f); q = q * s + bc(-256 * 2.13374055278905e-04f); q = q * s + bc(-256 * 1.68282697438203e-03f);
  q = q * s + bc(-256 * 7.37332916720468e-03f); q = q * s + bc(-256 * 1.42647390514189e-02f);
  return c * p / q;
}
SI vf vtanh(vf x) {
  vf c = x > bc(8.12742043f) ? bc(8.12742043f) : x; c = c < bc(-8.12742043f) ? bc(-8.12742043f) : c;
  vf s = c * c;
  vf p = bc(-256 * 2.76076847742355e-16f); p = p * s + bc(256 * 2.00018790482477e-13f); p = p * s + bc(-256 * 8.60467152213735e-11f);
  p = p * s + bc(256 * 5.12229709037114e-08f); p = p * s + bc(256 * 1.48572235717979e-05f); p = p * s + bc(256 * 6.37261928875436e-04f);
  p = p * s + bc(256 * 4.89352455891786e-03f);
  vf q = bc(256 * 1.19825839466702e-06f); q = q * s + bc(256 * 1.18534705686654e-04f); q = q * s + bc(256 * 2.26843463243900e-03f);
  q = q * s + bc(256 * 4.89352518554385e-03f);
  return c * p / q;
}
SI vf vatan(vf x) {
  vf a = vabs(x);
  vi far = a > bc(2.41421356f), mid = a > bc(.41421356f);
  vf r = (far ? bc(-1.f) : mid ? a - bc(1.f) : a) / (far ? a : mid ? a + bc(1.f) : bc(1.f));
  vf y = far ? bc(1.57079633f) : mid ? bc(.78539816f) : bc(0.f), z = r * r;
  vf p = bc(8.05374449538e-2f); p = p * z + bc(-1.38776856032e-1f); p = p * z + bc(1.99777106478e-1f);
  p = p * z + bc(-3.33329491539e-1f);
  y = y + (p * z * r + r);
  return (vf)((vi)y | ((vi)x & (int)0x80000000));
}
SI i64 f2i(double x) { return x != x ? 0 : x >= 9223372036854775807.0 ? 0x7fffffffffffffffL : x <= -9223372036854775808.0 ? (i64)0x8000000000000000UL : (i64)x; }
typedef double vd __attribute__((vector_size(2 * $B)));
typedef long vl __attribute__((vector_size(2 * $B)));
SI vd bd(double s) { return (vd){$S}; }
SI vd f2d(vf x) { return __builtin_convertvector(x, vd); }
SI vf d2f(vd x) { return __builtin_convertvector(x, vf); }
#if $L == 16 && defined(__AVX512F__)
SI int any(vi m) { return (unsigned short)__builtin_ia32_cmpd512_mask(m, bi(0), 4, (unsigned short)-1) != 0; }
#elif $L == 8 && defined(__AVX__)
SI int any(vi m) { return __builtin_ia32_movmskps256((vf)m) != 0; }
#else
SI int any(vi m) { int r = 0; for (int l = 0; l < $L; ++l) r |= m[l]; return r != 0; }
#endif
#define IN_LANES(m, r, e) if (__builtin_expect(any(m), 0)) for (int l = 0; l < $L; ++l) if (m[l]) r[l] = e;
SI vf ld_i64_f32(const i64* p) {
  typedef long vl_u __attribute__((vector_size(2 * $B), aligned(8), may_alias));
  vl x = *(const vl_u*)p;
#ifdef __AVX512DQ__
  return __builtin_convertvector(x, vf);
#else
  typedef unsigned long vul __attribute__((vector_size(2 * $B)));
  vd low = (vd)((x & 0xffffffffL) | 0x4330000000000000L), high = (vd)(((vul)x >> 32) ^ 0x4530000080000000UL);
  vf r = d2f((high - bd(0x1.00000801p84)) + low);
  vi far = ~(vabs(r) < bc(0x1p53f));
  IN_LANES(far, r, (float)x[l])
  return r;
#endif
}
SI vi vf2i_any(vf x) {
  vi far = ~(vabs(x) < bc(2147483648.f)), r = __builtin_convertvector(far ? bc(0.f) : x, vi);
  IN_LANES(far, r, (int)f2i((double)x[l]))
  return r;
}
SI vf within_quarter(vf x, vi* q) {
  vd d = f2d(x), t = d * bd(0x1.45f306dc9c883p-1) + bd(0x1.8p52), n = t - bd(0x1.8p52);
  vd e = d - n * bd(0x1.921fb544p0); e = e - n * bd(0x1.0b4611a626331p-34);
  *q = __builtin_convertvector((vl)t, vi);
  return d2f(e);
}
SI vf vsine(vf x, int quarter) {
  vi q; vf r = within_quarter(x, &q), z = r * r; q += quarter;
  vf s = bc(-1.9515295891e-4f); s = s * z + bc(8.3321608736e-3f); s = s * z + bc(-1.6666654611e-1f); s = s * z * r + r;
  vf c = bc(2.443315711809948e-5f); c = c * z + bc(-1.388731625493765e-3f); c = c * z + bc(4.166664568298827e-2f);
  c = c * z * z + (bc(1.f) - bc(.5f) * z);
  return (vf)((vi)((q << 31) != 0 ? c : s) ^ ((q & 2) << 30));
}
SI vf vsin(vf x) { vi far = ~(vabs(x) < bc(0x1p20f)); vf r = vsine(x, 0); IN_LANES(far, r, sinf(x[l])) return x == bc(0.f) ? x : r; }
SI vf vcos(vf x) { vi far = ~(vabs(x) < bc(0x1p20f)); vf r = vsine(x, 1); IN_LANES(far, r, cosf(x[l])) return r; }
SI vf asin_part(vf r, vf z) {
  vf p = bc(4.2163199048e-2f); p = p * z + bc(2.4181311049e-2f); p = p * z + bc(4.5470025998e-2f);
  p = p * z + bc(7.4953002686e-2f); p = p * z + bc(1.6666752422e-1f);
  return p * z * r + r;
}
SI vf vasin(vf x) {
  vf a = vabs(x), h = bc(.5f) * (bc(1.f) - a);
  vi far = a > bc(.5f);
  vf y = asin_part(far ? vsqrt(h) : a, far ? h : a * a);
  y = far ? bc(1.57079637f) - (y + y + bc(4.37113883e-8f)) : y;
  return (vf)((vi)y | ((vi)x & (int)0x80000000));
}
SI vf vacos(vf x) {
  vf a = vabs(x), h = bc(.5f) * (bc(1.f) - a);
  vi far = a > bc(.5f);
  vf y = asin_part(far ? vsqrt(h) : x, far ? h : a * a);
  return far ? (x < bc(0.f) ? bc(3.14159274f) - (y + y + bc(8.74227766e-8f)) : y + y) : bc(1.57079637f) - (y + bc(4.37113883e-8f));
}
SI vf vtan(vf x) {
  vi q, far = ~(vabs(x) < bc(0x1p20f));
  vf r = within_quarter(x, &q), z = r * r;
  vf p = bc(9.38540185543e-3f); p = p * z + bc(3.11992232697e-3f); p = p * z + bc(2.44301354525e-2f);
  p = p * z + bc(5.34112807005e-2f); p = p * z + bc(1.33387994085e-1f); p = p * z + bc(3.33331568548e-1f);
  p = p * z * r + r;
  vi odd = (q << 31) != 0;
  r = (odd ? bc(-1.f) : p) / (odd ? p : bc(1.f));
  IN_LANES(far, r, tanf(x[l]))
  return x == bc(0.f) ? x : r;
}
SI vf half_exp(vf a) {
  vf n, m, p = exp_fraction(bc(90.f) < a ? bc(90.f) : a, 0.f, 1.f, &n, &m);
  return (p + p) * (vf)(((vu)n << 23) + (125u << 23));
}
SI vf with_sign(vf a, vf x) { return (vf)((vi)a | ((vi)x & (int)0x80000000)); }
SI vf vsinh(vf x) {
  vf a = vabs(x), g = half_exp(a), z = x * x;
  vf p = bc(2.03721912945e-4f); p = p * z + bc(8.33028376239e-3f); p = p * z + bc(1.66667160211e-1f);
  return a < bc(1.f) ? p * z * x + x : with_sign(g - bc(.25f) / g, x);
}
SI vf vcosh(vf x) { vf g = half_exp(vabs(x)); return g + bc(.25f) / g; }
SI vf log_beyond(vf a, vf z) {
  vi far = a > bc(1e6f);
  return vlog(far ? a : a + vsqrt(z)) + (far ? bc(.693147181f) : bc(0.f));
}
SI vf vasinh(vf x) {
  vf a = vabs(x), z = x * x;
  vf p = bc(0.000673007977f); p = p * z + bc(-0.00383436959f); p = p * z + bc(0.0104239052f);
  p = p * z + bc(-0.019175848f); p = p * z + bc(0.0294531602f); p = p * z + bc(-0.0444870107f);
  p = p * z + bc(0.074987039f); p = p * z + bc(-0.166666299f);
  return with_sign(a < bc(1.f) ? p * z * a + a : log_beyond(a, z + bc(1.f)), x);
}
SI vf vacosh(vf x) {
  vf z = x - bc(1.f);
  vf p = bc(1.7596881071e-3f); p = p * z + bc(-7.5272886713e-3f); p = p * z + bc(2.6454905019e-2f);
  p = p * z + bc(-1.1784741703e-1f); p = p * z + bc(1.4142135263f);
  return z < bc(.5f) ? p * vsqrt(z) : log_beyond(x, z * (x + bc(1.f)));
}
SI vf vatanh(vf x) {
  vf a = vabs(x), z = x * x;
  vf p = bc(1.81740078349e-1f); p = p * z + bc(8.24370301058e-2f); p = p * z + bc(1.46691431730e-1f);
  p = p * z + bc(1.99782164500e-1f); p = p * z + bc(3.33337300303e-1f);
  return a < bc(.5f) ? p * z * x + x : with_sign(bc(.5f) * vlog((bc(1.f) + a) / (bc(1.f) - a)), x);
}
SI vf vpow(vf x, vf y) {
  vf a = vabs(x), s = a < bc(1.17549435e-38f) ? a * bc(8388608.f) : a;
  vi i = (vi)s - 0x3f3504f3, e = (i >> 23) - ((a < bc(1.17549435e-38f)) & 23);
  vd f = f2d((vf)((i & 0x007fffff) + 0x3f3504f3)), r = (f - bd(1.)) / (f + bd(1.)), z = r * r;
  vd p = bd(0.09681388657166366); p = p * z + bd(0.11095697233678925); p = p * z + bd(0.14285877318082918); p = p * z + bd(0.1999999939842323); p = p * z + bd(0.33333333333687715);
  vd g = (p * z * r + r) * bd(0x1.71547652b82fep1) + __builtin_convertvector(e, vd);
  g = g * f2d(y); g = g < bd(-300.) ? bd(-300.) : g; g = g > bd(300.) ? bd(300.) : g;
  vd t = g + bd(0x1.8p52), u = g - (t - bd(0x1.8p52));
  vd w = bd(0.00015453182834103364); w = w * u + bd(0.0013390886332431695); w = w * u + bd(0.009618082519980562); w = w * u + bd(0.05550357071152454); w = w * u + bd(0.24022650760645822);
  w = w * u + bd(0.6931471880351999); w = w * u + bd(1.);
  vf v = d2f((vd)((vl)w + ((vl)t << 52)));
  vf o = bc(1.f), none = bc(0.f), inf = bc(__builtin_inff());
  v = ((a == none) | (a == inf)) ? (((a == none) ^ (y < none)) ? none : inf) : v;
  v = (y != y) | (x != x) ? y + x : v;
  v = (a == o) & (y == y) ? o : v;
  vi whole = vfloor(y) == y, odd = whole & (vfloor(y * bc(.5f)) * bc(2.f) != y);
  v = (x < none) & ~whole & (a != inf) ? bc(__builtin_nanf("")) : v;
  v = (vf)((vi)v ^ (odd & (vi)x & (int)0x80000000));
  return (y == none) | (x == o) ? o : v;
}
SI vf vfmod(vf x, vf y) {
  vf a = vabs(x), b = vabs(y);
  vd d = f2d(a), c = f2d(b), n = __builtin_convertvector(__builtin_convertvector(d / c, vi), vd);
  vi far = ~((a < b * bc(0x1p28f)) & (b <= bc(0x1.fffffep127f)));
  vf r = d2f(d - n * c);
  r = (vf)((vi)r | ((vi)x & (int)0x80000000));
  IN_LANES(far, r, fmodf(x[l], y[l]))
  return r;
}
SI vf vmod(vf x, vf y) {
  vf r = vfmod(x, y), none = bc(0.f);
  vf whole = (vf)((vi)y & (int)0x80000000);
  return r == none ? whole : ((r < none) ^ (y < none)) ? r + y : r;
}
SI vf amax_f32(vf acc, vf x) { return or_nan(x > acc ? x : acc, x); }
SI vf amin_f32(vf acc, vf x) { return or_nan(x < acc ? x : acc, x); }
typedef float vf4 __attribute__((vector_size(16)));
#if $L == 16
typedef float vf8 __attribute__((vector_size(32)));
#define HALVES vf8 h = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7), g = __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15)
#define QUARTERS vf4 a = __builtin_shufflevector(h, h, 0, 1, 2, 3), b = __builtin_shufflevector(h, h, 4, 5, 6, 7)
#elif $L == 8
#define HALVES vf h = v, g = v
#define QUARTERS vf4 a = __builtin_shufflevector(h, h, 0, 1, 2, 3), b = __builtin_shufflevector(h, h, 4, 5, 6, 7)
#else
#define HALVES vf h = v, g = v
#define QUARTERS vf4 a = h, b = h
#endif
#define ACROSS(name, f) SI float name(vf v) { HALVES; if ($L > 8) h = f(h, g); QUARTERS; if ($L > 4) a = f(a, b); \
b = __builtin_shufflevector(a, a, 2, 3, 2, 3); a = f(a, b); b = __builtin_shufflevector(a, a, 1, 1, 1, 1); a = f(a, b); return a[0]; }
#define ACROSS_ADD(a, b) ((a) + (b))
#define ACROSS_MAX(a, b) ((b) > (a) ? (b) : (a))
#define ACROSS_MIN(a, b) ((b) < (a) ? (b) : (a))
ACROSS(hadd_f32, ACROSS_ADD)
ACROSS(hmax_numbers, ACROSS_MAX)
ACROSS(hmin_numbers, ACROSS_MIN)
SI float hmax_beside(vf v, vi nan) { float m = hmax_numbers(v); return __builtin_expect(any(nan), 0) ? nan_f32 : m; }
SI float hmin_beside(vf v, vi nan) { float m = hmin_numbers(v); return __builtin_expect(any(nan), 0) ? nan_f32 : m; }
SI float hmax_f32(vf v) { return hmax_beside(v, v != v); }
SI float hmin_f32(vf v) { return hmin_beside(v, v != v); }
SI i32 hadd_i32(vi v) { u32 s = 0; for (int l = 0; l < $L; ++l) s += (u32)v[l]; return (i32)s; }
SI i32 hmax_i32(vi v) { i32 m = v[0]; for (int l = 1; l < $L; ++l) m = v[l] > m ? v[l] : m; return m; }
SI i32 hmin_i32(vi v) { i32 m = v[0]; for (int l = 1; l < $L; ++l) m = v[l] < m ? v[l] : m; return m; }
SI vi amax_i32(vi acc, vi x) { return x > acc ? x : acc; }
SI vi amin_i32(vi acc, vi x) { return x < acc ? x : acc; }
SI u64 f2u(double x) { return x >= 18446744073709551615.0 ? ~0UL : x >= 9223372036854775807.0 ? (u64)x : (u64)f2i(x); }
SI float asf(u32 b) { union { u32 b; float f; } u; u.b = b; return u.f; }
SI u32 asu(float f) { union { u32 b; float f; } u; u.f = f; return u.b; }
SI float h2f(u16 h) { union { u16 b; __fp16 f; } u; u.b = h; return (float)u.f; }
SI u16 f2h(float f) { union { u16 b; __fp16 f; } u; u.f = (__fp16)f; return u.b; }
SI float bf2f(u16 h) { return asf((u32)h << 16); }
SI u16 f2bf(float f) { u32 b = asu(f); if ((b & 0x7fffffff) > 0x7f800000) return (u16)((b >> 16) | 0x40); return (u16)((b + 0x7fff + ((b >> 16) & 1)) >> 16); }
)";

// The compiler optimises its own builtins better than calls of libm.
std::string LibraryName(const std::string& function, bool f64) {
  std::string name = absl::StrCat(function == "round" ? "nearbyint" : function, f64 ? "" : "f");
  for (const auto& [own, ours] : {std::pair("sqrt", "root_"), {"log", "log_of_"}, {"pow", "power_of_"}}) {
    if (function == own) return absl::StrCat(ours, f64 ? "f64" : "f32");
  }
  for (const char* builtin : {"fabs", "floor", "ceil", "round"}) {
    if (function == builtin) return absl::StrCat("__builtin_", name);
  }
  return name;
}

std::string Repeat(int count, bool numbers) {
  std::string text;
  for (int i = 0; i < count; ++i) absl::StrAppend(&text, i ? "," : "", numbers ? absl::StrCat(i) : "s");
  return text;
}

std::string OverlappingEvenLanes(int lanes) {
  std::string text;
  for (int i = 0; i < lanes; ++i) absl::StrAppend(&text, i ? "," : "", 2 * i < lanes ? 2 * i : 2 * i + 1);
  return text;
}

}  // namespace

std::string Prelude(int lanes) {
  return absl::StrReplaceAll(kText, {{"$L", absl::StrCat(lanes)},
                                     {"$B", absl::StrCat(4 * lanes)},
                                     {"$S", Repeat(lanes, false)},
                                     {"$I", Repeat(lanes, true)},
                                     {"$ZBL", text::ZippedLanes(16, 0)},
                                     {"$ZBH", text::ZippedLanes(16, 8)},
                                     {"$OE", OverlappingEvenLanes(lanes)},
                                     {"$E", text::EvenLanes(lanes)},
                                     {"$T1", text::ThirdLanes(lanes, false)},
                                     {"$T2", text::ThirdLanes(lanes, true)},
                                     {"$ZL", text::ZippedLanes(lanes, 0)},
                                     {"$ZH", text::ZippedLanes(lanes, lanes / 2)},
                                     {"$H", text::LibraryNames(true, LibraryName) + text::ScalarHelpers(true)}});
}

}  // namespace fusion::cpu
