// Uses a CUDA driver that runs on the CPU (runtime/devices/cuda/testing).
#include "worker/measure/cuda_probe.h"

#include <gtest/gtest.h>

#include "runtime/devices/cuda/testing/use_shim_driver.h"

namespace fusion {
namespace {

TEST(CudaProbe, RatesFollowFromTheDriversFacts) {
  ASSERT_TRUE(UseCudaShimDriver().ok());
  const auto model = ProbeCuda();
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->kind, "cuda");
  EXPECT_EQ(model->name, "CUDA on the processor");
  EXPECT_EQ(model->isa, "sm_90");
  EXPECT_EQ(model->toolchain, "CUDA driver 12.0");
  EXPECT_EQ(model->parallel_units, 2);
  EXPECT_EQ(model->product_library, "cuBLASLt 13.0.0");
  EXPECT_EQ(model->convolution_library, "cuDNN 9.1.0");
  EXPECT_EQ(model->persistent_groups, 4);  // 2 per multiprocessor of sm_90
  EXPECT_EQ(model->unit_limits.registers, 65536);
  EXPECT_EQ(model->unit_limits.shared_bytes, 100 << 10);
  EXPECT_EQ(model->unit_limits.reserved_bytes, 1024);
  EXPECT_EQ(model->unit_limits.work_items, 1536);
  EXPECT_EQ(model->unit_limits.work_groups, 24);
  EXPECT_DOUBLE_EQ(model->fma_f32_flops_per_s, 256e9);                     // 128 lanes at 1 GHz
  EXPECT_DOUBLE_EQ(model->memory.back().bandwidth_bytes_per_s * 2, 32e9);  // 16 bytes, twice per cycle of 1 GHz
  ASSERT_EQ(model->memory.size(), 3u);
  EXPECT_EQ(model->memory[1].size_bytes, 1 << 20);
  EXPECT_GT(model->memory[1].bandwidth_bytes_per_s, model->memory[2].bandwidth_bytes_per_s);
  const auto again = DeviceModelFromJson(DeviceModelToJson(*model));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->Fingerprint(), model->Fingerprint());
}

}  // namespace
}  // namespace fusion
