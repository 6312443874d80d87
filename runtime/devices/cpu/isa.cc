#include "runtime/devices/cpu/isa.h"

#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

bool Supports(const std::string& isa) {
#if defined(__x86_64__)
  // These features identify x86-64-v3 and x86-64-v4; no CPU has them without the other features of the level.
  if (isa == "avx2") {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  }
  if (isa == "avx512") {
    return Supports("avx2") && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
  }
  if (isa == "avx512vnni") return Supports("avx512") && __builtin_cpu_supports("avx512vnni");
  return false;
#elif defined(__aarch64__)
  return isa == "neon";
#else
  return false;
#endif
}

}  // namespace

std::string HostIsa() {
  for (const char* isa : {"avx512vnni", "avx512", "avx2", "neon"}) {
    if (Supports(isa)) return isa;
  }
  return "";
}

absl::StatusOr<InstructionSet> HostInstructionSet() {
  const std::string host = HostIsa();
  for (const InstructionSet& set : {InstructionSet{"avx512vnni", "x86-64-v4+avx512vnni", 64, 32},
                                    InstructionSet{"avx512", "x86-64-v4", 64, 32},
                                    InstructionSet{"avx2", "x86-64-v3", 32, 16},
                                    InstructionSet{"neon", "armv8-a", 16, 32}}) {
    if (set.isa == host) return set;
  }
  return absl::UnimplementedError("kernels for target cpu need AVX2, FMA and BMI2 (x86-64) or aarch64");
}

absl::Status CheckIsa(const std::string& isa) {
  if (Supports(isa)) return absl::OkStatus();
  const std::string host = HostIsa();
  return absl::FailedPreconditionError(absl::StrCat("the bundle's kernels need '", isa, "', this CPU has ",
                                                    host.empty() ? "no known vector instructions" : host,
                                                    "; compile the model for this machine"));
}

}  // namespace fusion
