// A process in namespaces of its own: what it sees, and that whoever started it notices no difference.
#include "compiler/backends/confinement/namespaces.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/resource.h>
#include <sys/shm.h>
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
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "compiler/backends/confinement/confinement.h"
#include "compiler/backends/process/child_process.h"

namespace fusion {
namespace {

constexpr int kNotEntered = 250, kSignal = 1000;

int Errno(long result) { return result >= 0 ? 0 : errno; }

class NamespacesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const absl::Status can = CheckNamespaces(); !can.ok()) GTEST_SKIP() << can;
    for (const char* name : {"/work", "/read", "/outside"}) {
      std::filesystem::create_directories(folder_ + name);
      std::ofstream(absl::StrCat(folder_, name, "/file")) << "text";
    }
  }
  ~NamespacesTest() override { std::filesystem::remove_all(folder_); }

  // Starts `deed` in a process of its own, without filter and Landlock.
  pid_t Start(const std::function<int()>& deed, bool own) const {
    const pid_t child = fork();
    if (child != 0) return child;
    setpgid(0, 0);
    PathRules rules;
    rules.read = {folder_ + "/read", "/dev/null", "/proc/self"}, rules.execute = SystemPaths();
    rules.write = {folder_ + "/work"};
    if (own && !EnterNamespaces(rules).ok()) _exit(kNotEntered);
    _exit(deed());
  }
  // Returns what it returns, or kSignal and the number of the signal.
  int Try(const std::function<int()>& deed, bool own = true, struct rusage* usage = nullptr) const {
    const pid_t child = Start(deed, own);
    int status = 0;
    wait4(child, &status, 0, usage);
    return WIFSIGNALED(status) ? kSignal + WTERMSIG(status) : WEXITSTATUS(status);
  }
  // It works otherwise.
  void ExpectIn(const std::function<int()>& deed, int error, const char* what) const {
    EXPECT_EQ(Try(deed, /*own=*/false), 0) << what << " does not work anyway";
    EXPECT_EQ(Try(deed), error) << what;
  }
  int Open(const std::string& path, int flags) const { return Errno(open((folder_ + path).c_str(), flags, 0600)); }

  const std::string folder_ = absl::StrCat("/tmp/fusion-namespaces-", getpid());
  const pid_t self_ = getpid();
};

TEST_F(NamespacesTest, EndsAsTheProcessInside) {
  for (const bool own : {false, true}) {
    for (const int code : {0, 1, 86, 255}) EXPECT_EQ(Try([&] { return code; }, own), code);
    EXPECT_EQ(Try([]() -> int { abort(); }, own), kSignal + SIGABRT);
    for (const int number : {SIGSEGV, SIGKILL, SIGTERM, SIGPIPE, SIGXCPU}) {
      EXPECT_EQ(Try([&] { return kill(getpid(), number); }, own), kSignal + number);
    }
    const auto spins = [] {
      const struct rlimit limit = {1, 5};
      setrlimit(RLIMIT_CPU, &limit);
      while (true) {
      }
      return 0;
    };
    struct rusage usage = {};
    EXPECT_EQ(Try(spins, own, &usage), kSignal + SIGXCPU);
    EXPECT_GE(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + 1e-6 * (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec),
              0.5)
        << "the time of the process inside";
  }
  const auto grows = [] {
    std::vector<char> pages(64 << 20, 1);
    return static_cast<int>(pages[4096]) - 1;
  };
  struct rusage usage = {};
  EXPECT_EQ(Try(grows, /*own=*/true, &usage), 0);
  EXPECT_GE(usage.ru_maxrss, 64 << 10) << "the memory of the process inside";
}

TEST_F(NamespacesTest, HasLimitsDescriptorsFolderAndGroupOfTheCaller) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const struct rlimit limit = {123456789, 123456789};
    PathRules rules;
    rules.write = {folder_ + "/work"};
    if (setpgid(0, 0) != 0 || setrlimit(RLIMIT_DATA, &limit) != 0 || chdir((folder_ + "/work").c_str()) != 0 ||
        !EnterNamespaces(rules).ok()) {
      _exit(kNotEntered);
    }
    struct rlimit has = {};
    getrlimit(RLIMIT_DATA, &has);
    std::ofstream("made") << has.rlim_max;
    char byte = 'x';
    if (write(ends[1], &byte, 1) != 1) _exit(1);
    pause();
  }
  char byte = 0;
  ASSERT_EQ(read(ends[0], &byte, 1), 1);
  kill(-child, SIGTERM);  // all of the group
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  std::string limit;
  std::ifstream(folder_ + "/work/made") >> limit;
  EXPECT_EQ(limit, "123456789");
  close(ends[0]), close(ends[1]);
}

TEST_F(NamespacesTest, SeesOnlyItsPaths) {
  ExpectIn([&] { return Open("/outside/file", O_RDONLY); }, ENOENT, "reading elsewhere");
  ExpectIn([&] { return Open("/read/file", O_WRONLY); }, EROFS, "writing what is to read");
  ExpectIn([&] { return Errno(unlink((folder_ + "/read/file").c_str())); }, EROFS, "removing what is to read");
  std::ofstream(folder_ + "/read/file") << "text";
  EXPECT_EQ(Try([&] { return Open("/read/file", O_RDONLY); }), 0);
  EXPECT_EQ(Try([&] { return Open("/work/file", O_RDWR | O_TRUNC); }), 0);
  EXPECT_EQ(Try([&] { return Open("/work/new", O_WRONLY | O_CREAT); }), 0);
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/work/new"));
  EXPECT_EQ(Try([&] { return Errno(mkdir((folder_ + "/new").c_str(), 0700)); }), EROFS) << "the root of the view";
  EXPECT_EQ(Try([] { return Errno(open("/dev/null", O_WRONLY)); }), 0);
  std::filesystem::copy_file("/bin/true", folder_ + "/work/dropped");
  ExpectIn([&] { return Errno(execl((folder_ + "/work/dropped").c_str(), "dropped", nullptr)); }, EACCES,
           "starting what was written");
  EXPECT_EQ(Try([] { return Errno(execl("/bin/true", "true", nullptr)); }), 0);
}

TEST_F(NamespacesTest, SeesNoOtherProcessAndNoSharedMemory) {
  ExpectIn([&] { return Errno(kill(self_, 0)); }, ESRCH, "a signal");
  ExpectIn([&] { return Errno(access(absl::StrCat("/proc/", self_).c_str(), F_OK)); }, ENOENT, "/proc of another");
  const int memory = shmget(IPC_PRIVATE, 4096, 0600);
  ASSERT_GE(memory, 0);
  const auto attach = [&] { return shmat(memory, nullptr, SHM_RDONLY) == reinterpret_cast<void*>(-1) ? errno : 0; };
  ExpectIn(attach, EINVAL, "shared memory");
  shmctl(memory, IPC_RMID, nullptr);
}

TEST_F(NamespacesTest, HasNoNetwork) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto closer = absl::MakeCleanup([&] { close(listener); });
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(listen(listener, 9), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length), 0);
  ExpectIn(
      [&] { return Errno(connect(socket(AF_INET, SOCK_STREAM, 0), reinterpret_cast<sockaddr*>(&address), length)); },
      ENETUNREACH, "TCP");
  // A name in the abstract namespace of Unix sockets.
  const int abstract = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto close_abstract = absl::MakeCleanup([&] { close(abstract); });
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  std::strncpy(name.sun_path + 1, absl::StrCat("fusion-", self_).c_str(), sizeof name.sun_path - 2);
  ASSERT_EQ(bind(abstract, reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  ASSERT_EQ(listen(abstract, 9), 0);
  ExpectIn(
      [&] { return Errno(connect(socket(AF_UNIX, SOCK_STREAM, 0), reinterpret_cast<sockaddr*>(&name), sizeof name)); },
      ECONNREFUSED, "an abstract socket");
}

TEST_F(NamespacesTest, HasNoCapabilitiesAndGetsNone) {
  const auto has = [] {
    __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct sets[2] = {};
    if (syscall(SYS_capget, &header, sets) != 0) return errno;
    return sets[0].effective == 0 && sets[0].permitted == 0 && sets[1].permitted == 0 && sets[0].inheritable == 0 ? 0
                                                                                                                  : 1;
  };
  EXPECT_EQ(Try(has), 0);
  // A program that it starts: mounting needs one, and a user who was root would have it.
  EXPECT_NE(Try([] { return Errno(execl("/bin/sh", "sh", "-c", "mount -t tmpfs none /usr 2>/dev/null", nullptr)); }),
            0);
}

// Its writer inside is in no process group that could be killed.
TEST_F(NamespacesTest, NothingInsideOutlivesAnEnd) {
  // Child, parent and what the child starts in a session of its own hold the write end.
  const auto leaves_one_behind = [&](bool own, const std::function<int()>& then, int* end) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const pid_t child = Start(
        [&] {
          int begun[2];
          char byte = 'x';
          if (pipe(begun) != 0) return 1;
          if (fork() == 0) {
            setsid();
            if (write(ends[1], &byte, 1) != 1 || write(begun[1], &byte, 1) != 1) _exit(1);
            pause();
          }
          if (read(begun[0], &byte, 1) != 1) return 1;
          return then();
        },
        own);
    close(ends[1]);
    char byte = 0;
    EXPECT_EQ(read(ends[0], &byte, 1), 1);
    *end = ends[0];
    return child;
  };
  const auto is_over = [](int end) {
    pollfd over = {end, POLLIN, 0};
    return poll(&over, 1, 0) == 1;
  };
  int end = -1;
  pid_t child = leaves_one_behind(/*own=*/true, [] { return 7; }, &end);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_TRUE(is_over(end)) << "gone before the end is known";
  close(end);
  // Killed from outside, as at a deadline: the one whom the caller knows.
  child = leaves_one_behind(/*own=*/true, [] { return pause(); }, &end);
  EXPECT_FALSE(is_over(end));
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, &status, 0), child);
  char byte = 0;
  EXPECT_EQ(read(end, &byte, 1), 0) << "else this test does not end";
  close(end);
}

// As a worker starts compilers.
TEST_F(NamespacesTest, DeadlinesAndLimitsHoldForWhatRunsInside) {
  if (const absl::Status can = CheckConfinement(); !can.ok()) GTEST_SKIP() << can;
  ChildOptions options;
  options.working_directory = folder_ + "/work";
  for (const bool own : {false, true}) {
    const auto run = [&](const std::string& script) {
      std::vector<std::string> command = {FUSION_CONFINE, "--cpu-seconds=1", "/bin/sh", "-c", script};
      if (own) command.insert(command.begin() + 1, "--namespaces");
      auto result = RunChild(command, options);
      EXPECT_TRUE(result.ok()) << result.status();
      return *result;
    };
    const ChildResult said = run("echo out; echo err >&2; exit 3");
    EXPECT_EQ(said.stdout_text, "out\n");
    EXPECT_EQ(said.stderr_text, "err\n");
    EXPECT_EQ(said.exit_code, 3);
    const ChildResult spun = run("while :; do :; done");
    EXPECT_TRUE(spun.timed_out) << spun.Describe();
    EXPECT_GT(spun.cpu_seconds, 0.5) << "own: " << own;
    options.deadline = absl::Milliseconds(300);
    const ChildResult slept = run("setsid sleep 1000 & sleep 1000");
    EXPECT_TRUE(slept.timed_out);
    EXPECT_EQ(slept.signal, SIGKILL);
    options.deadline = absl::Seconds(60);
  }
}

}  // namespace
}  // namespace fusion
