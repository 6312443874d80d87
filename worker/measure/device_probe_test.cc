#include "worker/measure/device_probe.h"

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/measure/host_facts.h"

namespace fusion {
namespace {

TEST(HostCaches, GrowOutward) {
  const std::vector<CacheLevel> caches = HostCaches();
  ASSERT_FALSE(caches.empty());
  for (size_t i = 1; i < caches.size(); ++i) EXPECT_GT(caches[i].size_bytes, caches[i - 1].size_bytes);
  EXPECT_EQ(LastLevelCacheBytes(), caches.back().size_bytes);
  for (const CacheLevel& cache : caches) {
    EXPECT_GE(cache.line_bytes, 16) << cache.level;
    EXPECT_EQ(cache.line_bytes & (cache.line_bytes - 1), 0) << cache.level;
  }
}

TEST(ProbeCpu, MeasuresWhatPlanningReads) {
  const std::string cache = testing::TempDir() + "/device_probe_test.json";
  std::filesystem::remove(cache);
  auto model = ProbeCpuCached(0, "clang 14", cache);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->kind, "cpu");
  EXPECT_EQ(model->toolchain, "clang 14");
  EXPECT_EQ(model->parallel_units, UsableCores());
  // The test does not judge how fast the machine is at the moment.
  EXPECT_GT(model->fma_f32_flops_per_s, 0);
  EXPECT_GT(model->special_cycles_ratio, 0);
  EXPECT_GT(model->launch_s, 0);
  EXPECT_GE(model->barrier_s, 0);
  EXPECT_EQ(model->fewer_threads.empty(), UsableCores() == 1);
  for (const ThreadsBarrier& barrier : model->fewer_threads) EXPECT_LT(barrier.threads, UsableCores());
  // One thread waits for nobody.
  EXPECT_EQ(model->BarrierSeconds(1), 0);
  EXPECT_EQ(model->line_bytes, HostCaches().back().line_bytes);
  ASSERT_GE(model->memory.size(), 2);
  EXPECT_EQ(model->memory.back().name, "DRAM");
  EXPECT_EQ(model->memory.back().size_bytes, 0);
  for (const MemoryLevel& level : model->memory) EXPECT_GT(level.bandwidth_bytes_per_s, 0) << level.name;

  // From the file: equal to the last digit.
  auto again = ProbeCpuCached(0, "clang 14", cache);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->fma_f32_flops_per_s, model->fma_f32_flops_per_s);
  // Another toolchain: measured again.
  auto other = ProbeCpuCached(0, "clang 15", cache);
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(other->toolchain, "clang 15");
}

}  // namespace
}  // namespace fusion
