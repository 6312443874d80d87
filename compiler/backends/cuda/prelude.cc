#include "compiler/backends/cuda/prelude.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "compiler/backends/text/scalar_helpers.h"

namespace fusion::cuda {
namespace {

// Placeholders: $L lanes, $E a statement for each of them, $H the library's names and the helpers for single values, $C
// copies into shared memory, $M fragments, $G products from shared memory, $S grid barriers.
//
// A vector is a struct whose elements the compiler keeps in registers. There are no loops over them, because NVRTC
// would take twice as long to unroll them all. Loads are written element by element; they become one instruction of 16
// bytes where the compiler can prove the alignment, for which ALIGNED says where buffers begin. Loop indices have 32
// bits where that is enough: 64 bits take two registers and several instructions, and together with STEP_BOUNDARY this
// decides whether a tile spills. Halves are converted by instructions that need no header.
constexpr char kText[] =
    R"(typedef unsigned char u8; typedef signed char i8; typedef unsigned short u16; typedef short i16;
typedef unsigned int u32; typedef int i32; typedef unsigned long u64; typedef long i64; typedef int ix;
#define SI static __device__ __forceinline__
#define GLOBAL
#define SCRATCH
#define ALIGNED(p) __builtin_assume_aligned(p, 64)
#define BARRIER __syncthreads();
#define TEAM_BARRIER(team) __syncwarp(team < 32 ? (1u << (team & 31)) - 1 : ~0u);
#define REDUCE_TEAM(T, value, group, team, combine) { T x = value; \
UNROLL for (int o = (team < 32 ? team : 32) / 2; o > 0; o /= 2) { const T y = (T)__shfl_xor_sync(group < 32 ? (1u << (group & 31)) - 1 : ~0u, x, o); combine } \
if (team > 32) { T* const part = (T*)partials; if (lid % 32 == 0) part[lid / 32] = x; __syncthreads(); \
const int first = lid / team * (team / 32); x = part[first]; for (int w = 1; w < team / 32; ++w) { const T y = part[first + w]; combine } __syncthreads(); } value = x; }
#define STEP_BOUNDARY asm volatile("" ::: "memory");
#define COPIES_ARRIVE copies_arrive();
#define PREFETCH_L1(p)
#define PREFETCH_L2(p)
#define UNROLL _Pragma("unroll")
#define UNROLL_TEXT(text) _Pragma(#text)
#define UNROLL_BY(n) UNROLL_TEXT(unroll n)
#define LANES(...) $E
struct vf { float x[$L]; };
struct vi { i32 x[$L]; };
#define lane_vf(v, l) (v).x[l]
#define lane_vi(v, l) (v).x[l]
#define inf_f32 __int_as_float(0x7f800000)
#define inf_f64 __longlong_as_double(0x7ff0000000000000LL)
#define nan_f32 __int_as_float(0x7fc00000)
#define nan_f64 __longlong_as_double(0x7ff8000000000000LL)
$S$HSI i64 f2i(double x) { return x != x ? 0 : x >= 9223372036854775807.0 ? 0x7fffffffffffffffL : x <= -9223372036854775808.0 ? (i64)0x8000000000000000UL : (i64)x; }
SI u64 f2u(double x) { return x >= 18446744073709551615.0 ? ~0UL : x >= 9223372036854775807.0 ? (u64)x : (u64)f2i(x); }
#ifndef FUSION_CUDA_SHIM
SI float h2f(u16 h) { float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h)); return f; }
SI u16 f2h(float f) { u16 h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f)); return h; }
#endif
$C$M$GSI float bf2f(u16 h) { return __uint_as_float((u32)h << 16); }
SI u16 f2bf(float f) { u32 b = __float_as_uint(f); return (b & 0x7fffffff) > 0x7f800000 ? (u16)((b >> 16) | 0x40) : (u16)((b + 0x7fff + ((b >> 16) & 1)) >> 16); }
#define UNARY(R, name, A, e) SI R name(A a) { R r; LANES(r.x[l] = e) return r; }
#define BINARY(R, name, A, e) SI R name(A a, A b) { R r; LANES(r.x[l] = e) return r; }
#define COMPARE(A) BINARY(vi, operator<, A, a.x[l] < b.x[l] ? -1 : 0) BINARY(vi, operator<=, A, a.x[l] <= b.x[l] ? -1 : 0) \
BINARY(vi, operator>, A, a.x[l] > b.x[l] ? -1 : 0) BINARY(vi, operator>=, A, a.x[l] >= b.x[l] ? -1 : 0) \
BINARY(vi, operator==, A, a.x[l] == b.x[l] ? -1 : 0) BINARY(vi, operator!=, A, a.x[l] != b.x[l] ? -1 : 0)
COMPARE(vf) COMPARE(vi)
BINARY(vf, operator+, vf, a.x[l] + b.x[l])
BINARY(vf, operator-, vf, a.x[l] - b.x[l])
BINARY(vf, operator*, vf, a.x[l] * b.x[l])
BINARY(vf, operator/, vf, a.x[l] / b.x[l])
UNARY(vf, operator-, vf, -a.x[l])
SI vf& operator+=(vf& a, vf b) { LANES(a.x[l] += b.x[l]) return a; }
SI vf& operator*=(vf& a, vf b) { LANES(a.x[l] *= b.x[l]) return a; }
BINARY(vi, operator&, vi, a.x[l] & b.x[l])
BINARY(vi, operator|, vi, a.x[l] | b.x[l])
BINARY(vi, operator^, vi, a.x[l] ^ b.x[l])
UNARY(vi, operator~, vi, ~a.x[l])
SI vi operator&(vi a, int b) { LANES(a.x[l] &= b) return a; }
SI vf vsel(vi c, vf a, vf b) { LANES(a.x[l] = c.x[l] ? a.x[l] : b.x[l]) return a; }
SI vi vsel(vi c, vi a, vi b) { LANES(a.x[l] = c.x[l] ? a.x[l] : b.x[l]) return a; }
UNARY(vf, bc, float, a)
UNARY(vi, bi, int, a)
SI vi iota() { vi r; LANES(r.x[l] = l) return r; }
#define ELEMENTS(T, S, V, load, store) SI V ld_##T(const S* p) { V v; LANES(v.x[l] = load) return v; } \
SI void st_##T(S* p, V v) { LANES(p[l] = store) }
ELEMENTS(f32, float, vf, p[l], v.x[l])
SI void st_first_f32(float* p, vf v, ix n) { LANES(if (l < n) p[l] = v.x[l]) }
SI void ld_inside_f32(vf* v, const float* p, ix from, ix to) { LANES(if (l >= from && l < to) v->x[l] = p[l]) }
SI vf ld_i64_f32(const i64* p) { vf v; LANES(v.x[l] = (float)p[l]) return v; }
SI void ld2_inside_f32(vf* v, const float* p, ix from, ix to) { LANES(if (2 * l >= from && 2 * l < to) v->x[l] = p[2 * l]) }
SI void ld3_inside_f32(vf* v, const float* p, ix from, ix to) { LANES(if (3 * l >= from && 3 * l < to) v->x[l] = p[3 * l]) }
SI void ldn_inside_f32(vf* v, const float* p, ix n, ix from, ix to) { LANES(if (n * l >= from && n * l < to) v->x[l] = p[n * l]) }
ELEMENTS(f16, u16, vf, h2f(p[l]), f2h(v.x[l]))
ELEMENTS(bf16, u16, vf, bf2f(p[l]), f2bf(v.x[l]))
ELEMENTS(i32, i32, vi, p[l], v.x[l])
ELEMENTS(i8, i8, vi, p[l], (i8)v.x[l])
ELEMENTS(u8, u8, vi, p[l], (u8)v.x[l])
ELEMENTS(i16, i16, vi, p[l], (i16)v.x[l])
ELEMENTS(u16, u16, vi, p[l], (u16)v.x[l])
ELEMENTS(bool, u8, vi, p[l] != 0 ? -1 : 0, (u8)(v.x[l] & 1))
UNARY(vf, round_f16, vf, h2f(f2h(a.x[l])))
UNARY(vf, round_bf16, vf, bf2f(f2bf(a.x[l])))
UNARY(vi, wrap_i8, vi, (i8)a.x[l])
UNARY(vi, wrap_u8, vi, (u8)a.x[l])
UNARY(vi, wrap_i16, vi, (i16)a.x[l])
UNARY(vi, wrap_u16, vi, (u16)a.x[l])
UNARY(vf, vi2f, vi, (float)a.x[l])
UNARY(vi, vf2i, vf, a.x[l] == a.x[l] ? (int)a.x[l] : 0)
#define vf2i_low vf2i
UNARY(vi, vf2i_any, vf, (i32)f2i(a.x[l]))
BINARY(vi, iadd, vi, (i32)((u32)a.x[l] + (u32)b.x[l]))
BINARY(vi, isub, vi, (i32)((u32)a.x[l] - (u32)b.x[l]))
BINARY(vi, imul, vi, (i32)((u32)a.x[l] * (u32)b.x[l]))
BINARY(vf, vmax, vf, smax_f32(a.x[l], b.x[l]))
BINARY(vf, vmin, vf, smin_f32(a.x[l], b.x[l]))
UNARY(vf, vsign, vf, ssign_f32(a.x[l]))
UNARY(vf, vabs, vf, fabsf(a.x[l]))
UNARY(vf, vsqrt, vf, sqrtf(a.x[l]))
UNARY(vf, vrsqrt, vf, 1.f / sqrtf(a.x[l]))
UNARY(vf, vfloor, vf, floorf(a.x[l]))
UNARY(vf, vceil, vf, ceilf(a.x[l]))
UNARY(vf, vround, vf, rintf(a.x[l]))
SI float rounded_f32(float x) { return __fadd_rn(x, -0.f); }
SI double rounded_f64(double x) { return __dadd_rn(x, -0.0); }
UNARY(vf, vrounded, vf, rounded_f32(a.x[l]))
UNARY(vf, vexp, vf, expf(a.x[l]))
#define vexp_no_overflow vexp
#define vexp_no_underflow vexp
UNARY(vf, vlog, vf, logf(a.x[l]))
UNARY(vf, verf, vf, erff(a.x[l]))
UNARY(vf, vtanh, vf, tanhf(a.x[l]))
UNARY(vf, vatan, vf, atanf(a.x[l]))
UNARY(vf, vsin, vf, sinf(a.x[l]))
UNARY(vf, vcos, vf, cosf(a.x[l]))
UNARY(vf, vasin, vf, asinf(a.x[l]))
UNARY(vf, vacos, vf, acosf(a.x[l]))
UNARY(vf, vtan, vf, tanf(a.x[l]))
UNARY(vf, vsinh, vf, sinhf(a.x[l]))
UNARY(vf, vcosh, vf, coshf(a.x[l]))
UNARY(vf, vasinh, vf, asinhf(a.x[l]))
UNARY(vf, vacosh, vf, acoshf(a.x[l]))
UNARY(vf, vatanh, vf, atanhf(a.x[l]))
BINARY(vf, vpow, vf, powf(a.x[l], b.x[l]))
BINARY(vf, vfmod, vf, fmodf(a.x[l], b.x[l]))
BINARY(vf, vmod, vf, mod_f32(a.x[l], b.x[l]))
BINARY(vf, amax_f32, vf, b.x[l] > a.x[l] || b.x[l] != b.x[l] ? b.x[l] : a.x[l])
BINARY(vf, amin_f32, vf, b.x[l] < a.x[l] || b.x[l] != b.x[l] ? b.x[l] : a.x[l])
BINARY(vi, amax_i32, vi, b.x[l] > a.x[l] ? b.x[l] : a.x[l])
BINARY(vi, amin_i32, vi, b.x[l] < a.x[l] ? b.x[l] : a.x[l])
SI float hadd_f32(vf v) { UNROLL for (int w = $L / 2; w > 0; w /= 2) UNROLL for (int l = 0; l < w; ++l) v.x[l] += v.x[l + w]; return v.x[0]; }
SI float hmax_f32(vf v) { LANES(v.x[0] = smax_f32(v.x[l], v.x[0])) return v.x[0]; }
SI float hmin_f32(vf v) { LANES(v.x[0] = smin_f32(v.x[l], v.x[0])) return v.x[0]; }
SI i32 hadd_i32(vi v) { u32 s = 0; LANES(s += (u32)v.x[l]) return (i32)s; }
SI i32 hmax_i32(vi v) { LANES(v.x[0] = v.x[l] > v.x[0] ? v.x[l] : v.x[0]) return v.x[0]; }
SI i32 hmin_i32(vi v) { LANES(v.x[0] = v.x[l] < v.x[0] ? v.x[l] : v.x[0]) return v.x[0]; }
)";

// Copies into shared memory that run while the threads compute: since sm_80, of 4, 8 and 16 bytes (PTX ISA, cp.async).
constexpr char kCopies[] = R"(#ifndef FUSION_CUDA_SHIM
#if __CUDA_ARCH__ >= 800
#define COPY(bytes) asm volatile("cp.async.ca.shared.global [%0], [%1], " #bytes ";" :: "r"((u32)__cvta_generic_to_shared(to)), "l"(from) : "memory");
SI void copies_arrive() { asm volatile("cp.async.wait_all;" ::: "memory"); }
#else
#define COPY(bytes) { struct alignas(bytes) T { char x[bytes]; }; *(T*)to = *(const T*)from; }
SI void copies_arrive() {}
#endif
#endif
SI void copy_f32(float* to, const float* from) { COPY(4) }
SI void copyv_f32(float* to, const float* from) { COPY($4) }
SI void copyv_f16(u16* to, const u16* from) { COPY($2) }
)";

// The grid barrier of a persistent kernel. The thread blocks wait for each other at one word of device memory, which is
// never cleared: the first thread block adds 2^31 - (blocks - 1), each other one adds 1, so that the top bit flips when
// the last of them arrives. Adding releases what the thread block has stored (its own barrier orders the stores of its
// threads before the addition), and reading acquires what the others have stored (PTX ISA, memory consistency model).
// cooperative_groups does the same, but in a header that NVRTC would have to find.
constexpr char kGridBarrier[] = R"(#ifndef FUSION_CUDA_SHIM
SI u32 come(u32* grid_barrier, u32 n) { u32 r; asm volatile("atom.add.acq_rel.gpu.u32 %0, [%1], %2;" : "=r"(r) : "l"(grid_barrier), "r"(n) : "memory"); return r; }
SI u32 see(const u32* grid_barrier) { u32 r; asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(r) : "l"(grid_barrier) : "memory"); return r; }
#endif
#define SYNC_DEVICE { __syncthreads(); if (threadIdx.x == 0) { const u32 before = come(grid_barrier, blockIdx.x == 0 ? 0x80000001u - gridDim.x : 1); \
while (((see(grid_barrier) ^ before) & 0x80000000u) == 0) {} } __syncthreads(); }
)";

// Fragments of matrices and their products by the tensor cores of sm_80 and later, 16 × 8 results of a warp (PTX ISA,
// mma.m16n8k16 and mma.m16n8k8). Thread g·4 + t holds
// - of a row operand, rows g and g + 8; of a column operand, column g;
// - of either operand, elements 2t, 2t + 1, 2t + 8, 2t + 9 along the depth for halves, and t and t + 4 for tf32;
// - of the results, columns 2t and 2t + 1 of rows g and g + 8.
constexpr char kFragments[] = R"(struct by_row_f16 { u32 x[4]; }; struct by_column_f16 { u32 x[2]; };
typedef by_row_f16 by_row_tf32; typedef by_column_f16 by_column_tf32;
#define FRAGMENT_ROW(e) ((int)threadIdx.x % 32 / 4 + (e) / 2 % 2 * 8)
#define FRAGMENT_COLUMN(e) ((int)threadIdx.x % 4 * 2 + (e) % 2 + (e) / 4 * 8)
#ifndef FUSION_CUDA_SHIM
#if __CUDA_ARCH__ >= 800
#define PAIR(p) (*(const u32*)(p))
SI u32 tf32(float f) { u32 r; asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(f)); return r; }
#define MULTIPLY(form) asm("mma.sync.aligned." form " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
: "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a.x[0]), "r"(a.x[1]), "r"(a.x[2]), "r"(a.x[3]), "r"(b.x[0]), "r"(b.x[1]));
#endif
#endif
#ifdef MULTIPLY
SI void ld_by_row_f16(by_row_f16* a, const u16* p, int pitch) { p += FRAGMENT_ROW(0) * pitch + FRAGMENT_COLUMN(0);
a->x[0] = PAIR(p); a->x[1] = PAIR(p + 8 * pitch); a->x[2] = PAIR(p + 8); a->x[3] = PAIR(p + 8 * pitch + 8); }
SI void ld_by_column_f16(by_column_f16* b, const u16* p, int pitch) { p += FRAGMENT_ROW(0) * pitch + FRAGMENT_COLUMN(0);
b->x[0] = PAIR(p); b->x[1] = PAIR(p + 8); }
SI void ld_by_row_tf32(by_row_tf32* a, const float* p, int pitch) { p += FRAGMENT_ROW(0) * pitch + threadIdx.x % 4;
a->x[0] = tf32(p[0]); a->x[1] = tf32(p[8 * pitch]); a->x[2] = tf32(p[4]); a->x[3] = tf32(p[8 * pitch + 4]); }
SI void ld_by_column_tf32(by_column_tf32* b, const float* p, int pitch) { p += FRAGMENT_ROW(0) * pitch + threadIdx.x % 4;
b->x[0] = tf32(p[0]); b->x[1] = tf32(p[4]); }
SI void multiply_f16(float (&d)[4], by_row_f16 a, by_column_f16 b) { MULTIPLY("m16n8k16.row.col.f32.f16.f16.f32") }
SI void multiply_tf32(float (&d)[4], by_row_tf32 a, by_column_tf32 b) { MULTIPLY("m16n8k8.row.col.f32.tf32.tf32.f32") }
#endif
)";

// Products of 64 × 64 results by four warps together, from halves that lie in shared memory (PTX ISA, wgmma.m64n64k16,
// of sm_90a alone). Each warp holds 16 rows of the results, as it holds fragments of 16 × 8.
//
// A matrix descriptor gives where the matrix begins and how far apart its layout blocks of 8 rows by 16 bytes lie,
// along the reduction (they follow each other) and along the rows, in units of 16 bytes; nothing is swizzled. A fence
// before a barrier makes the threads' stores visible to the tensor cores, and results are there after waiting for the
// products.
//
// One thread starts the copy of a whole run of memory (PTX ISA, cp.async.bulk). An mbarrier counts the runs of a
// K-slice and their bytes, and its phases alternate.
constexpr char kProductsFromMemory[] =
    R"(#define BEGIN_RUNS(count) __shared__ u64 arrivals; u32 arrived = 0; if (threadIdx.x == 0) expect_runs(&arrivals, count); __syncthreads();
#define COPY_RUN(to, from, bytes) if (threadIdx.x == 0) copy_run(to, from, bytes, &arrivals);
#define RUNS_ARRIVE await_runs(&arrivals, arrived++ % 2);
#define FRAGMENT_ROW_OF_FOUR(e) (FRAGMENT_ROW(e) + (int)threadIdx.x % 128 / 32 * 16)
SI u64 matrix_at(u32 address, int next_rows) { return (u64)(address >> 4 & 0x3fff) | (u64)(128 >> 4) << 16 | (u64)(next_rows >> 4 & 0x3fff) << 32; }
#ifndef FUSION_CUDA_SHIM
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
SI u32 shared_at(const void* p) { return (u32)__cvta_generic_to_shared(p); }
SI void expect_runs(u64* arrivals, int count) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\nfence.proxy.async.shared::cta;" :: "r"(shared_at(arrivals)), "r"(count) : "memory"); }
SI void copy_run(u16* to, const u16* from, int bytes, u64* arrivals) {
asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(shared_at(arrivals)), "r"(bytes) : "memory");
asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" :: "r"(shared_at(to)), "l"(from), "r"(bytes), "r"(shared_at(arrivals)) : "memory"); }
SI void await_runs(u64* arrivals, u32 phase) { u32 done = 0; while (done == 0) {
asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(done) : "r"(shared_at(arrivals)), "r"(phase) : "memory"); } }
#define MATRIX(p, next_rows) matrix_at((u32)__cvta_generic_to_shared(p), next_rows)
#define SLICES_WRITTEN asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#define HOLD(result) asm volatile("" : "+f"(result) :: "memory");
#define BEGIN_PRODUCTS asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#define END_PRODUCTS asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
SI void multiply_memory_f16(float (&d)[32], u64 a, u64 b) {
asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\nwgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 $D, %32, %33, p, 1, 1, 0, 0;\n}"
: $O : "l"(a), "l"(b) : "memory"); }
#endif
#endif
)";

std::string LibraryName(const std::string& function, bool f64) {
  return absl::StrCat(function == "round" ? "rint" : function, f64 ? "" : "f");
}

std::string ProductsFromMemory() {
  std::vector<std::string> registers, operands;
  for (int i = 0; i < 32; ++i) {
    registers.push_back(absl::StrCat("%", i));
    operands.push_back(absl::StrCat("\"+f\"(d[", i, "])"));
  }
  return absl::StrReplaceAll(kProductsFromMemory, {{"$D", absl::StrCat("{", absl::StrJoin(registers, ", "), "}")},
                                                   {"$O", absl::StrJoin(operands, ", ")}});
}

}  // namespace

std::string Prelude(int lanes) {
  std::string each;
  for (int l = 0; l < lanes; ++l) absl::StrAppend(&each, "{ enum { l = ", l, " }; __VA_ARGS__; } ");
  return absl::StrReplaceAll(
      kText, {{"$L", absl::StrCat(lanes)},
              {"$E", each},
              {"$M", kFragments},
              {"$G", ProductsFromMemory()},
              {"$S", kGridBarrier},
              {"$C", absl::StrReplaceAll(kCopies, {{"$4", absl::StrCat(4 * lanes)}, {"$2", absl::StrCat(2 * lanes)}})},
              {"$H", text::LibraryNames(true, LibraryName) + text::ScalarHelpers(true)}});
}

}  // namespace fusion::cuda
