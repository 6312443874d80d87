#include "compiler/backends/cpu/toolchain/clang_toolchain.h"

#include <dlfcn.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
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

TEST(ClangToolchain, VersionNamesClang) { EXPECT_THAT(MakeToolchain()->version(), testing::StartsWith("clang 1")); }

TEST(ClangToolchain, BuiltTextRuns) {
  auto binaries = MakeToolchain()->Build(
      {Unit("extern \"C\" __attribute__((visibility(\"default\"))) int twice(int x) { return 2 * x; }")});
  ASSERT_TRUE(binaries.ok()) << binaries.status();
  const std::string path = testing::TempDir() + "/clang_toolchain_test.so";
  std::ofstream(path, std::ios::binary) << binaries->front();
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr) << dlerror();
  auto* twice = reinterpret_cast<int (*)(int)>(dlsym(handle, "twice"));
  ASSERT_NE(twice, nullptr);
  EXPECT_EQ(twice(21), 42);
  dlclose(handle);
  std::remove(path.c_str());
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
