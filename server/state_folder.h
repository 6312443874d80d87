// The state folder and the addresses of one fusiond.
#ifndef FUSION_SERVER_STATE_FOLDER_H_
#define FUSION_SERVER_STATE_FOLDER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace fusion {

// Held while a fusiond owns a folder. The kernel releases it when the process ends, for whatever reason.
class StateFolderLock {
 public:
  // Creates the folder (mode 0700). Fails with FAILED_PRECONDITION and the owner's process id if the folder is taken.
  // The same for a folder on a network file system, unless that is allowed.
  static absl::StatusOr<StateFolderLock> Take(const std::string& folder, bool allow_network_fs = false);
  StateFolderLock() = default;
  StateFolderLock(StateFolderLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  StateFolderLock& operator=(StateFolderLock&& other) noexcept;
  ~StateFolderLock();

 private:
  explicit StateFolderLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

// The name of the network file system that statfs's type is of ("NFS"), or "" for another. SQLite's WAL needs shared
// memory and locks that such file systems do not have or only pretend to, and a sync may not reach the other side's
// disk.
std::string NetworkFileSystem(int64_t type);

bool IsUnixAddress(const std::string& address);

// Fails with INVALID_ARGUMENT for a malformed address, and with UNAVAILABLE for a unix socket on which someone listens.
// Removes a socket file on which nobody listens.
absl::Status CheckListenAddress(const std::string& address);

// Fails with FAILED_PRECONDITION if other users may reach the socket: no folder on its path is closed to them (mode
// 0700). Whoever reaches a socket counts as its owner.
absl::Status CheckSocketIsPrivate(const std::string& address);

// Turns "127.0.0.1:0" and 4711 into "127.0.0.1:4711"; leaves unix addresses unchanged.
std::string WithPort(const std::string& address, int port);

}  // namespace fusion

#endif  // FUSION_SERVER_STATE_FOLDER_H_
