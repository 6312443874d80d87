#include "worker/measure/host_kernels.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "worker/measure/vector_loops.h"

namespace fusion {
namespace {

double SecondsOf(float (*kernel)(int64_t), int64_t iterations) {
  const int64_t start = absl::GetCurrentTimeNanos();
  float result = kernel(iterations);
  asm volatile("" : : "g"(result));
  const int64_t elapsed = absl::GetCurrentTimeNanos() - start;
  return static_cast<double>(elapsed > 0 ? elapsed : 1) * 1e-9;
}

const VectorLoops& LoopsOf(const HostIsa& isa) {
#if defined(__x86_64__)
  return isa.vector_bytes == 64 ? kAvx512Loops : kAvx2Loops;
#elif defined(__aarch64__)
  (void)isa;
  return kNeonLoops;
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
  return flops / SecondsOf(LoopsOf(isa).fma, iterations);
}

double SpecialCyclesRatio(const HostIsa& isa) {
  const VectorLoops& loops = LoopsOf(isa);
  double fma = 1, exp = 1;
  for (int round = 0; round < 5; ++round) {
    fma = std::min(fma, SecondsOf(loops.fma, 20000) / (20000.0 * 12));
    exp = std::min(exp, SecondsOf(loops.exp, 10000) / (10000.0 * 4));
  }
  return exp / fma;
}

double CopyBytesPerSecond(const HostIsa& isa, const void* from, void* to, int64_t bytes, int64_t repeats) {
  const VectorLoops& loops = LoopsOf(isa);
  const int64_t start = absl::GetCurrentTimeNanos();
  const int64_t copied = bytes / 128 * 128;
  loops.copy(from, to, copied, repeats);
  const int64_t elapsed = absl::GetCurrentTimeNanos() - start;
  return static_cast<double>(copied) * 2 * static_cast<double>(repeats) * 1e9 /
         static_cast<double>(elapsed > 0 ? elapsed : 1);
}

}  // namespace fusion
