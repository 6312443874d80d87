#include "worker/measure/host_kernels.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace fusion {
namespace {

typedef float V4 __attribute__((vector_size(16)));
typedef float V8 __attribute__((vector_size(32)));
typedef float V16 __attribute__((vector_size(64)));

// Twelve chains cover latency 4 on two or three ports. Named variables, because an array would live in memory; the
// empty asm keeps each in a register and the loop in place.
#define FUSION_PIN4(a, b, c, d) \
  asm volatile("" : "+" FUSION_REG(a), "+" FUSION_REG(b), "+" FUSION_REG(c), "+" FUSION_REG(d))
#define FUSION_FMA_CHAINS(V)                                                \
  V x = V{} + 0.999f, y = V{} + 1e-3f;                                      \
  V a0 = y, a1 = y, a2 = y, a3 = y, a4 = y, a5 = y;                         \
  V a6 = y, a7 = y, a8 = y, a9 = y, a10 = y, a11 = y;                       \
  for (int64_t n = 0; n < iterations; ++n) {                                \
    a0 = a0 * x + y, a1 = a1 * x + y, a2 = a2 * x + y, a3 = a3 * x + y;     \
    a4 = a4 * x + y, a5 = a5 * x + y, a6 = a6 * x + y, a7 = a7 * x + y;     \
    a8 = a8 * x + y, a9 = a9 * x + y, a10 = a10 * x + y, a11 = a11 * x + y; \
    FUSION_PIN4(a0, a1, a2, a3);                                            \
    FUSION_PIN4(a4, a5, a6, a7);                                            \
    FUSION_PIN4(a8, a9, a10, a11);                                          \
  }                                                                         \
  V sum = a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11;      \
  return sum[0];

#define FUSION_EXP_STEP(V, a)                                            \
  {                                                                      \
    V p = c;                                                             \
    _Pragma("GCC unroll 10") for (int k = 0; k < 10; ++k) p = p * a + c; \
    a = one / (one + p);                                                 \
  }
#define FUSION_EXP_CHAINS(V)                                                                          \
  V c = V{} + 0.3f, one = V{} + 1.0f, a0 = c, a1 = c, a2 = c, a3 = c;                                 \
  for (int64_t n = 0; n < iterations; ++n) {                                                          \
    FUSION_EXP_STEP(V, a0)                                                                            \
    FUSION_EXP_STEP(V, a1) FUSION_EXP_STEP(V, a2) FUSION_EXP_STEP(V, a3) FUSION_PIN4(a0, a1, a2, a3); \
  }                                                                                                   \
  V sum = a0 + a1 + a2 + a3;                                                                          \
  return sum[0];

// The empty asm keeps the compiler from calling memcpy, whose streaming stores are another measurement.
#define FUSION_COPY(V)                                                \
  for (int64_t r = 0; r < repeats; ++r) {                             \
    const V* source = static_cast<const V*>(from);                    \
    V* target = static_cast<V*>(to);                                  \
    for (const V* end = source + bytes / sizeof(V); source != end;) { \
      V a = source[0], b = source[1];                                 \
      asm volatile("" : "+" FUSION_REG(a), "+" FUSION_REG(b));        \
      target[0] = a;                                                  \
      target[1] = b;                                                  \
      source += 2;                                                    \
      target += 2;                                                    \
    }                                                                 \
  }

#if defined(__x86_64__)
#define FUSION_REG(v) "v"(v)
__attribute__((target("avx512f,prefer-vector-width=512"))) void CopyAvx512(const void* from, void* to, int64_t bytes,
                                                                           int64_t repeats) {
  FUSION_COPY(V16)
}
__attribute__((target("avx512f,prefer-vector-width=512"))) float FmaAvx512(int64_t iterations) {
  FUSION_FMA_CHAINS(V16)
}
__attribute__((target("avx512f,prefer-vector-width=512"))) float ExpAvx512(int64_t iterations) {
  FUSION_EXP_CHAINS(V16)
}
#undef FUSION_REG
#define FUSION_REG(v) "x"(v)
__attribute__((target("avx2,fma"))) void CopyAvx2(const void* from, void* to, int64_t bytes, int64_t repeats) {
  FUSION_COPY(V8)
}
__attribute__((target("avx2,fma"))) float FmaAvx2(int64_t iterations) { FUSION_FMA_CHAINS(V8) }
__attribute__((target("avx2,fma"))) float ExpAvx2(int64_t iterations) { FUSION_EXP_CHAINS(V8) }
#undef FUSION_REG
#endif
#if defined(__aarch64__)
#define FUSION_REG(v) "w"(v)
void CopyNeon(const void* from, void* to, int64_t bytes, int64_t repeats) { FUSION_COPY(V4) }
float FmaNeon(int64_t iterations) { FUSION_FMA_CHAINS(V4) }
float ExpNeon(int64_t iterations) { FUSION_EXP_CHAINS(V4) }
#undef FUSION_REG
#endif

using Kernel = float (*)(int64_t);

double SecondsOf(Kernel kernel, int64_t iterations) {
  const int64_t start = absl::GetCurrentTimeNanos();
  float result = kernel(iterations);
  asm volatile("" : : "g"(result));
  const int64_t elapsed = absl::GetCurrentTimeNanos() - start;
  return static_cast<double>(elapsed > 0 ? elapsed : 1) * 1e-9;
}

struct Kernels {
  Kernel fma;
  Kernel exp;
  void (*copy)(const void* from, void* to, int64_t bytes, int64_t repeats);
};

Kernels KernelsOf(const HostIsa& isa) {
#if defined(__x86_64__)
  if (isa.vector_bytes == 64) return {FmaAvx512, ExpAvx512, CopyAvx512};
  return {FmaAvx2, ExpAvx2, CopyAvx2};
#elif defined(__aarch64__)
  (void)isa;
  return {FmaNeon, ExpNeon, CopyNeon};
#endif
}

}  // namespace

absl::StatusOr<HostIsa> DetectHostIsa() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512cd");
  if (avx512 && __builtin_cpu_supports("avx512vnni")) return HostIsa{"avx512vnni", "x86-64-v4+avx512vnni", 64, 32};
  if (avx512) return HostIsa{"avx512", "x86-64-v4", 64, 32};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return HostIsa{"avx2", "x86-64-v3", 32, 16};
  return absl::UnimplementedError("this processor has no AVX2; kernels for target cpu need AVX2 and FMA");
#elif defined(__aarch64__)
  return HostIsa{"neon", "armv8-a", 16, 32};
#else
  return absl::UnimplementedError("kernels for target cpu exist for x86-64 and aarch64 only");
#endif
}

double FmaFlopsPerSecond(const HostIsa& isa, int64_t iterations) {
  const int lanes = isa.vector_bytes / 4;
  const double flops = static_cast<double>(iterations) * 12 * lanes * 2;
  return flops / SecondsOf(KernelsOf(isa).fma, iterations);
}

double SpecialCyclesRatio(const HostIsa& isa) {
  const Kernels kernels = KernelsOf(isa);
  double fma = 1, exp = 1;
  for (int round = 0; round < 5; ++round) {
    fma = std::min(fma, SecondsOf(kernels.fma, 20000) / (20000.0 * 12));
    exp = std::min(exp, SecondsOf(kernels.exp, 10000) / (10000.0 * 4));
  }
  return exp / fma;
}

double CopyBytesPerSecond(const HostIsa& isa, const void* from, void* to, int64_t bytes, int64_t repeats) {
  const Kernels kernels = KernelsOf(isa);
  const int64_t start = absl::GetCurrentTimeNanos();
  const int64_t copied = bytes / 128 * 128;
  kernels.copy(from, to, copied, repeats);
  const int64_t elapsed = absl::GetCurrentTimeNanos() - start;
  return static_cast<double>(copied) * 2 * static_cast<double>(repeats) * 1e9 /
         static_cast<double>(elapsed > 0 ? elapsed : 1);
}

}  // namespace fusion
