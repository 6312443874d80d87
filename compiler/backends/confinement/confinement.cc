#include "compiler/backends/confinement/confinement.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "compiler/backends/confinement/namespaces.h"
#include "compiler/backends/confinement/path_rules.h"
#include "compiler/backends/confinement/syscall_filter.h"
#include "runtime/base/errno_status.h"
#include "runtime/base/status_macros.h"

namespace fusion {

std::string ConfinementLevel::InWords() const {
  if (!seccomp) return "none";
  if (landlock == 0) return namespaces ? "seccomp, namespaces" : "seccomp without Landlock";
  return absl::StrCat("seccomp, Landlock ", landlock, namespaces ? ", namespaces" : "");
}

ConfinementLevel LevelOfThisMachine() { return {HasSyscallFilters(), LandlockVersion(), CheckNamespaces().ok()}; }

absl::Status CheckConfinement() {
  if (HasSyscallFilters()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "this machine's kernel takes no seccomp filters, so that the code of others cannot be confined; where all who "
      "submit models may do everything that this user may, say --unconfined");
}

absl::Status ConfineThisProcess(Profile profile, const PathRules& rules, Namespaces namespaces) {
  RETURN_IF_ERROR(CheckConfinement());
  // First: the others refuse the calls for it, and hold in the fork only.
  if (namespaces == Namespaces::kOwn) RETURN_IF_ERROR(EnterNamespaces(rules));
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return ErrnoStatus(errno, "cannot refuse new privileges");
  const struct rlimit none = {0, 0};
  if (setrlimit(RLIMIT_CORE, &none) != 0) return ErrnoStatus(errno, "cannot refuse core dumps");
  if (LandlockVersion() > 0) RETURN_IF_ERROR(RestrictPaths(rules));
  return FilterSyscalls(profile);  // last: it refuses Landlock's calls
}

std::vector<std::string> SystemPaths() {
  return {"/usr",
          "/bin",
          "/sbin",
          "/lib",
          "/lib32",
          "/lib64",
          "/libx32",
          "/opt",
          "/etc/alternatives",
          "/etc/ld.so.cache",
          "/etc/ssl/openssl.cnf",
          "/etc/os-release",
          "/etc/lsb-release",
          "/etc/debian_version"};
}

std::vector<std::string> MachinePaths() {
  return {"/proc/self", "/proc/cpuinfo", "/proc/meminfo",      "/proc/sys/vm/overcommit_memory",
          "/dev/null",  "/dev/urandom",  "/sys/devices/system"};
}

}  // namespace fusion
