#include "worker/measure/host_kernels.h"

#include <algorithm>

#include "absl/time/time.h"
#include "runtime/base/steady_clock.h"
#include "worker/measure/vector_loops.h"

namespace fusion {
namespace {

double SecondsOf(float (*kernel)(int64_t), int64_t iterations) {
  const int64_t start = SteadyNanos();
  float result = kernel(iterations);
  asm volatile("" : : "g"(result));
  const int64_t elapsed = SteadyNanos() - start;
  return static_cast<double>(elapsed > 0 ? elapsed : 1) * 1e-9;
}

const VectorLoops& LoopsOf(const InstructionSet& isa) {
#if defined(__x86_64__)
  return isa.vector_bytes == 64 ? kAvx512Loops : kAvx2Loops;
#elif defined(__aarch64__)
  (void)isa;
  return kNeonLoops;
#endif
}

}  // namespace

double FmaFlopsPerSecond(const InstructionSet& isa, int64_t iterations) {
  const int lanes = isa.vector_bytes / 4;
  const double flops = static_cast<double>(iterations) * 12 * lanes * 2;
  return flops / SecondsOf(LoopsOf(isa).fma, iterations);
}

double SpecialCyclesRatio(const InstructionSet& isa) {
  const VectorLoops& loops = LoopsOf(isa);
  double fma = 1, exp = 1;
  for (int round = 0; round < 5; ++round) {
    fma = std::min(fma, SecondsOf(loops.fma, 20000) / (20000.0 * 12));
    exp = std::min(exp, SecondsOf(loops.exp, 5000) / (5000.0 * 8));
  }
  return exp / fma;
}

double CopyBytesPerSecond(const InstructionSet& isa, const void* from, void* to, int64_t bytes, int64_t repeats) {
  const VectorLoops& loops = LoopsOf(isa);
  const int64_t start = SteadyNanos();
  const int64_t copied = bytes / 128 * 128;
  loops.copy(from, to, copied, repeats);
  const int64_t elapsed = SteadyNanos() - start;
  return static_cast<double>(copied) * 2 * static_cast<double>(repeats) * 1e9 /
         static_cast<double>(elapsed > 0 ? elapsed : 1);
}

}  // namespace fusion
