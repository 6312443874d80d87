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
