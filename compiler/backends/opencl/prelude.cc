#include "compiler/backends/opencl/prelude.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/backends/text/scalar_helpers.h"

namespace fusion::opencl {
namespace {

// Placeholders: $U and $B unrolling pragmas, $L lanes, $I 0..$L-1, $ZL and $ZH the zipped lanes of two vectors (low and
// high half), $ZBL and $ZBH the same of 16 bytes, $D and $F the library's functions with and without double, $H the
// helpers for single values.
//
// Where the driver has shuffles among work-items that run in step, a team reduces by shuffles, and the parts of a
// larger team are combined in local memory; elsewhere all of this happens in local memory. The driver chooses the width
// of a subgroup, a power of two. It does not say which of the work-group's work-items a subgroup holds, so work-items
// are numbered by subgroups and neighbours share one.
//
// Loads and stores are macros, because a function would have to name the address space of its pointer. vload and vstore
// assume the alignment of one element only. Halves go through a private copy: without cl_khr_fp16 only vload_half and
// vstore_half can convert them.
//
// Drivers' tanh may stay a unit below 1 however large its operand is (PoCL's does), and 1 - tanh(x) is then never 0.
//
// vrounded and its kind stop contraction by a choice, since drivers contract across statements and functions, too.
constexpr char kText[] = R"(#pragma OPENCL FP_CONTRACT ON
typedef uchar u8; typedef char i8; typedef ushort u16; typedef short i16;
typedef uint u32; typedef int i32; typedef ulong u64; typedef long i64; typedef long ix;
typedef float$L vf; typedef int$L vi; typedef uint$L vu;
#define SI static inline __attribute__((always_inline))
SI u32 not_finite(float x) { return (as_uint(x) & 0x7f800000u) == 0x7f800000u; }
#define GLOBAL __global
#define SCRATCH __local
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
#if __OPENCL_C_VERSION__ >= 200 && defined(cl_khr_subgroups) && defined(cl_khr_subgroup_shuffle)
#pragma OPENCL EXTENSION cl_khr_subgroups : enable
#define SHUFFLE_XOR sub_group_shuffle_xor
#elif defined(cl_intel_subgroups)
#pragma OPENCL EXTENSION cl_intel_subgroups : enable
#define SHUFFLE_XOR intel_sub_group_shuffle_xor
#endif
#ifdef SHUFFLE_XOR
#define WORK_ITEM (int)(get_sub_group_id() * get_max_sub_group_size() + get_sub_group_local_id())
#define REDUCE_TEAM(T, value, group, team, combine) { T x = value; const int width = (int)get_max_sub_group_size(); \
for (int o = min(team, width) / 2; o > 0; o /= 2) { const T y = (T)SHUFFLE_XOR(x, (uint)o); combine } \
if (team > width) { SCRATCH T* const part = (SCRATCH T*)partials; if (lid % width == 0) part[lid / width] = x; BARRIER \
const int first = lid / team * (team / width); x = part[first]; for (int w = 1; w < team / width; ++w) { const T y = part[first + w]; combine } BARRIER } value = x; }
#define TEAM_BARRIER(team) if (team > (int)get_max_sub_group_size()) { BARRIER } else sub_group_barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
#else
#define WORK_ITEM (int)get_local_id(0)
#define REDUCE_TEAM(T, value, group, team, combine) { SCRATCH T* const part = (SCRATCH T*)partials; part[lid] = value; BARRIER \
for (int half_team = team / 2; half_team > 0; half_team /= 2) { if (lid % team < half_team) { T x = part[lid]; const T y = part[lid + half_team]; combine part[lid] = x; } BARRIER } \
value = part[lid / team * team]; BARRIER }
#define TEAM_BARRIER(team) BARRIER
#endif
#define TICKET_DONE { mem_fence(CLK_GLOBAL_MEM_FENCE); atomic_inc(tickets + 1); }
#define AWAIT_TICKETS(end) { while (atomic_or(tickets + 1, 0) < end) {} mem_fence(CLK_GLOBAL_MEM_FENCE); }
#define LEAVE_TICKETS(end) if (atomic_inc(tickets) == end + (int)get_num_groups(0) - 1) { atomic_xchg(tickets, 0); atomic_xchg(tickets + 1, 0); }
#define STEP_BOUNDARY
#define COPIES_ARRIVE
#define copy_f32(to, from) *(to) = *(from)
#define copyv_f32(to, from) vstore$L(vload$L(0, from), 0, to)
#define copyv_f16(to, from) vstore$L(vload$L(0, from), 0, to)
#define PREFETCH_L1(p)
#define PREFETCH_L2(p)
#define UNROLL $U
#define UNROLL_TEXT(text) _Pragma(#text)
#define UNROLL_BY(n) $B
#define vsel(c, a, b) ((c) ? (a) : (b))
#define lane_vf(v, l) (((float*)&(v))[l])
#define lane_vi(v, l) (((int*)&(v))[l])
#define inf_f32 INFINITY
#define inf_f64 ((double)INFINITY)
#define nan_f32 NAN
#define nan_f64 ((double)NAN)
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double wide;
$D#else
typedef float wide;
$F#endif
SI i64 f2i(wide x) { return x != x ? 0 : x >= (wide)9223372036854775807.0f ? 0x7fffffffffffffffL : x <= (wide)-9223372036854775808.0f ? (i64)0x8000000000000000UL : (i64)x; }
SI u64 f2u(wide x) { return x >= (wide)18446744073709551615.0f ? ~0UL : x >= (wide)9223372036854775807.0f ? (u64)x : (u64)f2i(x); }
SI float h2f(u16 h) { return vload_half(0, (const half*)&h); }
SI u16 f2h(float f) { u16 h; vstore_half_rte(f, 0, (half*)&h); return h; }
SI float bf2f(u16 h) { return as_float((u32)h << 16); }
SI u16 f2bf(float f) { u32 b = as_uint(f); return (b & 0x7fffffff) > 0x7f800000 ? (u16)((b >> 16) | 0x40) : (u16)((b + 0x7fff + ((b >> 16) & 1)) >> 16); }
SI int next_ticket(GLOBAL int* tickets, int end) { for (int next = atomic_or(tickets, 0); next < end;) { const int found = atomic_cmpxchg(tickets, next, next + 1); if (found == next) return next; next = found; } return end; }
SI vf bc(float s) { return (vf)(s); }
SI vi bi(int s) { return (vi)(s); }
SI vi iota(void) { return (vi)($I); }
SI vf vh2f(ushort$L h) { return vload_half$L(0, (const half*)&h); }
SI ushort$L vf2h(vf v) { ushort$L h; vstore_half$L_rte(v, 0, (half*)&h); return h; }
SI vf vb2f(ushort$L h) { return as_float$L(convert_uint$L(h) << 16); }
SI ushort$L vf2b(vf v) { vu b = as_uint$L(v); vu r = (b + 0x7fff + ((b >> 16) & 1)) >> 16; return convert_ushort$L(v != v ? (b >> 16) | 0x40 : r); }
#define ld_f32(p) vload$L(0, p)
#define ld_i32(p) vload$L(0, p)
#define ld_i8(p) convert_int$L(vload$L(0, p))
#define ld_u8(p) convert_int$L(vload$L(0, p))
#define ld_i16(p) convert_int$L(vload$L(0, p))
#define ld_u16(p) convert_int$L(vload$L(0, p))
#define ld_f16(p) vh2f(vload$L(0, p))
#define ld_bf16(p) vb2f(vload$L(0, p))
#define ld_bool(p) (convert_int$L(vload$L(0, p)) != (vi)(0))
#define st_f32(p, v) vstore$L(v, 0, p)
#define st_stream_f32(p, v) st_f32(p, v)
#define st_first_f32(p, v, n) do { vf of = v; for (ix l = 0; l < (n); ++l) (p)[l] = lane_vf(of, l); } while (0)
#define ld_inside_f32(v, p, from, to) for (ix l = 0; l < $L; ++l) if (l >= (from) && l < (to)) lane_vf(*(v), l) = (p)[l]
#define ld_i64_f32(p) convert_float$L(vload$L(0, p))
#define ld2_inside_f32(v, p, from, to) for (ix l = 0; l < $L; ++l) if (2 * l >= (from) && 2 * l < (to)) lane_vf(*(v), l) = (p)[2 * l]
#define ld3_inside_f32(v, p, from, to) for (ix l = 0; l < $L; ++l) if (3 * l >= (from) && 3 * l < (to)) lane_vf(*(v), l) = (p)[3 * l]
#define ldn_inside_f32(v, p, n, from, to) for (ix l = 0; l < $L; ++l) if ((n) * l >= (from) && (n) * l < (to)) lane_vf(*(v), l) = (p)[(n) * l]
#define st_i32(p, v) vstore$L(v, 0, p)
#define st_i8(p, v) vstore$L(convert_char$L(v), 0, p)
#define st_u8(p, v) vstore$L(convert_uchar$L(v), 0, p)
#define st_i16(p, v) vstore$L(convert_short$L(v), 0, p)
#define st_u16(p, v) vstore$L(convert_ushort$L(v), 0, p)
#define st_f16(p, v) vstore$L(vf2h(v), 0, p)
#define st_bf16(p, v) vstore$L(vf2b(v), 0, p)
#define st_bool(p, v) vstore$L(convert_uchar$L((v) & 1), 0, p)
SI vf round_f16(vf v) { return vh2f(vf2h(v)); }
SI vf round_bf16(vf v) { return vb2f(vf2b(v)); }
SI vi wrap_i8(vi v) { return as_int$L(as_uint$L(v) << 24) >> 24; }
SI vi wrap_i16(vi v) { return as_int$L(as_uint$L(v) << 16) >> 16; }
SI vi wrap_u8(vi v) { return v & 0xff; }
SI vi wrap_u16(vi v) { return v & 0xffff; }
SI vf vi2f(vi v) { return convert_float$L(v); }
SI vi vf2i(vf v) { return convert_int$L(v == v ? v : bc(0.f)); }
#define vf2i_low vf2i
SI vi vf2i_any(vf v) { vi r; for (int l = 0; l < $L; ++l) lane_vi(r, l) = (int)f2i(lane_vf(v, l)); return r; }
SI vi iadd(vi a, vi b) { return as_int$L(as_uint$L(a) + as_uint$L(b)); }
SI vi isub(vi a, vi b) { return as_int$L(as_uint$L(a) - as_uint$L(b)); }
SI vi imul(vi a, vi b) { return as_int$L(as_uint$L(a) * as_uint$L(b)); }
SI vf vmax(vf a, vf b) { vf m = a > b ? a : b; return a != a ? a : m; }
SI vf vmin(vf a, vf b) { vf m = a < b ? a : b; return a != a ? a : m; }
SI vf vsign(vf x) { vf z = bc(0.f); vf r = x > z ? bc(1.f) : x < z ? bc(-1.f) : z; return x != x ? x : r; }
#define vabs fabs
#define vsqrt sqrt
#define vfloor floor
#define vceil ceil
#define vround rint
#define vexp exp
#define vexp_no_overflow exp
#define vexp_no_underflow exp
#define vlog log
#define verf erf
SI vf vtanh(vf x) { return fabs(x) > bc(9.02f) ? copysign(bc(1.f), x) : tanh(x); }
SI float tanh_of_f32(float x) { return fabs(x) > 9.02f ? copysign(1.f, x) : tanh(x); }
#define vatan atan
#define vasin asin
#define vacos acos
#define vsinh sinh
#define vcosh cosh
#define vasinh asinh
#define vacosh acosh
#define vatanh atanh
#define vpow pow
#define vfmod fmod
SI vf vsin(vf x) { vf r; for (int l = 0; l < $L; ++l) lane_vf(r, l) = sin(lane_vf(x, l)); return r; }
SI vf vtan(vf x) { vf r; for (int l = 0; l < $L; ++l) lane_vf(r, l) = tan(lane_vf(x, l)); return r; }
SI vf vcos(vf x) { vf r; for (int l = 0; l < $L; ++l) lane_vf(r, l) = cos(lane_vf(x, l)); return r; }
SI vf vmod(vf a, vf b) { vf r = fmod(a, b); return r == bc(0.f) ? copysign(r, b) : ((r < bc(0.f)) != (b < bc(0.f))) ? r + b : r; }
SI vf zip_low(vf a, vf b) { return shuffle2(a, b, (vu)($ZL)); }
SI vf zip_high(vf a, vf b) { return shuffle2(a, b, (vu)($ZH)); }
typedef uchar16 vb;
typedef ushort$L vw;
SI vb zip_vb_low(vb a, vb b) { return shuffle2(a, b, (vb)($ZBL)); }
SI vb zip_vb_high(vb a, vb b) { return shuffle2(a, b, (vb)($ZBH)); }
SI vw zip_vw_low(vw a, vw b) { return shuffle2(a, b, (vw)($ZL)); }
SI vw zip_vw_high(vw a, vw b) { return shuffle2(a, b, (vw)($ZH)); }
#define ld_bits_u8(p) vload16(0, p)
#define ld_bits_bool(p) vload16(0, p)
#define ld_bits_i8(p) as_uchar16(vload16(0, p))
#define ld_bits_u16(p) vload$L(0, p)
#define ld_bits_f16(p) vload$L(0, p)
#define ld_bits_bf16(p) vload$L(0, p)
#define ld_bits_i16(p) as_ushort$L(vload$L(0, p))
#define ld_bits_i32(p) as_float$L(vload$L(0, p))
#define ld_bits_u32(p) as_float$L(vload$L(0, p))
#define st_bits_u8(p, v) vstore16(v, 0, p)
#define st_bits_bool(p, v) vstore16(v, 0, p)
#define st_bits_i8(p, v) vstore16(as_char16(v), 0, p)
#define st_bits_u16(p, v) vstore$L(v, 0, p)
#define st_bits_f16(p, v) vstore$L(v, 0, p)
#define st_bits_bf16(p, v) vstore$L(v, 0, p)
#define st_bits_i16(p, v) vstore$L(as_short$L(v), 0, p)
#define st_bits_i32(p, v) vstore$L(as_int$L(v), 0, p)
#define st_bits_u32(p, v) vstore$L(as_uint$L(v), 0, p)
SI vf vrounded(vf x) { return x == x ? x : bc(NAN); }
SI float rounded_f32(float x) { return x == x ? x : NAN; }
#ifdef F64
SI double rounded_f64(double x) { return x == x ? x : (double)NAN; }
#endif
SI vf vrsqrt(vf x) { return bc(1.f) / sqrt(x); }
SI vf amax_f32(vf acc, vf x) { return (x > acc) | (x != x) ? x : acc; }
SI vf amin_f32(vf acc, vf x) { return (x < acc) | (x != x) ? x : acc; }
SI vi amax_i32(vi acc, vi x) { return x > acc ? x : acc; }
SI vi amin_i32(vi acc, vi x) { return x < acc ? x : acc; }
$HSI float hadd_f32(vf v) { float a[$L]; vstore$L(v, 0, a); for (int w = $L / 2; w > 0; w /= 2) for (int l = 0; l < w; ++l) a[l] += a[l + w]; return a[0]; }
SI float hmax_f32(vf v) { float a[$L]; vstore$L(v, 0, a); for (int l = 1; l < $L; ++l) a[0] = smax_f32(a[l], a[0]); return a[0]; }
SI float hmin_f32(vf v) { float a[$L]; vstore$L(v, 0, a); for (int l = 1; l < $L; ++l) a[0] = smin_f32(a[l], a[0]); return a[0]; }
SI i32 hadd_i32(vi v) { int a[$L]; vstore$L(v, 0, a); u32 s = 0; for (int l = 0; l < $L; ++l) s += (u32)a[l]; return (i32)s; }
SI i32 hmax_i32(vi v) { int a[$L]; vstore$L(v, 0, a); for (int l = 1; l < $L; ++l) a[0] = max(a[l], a[0]); return a[0]; }
SI i32 hmin_i32(vi v) { int a[$L]; vstore$L(v, 0, a); for (int l = 1; l < $L; ++l) a[0] = min(a[l], a[0]); return a[0]; }
)";

// One name serves both widths. OpenCL's round() takes ties away from zero.
std::string LibraryName(const std::string& function, bool f64) {
  if (function == "tanh" && !f64) return "tanh_of_f32";
  return function == "round" ? "rint" : function;
}

}  // namespace

std::string Prelude(int lanes, bool groups) {
  std::string numbers;
  for (int l = 0; l < lanes; ++l) absl::StrAppend(&numbers, l > 0 ? ", " : "", l);
  // Unrolls for work-items only: a processor has room for arrays, but a work-item among many has only registers.
  return absl::StrReplaceAll(kText, {{"$U", groups ? "_Pragma(\"unroll\")" : ""},
                                     {"$B", groups ? "UNROLL_TEXT(unroll n)" : ""},
                                     {"$L", absl::StrCat(lanes)},
                                     {"$I", numbers},
                                     {"$ZBL", text::ZippedLanes(16, 0)},
                                     {"$ZBH", text::ZippedLanes(16, 8)},
                                     {"$ZL", text::ZippedLanes(lanes, 0)},
                                     {"$ZH", text::ZippedLanes(lanes, lanes / 2)},
                                     {"$D", text::LibraryNames(true, LibraryName) + "#define F64 1\n"},
                                     {"$F", text::LibraryNames(false, LibraryName)},
                                     {"$H", absl::StrCat("#ifdef F64\n", text::ScalarHelpers(true), "#else\n",
                                                         text::ScalarHelpers(false), "#endif\n")}});
}

}  // namespace fusion::opencl
