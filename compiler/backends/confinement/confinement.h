// Confinement of a process that runs code of others: generated kernels, compilers on generated text, the compiler of
// models on models. The process confines itself, or fusion-confine does it before it becomes the program. There is no
// way back, and everything that the process starts is confined as well.
//
// Two mechanisms of Linux, because neither suffices alone. A seccomp filter lets known system calls pass and refuses
// all others with EPERM: no profile makes a socket, since a path rule does not keep a process from connecting to a
// Unix socket. Landlock decides by path what may be opened, on kernels that have it. Decision 0053 has the reasons.
// Where the machine allows namespaces, a process can have its own as well (decision 0082).
#ifndef FUSION_COMPILER_BACKENDS_CONFINEMENT_CONFINEMENT_H_
#define FUSION_COMPILER_BACKENDS_CONFINEMENT_CONFINEMENT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/backends/confinement/path_rules.h"
#include "compiler/backends/confinement/syscall_filter.h"

namespace fusion {

// The level that this machine's kernel offers.
struct ConfinementLevel {
  bool seccomp = false;
  int landlock = 0;  // its version; 0: paths cannot be restricted by it
  bool namespaces = false;

  // "seccomp, Landlock 7, namespaces", "seccomp, Landlock 7", "seccomp, namespaces", "seccomp without Landlock",
  // "none".
  std::string InWords() const;
};
// Starts a process to find out about namespaces, which takes some milliseconds.
ConfinementLevel LevelOfThisMachine();

// OK where kernels of others can be confined. FAILED_PRECONDITION says what is missing and what to do.
absl::Status CheckConfinement();

enum class Namespaces { kShared, kOwn };

// Confines the calling process, which has one thread. Without Landlock the paths stay open, and the call succeeds.
// Fails with FAILED_PRECONDITION where there is no seccomp. With kOwn the call returns in a fork of the process, with
// the same paths in view, and the process itself ends as the fork does (EnterNamespaces).
absl::Status ConfineThisProcess(Profile profile, const PathRules& rules, Namespaces namespaces = Namespaces::kShared);

// The folders of the system's programs and libraries, and the files in /etc that a loader and a compiler read.
std::vector<std::string> SystemPaths();
// The files in which any program reads about itself and the machine, apart from SystemPaths.
std::vector<std::string> MachinePaths();

}  // namespace fusion

#endif  // FUSION_COMPILER_BACKENDS_CONFINEMENT_CONFINEMENT_H_
