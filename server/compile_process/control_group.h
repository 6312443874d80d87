// Control groups (cgroup v2): limits of memory and of processes that hold for a compilation with all that it starts,
// its page cache included, and a way to end all of it.
//
// The groups lie in the one that this process was given, which must be writable: systemd's Delegate=memory pids.
#ifndef FUSION_SERVER_COMPILE_PROCESS_CONTROL_GROUP_H_
#define FUSION_SERVER_COMPILE_PROCESS_CONTROL_GROUP_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fusion {

// One group, for one process and what it starts.
class ControlGroup {
 public:
  explicit ControlGroup(std::string folder) : folder_(std::move(folder)) {}
  // Ends everything that is in the group, also what has left its process group, and removes it.
  ~ControlGroup();
  ControlGroup(const ControlGroup&) = delete;
  ControlGroup& operator=(const ControlGroup&) = delete;

  // The process is in the group from now on, with what it starts later.
  absl::Status Add(pid_t process) const;
  void KillAll() const;
  // Whether the kernel has ended processes of the group because it had no memory left.
  bool RanOutOfMemory() const;

 private:
  const std::string folder_;
};

class ControlGroups {
 public:
  // `own` is the folder of this process's group. Moves this process into a group below it, because one that has groups
  // with limits below it may have no process itself; so it comes before the process starts others. Fails with
  // FAILED_PRECONDITION, saying why, where memory and processes cannot be limited there: another limit must do.
  static absl::StatusOr<std::unique_ptr<ControlGroups>> Open(const std::string& own);

  // A new group, which must not outlive this object. At most `memory_bytes` (0: no limit) without any swap, and at most
  // `processes`, threads counted. Thread-safe. Fails with what the kernel says.
  absl::StatusOr<std::unique_ptr<ControlGroup>> Make(int64_t memory_bytes, int64_t processes) const;

 private:
  explicit ControlGroups(std::string own) : own_(std::move(own)) {}
  const std::string own_;
};

// The folder of this process's group of version 2; "" if there is none. `proc_cgroup` and `mounts` are the texts of
// /proc/self/cgroup and /proc/self/mounts.
std::string OwnControlGroup(const std::string& proc_cgroup, const std::string& mounts);

}  // namespace fusion

#endif  // FUSION_SERVER_COMPILE_PROCESS_CONTROL_GROUP_H_
