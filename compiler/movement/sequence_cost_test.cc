#include "compiler/movement/sequence_cost.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/nest/form_stages.h"
#include "compiler/schedule/schedule_fusion_block.h"

namespace fusion::movement {
namespace {

// Arithmetic is so fast that memory decides.
DeviceModel Core() {
  DeviceModel device;
  device.fma_f32_flops_per_s = 1e14;
  device.memory = {{"L1", 32 << 10, 2.2e11, false},
                   {"L2", 1 << 20, 7e10, false},
                   {"L3", 32 << 20, 2.4e10, true},
                   {"DRAM", 0, 1e10, true}};
  return device;
}

const double kLaunch = Core().LaunchSeconds(1);

// Adds 1 to `elements` floats.
Kernel Map(int64_t elements) {
  const std::string text =
      absl::StrCat("te p(%0: f32[", elements, "]) {\n  %1[i0<", elements, "]: f32 = add(%0[i0], 1.0)\n  return %1\n}");
  return ScheduleFusionBlock(FormStages(te::Parse(text).value()).value(), {}, Core()).value().kernel;
}

double Seconds(const std::vector<SequenceLaunch>& launches) { return 1e-9 * EstimateSequence(launches, Core(), 1); }

// Reads, and stores of which each reads its line first, of `elements` floats at a rate.
double Copy(int64_t elements, double bytes_per_s) { return 3 * 4.0 * static_cast<double>(elements) / bytes_per_s; }

TEST(EstimateSequence, WhatFitsTheCachesStaysThereFromRunToRun) {
  const Kernel small = Map(16 << 10), huge = Map(32 << 20);
  EXPECT_NEAR(Seconds({{&small, {"x", "y"}, {}}}), kLaunch + Copy(16 << 10, 7e10), 1e-8);
  EXPECT_NEAR(Seconds({{&huge, {"x", "y"}, {}}}), kLaunch + Copy(32 << 20, 1e10), 1e-8);
}

TEST(EstimateSequence, AConsumerFindsWhatItsProducerLeft) {
  const Kernel map = Map(64 << 10);
  const SequenceLaunch producer{&map, {"x", "y"}, {}}, consumer{&map, {"y", "z"}, {}}, other{&map, {"u", "v"}, {}};
  // Between the two runs of the producer and its consumer, 32 MB pass.
  const Kernel flush = Map(4 << 20);
  const SequenceLaunch between{&flush, {"a", "b"}, {}};
  EXPECT_LT(Seconds({producer, consumer, between}), Seconds({producer, other, between}));
  EXPECT_LT(Seconds({producer, consumer, between}), Seconds({producer, between, consumer}));
}

TEST(EstimateSequence, ABatchIsOneLaunch) {
  const Kernel map = Map(1 << 10);
  const double one = Seconds({{&map, {"x", "y"}, {}}});
  const double two = Seconds({{&map, {"x", "y"}, {}}, {&map, {"u", "v"}, {}}});
  const double batch = Seconds({{&map, {"x", "y"}, {{"u", "v"}}}});
  EXPECT_NEAR(two, 2 * one, 1e-9);
  EXPECT_NEAR(batch, two - Core().LaunchSeconds(1), 1e-9);
  EXPECT_NEAR(Seconds({{&map, {"x", "y"}, {}}, {&map, {"u", "v"}, {}, /*concurrent=*/true}}), batch, 1e-9);
}

TEST(EstimateSequence, AResultInPlaceOfItsOperandIsStoredToTheNearestCache) {
  const Kernel map = Map(16 << 10);
  const double bytes = 4 * (16 << 10);
  // Nobody reads y behind the last of its readers, which may write over it.
  const SequenceLaunch first{&map, {"x", "y"}, {}}, second{&map, {"y", "z"}, {}}, third{&map, {"y", "u"}, {}};
  const double again = Seconds({first, second, third}), once = Seconds({first, second});
  EXPECT_NEAR(once, 2 * kLaunch + (4 * bytes) / 7e10 + bytes / 2.2e11, 1e-8);
  EXPECT_NEAR(again, once + kLaunch + (3 * bytes) / 7e10, 1e-8);
}

TEST(EstimateSequence, ResultsAreWrittenWhereOthersWere) {
  const Kernel map = Map(64 << 10);  // 256 KB
  // 16 results one after another, of which two are alive at a time: the arena stays in the cache.
  std::vector<SequenceLaunch> chain;
  std::vector<std::string> names;
  for (int i = 0; i <= 16; ++i) names.push_back(absl::StrCat("v", i));
  for (int i = 0; i < 16; ++i) chain.push_back({&map, {names[i], names[i + 1]}, {}});
  std::vector<SequenceLaunch> all_alive = chain;
  for (int i = 16; i > 0; --i) all_alive.push_back({&map, {names[i], "z"}, {}});
  EXPECT_LT(Seconds(chain), 16 * (kLaunch + Copy(64 << 10, 7e10)));
  EXPECT_GT(Seconds(all_alive), 2.5 * Seconds(chain));
}

}  // namespace
}  // namespace fusion::movement
