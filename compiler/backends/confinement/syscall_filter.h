// A seccomp filter: the system calls that a process may make.
#ifndef FUSION_COMPILER_BACKENDS_CONFINEMENT_SYSCALL_FILTER_H_
#define FUSION_COMPILER_BACKENDS_CONFINEMENT_SYSCALL_FILTER_H_

#include "absl/status/status.h"

namespace fusion {

enum class Profile {
  kKernel,     // kernels on the CPU: threads, memory, reading files. No new process, no program, no writing by path
  kCompiler,   // a compilation of a model: also writes files. It talks over sockets that it has already
  kToolchain,  // a compiler or linker of the system: writes files and starts programs
  kDriver      // what a driver of a device needs, which may run a compiler: also controls devices
};

// Whether this kernel takes filters of programs without privileges.
bool HasSyscallFilters();

// Filters the calls of all threads of this process. A call that the profile does not list fails with EPERM, a call of
// another architecture ends the process. The process must not gain privileges.
absl::Status FilterSyscalls(Profile profile);

}  // namespace fusion

#endif  // FUSION_COMPILER_BACKENDS_CONFINEMENT_SYSCALL_FILTER_H_
