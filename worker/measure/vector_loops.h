// The loops of host_kernels.h: one file per instruction set, compiled for that set only. These files may include
// nothing else: an inline function of the standard library, compiled for AVX-512, could be the copy that the linker
// keeps.
#ifndef FUSION_WORKER_MEASURE_VECTOR_LOOPS_H_
#define FUSION_WORKER_MEASURE_VECTOR_LOOPS_H_

#include <stdint.h>

namespace fusion {

struct VectorLoops {
  float (*fma)(int64_t iterations);
  float (*exp)(int64_t iterations);
  void (*copy)(const void* from, void* to, int64_t bytes, int64_t repeats);
};
extern const VectorLoops kAvx512Loops, kAvx2Loops, kNeonLoops;  // only those of this architecture are defined

}  // namespace fusion

// For the files that define the loops. FUSION_REG is the constraint of a vector register.
// Twelve chains cover a latency of 4 on two or three ports. They are named variables, because an array would live in
// memory. The empty asm keeps each in a register and prevents removal of the loop.
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

// exp(-a), which stays between 0 and 1, by the polynomial of the kernels (compiler/backends/cpu/prelude.cc).
#define FUSION_EXP_STEP(V, I, a)                                                          \
  {                                                                                       \
    V y = a < V{} - 104.f ? V{} - 104.f : a;                                              \
    y = y > V{} + 89.f ? V{} + 89.f : y;                                                  \
    const V n = y * (V{} - 1.44269504f) + (V{} + 12582912.f), m = n - (V{} + 12582912.f); \
    const V r = m * (V{} - 0.693359375f) - y, s = m * (V{} + 2.12194440e-4f) + r;         \
    V p = (V{} + .00831247971f) * s + (V{} + .0418905531f);                               \
    p = (p * s + (V{} + .166671163f)) * s + (V{} + .499992288f);                          \
    p = (p * s + (V{} + 1.f)) * s + (V{} + 1.f);                                          \
    a = (V)((I)p + ((I)n << 23));                                                         \
  }
// Eight independent chains cover the latency of such a function.
#define FUSION_EXP_CHAINS(V)                                                                                       \
  typedef int I __attribute__((vector_size(sizeof(V))));                                                           \
  V a0 = V{} + 0.3f, a1 = a0, a2 = a0, a3 = a0, a4 = a0, a5 = a0, a6 = a0, a7 = a0;                                \
  for (int64_t n = 0; n < iterations; ++n) {                                                                       \
    FUSION_EXP_STEP(V, I, a0)                                                                                      \
    FUSION_EXP_STEP(V, I, a1) FUSION_EXP_STEP(V, I, a2) FUSION_EXP_STEP(V, I, a3) FUSION_EXP_STEP(V, I, a4)        \
        FUSION_EXP_STEP(V, I, a5) FUSION_EXP_STEP(V, I, a6) FUSION_EXP_STEP(V, I, a7) FUSION_PIN4(a0, a1, a2, a3); \
    FUSION_PIN4(a4, a5, a6, a7);                                                                                   \
  }                                                                                                                \
  V sum = a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7;                                                                   \
  return sum[0];

// The empty asm keeps the compiler from calling memcpy, whose streaming stores would be another measurement.
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

#define FUSION_VECTOR_LOOPS(NAME, V)                                                       \
  namespace {                                                                              \
  float Fma(int64_t iterations) { FUSION_FMA_CHAINS(V) }                                   \
  float Exp(int64_t iterations) { FUSION_EXP_CHAINS(V) }                                   \
  void Copy(const void* from, void* to, int64_t bytes, int64_t repeats) { FUSION_COPY(V) } \
  }                                                                                        \
  extern const VectorLoops NAME;                                                           \
  const VectorLoops NAME = {Fma, Exp, Copy};

#endif  // FUSION_WORKER_MEASURE_VECTOR_LOOPS_H_
