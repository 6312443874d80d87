// Instruction sets by the names a manifest uses: "avx512vnni", "avx512", "avx2", "neon".
#ifndef FUSION_RUNTIME_DEVICES_CPU_ISA_H_
#define FUSION_RUNTIME_DEVICES_CPU_ISA_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fusion {

// The widest that this CPU and its operating system support; "" if none of the three.
std::string HostIsa();

// What generated kernels use of an instruction set.
struct InstructionSet {
  std::string isa;    // avx512vnni | avx512 | avx2 | neon
  std::string march;  // what compilers call it: x86-64-v4[+avx512vnni] | x86-64-v3 | armv8-a
  int vector_bytes = 0;
  int vector_registers = 0;
};
// The one of HostIsa(). UNIMPLEMENTED where that is empty.
absl::StatusOr<InstructionSet> HostInstructionSet();

// FAILED_PRECONDITION if code built for `isa` would not run here, with what to do.
absl::Status CheckIsa(const std::string& isa);

}  // namespace fusion

#endif  // FUSION_RUNTIME_DEVICES_CPU_ISA_H_
