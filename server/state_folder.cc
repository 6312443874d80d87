#include "server/state_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/artifacts/artifact_store.h"

namespace fusion {

std::string NetworkFileSystem(int64_t type) {
  // statfs(2), and the kernel's header of magic numbers.
  struct Known {
    uint32_t type;
    const char* name;
  };
  constexpr Known kKnown[] = {{0x6969, "NFS"},        {0xff534d42, "CIFS"},   {0xfe534d42, "SMB2"},
                              {0x517b, "SMB"},        {0x5346414f, "AFS"},    {0x6b414653, "AFS"},
                              {0x00c36400, "Ceph"},   {0x01021997, "9P"},     {0x0bd00bd0, "Lustre"},
                              {0x47504653, "GPFS"},   {0x73757245, "Coda"},   {0x564c, "NCP"},
                              {0x013111a8, "IBRIX"},  {0x19830326, "BeeGFS"}, {0xaad7aaea, "PanFS"},
                              {0xbacbacbc, "vmhgfs"}, {0x786f4256, "vboxsf"}};
  for (const Known& known : kKnown) {
    if (static_cast<uint32_t>(type) == known.type) return known.name;
  }
  return "";
}

absl::StatusOr<StateFolderLock> StateFolderLock::Take(const std::string& folder, bool allow_network_fs) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("cannot make the state folder ", folder));
  struct statfs found;
  if (statfs(folder.c_str(), &found) != 0) return ErrnoStatus(errno, absl::StrCat("cannot look at ", folder));
  if (const std::string name = NetworkFileSystem(static_cast<int64_t>(found.f_type));
      !name.empty() && !allow_network_fs) {
    return absl::FailedPreconditionError(
        absl::StrCat("the state folder ", folder, " lies on a network file system (", name,
                     "), where a database can be damaged: choose a --state on a disk of this machine, or say "
                     "--allow-network-fs"));
  }
  chmod(folder.c_str(), 0700);
  const std::string path = absl::StrCat(folder, "/lock");
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
  StateFolderLock lock(fd);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    char owner[32] = {};
    if (read(fd, owner, sizeof owner - 1) <= 0) std::strcpy(owner, "?");
    return absl::FailedPreconditionError(absl::StrCat("the state folder ", folder, " is in use by fusiond process ",
                                                      owner, "; stop it or choose another --state"));
  }
  const std::string pid = absl::StrCat(getpid());
  if (ftruncate(fd, 0) != 0 || pwrite(fd, pid.data(), pid.size(), 0) < 0) {
    return ErrnoStatus(errno, absl::StrCat("cannot write ", path));
  }
  return lock;
}

StateFolderLock& StateFolderLock::operator=(StateFolderLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

StateFolderLock::~StateFolderLock() {
  if (fd_ >= 0) close(fd_);
}

bool IsUnixAddress(const std::string& address) { return absl::StartsWith(address, "unix:"); }

absl::Status CheckSocketIsPrivate(const std::string& address) {
  std::error_code error;
  const std::filesystem::path given = std::filesystem::path(address.substr(5)).parent_path();
  std::filesystem::path folder = std::filesystem::canonical(given.empty() ? "." : given, error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("cannot listen on ", address));
  const std::string innermost = folder.string();
  while (true) {
    struct stat found;
    if (stat(folder.c_str(), &found) != 0) return ErrnoStatus(errno, absl::StrCat("cannot look at ", folder.string()));
    const bool ours = found.st_uid == geteuid() || found.st_uid == 0;
    if (ours && (found.st_mode & (S_IRWXG | S_IRWXO)) == 0) return absl::OkStatus();
    if (folder == folder.parent_path()) break;
    folder = folder.parent_path();
  }
  return absl::FailedPreconditionError(absl::StrCat("other users may enter ", innermost,
                                                    ", and whoever reaches a socket may do everything: chmod 700 ",
                                                    innermost, ", or listen on a socket in a folder of your own"));
}

absl::Status CheckListenAddress(const std::string& address) {
  if (!IsUnixAddress(address)) {
    const size_t colon = address.rfind(':');
    int port = -1;
    if (colon == std::string::npos || colon == 0 || !absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 0 ||
        port > 65535) {
      return absl::InvalidArgumentError(absl::StrCat("address '", address, "' is neither HOST:PORT nor unix:PATH"));
    }
    return absl::OkStatus();
  }
  const std::string path = address.substr(5);
  sockaddr_un socket_address = {};
  if (path.empty() || path.size() >= sizeof socket_address.sun_path) {
    return absl::InvalidArgumentError(
        absl::StrCat("unix socket path '", path, "' must have 1 to ", sizeof socket_address.sun_path - 1, " bytes"));
  }
  socket_address.sun_family = AF_UNIX;
  std::memcpy(socket_address.sun_path, path.data(), path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return ErrnoStatus(errno, "cannot make a socket");
  const bool live = connect(fd, reinterpret_cast<sockaddr*>(&socket_address), sizeof socket_address) == 0;
  const int error = errno;
  close(fd);
  if (live) return absl::UnavailableError(absl::StrCat("someone listens on ", address, " already"));
  if (error == ECONNREFUSED) unlink(path.c_str());
  return absl::OkStatus();
}

std::string WithPort(const std::string& address, int port) {
  if (IsUnixAddress(address)) return address;
  return absl::StrCat(address.substr(0, address.rfind(':')), ":", port);
}

}  // namespace fusion
