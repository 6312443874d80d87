// Namespaces of a process's own: it sees no other process, no network, and of the file system only the paths that it
// may use. Decision 0082 says why this is code of ours and not bubblewrap.
#ifndef FUSION_COMPILER_BACKENDS_CONFINEMENT_NAMESPACES_H_
#define FUSION_COMPILER_BACKENDS_CONFINEMENT_NAMESPACES_H_

#include "absl/status/status.h"
#include "compiler/backends/confinement/path_rules.h"

namespace fusion {

// OK where this machine lets a process without privileges have namespaces: a process that is forked for the question
// enters them. FAILED_PRECONDITION says which step is refused (containers and hardened systems refuse the first).
absl::Status CheckNamespaces();

// Returns in a fork of the calling process, which has one thread. The fork has user, mount, process, network, IPC and
// host name namespaces of its own, no capabilities and all descriptors. Its file system has the paths of `rules`, what
// is not in `rules.write` read-only and what is without programs; /proc is of its own where the machine allows that. It
// is in the caller's process group and control group, has its limits, and ends with it.
//
// The caller itself never returns: it waits without descriptors, ends all that the fork has started when the fork ends,
// and then ends in the same way, with the same exit code or by the same signal. The time and memory that the fork used
// are in its usage. Fails in the caller where there are no namespaces, and in the fork where a later step is refused.
absl::Status EnterNamespaces(const PathRules& rules);

}  // namespace fusion

#endif  // FUSION_COMPILER_BACKENDS_CONFINEMENT_NAMESPACES_H_
