#include "server/compile_process/control_group.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/errno_status.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

// The files of a group are the kernel's, and exist: nothing is created.
absl::Status Write(const std::string& file, const std::string& text) {
  const int fd = open(file.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot open ", file));
  auto closer = absl::MakeCleanup([fd] { close(fd); });
  if (write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return ErrnoStatus(errno, absl::StrCat("cannot write '", text, "' to ", file));
  }
  return absl::OkStatus();
}

std::string Read(const std::string& file) {
  std::ifstream stream(file);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

absl::Status MakeFolder(const std::string& folder) {
  if (mkdir(folder.c_str(), 0755) == 0 || errno == EEXIST) return absl::OkStatus();
  return ErrnoStatus(errno, absl::StrCat("cannot make ", folder));
}

absl::Status Prepare(const std::string& own) {
  const std::vector<std::string> has =
      absl::StrSplit(Read(own + "/cgroup.controllers"), absl::ByAnyChar(" \n"), absl::SkipEmpty());
  for (const char* needed : {"memory", "pids"}) {
    if (std::count(has.begin(), has.end(), needed) > 0) continue;
    return absl::FailedPreconditionError(absl::StrCat("the group has no controller '", needed, "'"));
  }
  const std::string inner = own + "/server";
  RETURN_IF_ERROR(MakeFolder(inner));
  RETURN_IF_ERROR(Write(inner + "/cgroup.procs", absl::StrCat(getpid())));
  return Write(own + "/cgroup.subtree_control", "+memory +pids");
}

}  // namespace

ControlGroup::~ControlGroup() {
  KillAll();
  // The kernel takes a moment to bury what it has killed.
  for (int attempt = 0; attempt < 50 && rmdir(folder_.c_str()) != 0 && errno == EBUSY; ++attempt) usleep(10000);
}

absl::Status ControlGroup::Add(pid_t process) const { return Write(folder_ + "/cgroup.procs", absl::StrCat(process)); }

void ControlGroup::KillAll() const { Write(folder_ + "/cgroup.kill", "1").IgnoreError(); }

bool ControlGroup::RanOutOfMemory() const {
  for (const absl::string_view line : absl::StrSplit(Read(folder_ + "/memory.events"), '\n')) {
    const std::pair<absl::string_view, absl::string_view> event = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    int64_t count = 0;
    if (event.first == "oom_kill" && absl::SimpleAtoi(event.second, &count) && count > 0) return true;
  }
  return false;
}

absl::StatusOr<std::unique_ptr<ControlGroups>> ControlGroups::Open(const std::string& own) {
  if (own.empty()) return absl::FailedPreconditionError("this machine has no control groups of version 2");
  if (const absl::Status prepared = Prepare(own); !prepared.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(own, ": ", std::string(prepared.message()),
                                                      " (systemd's Delegate=memory pids gives a group of its own)"));
  }
  return std::unique_ptr<ControlGroups>(new ControlGroups(own));
}

absl::StatusOr<std::unique_ptr<ControlGroup>> ControlGroups::Make(int64_t memory_bytes, int64_t processes) const {
  static std::atomic<int> count{0};
  const std::string folder = absl::StrCat(own_, "/compilation-", count++);
  rmdir(folder.c_str());  // of a server before this one that was killed
  RETURN_IF_ERROR(MakeFolder(folder));
  auto group = std::make_unique<ControlGroup>(folder);
  if (memory_bytes > 0) {
    RETURN_IF_ERROR(Write(folder + "/memory.max", absl::StrCat(memory_bytes)));
    // A machine without swap has no such file.
    if (access((folder + "/memory.swap.max").c_str(), F_OK) == 0) {
      RETURN_IF_ERROR(Write(folder + "/memory.swap.max", "0"));
    }
    RETURN_IF_ERROR(Write(folder + "/memory.oom.group", "1"));  // all of it, or nothing
  }
  RETURN_IF_ERROR(Write(folder + "/pids.max", absl::StrCat(processes)));
  return group;
}

std::string OwnControlGroup(const std::string& proc_cgroup, const std::string& mounts) {
  std::string mounted;
  for (const absl::string_view line : absl::StrSplit(mounts, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    if (words.size() > 2 && words[2] == "cgroup2") mounted = std::string(words[1]);
  }
  if (mounted.empty()) return "";
  for (const absl::string_view line : absl::StrSplit(proc_cgroup, '\n')) {
    if (!absl::StartsWith(line, "0::/")) continue;
    const absl::string_view below = line.substr(3);
    return below == "/" ? mounted : absl::StrCat(mounted, below);
  }
  return "";
}

}  // namespace fusion
