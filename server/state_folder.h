// The state folder and the addresses of one fusiond.
#ifndef FUSION_SERVER_STATE_FOLDER_H_
#define FUSION_SERVER_STATE_FOLDER_H_

#include <string>

#include "absl/status/statusor.h"

namespace fusion {

// $XDG_STATE_HOME/fusion, else ~/.local/state/fusion.
std::string DefaultStateFolder();

// Held while a fusiond owns a folder; the kernel releases it when the process ends, however it ends.
class StateFolderLock {
 public:
  // Makes the folder (mode 0700). FAILED_PRECONDITION with the owner's process id when it is taken.
  static absl::StatusOr<StateFolderLock> Take(const std::string& folder);
  StateFolderLock() = default;
  StateFolderLock(StateFolderLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  StateFolderLock& operator=(StateFolderLock&& other) noexcept;
  ~StateFolderLock();

 private:
  explicit StateFolderLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

// INVALID_ARGUMENT for a malformed address, UNAVAILABLE for a unix socket on which someone listens; a socket file
// nobody listens on is removed.
absl::Status CheckListenAddress(const std::string& address);

// "127.0.0.1:0", 4711 -> "127.0.0.1:4711"; unix addresses stay.
std::string WithPort(const std::string& address, int port);

}  // namespace fusion

#endif  // FUSION_SERVER_STATE_FOLDER_H_
