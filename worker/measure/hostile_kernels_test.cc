// Bundles whose kernels mean harm, run by fusion-measure as a worker runs it. A kernel says on stderr what it could do;
// the same kernel without confinement shows that the attack works.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/backends/confinement/confinement.h"
#include "compiler/backends/confinement/namespaces.h"
#include "compiler/backends/process/child_process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/loader/testing/tiny_bundle.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class HostileKernels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const absl::Status can = CheckConfinement(); !can.ok()) GTEST_SKIP() << can;
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ + "/fusion.db") << "models of others";
  }
  ~HostileKernels() override { std::filesystem::remove_all(folder_); }

  // `attack` is C++ that sets `done` where it succeeds.
  std::string BundleWith(const std::string& attack) {
    const std::string source = absl::StrCat(R"(
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
static void attack() {
  bool done = false;
)",
                                            attack, R"(
  const char* words = done ? "HARM DONE" : strerror(errno);
  write(2, "refused: ", done ? 0 : 9);
  write(2, words, strlen(words));
  write(2, "\n", 1);
}
#define k0_a tiny_k0_a
)",
                                            kTinyKernelSource, R"(
#undef k0_a
extern "C" void k0_a(void* const* args, void* scratch, long begin, long end) {
  if (begin == 0) attack();
  tiny_k0_a(args, scratch, begin, end);
}
)");
    const absl::StatusOr<std::string> object = BuildSharedObject(source);
    EXPECT_TRUE(object.ok()) << object.status();
    const std::string path = folder_ + "/hostile.fusion";
    EXPECT_TRUE(WriteTinyBundle(path, object.value_or(""), TinyManifest()).ok());
    return path;
  }

  static std::string Measure(const std::string& bundle, const std::string& confine, bool namespaces = false) {
    ChildOptions options;
    options.deadline = absl::InfiniteDuration();
    std::vector<std::string> command = {FUSION_MEASURE, bundle, "--threads", "1", "--confine", confine};
    if (namespaces) command.emplace_back("--namespaces");
    const auto child = RunChild(command, options);
    EXPECT_TRUE(child.ok()) << child.status();
    EXPECT_TRUE(child->ok()) << child->Describe() << child->stderr_text;
    return child->stderr_text;
  }
  // With and without namespaces, where the machine has them.
  void ExpectRefused(const std::string& attack) {
    const std::string bundle = BundleWith(attack);
    EXPECT_THAT(Measure(bundle, "none"), HasSubstr("HARM DONE")) << "the attack does not work anyway";
    if (namespaces_) {
      const std::string apart = Measure(bundle, "cpu", /*namespaces=*/true);
      EXPECT_THAT(apart, Not(HasSubstr("HARM DONE")));
      EXPECT_THAT(apart, HasSubstr("refused: ")) << "the kernel has run";
    }
    const std::string confined = Measure(bundle, "cpu");
    EXPECT_THAT(confined, Not(HasSubstr("HARM DONE")));
    const size_t refused = confined.find("refused: ");
    ASSERT_NE(refused, std::string::npos) << "the kernel has run";
    // For tests/faults/attacks.py.
    std::cout << "met: " << confined.substr(refused + 9, confined.find('\n', refused) - refused - 9) << "\n";
  }

  const std::string folder_ = absl::StrCat("/tmp/fusion-hostile-", getpid());
  const bool namespaces_ = CheckNamespaces().ok();
};

// Without Landlock, too: what it may not open is not there.
TEST_F(HostileKernels, SeesNoDatabaseAndNoOtherProcessInNamespaces) {
  if (!namespaces_) GTEST_SKIP() << CheckNamespaces();
  for (const std::string& attack :
       {absl::StrCat("done = access(\"", folder_, "/fusion.db\", F_OK) == 0;"),
        absl::StrCat("done = access(\"/proc/", getpid(), "\", F_OK) == 0;"),
        absl::StrCat("cpu_set_t all; done = sched_getaffinity(", getpid(), ", sizeof all, &all) == 0;")}) {
    const std::string bundle = BundleWith(attack);
    EXPECT_THAT(Measure(bundle, "cpu"), HasSubstr("HARM DONE")) << "no better than without";
    EXPECT_THAT(Measure(bundle, "cpu", /*namespaces=*/true), HasSubstr("refused: "));
  }
}

TEST_F(HostileKernels, OpensTheDatabase) {
  if (LevelOfThisMachine().landlock == 0) GTEST_SKIP() << "no Landlock: a kernel can open what its user can";
  ExpectRefused(absl::StrCat("done = open(\"", folder_, "/fusion.db\", O_RDONLY) >= 0;"));
  ExpectRefused(absl::StrCat("done = open(\"", folder_, "/fusion.db\", O_WRONLY) >= 0;"));
}

TEST_F(HostileKernels, ConnectsByTcp) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(listen(listener, 99), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length), 0);
  ExpectRefused(absl::StrReplaceAll(R"(
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = $PORT;
    done = connect(socket(AF_INET, SOCK_STREAM, 0), (sockaddr*)&address, sizeof address) == 0;
  )",
                                    {{"$PORT", absl::StrCat(address.sin_port)}}));
  close(listener);
}

TEST_F(HostileKernels, ConnectsToAUnixSocketByItsPath) {
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, (folder_ + "/fusion.sock").c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listener, 99), 0);
  ExpectRefused(absl::StrReplaceAll(R"(
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    strcpy(address.sun_path, "$PATH");
    done = connect(socket(AF_UNIX, SOCK_STREAM, 0), (sockaddr*)&address, sizeof address) == 0;
  )",
                                    {{"$PATH", folder_ + "/fusion.sock"}}));
  close(listener);
}

TEST_F(HostileKernels, Forks) {
  ExpectRefused("int child = fork(); if (child == 0) _exit(0); done = child > 0 && waitpid(child, 0, 0) == child;");
}

TEST_F(HostileKernels, StartsAProgram) {
  ExpectRefused(R"(
    pid_t child = 0;
    char name[] = "true";
    char* argv[] = {name, nullptr};
    done = posix_spawn(&child, "/bin/true", nullptr, nullptr, argv, environ) == 0 && waitpid(child, 0, 0) == child;
  )");
  // In its own place: the process then ends without a measurement.
  const std::string bundle = BundleWith("execl(\"/bin/echo\", \"echo\", \"HARM DONE\", (char*)0);");
  const auto output = [&](const char* confine, const char* more) {
    return RunChild({FUSION_MEASURE, bundle, "--threads", "1", "--confine", confine, more}, {})->stdout_text;
  };
  EXPECT_THAT(output("none", "--canaries"), HasSubstr("HARM DONE"));
  EXPECT_THAT(output("cpu", "--canaries"), HasSubstr("median_ns"));
  if (namespaces_) EXPECT_THAT(output("cpu", "--namespaces"), HasSubstr("median_ns"));
}

TEST_F(HostileKernels, KillsTheWorker) {
  ExpectRefused(absl::StrCat("done = kill(", getpid(), ", 0) == 0;"));
  ExpectRefused(absl::StrCat("int ends[2]; done = pipe(ends) == 0 && fcntl(ends[0], F_SETOWN, ", getpid(), ") == 0;"));
}

TEST_F(HostileKernels, WritesAFile) {
  ExpectRefused("done = open(\"/tmp\", O_TMPFILE | O_WRONLY, 0600) >= 0 || unlink(\"/tmp/none\") == 0;");
}

// Code that runs as soon as the library is loaded is confined as well.
TEST_F(HostileKernels, AttacksBeforeTheFirstKernel) {
  const std::string bundle = BundleWith(R"(
}
__attribute__((constructor)) static void early() {
  if (socket(AF_UNIX, SOCK_STREAM, 0) >= 0) write(2, "HARM DONE", 9);
}
static void unused() {
  bool done = false;
)");
  EXPECT_THAT(Measure(bundle, "none"), HasSubstr("HARM DONE"));
  EXPECT_THAT(Measure(bundle, "cpu"), Not(HasSubstr("HARM DONE")));
}

}  // namespace
}  // namespace fusion
