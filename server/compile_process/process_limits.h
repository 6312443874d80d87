// Limits that the process which compiles puts on itself before it reads the model.
#ifndef FUSION_SERVER_COMPILE_PROCESS_PROCESS_LIMITS_H_
#define FUSION_SERVER_COMPILE_PROCESS_PROCESS_LIMITS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/backends/confinement/confinement.h"

namespace fusion {

inline constexpr int kExitOutOfMemory = 86;

// Ends this process with its parent, writes no core dump, gains no rights by starting programs, and lets the machine
// that runs out of memory end this process before any other. Fails with UNAVAILABLE if `parent` is gone already.
absl::Status TieToParent(pid_t parent);

// Limits what is writable and private by RLIMIT_DATA; address space that is only reserved, and mapped files, are free.
// An allocation beyond ends the process with kExitOutOfMemory.
absl::Status LimitMemory(int64_t size_bytes);

// The bytes that a compilation may allocate, if that many run at once: three quarters of what the machine, or the
// container that this process runs in, has, shared among them, and at least 1 GiB.
int64_t DefaultMemoryLimit(int compilations);

// From here on this process opens nothing but what lies below these folders and the system's libraries, makes no
// socket, and starts no process and no program; threads and the sockets that it has stay. For a process with one
// thread. With kOwn it returns in a fork (ConfineThisProcess).
absl::Status ConfineToFolders(const std::vector<std::string>& folders, Namespaces namespaces = Namespaces::kShared);

}  // namespace fusion

#endif  // FUSION_SERVER_COMPILE_PROCESS_PROCESS_LIMITS_H_
