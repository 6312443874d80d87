// The text at the beginning of every generated CPU file: vector types of the device's width, loads, broadcasts,
// accurate vector functions (exp, log, tanh, erf and others), NaN-propagating maxima, half-precision conversions. It
// includes no header, because parsing one would cost more than compiling a kernel.
#ifndef FUSION_COMPILER_BACKENDS_CPU_PRELUDE_H_
#define FUSION_COMPILER_BACKENDS_CPU_PRELUDE_H_

#include <string>

namespace fusion::cpu {

// `lanes`: f32 elements of a vector (16 AVX-512, 8 AVX2, 4 NEON).
std::string Prelude(int lanes);

}  // namespace fusion::cpu

#endif  // FUSION_COMPILER_BACKENDS_CPU_PRELUDE_H_
