#include "runtime/devices/cuda/context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/devices/cuda/cuda_device.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

TEST(CudaContext, CodeRunsWithinItsMajorVersion) {
  cuda::DeviceFacts device;
  device.name = "some GPU";
  device.major = 8, device.minor = 6;
  EXPECT_TRUE(cuda::CheckRuns(device, "sm_80").ok());
  EXPECT_TRUE(cuda::CheckRuns(device, "sm_86").ok());
  for (const char* other : {"sm_89", "sm_75", "sm_90", "sm_100"}) {
    const absl::Status status = cuda::CheckRuns(device, other);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << other;
    EXPECT_THAT(std::string(status.message()), HasSubstr("compile the model for cuda:sm_86"));
  }
  device.major = 10, device.minor = 0;
  EXPECT_TRUE(cuda::CheckRuns(device, "sm_100").ok());
  for (const char* bad : {"", "sm_", "90", "sm_9", "avx512"}) {
    EXPECT_EQ(cuda::CheckRuns(device, bad).code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST(CudaContext, WithoutADriverABundleSaysSo) {
  if (cuda::FindDevices().ok()) GTEST_SKIP() << "this machine has a GPU";
  Manifest manifest;
  manifest.target = "cuda";
  manifest.isa = "sm_90";
  const absl::Status status = MakeCudaDevice()->CheckSupported(manifest);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the bundle is for cuda:sm_90; "));
  EXPECT_THAT(std::string(status.message()), HasSubstr("this machine"));
}

}  // namespace
}  // namespace fusion
