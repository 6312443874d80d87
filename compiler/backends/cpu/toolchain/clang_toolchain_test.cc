#include "compiler/backends/cpu/toolchain/clang_toolchain.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "compiler/backends/confinement/confinement.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

BuildUnit Unit(const std::string& source, const std::string& march = "x86-64-v3") { return {"cpu", march, source}; }

std::unique_ptr<ClangToolchain> MakeToolchain() {
  auto toolchain = ClangToolchain::Create();
  return std::move(toolchain).value();
}

// A built library, until it leaves the scope.
class Loaded {
 public:
  explicit Loaded(const std::string& binary) : path_(testing::TempDir() + "/clang_toolchain_test.so") {
    std::ofstream(path_, std::ios::binary) << binary;
    handle_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(handle_, nullptr) << dlerror();
  }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;
  ~Loaded() {
    if (handle_ != nullptr) dlclose(handle_);
    std::remove(path_.c_str());
  }
  // nullptr where there is no such function.
  void* Find(const char* function) const { return handle_ == nullptr ? nullptr : dlsym(handle_, function); }

 private:
  const std::string path_;
  void* handle_ = nullptr;
};

TEST(ClangToolchain, VersionNamesClang) { EXPECT_THAT(MakeToolchain()->version(), testing::StartsWith("clang 1")); }

// Two builders with one digest are expected to make the same bytes.
TEST(ClangToolchain, TheDigestTellsCompilersApart) {
  const std::string digest = MakeToolchain()->digest();
  EXPECT_EQ(digest.size(), 64u);
  EXPECT_EQ(MakeToolchain()->digest(), digest);
  EXPECT_TRUE(MakeToolchain()->reproduces());
  ClangToolchainOptions options;
  options.compiler = testing::TempDir() + "/another-clang++";
  std::ofstream(options.compiler) << "#!/bin/sh\nexec clang++ \"$@\"\n";
  std::filesystem::permissions(options.compiler, std::filesystem::perms::owner_all);
  const auto another = ClangToolchain::Create(options);
  ASSERT_TRUE(another.ok()) << another.status();
  EXPECT_EQ((*another)->version(), MakeToolchain()->version());
  EXPECT_NE((*another)->digest(), digest);
}

TEST(ClangToolchain, BuiltTextRuns) {
  auto binaries = MakeToolchain()->Build(
      {Unit("extern \"C\" __attribute__((visibility(\"default\"))) int twice(int x) { return 2 * x; }")});
  ASSERT_TRUE(binaries.ok()) << binaries.status();
  const Loaded loaded(binaries->front());
  auto* twice = reinterpret_cast<int (*)(int)>(loaded.Find("twice"));
  ASSERT_NE(twice, nullptr);
  EXPECT_EQ(twice(21), 42);
}

// LLVM 14 on its own reads bytes 0, 1, 2 … of `b` where y is not 0.
TEST(ClangToolchain, AddressesOfSeveralBranchesKeepTheirScales) {
  constexpr char kPad[] = R"(
extern "C" __attribute__((visibility("default"))) void pad(const char* bytes, float* out) {
  const float* b = (const float*)(bytes + 0);
  for (long x = 0; x < 6; ++x) {
    for (long y = 0; y < 5; ++y) {
      for (long z = 0; z < 12; ++z) {
        float value;
        if (y < 1) {
          if (x < 4) value = b[0]; else { if (x < 5) value = b[4]; else value = b[8]; }
        } else {
          if (x < 4) value = b[y - 1]; else { if (x < 5) value = b[y + 3]; else value = b[y + 7]; }
        }
        out[60 * x + 12 * y + z] = value;
      }
    }
  }
})";
  ClangToolchainOptions options;
  options.more_flags = {"-O1"};
  const auto toolchain = ClangToolchain::Create(options);
  ASSERT_TRUE(toolchain.ok()) << toolchain.status();
  const auto binaries = (*toolchain)->Build({Unit(kPad)});
  ASSERT_TRUE(binaries.ok()) << binaries.status();
  const Loaded loaded(binaries->front());
  auto* pad = reinterpret_cast<void (*)(const float*, float*)>(loaded.Find("pad"));
  ASSERT_NE(pad, nullptr);
  float b[12], out[6 * 5 * 12];
  std::iota(b, b + 12, 1.0f);
  pad(b, out);
  for (int x = 0; x < 6; ++x) {
    for (int y = 0; y < 5; ++y) {
      const float want = b[4 * std::clamp(x - 3, 0, 2) + std::max(y - 1, 0)];
      for (int z = 0; z < 12; ++z) EXPECT_EQ(out[60 * x + 12 * y + z], want) << x << " " << y << " " << z;
    }
  }
}

TEST(ClangToolchain, SeveralUnitsKeepTheirOrderAndAreReproducible) {
  std::vector<BuildUnit> units;
  units.reserve(5);
  for (int i = 0; i < 5; ++i) {
    units.push_back(
        Unit(absl::StrCat("extern \"C\" __attribute__((visibility(\"default\"))) int f() { return ", i, "; }")));
  }
  auto toolchain = MakeToolchain();
  auto first = toolchain->Build(units);
  auto second = toolchain->Build(units);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(*first, *second);
  EXPECT_NE((*first)[0], (*first)[1]);
}

TEST(ClangToolchain, AConfinedCompilerMakesTheSameBytes) {
  if (const absl::Status can = CheckConfinement(); !can.ok()) GTEST_SKIP() << can;
  ClangToolchainOptions options;
  options.launcher = {FUSION_CONFINE};
  const auto confined = ClangToolchain::Create(options);
  ASSERT_TRUE(confined.ok()) << confined.status();
  const std::vector<BuildUnit> units = {Unit("#include <math.h>\nextern \"C\" float f(float x) { return expf(x); }")};
  const auto binaries = (*confined)->Build(units);
  ASSERT_TRUE(binaries.ok()) << binaries.status();
  EXPECT_EQ(*binaries, MakeToolchain()->Build(units).value());
  EXPECT_THAT(std::string((*confined)->Build({Unit("syntax error")}).status().message()), HasSubstr("error:"));
}

// A compiler that the text of a kernel has taken over: a script that does harm before it compiles.
TEST(ClangToolchain, ACompilerThatConnectsOrReadsTheDatabaseIsRefused) {
  if (const absl::Status can = CheckConfinement(); !can.ok()) GTEST_SKIP() << can;
  const std::string folder = absl::StrCat("/tmp/fusion-hostile-compiler-", getpid());
  std::filesystem::create_directories(folder + "/toolchain/bin");
  std::ofstream(folder + "/fusion.db") << "models of others";
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length), 0);
  ASSERT_EQ(listen(listener, 9), 0);
  std::vector<std::string> attacks = {absl::StrCat("exec 3<>/dev/tcp/127.0.0.1/", ntohs(address.sin_port)),
                                      absl::StrCat("kill -0 ", getpid())};
  if (LevelOfThisMachine().landlock > 0) {
    attacks.push_back(absl::StrCat("cat ", folder, "/fusion.db"));
    attacks.push_back(absl::StrCat("echo x > ", folder, "/new"));
  }
  for (const std::string& attack : attacks) {
    ClangToolchainOptions options;
    options.compiler = folder + "/toolchain/bin/clang++";
    std::ofstream(options.compiler) << "#!/bin/bash\n[ \"$1\" = --version ] && exec clang++ --version\n(" << attack
                                    << ") >/dev/null 2>&1 && { echo HARM DONE >&2; exit 1; }\nexec clang++ \"$@\"\n";
    std::filesystem::permissions(options.compiler, std::filesystem::perms::owner_all);
    const auto build = [&] {
      auto toolchain = ClangToolchain::Create(options);
      EXPECT_TRUE(toolchain.ok()) << toolchain.status();
      return (*toolchain)->Build({Unit("extern \"C\" int f() { return 1; }")}).status();
    };
    EXPECT_THAT(std::string(build().message()), HasSubstr("HARM DONE")) << attack << " does not work anyway";
    options.launcher = {FUSION_CONFINE};
    const absl::Status confined = build();
    EXPECT_TRUE(confined.ok()) << attack << ": " << confined;
  }
  close(listener);
  std::filesystem::remove_all(folder);
}

// The worker reads the result with its own rights.
TEST(ClangToolchain, ACompilerThatLeavesALinkInPlaceOfItsResultReadsNothing) {
  const std::string folder = absl::StrCat(testing::TempDir(), "/clang_toolchain_link_", getpid());
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/token") << "a secret of the worker";
  ClangToolchainOptions options;
  options.compiler = folder + "/clang++";
  std::ofstream(options.compiler) << "#!/bin/sh\n[ \"$1\" = --version ] && exec clang++ --version\n"
                                  << "clang++ \"$@\" || exit 1\nln -s " << folder << "/token kernel.so\n";
  std::filesystem::permissions(options.compiler, std::filesystem::perms::owner_all);
  options.launcher = {"/bin/sh", "-c", "case $0 in *clang++) exec \"$0\" \"$@\";; esac"};  // ld does nothing
  const auto toolchain = ClangToolchain::Create(options);
  ASSERT_TRUE(toolchain.ok()) << toolchain.status();
  const auto binaries = (*toolchain)->Build({Unit("extern \"C\" int f() { return 1; }")});
  EXPECT_EQ(binaries.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(binaries.status().message()), HasSubstr("is no plain file"));
  std::filesystem::remove_all(folder);
}

TEST(ClangToolchain, DiagnosticIsInternalAndNothingStays) {
  const std::string folder = testing::TempDir() + "/clang_toolchain_empty";
  std::filesystem::create_directories(folder);
  ClangToolchainOptions options;
  options.temp_folder = folder;
  auto toolchain = ClangToolchain::Create(options);
  ASSERT_TRUE(toolchain.ok());
  auto binaries = (*toolchain)->Build({Unit("int f() { return undeclared; }")});
  EXPECT_EQ(binaries.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(binaries.status().message()), HasSubstr("undeclared"));
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST(ClangToolchain, RefusesAMarchThatIsNoName) {
  auto binaries = MakeToolchain()->Build({Unit("", "native -o /etc/passwd")});
  EXPECT_EQ(binaries.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ClangToolchain, CancelledWhileCompiling) {
  ClangToolchainOptions options;
  options.cancelled = [] { return true; };
  auto toolchain = ClangToolchain::Create(options);
  ASSERT_TRUE(toolchain.ok());
  std::string text;  // builds for about a second, so that the cancellation comes first
  for (int i = 0; i < 20000; ++i) absl::StrAppend(&text, "int f", i, "(int x) { return x * ", i, " + x / 7; }\n");
  auto binaries = (*toolchain)->Build({Unit(text)});
  EXPECT_EQ(binaries.status().code(), absl::StatusCode::kCancelled);
}

TEST(ClangToolchain, MissingCompilerSaysWhatToInstall) {
  ClangToolchainOptions options;
  options.compiler = "/no/such/clang++";
  auto toolchain = ClangToolchain::Create(options);
  EXPECT_EQ(toolchain.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(toolchain.status().message()), HasSubstr("apt-get install clang"));
}

}  // namespace
}  // namespace fusion
