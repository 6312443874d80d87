// Instruction sets by the names a manifest uses: "avx512vnni", "avx512", "avx2", "neon".
#ifndef FUSION_RUNTIME_DEVICES_CPU_ISA_H_
#define FUSION_RUNTIME_DEVICES_CPU_ISA_H_

#include <string>

#include "absl/status/status.h"

namespace fusion {

// The widest that this CPU and its operating system support; "" if none of the three.
std::string HostIsa();

// FAILED_PRECONDITION if code built for `isa` would not run here, with what to do.
absl::Status CheckIsa(const std::string& isa);

}  // namespace fusion

#endif  // FUSION_RUNTIME_DEVICES_CPU_ISA_H_
