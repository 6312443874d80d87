// Attacks by code that runs confined, each in a process of its own, and the same attacks unconfined: a test that is
// passed because the attack never works shows nothing.
#include "compiler/backends/confinement/confinement.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/backends/confinement/namespaces.h"

namespace fusion {
namespace {

constexpr int kNotConfined = 250, kSignal = 1000;

// 0, or why a call failed.
int Errno(long result) { return result >= 0 ? 0 : errno; }

class ConfinementTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const absl::Status can = CheckConfinement(); !can.ok()) GTEST_SKIP() << can;
    std::filesystem::create_directories(folder_ + "/work");
    std::filesystem::create_directories(folder_ + "/outside");
    std::ofstream(folder_ + "/outside/fusion.db") << "models of others";
    std::ofstream(folder_ + "/work/model") << "model";
    unix_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(bind(unix_, reinterpret_cast<sockaddr*>(&path_), sizeof path_), 0);
    ASSERT_EQ(listen(unix_, 9), 0);
    tcp_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t length = sizeof loopback_;
    ASSERT_EQ(bind(tcp_, reinterpret_cast<sockaddr*>(&loopback_), length), 0);
    ASSERT_EQ(getsockname(tcp_, reinterpret_cast<sockaddr*>(&loopback_), &length), 0);
    ASSERT_EQ(listen(tcp_, 9), 0);
  }
  ConfinementTest() {
    path_.sun_family = AF_UNIX;
    std::strncpy(path_.sun_path, absl::StrCat(folder_, "/s").c_str(), sizeof path_.sun_path - 1);
    loopback_.sin_family = AF_INET;
    loopback_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  }
  ~ConfinementTest() override {
    close(unix_), close(tcp_);
    std::filesystem::remove_all(folder_);
  }

  // Runs `attack` in a process of its own, and returns what it returns, or kSignal and the number of the signal.
  int Try(const std::function<int()>& attack, std::optional<Profile> profile,
          Namespaces namespaces = Namespaces::kShared) const {
    const pid_t child = fork();
    if (child == 0) {
      if (profile.has_value()) {
        PathRules rules;
        rules.read = MachinePaths(), rules.execute = SystemPaths(), rules.write = {folder_ + "/work"};
        if (!ConfineThisProcess(*profile, rules, namespaces).ok()) _exit(kNotConfined);
      }
      _exit(attack());
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? kSignal + WTERMSIG(status) : WEXITSTATUS(status);
  }
  // Every profile refuses it, with and without namespaces, and it works otherwise. A path that
  // Landlock refuses (EACCES) does not exist in a view.
  void ExpectRefused(const std::string& what, const std::function<int()>& attack, int with = EPERM) const {
    EXPECT_EQ(Try(attack, std::nullopt), 0) << what << " does not work anyway";
    for (const Namespaces namespaces : here_) {
      const bool own = namespaces == Namespaces::kOwn;
      for (const Profile profile : {Profile::kKernel, Profile::kCompiler, Profile::kToolchain, Profile::kDriver}) {
        EXPECT_EQ(Try(attack, profile, namespaces), own && with == EACCES ? ENOENT : with)
            << what << ", profile " << static_cast<int>(profile) << (own ? " in namespaces" : "");
      }
    }
  }
  int ConnectTo(int family, const void* address, socklen_t size) const {
    const int fd = socket(family, SOCK_STREAM, 0);
    if (fd < 0) return errno;
    return Errno(connect(fd, static_cast<const sockaddr*>(address), size));
  }
  int OpenOutside(int flags) const { return Errno(open((folder_ + "/outside/fusion.db").c_str(), flags)); }

  const std::string folder_ = absl::StrCat("/tmp/fusion-confined-", getpid());
  sockaddr_un path_ = {};
  sockaddr_in loopback_ = {};
  int unix_ = -1, tcp_ = -1;
  const pid_t self_ = getpid();
  // Those that this machine has.
  const std::vector<Namespaces> here_ = CheckNamespaces().ok()
                                            ? std::vector<Namespaces>{Namespaces::kShared, Namespaces::kOwn}
                                            : std::vector<Namespaces>{Namespaces::kShared};
};

int RunTrue() {
  const pid_t child = vfork();
  if (child < 0) return errno;
  if (child == 0) {
    execl("/bin/true", "true", static_cast<char*>(nullptr));
    _exit(126);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

TEST_F(ConfinementTest, ConnectsToNoSocket) {
  ExpectRefused("connect by TCP", [&] { return ConnectTo(AF_INET, &loopback_, sizeof loopback_); });
  ExpectRefused("connect to a Unix socket by its path", [&] { return ConnectTo(AF_UNIX, &path_, sizeof path_); });
  ExpectRefused("make a pair of sockets", [] {
    int ends[2];
    return Errno(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
  });
}

TEST_F(ConfinementTest, OnlyADriverListensAndOnlyOnAUnixSocket) {
  const auto listens_at = [](int family) {
    const int fd = socket(family, SOCK_STREAM, 0);
    if (fd < 0) return errno;
    sockaddr_un anywhere = {};
    anywhere.sun_family = static_cast<sa_family_t>(family);
    if (bind(fd, reinterpret_cast<const sockaddr*>(&anywhere), sizeof(sa_family_t)) != 0) return errno;
    return Errno(listen(fd, 1));
  };
  EXPECT_EQ(Try([&] { return listens_at(AF_UNIX); }, Profile::kDriver), 0);
  EXPECT_EQ(Try([&] { return listens_at(AF_INET); }, Profile::kDriver), EPERM);
  for (const Profile profile : {Profile::kKernel, Profile::kCompiler, Profile::kToolchain}) {
    EXPECT_EQ(Try([&] { return listens_at(AF_UNIX); }, profile), EPERM);
  }
}

// io_uring makes sockets and connects without a call that a filter sees.
TEST_F(ConfinementTest, NoCallThatGoesAroundTheFilter) {
  const auto ring = [] {
    io_uring_params parameters = {};
    return Errno(syscall(SYS_io_uring_setup, 1, &parameters));
  };
  for (const Profile profile : {Profile::kKernel, Profile::kCompiler, Profile::kToolchain, Profile::kDriver}) {
    EXPECT_EQ(Try(ring, profile), EPERM);
#if defined(__x86_64__)
    const auto compatible = [] {  // getpid with the 32-bit architecture's number and gate
      long result = 20;
      __asm__ volatile("int $0x80" : "+a"(result) : : "memory");
      return 0;
    };
    EXPECT_EQ(Try(compatible, profile), kSignal + SIGSYS);
    EXPECT_EQ(Try([] { return Errno(syscall(0x40000000 | SYS_getpid)); }, profile), EPERM) << "the x32 number";
#endif
  }
}

TEST_F(ConfinementTest, OpensNoDatabase) {
  if (LevelOfThisMachine().landlock == 0) GTEST_SKIP() << "no Landlock: a process can open what its user can";
  ExpectRefused(
      "read the database", [&] { return OpenOutside(O_RDONLY); }, EACCES);
  ExpectRefused(
      "write to the database", [&] { return OpenOutside(O_WRONLY); }, EACCES);
  ExpectRefused(
      "read the memory of the parent",
      [&] { return Errno(open(absl::StrCat("/proc/", self_, "/mem").c_str(), O_RDONLY)); }, EACCES);
}

TEST_F(ConfinementTest, SignalsNobodyElse) {
  ExpectRefused("kill", [&] { return Errno(kill(self_, 0)); });
  ExpectRefused("tgkill", [&] { return Errno(syscall(SYS_tgkill, self_, self_, 0)); });
  ExpectRefused("let a pipe's events send signals", [&] {
    int ends[2];
    if (pipe(ends) != 0) return errno;
    return Errno(fcntl(ends[0], F_SETOWN, self_));
  });
  ExpectRefused("limit another process", [&] {
    struct rlimit limit;
    return Errno(prlimit(self_, RLIMIT_CPU, nullptr, &limit));
  });
  for (const Namespaces namespaces : here_) {
    for (const Profile profile : {Profile::kKernel, Profile::kCompiler}) {
      EXPECT_EQ(Try([]() -> int { abort(); }, profile, namespaces), kSignal + SIGABRT) << "its own end";
      EXPECT_EQ(Try([] { return Errno(kill(getpid(), 0)); }, profile, namespaces), 0);
    }
  }
}

// The filter lets it pass, because thread pools place their threads.
TEST_F(ConfinementTest, MovesNoThreadOfOthersInNamespaces) {
  if (here_.size() == 1) GTEST_SKIP() << CheckNamespaces();
  const auto move = [&] {
    cpu_set_t all;
    if (sched_getaffinity(0, sizeof all, &all) != 0) return errno;
    return Errno(sched_setaffinity(self_, sizeof all, &all));
  };
  for (const Profile profile : {Profile::kKernel, Profile::kCompiler, Profile::kToolchain}) {
    EXPECT_EQ(Try(move, profile), 0);
    EXPECT_EQ(Try(move, profile, Namespaces::kOwn), ESRCH);
  }
}

TEST_F(ConfinementTest, ChangesNeitherTheMachineNorOthers) {
  const std::function<int()> attacks[] = {
      [] { return Errno(ptrace(PTRACE_ATTACH, getppid(), nullptr, nullptr)); },
      [] { return Errno(mount("none", "/mnt", "tmpfs", 0, nullptr)); },
      [] { return Errno(umount("/mnt")); },
      [] { return Errno(unshare(CLONE_NEWUSER)); },
      [] { return Errno(chroot("/")); },
      [] { return Errno(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0)); },
      [] { return Errno(syscall(SYS_pidfd_open, getppid(), 0)); },
      [] { return Errno(syscall(SYS_process_vm_readv, getppid(), nullptr, 0, nullptr, 0, 0)); },
      [] { return Errno(syscall(SYS_bpf, 0, nullptr, 0)); },
      [] { return Errno(syscall(SYS_perf_event_open, nullptr, 0, 0, 0, 0)); },
      [] { return Errno(syscall(SYS_keyctl, 0, 0, 0, 0, 0)); },
      [] { return Errno(syscall(SYS_userfaultfd, 0)); },
      [] { return Errno(setuid(0)); },
  };
  for (const Profile profile : {Profile::kKernel, Profile::kCompiler, Profile::kToolchain, Profile::kDriver}) {
    for (const Namespaces namespaces : here_) {
      for (size_t i = 0; i < std::size(attacks); ++i) EXPECT_EQ(Try(attacks[i], profile, namespaces), EPERM) << i;
    }
    EXPECT_EQ(Try([] { return Errno(syscall(SYS_clone3, nullptr, 0)); }, profile), ENOSYS);
    EXPECT_EQ(Try([] { return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); }, profile), 1);
    EXPECT_EQ(Try(
                  [] {
                    struct rlimit limit;
                    return getrlimit(RLIMIT_CORE, &limit) == 0 ? static_cast<int>(limit.rlim_max) : 1;
                  },
                  profile),
              0);
  }
}

TEST_F(ConfinementTest, AKernelStartsThreadsAndNoProcess) {
  const auto thread = [] {
    int done = 1;
    std::thread([&] { done = 0; }).join();
    return done;
  };
  const auto process = [] {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    return Errno(child);
  };
  const auto program = [] { return Errno(execl("/bin/true", "true", static_cast<char*>(nullptr))); };
  for (const Profile profile : {Profile::kKernel, Profile::kCompiler}) {
    EXPECT_EQ(Try(thread, profile), 0);
    EXPECT_EQ(Try(process, profile), EPERM);
    EXPECT_EQ(Try(program, profile), EPERM);
    EXPECT_EQ(Try(RunTrue, profile), EPERM);
  }
  EXPECT_EQ(Try(process, std::nullopt), 0);
  EXPECT_EQ(Try(program, std::nullopt), 0);
}

TEST_F(ConfinementTest, AKernelLoadsCodeAndWritesNoFile) {
  EXPECT_EQ(Try(
                [] {
                  const int fd = memfd_create("code", MFD_CLOEXEC);
                  if (fd < 0 || ftruncate(fd, 4096) != 0) return errno;
                  return mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED ? errno : 0;
                },
                Profile::kKernel),
            0);
  const auto write = [&] { return Errno(open((folder_ + "/work/file").c_str(), O_WRONLY | O_CREAT, 0600)); };
  EXPECT_EQ(Try([&] { return Errno(unlink((folder_ + "/work/model").c_str())); }, Profile::kKernel), EPERM);
  EXPECT_EQ(Try(write, Profile::kCompiler), 0);
  if (LevelOfThisMachine().landlock == 0) GTEST_SKIP() << "no Landlock";
  const auto elsewhere = [&] { return Errno(open((folder_ + "/outside/file").c_str(), O_WRONLY | O_CREAT, 0600)); };
  EXPECT_EQ(Try(elsewhere, Profile::kCompiler), EACCES);
  EXPECT_EQ(Try(elsewhere, std::nullopt), 0);
}

TEST_F(ConfinementTest, ACompilerTalksOverTheSocketThatItHas) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const auto talk = [&] {
    char byte = 'x';
    if (send(ends[0], &byte, 1, MSG_NOSIGNAL) != 1 || recv(ends[1], &byte, 1, 0) != 1) return errno;
    return 0;
  };
  EXPECT_EQ(Try(talk, Profile::kCompiler), 0);
  EXPECT_EQ(Try(talk, Profile::kKernel), EPERM);
  const auto address = [&] {
    return Errno(sendto(ends[0], "x", 1, 0, reinterpret_cast<const sockaddr*>(&path_), sizeof path_));
  };
  EXPECT_EQ(Try(address, Profile::kCompiler), EPERM);
  close(ends[0]), close(ends[1]);
}

TEST_F(ConfinementTest, AToolchainStartsProgramsOfTheSystemOnly) {
  for (const Profile profile : {Profile::kToolchain, Profile::kDriver}) EXPECT_EQ(Try(RunTrue, profile), 0);
  if (LevelOfThisMachine().landlock == 0) GTEST_SKIP() << "no Landlock";
  std::filesystem::copy_file("/bin/true", folder_ + "/work/dropped");
  const auto dropped = [&] {
    return Errno(execl((folder_ + "/work/dropped").c_str(), "dropped", static_cast<char*>(nullptr)));
  };
  EXPECT_EQ(Try(dropped, std::nullopt), 0);
  EXPECT_EQ(Try(dropped, Profile::kToolchain), EACCES) << "what it has written it cannot start";
}

// The program that fusion-confine becomes stays confined, and so does every program that it starts.
TEST_F(ConfinementTest, FusionConfineConfinesAProgramAndItsChildren) {
  for (const Namespaces namespaces : here_) {
    const bool own = namespaces == Namespaces::kOwn;
    const auto confined = [&](const std::string& script) {
      return Try(
          [&] {
            if (chdir((folder_ + "/work").c_str()) != 0) return errno;
            const std::string quiet = script + " 2>/dev/null";
            execl(FUSION_CONFINE, "fusion-confine", own ? "--namespaces" : "--cpu-seconds=60", "/bin/sh", "-c",
                  quiet.c_str(), static_cast<char*>(nullptr));
            return errno;
          },
          std::nullopt);
    };
    EXPECT_EQ(confined("cat model > copy && test $(cat copy) = model && test \"$TMPDIR\" = \"$PWD\""), 0);
    EXPECT_NE(confined(absl::StrCat("kill -0 ", getpid())), 0);
    EXPECT_EQ(confined("/bin/sh -c '/bin/sh -c true'"), 0);
    if (own || LevelOfThisMachine().landlock > 0) {
      EXPECT_NE(confined("cat ../outside/fusion.db"), 0);
      EXPECT_NE(confined("echo x > ../outside/file"), 0);
    }
  }
  EXPECT_EQ(Try(
                [&] {
                  execl(FUSION_CONFINE, "fusion-confine", "/no/such/program", static_cast<char*>(nullptr));
                  return errno;
                },
                std::nullopt),
            126);
}

TEST(ConfinementLevelTest, SaysWhatTheKernelOffers) {
  EXPECT_EQ((ConfinementLevel{true, 7}.InWords()), "seccomp, Landlock 7");
  EXPECT_EQ((ConfinementLevel{true, 7, true}.InWords()), "seccomp, Landlock 7, namespaces");
  EXPECT_EQ((ConfinementLevel{true, 0, true}.InWords()), "seccomp, namespaces");
  EXPECT_EQ((ConfinementLevel{true, 0}.InWords()), "seccomp without Landlock");
  EXPECT_EQ((ConfinementLevel{false, 3}.InWords()), "none");
}

}  // namespace
}  // namespace fusion
