#include "compiler/backends/confinement/namespaces.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/errno_status.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

constexpr int kNamespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;
// Where the new root is put together. It exists everywhere, and nothing is looked up below it after it is covered.
constexpr char kNewRoot[] = "/usr";

absl::Status WriteText(const char* path, const std::string& text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot write to ", path));
  auto closer = absl::MakeCleanup([fd] { close(fd); });
  if (write(fd, text.data(), text.size()) < 0) return ErrnoStatus(errno, absl::StrCat("cannot write to ", path));
  return absl::OkStatus();
}

// The user and group keep their numbers; all others are nobody's.
absl::Status MapUser(uid_t user, gid_t group) {
  RETURN_IF_ERROR(WriteText("/proc/self/setgroups", "deny"));
  RETURN_IF_ERROR(WriteText("/proc/self/uid_map", absl::StrCat(user, " ", user, " 1")));
  return WriteText("/proc/self/gid_map", absl::StrCat(group, " ", group, " 1"));
}

// One path of the new root.
struct Piece {
  bool writable = false;
  int tree = -1;  // a copy of the mounts there; -1: not taken yet
  bool is_folder = false;
};

// Pieces by absolute path, so that a folder comes before what lies below it. Paths that do not exist are left out, as
// Landlock leaves them out, and those that a piece above already has as they want it.
std::map<std::string, Piece> PiecesOf(const PathRules& rules) {
  std::map<std::string, Piece> pieces;
  for (const auto* paths : {&rules.read, &rules.execute, &rules.write}) {
    for (const std::string& path : *paths) {
      std::error_code error;
      const std::string absolute = std::filesystem::absolute(path, error).lexically_normal().string();
      if (path.empty() || error || absolute == "/" || absl::StartsWith(absolute, "/proc")) continue;
      pieces[absolute].writable |= paths == &rules.write;
    }
  }
  std::vector<std::pair<std::string, bool>> above;
  for (auto piece = pieces.begin(); piece != pieces.end();) {
    while (!above.empty() && !absl::StartsWith(piece->first, absl::StrCat(above.back().first, "/"))) above.pop_back();
    if (!above.empty() && above.back().second == piece->second.writable) {
      piece = pieces.erase(piece);
    } else {
      above.emplace_back(piece->first, piece->second.writable);
      ++piece;
    }
  }
  return pieces;
}

absl::Status Take(const std::string& path, Piece* piece) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return absl::OkStatus();
  piece->is_folder = S_ISDIR(info.st_mode);
  piece->tree = open_tree(AT_FDCWD, path.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
  if (piece->tree < 0) return ErrnoStatus(errno, absl::StrCat("cannot take ", path, " into a view"));
  struct mount_attr attributes = {};
  attributes.attr_set = MOUNT_ATTR_NOSUID | (piece->writable ? MOUNT_ATTR_NOEXEC : MOUNT_ATTR_RDONLY);
  if (mount_setattr(piece->tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes, sizeof attributes) != 0) {
    return ErrnoStatus(errno, absl::StrCat("cannot protect ", path));
  }
  return absl::OkStatus();
}

// Makes `path` below the new root, with the folders above it, unless a piece above has it already.
absl::Status MakeMountPoint(const std::string& path, bool is_folder) {
  const std::string whole = kNewRoot + path;
  for (size_t slash = whole.find('/', sizeof kNewRoot); slash != std::string::npos;
       slash = whole.find('/', slash + 1)) {
    mkdir(whole.substr(0, slash).c_str(), 0755);
  }
  if (access(whole.c_str(), F_OK) == 0) return absl::OkStatus();
  const int made = is_folder ? mkdir(whole.c_str(), 0755) : mknod(whole.c_str(), S_IFREG | 0644, 0);
  return made == 0 ? absl::OkStatus() : ErrnoStatus(errno, absl::StrCat("cannot make ", path, " in a view"));
}

// A new file system for processes, or the one that there is where parts of it are covered, as systemd and containers
// have it: then Linux makes no other one.
absl::Status MountProc() {
  const std::string target = absl::StrCat(kNewRoot, "/proc");
  if (mkdir(target.c_str(), 0755) != 0) return ErrnoStatus(errno, "cannot make /proc in a view");
  if (mount("proc", target.c_str(), "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) == 0) return absl::OkStatus();
  Piece present;
  RETURN_IF_ERROR(Take("/proc", &present));
  auto closer = absl::MakeCleanup([&] { close(present.tree); });
  if (move_mount(present.tree, "", AT_FDCWD, target.c_str(), MOVE_MOUNT_F_EMPTY_PATH) != 0) {
    return ErrnoStatus(errno, "cannot put /proc into a view");
  }
  return absl::OkStatus();
}

absl::Status RestrictView(const PathRules& rules) {
  std::error_code error;
  const std::string folder = std::filesystem::current_path(error).string();
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return ErrnoStatus(errno, "cannot have mounts of its own");
  }
  // The copies are taken before the new root covers where some of them are.
  std::map<std::string, Piece> pieces = PiecesOf(rules);
  auto closer = absl::MakeCleanup([&] {
    for (const auto& [path, piece] : pieces) close(piece.tree);
  });
  for (auto& [path, piece] : pieces) RETURN_IF_ERROR(Take(path, &piece));
  if (mount("tmpfs", kNewRoot, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=755,size=1m") != 0) {
    return ErrnoStatus(errno, "cannot make a root for a view");
  }
  RETURN_IF_ERROR(MountProc());
  for (const auto& [path, piece] : pieces) {
    if (piece.tree < 0) continue;
    RETURN_IF_ERROR(MakeMountPoint(path, piece.is_folder));
    if (move_mount(piece.tree, "", AT_FDCWD, (kNewRoot + path).c_str(), MOVE_MOUNT_F_EMPTY_PATH) != 0) {
      return ErrnoStatus(errno, absl::StrCat("cannot put ", path, " into a view"));
    }
  }
  struct mount_attr read_only = {};
  read_only.attr_set = MOUNT_ATTR_RDONLY;
  // The old root lies on the new one afterwards, and is taken off.
  if (mount_setattr(AT_FDCWD, kNewRoot, 0, &read_only, sizeof read_only) != 0 || chdir(kNewRoot) != 0 ||
      syscall(SYS_pivot_root, ".", ".") != 0 || umount2(".", MNT_DETACH) != 0 || chdir("/") != 0) {
    return ErrnoStatus(errno, "cannot change to a view");
  }
  if (chdir(folder.c_str()) != 0) return absl::OkStatus();  // a folder that the process may not use
  return absl::OkStatus();
}

// A user who is root here would get them back from a program that he starts.
absl::Status DropCapabilities() {
  constexpr unsigned long kNoRoot = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                                    SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
                                    SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[2] = {};
  if (prctl(PR_SET_SECUREBITS, kNoRoot) != 0 || syscall(SYS_capset, &header, none) != 0) {
    return ErrnoStatus(errno, "cannot drop capabilities");
  }
  return absl::OkStatus();
}

// The first process of the namespace: when it is killed, so is everything in there. It ignores SIGCHLD, so that orphans
// do not stay.
[[noreturn]] void HoldNamespace() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGCHLD, SIG_IGN);
  close_range(0, ~0U, 0);
  while (true) pause();
}

// Ends as the process `child` does.
[[noreturn]] void EndAs(pid_t child, pid_t holder) {
  close_range(0, ~0U, 0);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  kill(holder, SIGKILL);
  while (waitpid(holder, nullptr, 0) < 0 && errno == EINTR) {  // until all that the child has started is gone
  }
  if (WIFEXITED(status)) _exit(WEXITSTATUS(status));
  const struct rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  const int number = WTERMSIG(status);
  signal(number, SIG_DFL);
  sigset_t all;
  sigemptyset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  kill(getpid(), number);
  _exit(128 + number);
}

}  // namespace

absl::Status EnterNamespaces(const PathRules& rules) {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  // A process that can not be dumped may not write its own maps.
  const int dumpable = prctl(PR_GET_DUMPABLE);
  prctl(PR_SET_DUMPABLE, 1);
  auto restore = absl::MakeCleanup([dumpable] { prctl(PR_SET_DUMPABLE, dumpable); });
  if (unshare(kNamespaces) != 0) return ErrnoStatus(errno, "this machine allows no namespaces");
  RETURN_IF_ERROR(MapUser(user, group));
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const pid_t holder = fork();
  if (holder == 0) HoldNamespace();
  if (holder < 0) return ErrnoStatus(errno, "cannot start a process in namespaces");
  const pid_t child = fork();
  if (child < 0) return ErrnoStatus(errno, "cannot start a process in namespaces");
  if (child > 0) EndAs(child, holder);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent is in another namespace and has no number here; the holder adopts whom it has left.
  if (getppid() != 0) _exit(1);
  RETURN_IF_ERROR(RestrictView(rules));
  return DropCapabilities();
}

absl::Status CheckNamespaces() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "cannot ask whether there are namespaces");
  auto close_read = absl::MakeCleanup([&] { close(ends[0]); });
  const pid_t child = fork();
  if (child == 0) {
    const absl::Status entered = EnterNamespaces({.read = {"/dev/null"}});
    const absl::string_view words = entered.ok() ? "ok" : entered.message();
    [[maybe_unused]] const ssize_t ignored = write(ends[1], words.data(), words.size());
    _exit(0);
  }
  close(ends[1]);
  if (child < 0) return ErrnoStatus(errno, "cannot ask whether there are namespaces");
  std::string words(256, 0);
  ssize_t size_bytes;
  while ((size_bytes = read(ends[0], words.data(), words.size())) < 0 && errno == EINTR) {
  }
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  words.resize(static_cast<size_t>(std::max<ssize_t>(0, size_bytes)));
  return words == "ok" ? absl::OkStatus() : absl::FailedPreconditionError(words);
}

}  // namespace fusion
