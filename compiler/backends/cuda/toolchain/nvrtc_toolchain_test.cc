#include "compiler/backends/cuda/toolchain/nvrtc_toolchain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fusion {
namespace {

using ::testing::HasSubstr;

constexpr char kTwice[] = "extern \"C\" __global__ void twice(float* x) { x[blockIdx.x] *= 2; }\n";

class NvrtcToolchainTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto toolchain = MakeNvrtcToolchain();
    if (!toolchain.ok()) {
      EXPECT_EQ(toolchain.status().code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_THAT(std::string(toolchain.status().message()), HasSubstr("install the CUDA toolkit"));
      GTEST_SKIP() << toolchain.status();
    }
    toolchain_ = *std::move(toolchain);
  }

  std::unique_ptr<LocalToolchain> toolchain_;
};

TEST_F(NvrtcToolchainTest, MakesCubinsForEachArchitecture) {
  EXPECT_THAT(toolchain_->version(), HasSubstr("NVRTC"));
  const auto cubins = toolchain_->Build({{"cuda", "sm_80", kTwice}, {"cuda", "sm_90", kTwice}}, nullptr);
  ASSERT_TRUE(cubins.ok()) << cubins.status();
  ASSERT_EQ(cubins->size(), 2u);
  for (const std::string& cubin : *cubins) {
    EXPECT_EQ(cubin.substr(0, 4), "\177ELF");
    EXPECT_THAT(cubin, HasSubstr("twice"));
  }
  EXPECT_NE((*cubins)[0], (*cubins)[1]);
}

TEST_F(NvrtcToolchainTest, TheSameTextIsTheSameBytes) {
  const auto one = toolchain_->Build({{"cuda", "sm_80", kTwice}}, nullptr);
  const auto other = toolchain_->Build({{"cuda", "sm_80", kTwice}}, nullptr);
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_EQ(*one, *other);
}

TEST_F(NvrtcToolchainTest, TheCompilersLogIsInTheError) {
  const auto cubins = toolchain_->Build({{"cuda", "sm_80", "__global__ void f() { undeclared; }"}}, nullptr);
  EXPECT_EQ(cubins.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(cubins.status().message()), HasSubstr("undeclared"));
}

TEST_F(NvrtcToolchainTest, AnArchitectureItDoesNotKnowIsRefusedWithThoseItKnows) {
  for (const char* march : {"sm_12", "sm_80; rm", "x86-64-v4", ""}) {
    const auto cubins = toolchain_->Build({{"cuda", march, kTwice}}, nullptr);
    EXPECT_EQ(cubins.status().code(), absl::StatusCode::kInvalidArgument) << march;
    EXPECT_THAT(std::string(cubins.status().message()), HasSubstr("sm_80")) << march;
  }
}

TEST_F(NvrtcToolchainTest, StopsWhenCancelled) {
  const auto cubins = toolchain_->Build({{"cuda", "sm_80", kTwice}}, [] { return true; });
  EXPECT_EQ(cubins.status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace fusion
