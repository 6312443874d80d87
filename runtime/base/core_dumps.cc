#include "runtime/base/core_dumps.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include <cerrno>

#include "runtime/base/errno_status.h"

namespace fusion {

absl::Status RefuseCoreDumps() {
  prctl(PR_SET_DUMPABLE, 0);  // a limit of 0 does not hold where dumps go to a program
  const struct rlimit none = {0, 0};
  if (setrlimit(RLIMIT_CORE, &none) != 0) return ErrnoStatus(errno, "cannot refuse core dumps");
  return absl::OkStatus();
}

}  // namespace fusion
