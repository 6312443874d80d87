// Instruction sets by the names a manifest uses: "avx512vnni", "avx512", "avx2", "neon".
#ifndef FUSION_RUNTIME_DEVICES_CPU_ISA_H_
#define FUSION_RUNTIME_DEVICES_CPU_ISA_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fusion {

// Returns the widest instruction set that this CPU and its operating system support, or "" if they support none of
// these.
std::string HostIsa();

// The part of an instruction set that generated kernels use.
struct InstructionSet {
  std::string isa;    // avx512vnni | avx512 | avx2 | neon
  std::string march;  // the compilers' name for it: x86-64-v4[+avx512vnni] | x86-64-v3 | armv8-a
  int vector_bytes = 0;
  int vector_registers = 0;
};
// Returns the instruction set of HostIsa(). Fails with UNIMPLEMENTED if that is empty.
absl::StatusOr<InstructionSet> HostInstructionSet();

// Fails with FAILED_PRECONDITION if code built for `isa` would not run here; the message says what to do.
absl::Status CheckIsa(const std::string& isa);

}  // namespace fusion

#endif  // FUSION_RUNTIME_DEVICES_CPU_ISA_H_
