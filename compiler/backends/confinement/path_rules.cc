#include "compiler/backends/confinement/path_rules.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/errno_status.h"
#include "runtime/base/status_macros.h"

// Numbers and bits of Documentation/userspace-api/landlock.rst. Headers of Debian 12 know version 2 only, and the
// numbers of its calls are the same on all architectures.
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

namespace fusion {
namespace {

constexpr uint64_t kExecute = 1 << 0, kWriteFile = 1 << 1, kReadFile = 1 << 2, kReadFolder = 1 << 3,
                   kRemoveFolder = 1 << 4, kRemoveFile = 1 << 5, kMakeFolder = 1 << 7, kMakeFile = 1 << 8,
                   kMakeLink = 1 << 12, kRefer = 1 << 13, kTruncate = 1 << 14, kUseDevice = 1 << 15;
constexpr uint64_t kAllOfVersion1 = (1 << 13) - 1;
constexpr uint64_t kRead = kReadFile | kReadFolder;
constexpr uint64_t kWrite = kRead | kWriteFile | kRemoveFolder | kRemoveFile | kMakeFolder | kMakeFile | kMakeLink |
                            kRefer | kTruncate | kUseDevice;
// The rights that a rule for something other than a folder may name.
constexpr uint64_t kOfFiles = kExecute | kWriteFile | kReadFile | kTruncate | kUseDevice;
constexpr uint64_t kTcp = 3, kAbstractSocketsAndSignals = 3;

struct Ruleset {
  uint64_t paths, network, scopes;
};
// Without padding, as the kernel reads it.
struct __attribute__((packed)) PathRule {
  uint64_t allowed;
  int32_t parent;
};
constexpr uint32_t kAskVersion = 1, kRuleOfPath = 1;

uint64_t PathRightsOf(int version) {
  return kAllOfVersion1 | (version >= 2 ? kRefer : 0) | (version >= 3 ? kTruncate : 0) |
         (version >= 5 ? kUseDevice : 0);
}

absl::Status Allow(int ruleset, uint64_t rights, const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    const int fd = open(path.c_str(), O_PATH | O_CLOEXEC);
    if (fd < 0) continue;
    auto closer = absl::MakeCleanup([fd] { close(fd); });
    struct stat info;
    if (fstat(fd, &info) != 0) return ErrnoStatus(errno, absl::StrCat("cannot look at ", path));
    const PathRule rule = {S_ISDIR(info.st_mode) ? rights : rights & kOfFiles, fd};
    if (syscall(SYS_landlock_add_rule, ruleset, kRuleOfPath, &rule, 0) != 0) {
      return ErrnoStatus(errno, absl::StrCat("cannot restrict paths: no rule for ", path));
    }
  }
  return absl::OkStatus();
}

}  // namespace

int LandlockVersion() {
  const long version = syscall(SYS_landlock_create_ruleset, nullptr, 0, kAskVersion);
  return static_cast<int>(std::max(0L, version));
}

absl::Status RestrictPaths(const PathRules& rules) {
  const int version = LandlockVersion();
  const uint64_t all = PathRightsOf(version);
  const Ruleset handled = {all, version >= 4 ? kTcp : 0, version >= 6 ? kAbstractSocketsAndSignals : 0};
  const size_t size_bytes = version >= 6 ? 24 : version >= 4 ? 16 : 8;
  const int ruleset = static_cast<int>(syscall(SYS_landlock_create_ruleset, &handled, size_bytes, 0));
  if (ruleset < 0) return ErrnoStatus(errno, "cannot restrict paths");
  auto closer = absl::MakeCleanup([ruleset] { close(ruleset); });
  RETURN_IF_ERROR(Allow(ruleset, all & kRead, rules.read));
  RETURN_IF_ERROR(Allow(ruleset, all & (kRead | kExecute), rules.execute));
  RETURN_IF_ERROR(Allow(ruleset, all & kWrite, rules.write));
  if (syscall(SYS_landlock_restrict_self, ruleset, 0) != 0) return ErrnoStatus(errno, "cannot restrict paths");
  return absl::OkStatus();
}

}  // namespace fusion
