#include "worker/build/child_toolchain.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/backends/confinement/confinement.h"
#include "compiler/backends/process/child_process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Compilers are found by LD_LIBRARY_PATH, which leads to hostile ones.
class ChildToolchainTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const absl::Status can = CheckConfinement(); !can.ok()) GTEST_SKIP() << can;
    std::filesystem::create_directories(folder_ + "/lib");
    std::filesystem::create_directories(folder_ + "/tmp");
    for (const char* name : {"libnvrtc.so.13", "libOpenCL.so.1"}) {
      std::filesystem::copy_file(FUSION_HOSTILE_COMPILER, absl::StrCat(folder_, "/lib/", name));
    }
    std::ofstream(folder_ + "/token") << "a secret of the worker";
    setenv("LD_LIBRARY_PATH", (folder_ + "/lib").c_str(), 1);
  }
  ~ChildToolchainTest() override {
    for (const char* variable : {"LD_LIBRARY_PATH", "HOSTILE_ATTACK", "HOSTILE_VERSION"}) unsetenv(variable);
    std::filesystem::remove_all(folder_);
  }

  ChildToolchainOptions Options(bool confined) {
    ChildToolchainOptions options;
    options.program = FUSION_BUILD;
    options.kind = "cuda";
    options.jobs = 1;
    options.confined = confined;
    options.temp_folder = folder_ + "/tmp";
    return options;
  }
  std::unique_ptr<LocalToolchain> Make(const ChildToolchainOptions& options) {
    auto toolchain = MakeChildToolchain(options);
    EXPECT_TRUE(toolchain.ok()) << toolchain.status();
    return std::move(toolchain).value();
  }
  absl::StatusOr<std::vector<std::string>> Build(const std::string& text, bool confined = true,
                                                 const std::function<bool()>& cancelled = nullptr) {
    const auto result = Make(Options(confined))->Build({{"cuda", "sm_80", text}}, cancelled);
    EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/tmp")) << "nothing stays";
    return result;
  }
  // Returns the words of OpenCL's loader when it was loaded.
  static std::string LoadOpenCl(const std::string& attack, const std::string& confined, const std::string& folder) {
    setenv("HOSTILE_ATTACK", attack.c_str(), 1);
    ChildOptions options;
    options.working_directory = folder;
    const auto child = RunChild({FUSION_BUILD, "opencl", confined}, options);
    unsetenv("HOSTILE_ATTACK");
    EXPECT_TRUE(child.ok() && child->ok()) << (child.ok() ? child->stderr_text : child.status().ToString());
    return child.ok() ? child->stderr_text : "";
  }
  void ExpectRefused(const std::string& attack, bool of_drivers = true) {
    SCOPED_TRACE(attack);
    const auto open = Build(attack, /*confined=*/false), confined = Build(attack);
    ASSERT_TRUE(open.ok() && confined.ok()) << open.status() << confined.status();
    EXPECT_THAT(*open, ElementsAre("HARM DONE")) << "the attack does not work anyway";
    EXPECT_THAT(*confined, ElementsAre("refused"));
    if (!of_drivers) return;
    EXPECT_THAT(LoadOpenCl(attack, "--unconfined", folder_ + "/tmp"), HasSubstr("HARM DONE"));
    EXPECT_THAT(LoadOpenCl(attack, "--confined", folder_ + "/tmp"), HasSubstr("refused"));
  }

  const std::string folder_ = absl::StrCat("/tmp/fusion-child-toolchain-", getpid());
};

TEST_F(ChildToolchainTest, TellsTheCompilersVersionAndBuildsABatchInOneProcess) {
  const auto toolchain = Make(Options(true));
  EXPECT_STREQ(toolchain->kind(), "cuda");
  EXPECT_EQ(toolchain->version(), "NVRTC 66.6");
  const auto built = toolchain->Build({{"cuda", "sm_80", "a"}, {"cuda", "sm_80", "b"}}, nullptr);
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_THAT(*built, ElementsAre("refused", "refused"));
  EXPECT_TRUE(toolchain->Build({}, nullptr)->empty());
}

TEST_F(ChildToolchainTest, ConnectsByTcpOrToAUnixSocket) {
  const int by_tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  ASSERT_EQ(bind(by_tcp, reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(listen(by_tcp, 99), 0);
  ASSERT_EQ(getsockname(by_tcp, reinterpret_cast<sockaddr*>(&address), &length), 0);
  ExpectRefused(absl::StrCat("tcp ", ntohs(address.sin_port)));
  close(by_tcp);

  const int by_path = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un path = {};
  path.sun_family = AF_UNIX;
  std::strncpy(path.sun_path, (folder_ + "/fusion.sock").c_str(), sizeof path.sun_path - 1);
  ASSERT_EQ(bind(by_path, reinterpret_cast<sockaddr*>(&path), sizeof path), 0);
  ASSERT_EQ(listen(by_path, 99), 0);
  ExpectRefused(absl::StrCat("unix ", folder_, "/fusion.sock"));
  close(by_path);
}

TEST_F(ChildToolchainTest, ReadsOrWritesElsewhere) {
  if (LevelOfThisMachine().landlock == 0) GTEST_SKIP() << "no Landlock: paths stay open";
  ExpectRefused(absl::StrCat("read ", folder_, "/token"));
  ExpectRefused(absl::StrCat("write ", folder_, "/new"));
  ExpectRefused("read /tmp");
}

TEST_F(ChildToolchainTest, Kills) {
  if (LevelOfThisMachine().landlock >= 6) ExpectRefused(absl::StrCat("kill ", getpid()));
  ExpectRefused(absl::StrCat("kill ", getpid()), /*of_drivers=*/LevelOfThisMachine().landlock >= 6);
}

TEST_F(ChildToolchainTest, Forks) { ExpectRefused("fork", /*of_drivers=*/false); }

// The worker reads the binary with its own rights.
TEST_F(ChildToolchainTest, ALinkInPlaceOfABinaryIsNotFollowed) {
  for (const bool confined : {false, true}) {
    const absl::Status status = Build(absl::StrCat("link ", folder_, "/token"), confined).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(status.message()), HasSubstr("is no plain file"));
  }
}

TEST_F(ChildToolchainTest, ACrashIsOneBuildsFailureWithEvidence) {
  const absl::Status status = Build("crash").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << "the task is at fault, not the worker";
  EXPECT_THAT(std::string(status.message()), HasSubstr("NVRTC 66.6"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("was ended by signal 6"));
  EXPECT_EQ(Build("nothing").status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(Build("fine").value(), ElementsAre("refused"));
}

TEST_F(ChildToolchainTest, ACompilerThatHangsIsEndedWhenTheTaskIs) {
  std::atomic<int> asked{0};
  EXPECT_EQ(Build("hang", true, [&] { return ++asked > 2; }).status().code(), absl::StatusCode::kCancelled);
  ChildToolchainOptions options = Options(true);
  options.deadline = absl::Milliseconds(100);
  const absl::Status status = Make(options)->Build({{"cuda", "sm_80", "hang"}}, nullptr).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("did not finish within"));
}

TEST_F(ChildToolchainTest, ADriverThatHangsWhenLoadedIsNoToolchain) {
  setenv("HOSTILE_ATTACK", "hang", 1);
  ChildToolchainOptions options = Options(true);
  options.ask_deadline = absl::Milliseconds(100);
  const absl::Status status = MakeChildToolchain(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("did not finish within"));
}

TEST_F(ChildToolchainTest, TheCompilersErrorsAreItsOwn) {
  const absl::Status error = Build("error").status();
  EXPECT_EQ(error.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(error.message()), HasSubstr("line 1 has an error"));
  const auto toolchain = Make(Options(true));
  const absl::Status unknown = toolchain->Build({{"cuda", "sm_12", "a"}}, nullptr).status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("sm_80"));
  EXPECT_EQ(toolchain->Build({{"cpu", "sm_80", "a"}}, nullptr).status().code(), absl::StatusCode::kInvalidArgument);
}

// A text that could make workers say that they are broken could have them all sent away.
TEST_F(ChildToolchainTest, ATextCannotBlameTheWorker) {
  EXPECT_EQ(Build("blame").status().code(), absl::StatusCode::kInternal);
}

TEST_F(ChildToolchainTest, ACompilerThatWasReplacedBuildsNothing) {
  const auto toolchain = Make(Options(true));
  setenv("HOSTILE_VERSION", "67", 1);
  const absl::Status status = toolchain->Build({{"cuda", "sm_80", "a"}}, nullptr).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("NVRTC 67.6"));
}

TEST_F(ChildToolchainTest, AMissingCompilerIsTold) {
  ChildToolchainOptions options = Options(true);
  options.kind = "abacus";
  const absl::Status status = MakeChildToolchain(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("abacus"));
  options.program = "/no/such/program";
  EXPECT_FALSE(MakeChildToolchain(options).ok());
}

// The compilers of this machine, where it has any.
TEST(RealCompilers, MakeTheSameBinariesConfined) {
  if (const absl::Status can = CheckConfinement(); !can.ok()) GTEST_SKIP() << can;
  int compared = 0;
  const std::vector<std::vector<std::string>> cases = {
      {"cuda", "sm_80", "extern \"C\" __global__ void twice(float* x) { x[blockIdx.x] *= 2; }\n"},
      {"opencl", "", "__kernel void twice(__global float* x, long o) { x[get_group_id(0)] *= 2; }\n"}};
  for (const auto& one : cases) {
    ChildToolchainOptions options;
    options.program = FUSION_BUILD;
    options.kind = one[0];
    options.confined = false;
    const auto open = MakeChildToolchain(options);
    if (!open.ok()) continue;
    options.confined = true;
    const auto confined = MakeChildToolchain(options);
    ASSERT_TRUE(confined.ok()) << confined.status();
    EXPECT_EQ((*confined)->version(), (*open)->version());
    const BuildUnit unit = {one[0], one[1], one[2]};
    const auto binaries = (*confined)->Build({unit, unit}, nullptr);
    ASSERT_TRUE(binaries.ok()) << binaries.status();
    EXPECT_THAT((*binaries)[0], Not(testing::IsEmpty()));
    const auto unconfined = (*open)->Build({unit, unit}, nullptr);
    ASSERT_TRUE(unconfined.ok()) << unconfined.status();
    EXPECT_EQ(binaries->front().size(), unconfined->front().size()) << one[0];
    EXPECT_EQ((*confined)->Build({{one[0], one[1], "undeclared text"}}, nullptr).ok(),
              (*open)->Build({{one[0], one[1], "undeclared text"}}, nullptr).ok());
    ++compared;
  }
  if (compared == 0) GTEST_SKIP() << "no NVRTC and no OpenCL here";
}

}  // namespace
}  // namespace fusion
