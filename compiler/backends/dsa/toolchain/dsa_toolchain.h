// The toolchain of simulated accelerators. There is nothing to translate: building a program is checking it.
#ifndef FUSION_COMPILER_BACKENDS_DSA_TOOLCHAIN_DSA_TOOLCHAIN_H_
#define FUSION_COMPILER_BACKENDS_DSA_TOOLCHAIN_DSA_TOOLCHAIN_H_

#include <memory>

#include "compiler/backends/local_toolchain.h"

namespace fusion {

inline constexpr char kDsaToolchain[] = "dsa checker 1";

// Builds units whose `march` names a stored machine: the binary is the program's text. A program that does not fit its
// buffers, reads what was never written, or races is refused with INVALID_ARGUMENT, which names the instruction.
std::unique_ptr<LocalToolchain> MakeDsaToolchain();

}  // namespace fusion

#endif  // FUSION_COMPILER_BACKENDS_DSA_TOOLCHAIN_DSA_TOOLCHAIN_H_
