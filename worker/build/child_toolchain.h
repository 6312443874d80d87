// ChildToolchain: a compiler that is a library, in a process of its own for each call of Build (fusion-build).
#ifndef FUSION_WORKER_BUILD_CHILD_TOOLCHAIN_H_
#define FUSION_WORKER_BUILD_CHILD_TOOLCHAIN_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "compiler/backends/local_toolchain.h"

namespace fusion {

struct ChildToolchainOptions {
  std::string program;      // path of fusion-build
  std::string kind;         // of the units: "opencl", "cuda"
  int jobs = 0;             // units that are built at once, where the compiler can; 0: one for each core
  bool confined = true;     // false: the process may do what this one may
  bool namespaces = false;  // the process has its own, if its kind can (ConfineBuild)
  std::string temp_folder;  // for work folders; empty: $TMPDIR or /tmp
  absl::Duration deadline = absl::Minutes(30);      // of a Build, whatever the task allows
  absl::Duration ask_deadline = absl::Seconds(60);  // of the question for the version, which loads the driver
};

// Asks the compiler for its version, in a process, too: a driver that hangs or crashes then costs this call only. Fails
// with FAILED_PRECONDITION and the reason where there is no such compiler, or where it does not answer.
//
// Build fails with INTERNAL, and the last output of the process, when the process dies or exceeds the deadline; with
// CANCELLED soon after `cancelled` says so, whatever the compiler is doing; with UNAVAILABLE when the compiler is
// another one than at first; and otherwise as the toolchain of the kind does. It leaves nothing in the temporary
// folder, and no process of its group.
absl::StatusOr<std::unique_ptr<LocalToolchain>> MakeChildToolchain(ChildToolchainOptions options);

}  // namespace fusion

#endif  // FUSION_WORKER_BUILD_CHILD_TOOLCHAIN_H_
