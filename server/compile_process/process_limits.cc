#include "server/compile_process/process_limits.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <new>
#include <string>
#include <utility>

#include "compiler/backends/confinement/confinement.h"
#include "runtime/base/core_dumps.h"
#include "runtime/base/errno_status.h"

namespace fusion {
namespace {

// Runs where nothing can be allocated.
void EndForLackOfMemory() {
  static constexpr char kWords[] = "an allocation failed at the limit of memory\n";
  [[maybe_unused]] const ssize_t ignored = write(STDERR_FILENO, kWords, sizeof kWords - 1);
  _exit(kExitOutOfMemory);
}

// The number in a file of one number, or `otherwise` ("max", or no such file).
int64_t NumberIn(const std::string& path, int64_t otherwise) {
  std::ifstream file(path);
  int64_t number = 0;
  return file >> number && number > 0 ? number : otherwise;
}

}  // namespace

absl::Status TieToParent(pid_t parent) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return ErrnoStatus(errno, "cannot end with the parent");
  if (getppid() != parent) return absl::UnavailableError("the parent is gone");
  std::ofstream("/proc/self/oom_score_adj") << 1000;  // where there is no such file, the machine chooses
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return RefuseCoreDumps();
}

absl::Status LimitMemory(int64_t size_bytes) {
  std::set_new_handler(EndForLackOfMemory);
  const struct rlimit bound = {static_cast<rlim_t>(size_bytes), static_cast<rlim_t>(size_bytes)};
  if (setrlimit(RLIMIT_DATA, &bound) != 0) return ErrnoStatus(errno, "cannot limit memory");
  return absl::OkStatus();
}

absl::Status ConfineToFolders(const std::vector<std::string>& folders, Namespaces namespaces) {
  PathRules rules;
  rules.read = MachinePaths();
  for (std::string& path : SystemPaths()) rules.read.push_back(std::move(path));
  rules.write = folders;
  rules.write.emplace_back("/dev/null");
  return ConfineThisProcess(Profile::kCompiler, rules, namespaces);
}

int64_t DefaultMemoryLimit(int compilations) {
  int64_t machine = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  // A container sees its own group as the root of the tree.
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    machine = std::min(machine, NumberIn(path, machine));
  }
  return std::max(int64_t{1} << 30, machine / 4 * 3 / std::max(1, compilations));
}

}  // namespace fusion
