#include "worker/measure/opencl_probe.h"

#include <gtest/gtest.h>

#include "runtime/devices/opencl/context.h"

namespace fusion {
namespace {

TEST(OpenClProbe, MeasuresTheDeviceThatTheRuntimeTakes) {
  const auto context = opencl::Context::Create();
  if (!context.ok()) GTEST_SKIP() << context.status();
  const auto model = ProbeOpenCl();
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->kind, "opencl");
  EXPECT_EQ(model->name, (*context)->device().name);
  EXPECT_EQ(model->parallel_units, (*context)->device().compute_units);
  EXPECT_EQ(model->work_group_size == 1, (*context)->device().is_cpu);
  // The test does not judge how fast the machine is at the moment.
  EXPECT_GT(model->fma_f32_flops_per_s, 0);
  EXPECT_GE(model->special_cycles_ratio, 1);
  EXPECT_EQ(model->persistent_groups > 0, (*context)->device().persistent_groups > 1);
  if (model->persistent_groups > 0) {
    EXPECT_GT(model->barrier_s, 0);
  }
  EXPECT_GT(model->launch_s, 0);
  ASSERT_GE(model->memory.size(), 2u);
  EXPECT_EQ(model->memory.front().name, "local");
  EXPECT_LE(model->memory.front().size_bytes, (*context)->device().local_bytes);
  for (const MemoryLevel& level : model->memory) EXPECT_GT(level.bandwidth_bytes_per_s, 0) << level.name;
  const auto again = DeviceModelFromJson(DeviceModelToJson(*model));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->Fingerprint(), model->Fingerprint());
}

}  // namespace
}  // namespace fusion
