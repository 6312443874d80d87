// Landlock: which paths a thread, and every process that it starts, may open.
#ifndef FUSION_COMPILER_BACKENDS_CONFINEMENT_PATH_RULES_H_
#define FUSION_COMPILER_BACKENDS_CONFINEMENT_PATH_RULES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace fusion {

// The paths that a process may use. A folder stands for all below it; paths that do not exist are left out.
struct PathRules {
  std::vector<std::string> read = {};
  std::vector<std::string> execute = {};  // and read
  std::vector<std::string> write = {};    // and read, create, remove
};

// 0: this kernel has no Landlock, or it is switched off.
int LandlockVersion();

// Restricts the calling thread; it must be the process's only one, and must not gain privileges. From version 4 on
// Landlock also refuses TCP, from version 6 on abstract Unix sockets and signals to processes that are not restricted
// with this one. Whatever the version, such processes cannot be traced, nor their memory and environment be read.
absl::Status RestrictPaths(const PathRules& rules);

}  // namespace fusion

#endif  // FUSION_COMPILER_BACKENDS_CONFINEMENT_PATH_RULES_H_
