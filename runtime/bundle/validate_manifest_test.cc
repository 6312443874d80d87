#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/bundle/manifest.h"
#include "runtime/bundle/testing/small_manifest.h"

namespace fusion {
namespace {

using ::fusion::testing::SmallManifest;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ValidateManifest, ValidationNamesTheOffender) {
  const auto why = [](auto change) {
    Manifest manifest = SmallManifest({0, 0, 64});
    manifest.digests["kernels/cpu.so"] = "";
    EXPECT_TRUE(ValidateManifest(manifest, 80).ok());
    change(manifest);
    return std::string(ValidateManifest(manifest, 80).message());
  };
  EXPECT_THAT(why([](Manifest& m) { m.buffers[3].offset = 192; }), HasSubstr("buffer 3 't'"));
  EXPECT_THAT(why([](Manifest& m) { m.buffers[3].offset = 8; }), HasSubstr("multiple of 64"));
  EXPECT_THAT(why([](Manifest& m) { m.buffers[2].offset = 128; }), HasSubstr("the weights at 80"));
  EXPECT_THAT(why([](Manifest& m) { m.buffers[2].offset = INT64_MAX; }), HasSubstr("offset"));
  EXPECT_THAT(why([](Manifest& m) { m.buffers[0].size_bytes = 12; }), HasSubstr("does not hold"));
  EXPECT_THAT(why([](Manifest& m) { m.buffers[0].shape = {-2, 3}; }), HasSubstr("negative"));
  EXPECT_THAT(why([](Manifest& m) { m.inputs[0].buffer = 9; }), HasSubstr("no buffer 9"));
  EXPECT_THAT(why([](Manifest& m) { m.inputs[0].buffer = 4; }), HasSubstr("input buffer of its own"));
  EXPECT_THAT(why([](Manifest& m) { m.inputs[0].shape = {7}; }), HasSubstr("28 bytes"));
  EXPECT_THAT(why([](Manifest& m) { m.launches[0].kernel = -1; }), HasSubstr("no kernel -1"));
  EXPECT_THAT(why([](Manifest& m) { m.launches[0].buffers[0] = 5; }), HasSubstr("no buffer 5"));
  EXPECT_THAT(why([](Manifest& m) { m.kernels[0].file = "kernels/none.so"; }), HasSubstr("kernels/none.so"));
  EXPECT_THAT(why([](Manifest& m) { m.kernels[0].phases[0].symbol = "a b"; }), HasSubstr("C identifier"));
  EXPECT_THAT(why([](Manifest& m) { m.arena_bytes = INT64_MAX; }), HasSubstr("arena_bytes"));
}

// Two launches, of which the second repeats: it reads its slice of the arena and writes over the one before.
Manifest Repeating() {
  Manifest manifest = SmallManifest({0, 0, 64});
  manifest.digests["kernels/cpu.so"] = "";
  manifest.format = 10;
  manifest.arena_bytes = 192;
  manifest.buffers[3].steps = BufferSteps{0, 1, -1, 2, 64};
  manifest.launches.push_back({0, {0, 1, 3}, "step", {}, 0, 0});
  manifest.repeats = {{1, 2, 100}};
  return manifest;
}

TEST(ValidateManifest, RepeatsAndWhatMovesWithThem) {
  const Manifest valid = Repeating();
  ASSERT_TRUE(ValidateManifest(valid, 80).ok()) << ValidateManifest(valid, 80);
  const auto parsed = ParseManifest(SerializeManifest(valid));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(SerializeManifest(*parsed), SerializeManifest(valid));
  ASSERT_EQ(parsed->repeats.size(), 1u);
  EXPECT_EQ(parsed->TripsOf(0), 1);
  EXPECT_EQ(parsed->TripsOf(1), 100);
  ASSERT_TRUE(parsed->buffers[3].steps.has_value());
  EXPECT_EQ(parsed->buffers[3].steps->OffsetAt(0), 64);
  EXPECT_EQ(parsed->buffers[3].steps->OffsetAt(1), 0);
  EXPECT_EQ(parsed->buffers[3].steps->OffsetAt(2), 64);
  const auto why = [](auto change) {
    Manifest manifest = Repeating();
    change(manifest);
    return std::string(ValidateManifest(manifest, 80).message());
  };
  EXPECT_THAT(why([](Manifest& m) { m.format = 9; }), HasSubstr("format 10 and target cpu"));
  EXPECT_THAT(why([](Manifest& m) { m.target = "cuda"; }), HasSubstr("format 10 and target cpu"));
  EXPECT_THAT(why([](Manifest& m) { m.repeats[0].end = 3; }), HasSubstr("launches 1 to 3 of 2"));
  EXPECT_THAT(why([](Manifest& m) { m.repeats[0].end = 1; }), HasSubstr("launches 1 to 1"));
  EXPECT_THAT(why([](Manifest& m) { m.repeats[0].first = -1; }), HasSubstr("launches -1"));
  EXPECT_THAT(why([](Manifest& m) { m.repeats[0].trips = 0; }), HasSubstr("0 iterations"));
  EXPECT_THAT(why([](Manifest& m) { m.repeats[0].trips = INT64_MAX; }), HasSubstr("iterations"));
  EXPECT_THAT(why([](Manifest& m) { m.repeats.push_back({0, 1, 2}); }), HasSubstr("repeat 1"));
  EXPECT_THAT(why([](Manifest& m) { m.launches[1].concurrent = true; }), HasSubstr("the edge of repeat 0"));
  EXPECT_THAT(why([](Manifest& m) { m.launches[0].buffers[0] = 3; }), HasSubstr("moves with another repeat"));
  EXPECT_THAT(why([](Manifest& m) { m.buffers[3].steps->repeat = 1; }), HasSubstr("one of 1 repeats"));
  EXPECT_THAT(why([](Manifest& m) { m.buffers[4].steps = BufferSteps{0, 0, 1, 1, 0}; }), HasSubstr("of the arena"));
  EXPECT_THAT(why([](Manifest& m) { m.buffers[3].steps->first = 2; }), HasSubstr("from slot 2 of 2"));
  EXPECT_THAT(why([](Manifest& m) { m.buffers[3].steps->by = 2; }), HasSubstr("moves by 2"));
  EXPECT_THAT(why([](Manifest& m) { m.buffers[3].steps->slots = INT64_MAX; }), HasSubstr("slots"));
  EXPECT_THAT(why([](Manifest& m) { m.buffers[3].steps->slots = 3; }), HasSubstr("its last slot ends at 216"));
  EXPECT_THAT(why([](Manifest& m) { m.buffers[3].steps->slot_bytes = 66; }), HasSubstr("slots of 66 bytes"));
  EXPECT_THAT(why([](Manifest& m) { m.buffers[3].steps->slot_bytes = INT64_MAX; }), HasSubstr("moves by"));
  EXPECT_THAT(why([](Manifest& m) { m.buffers[3].offset = 66; }), HasSubstr("multiple of 4"));
  EXPECT_THAT(why([](Manifest& m) { m.outputs[0].buffer = 3; }), HasSubstr("moves with a repeat"));
}

// A GPU's kernels count on aligned arguments, and one of them may run the iterations itself.
TEST(ValidateManifest, RepeatsOfAGpu) {
  const auto make = [] {
    Manifest manifest = Repeating();
    manifest.target = "cuda";
    manifest.format = 11;
    manifest.kernels[0].persistent = true;
    manifest.kernels[0].phases.resize(1);
    return manifest;
  };
  Manifest valid = make();
  ASSERT_TRUE(ValidateManifest(valid, 80).ok()) << ValidateManifest(valid, 80);
  valid.repeats[0].in_launch = true;
  valid.repeats.push_back({1, 2, 7, true});  // another loop of the same launch
  ASSERT_TRUE(ValidateManifest(valid, 80).ok()) << ValidateManifest(valid, 80);
  const auto parsed = ParseManifest(SerializeManifest(valid));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(SerializeManifest(*parsed), SerializeManifest(valid));
  EXPECT_EQ(parsed->TripsOf(1), 1) << "the iterations are not launches";
  const auto why = [&](auto change) {
    Manifest manifest = make();
    manifest.repeats[0].in_launch = true;
    change(manifest);
    return std::string(ValidateManifest(manifest, 80).message());
  };
  EXPECT_THAT(why([](Manifest& m) { m.format = 10; }), HasSubstr("format 11 and target cuda"));
  EXPECT_THAT(why([](Manifest& m) { m.target = "dsa"; }), HasSubstr("target cuda"));
  EXPECT_THAT(why([](Manifest& m) { m.target = "cpu"; }), HasSubstr("inside of launch 1"));
  EXPECT_THAT(why([](Manifest& m) { m.kernels[0].persistent = false; }), HasSubstr("no launch of a persistent kernel"));
  EXPECT_THAT(why([](Manifest& m) { m.repeats[0].first = 0; }), HasSubstr("no launch of a persistent kernel"));
  EXPECT_THAT(why([](Manifest& m) { m.repeats.push_back({1, 2, 7}); }), HasSubstr("repeat 1"));
  EXPECT_THAT(why([](Manifest& m) { m.buffers[3].steps->slot_bytes = 32; }), HasSubstr("multiple of 64"));
  EXPECT_THAT(why([](Manifest& m) { m.buffers[3].offset = 32; }), HasSubstr("not a multiple of 64"));
}

TEST(ValidateManifest, TheAccountOfTheWeights) {
  Manifest manifest = SmallManifest({0, 0, 64});
  manifest.digests["kernels/cpu.so"] = "";
  manifest.weights = WeightsAccount{60, 80, {{"padding", 24}, {"rewritten", -4}}, 1.25};
  ASSERT_TRUE(ValidateManifest(manifest, 80).ok());
  const auto parsed = ParseManifest(SerializeManifest(manifest));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  ASSERT_TRUE(parsed->weights.has_value());
  EXPECT_EQ(parsed->weights->model_bytes, 60);
  EXPECT_EQ(parsed->weights->bundle_bytes, 80);
  EXPECT_EQ(parsed->weights->causes, manifest.weights->causes);
  EXPECT_EQ(parsed->weights->time_ratio, 1.25);
  EXPECT_TRUE(parsed->weights->repeated.empty());
  manifest.weights->time_ratio = 0;
  EXPECT_THAT(SerializeManifest(manifest), Not(HasSubstr("time_ratio")));
  // Bundles of older writers have no account of weights.
  manifest.weights.reset();
  EXPECT_FALSE(ParseManifest(SerializeManifest(manifest))->weights.has_value());

  const auto why = [&](const WeightsAccount& weights) {
    manifest.weights = weights;
    return std::string(ValidateManifest(manifest, 80).message());
  };
  EXPECT_THAT(why({60, 81, {{"padding", 21}}}), HasSubstr("bundle_bytes is 81, the entry has 80"));
  EXPECT_THAT(why({60, 80, {{"padding", 21}}}), HasSubstr("model_bytes and causes are 81 bytes"));
  EXPECT_THAT(why({-1, 80, {{"padding", 81}}}), HasSubstr("model_bytes is out of range"));
  EXPECT_THAT(why({80, 80, {{"padding", INT64_MAX}}}), HasSubstr("cause 'padding' is out of range"));
  EXPECT_THAT(why({80, 80, {}, -1}), HasSubstr("time_ratio is out of range"));
  EXPECT_THAT(why({80, 80, {}, std::nan("")}), HasSubstr("time_ratio is out of range"));
}

TEST(ValidateManifest, WeightsThatAreHeldTwice) {
  Manifest manifest = SmallManifest({0, 0, 64});
  manifest.digests["kernels/cpu.so"] = "";
  manifest.weights = WeightsAccount{60, 80, {{"layouts", 20}}};
  EXPECT_THAT(SerializeManifest(manifest), Not(HasSubstr("repeated")));
  const std::vector<WeightForm> forms = {{"as it is", 20, {{"Gather 'a'", 2, "no"}, {"Gather 'b'", 1, "nor it"}}},
                                         {"packed [5]", 20, {{"MatMul 'c'", 1, "with tile=1x8 it could"}}}};
  manifest.weights->repeated = {{{"w", "x"}, 20, forms}};
  ASSERT_TRUE(ValidateManifest(manifest, 80).ok());
  const auto parsed = ParseManifest(SerializeManifest(manifest));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  ASSERT_EQ(parsed->weights->repeated.size(), 1u);
  EXPECT_EQ(parsed->weights->repeated[0].names, (std::vector<std::string>{"w", "x"}));
  EXPECT_EQ(parsed->weights->repeated[0].bytes, 20);
  EXPECT_EQ(parsed->weights->repeated[0].forms, forms);

  manifest.weights->repeated[0].forms[1].bytes = -1;
  EXPECT_THAT(std::string(ValidateManifest(manifest, 80).message()), HasSubstr("bytes of a repeated weight"));
  manifest.weights->repeated[0].forms.pop_back();
  EXPECT_THAT(std::string(ValidateManifest(manifest, 80).message()), HasSubstr("fewer than two forms"));
}

TEST(ValidateManifest, ExtentsOfOutputs) {
  Manifest manifest = SmallManifest({0, 0, 64});
  manifest.digests["kernels/cpu.so"] = "";
  manifest.format = 2;
  manifest.buffers.push_back({Buffer::Kind::kOutput, "n", DType::kI64, {}, 8, 0, ""});
  manifest.outputs[0].extents = {5, -1};
  const auto parsed = ParseManifest(SerializeManifest(manifest));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->outputs[0].extents, (std::vector<int>{5, -1}));
  EXPECT_TRUE(parsed->inputs[0].extents.empty());
  EXPECT_TRUE(ValidateManifest(*parsed, 80).ok()) << ValidateManifest(*parsed, 80);
  const auto why = [&](auto change) {
    Manifest changed = manifest;
    change(changed);
    return std::string(ValidateManifest(changed, 80).message());
  };
  EXPECT_THAT(why([](Manifest& m) { m.outputs[0].extents = {5}; }), HasSubstr("cannot have these extents"));
  EXPECT_THAT(why([](Manifest& m) { m.format = 1; }), HasSubstr("cannot have these extents"));
  EXPECT_THAT(why([](Manifest& m) { m.inputs[0].extents = {5, -1}; }), HasSubstr("cannot have these extents"));
  EXPECT_THAT(why([](Manifest& m) { m.outputs[0].extents = {6, -1}; }), HasSubstr("no buffer 6"));
  EXPECT_THAT(why([](Manifest& m) { m.outputs[0].extents = {3, -1}; }), HasSubstr("buffer 3 is no extent"));
}

TEST(ValidateManifest, ChecksOfTheRun) {
  Manifest manifest = SmallManifest({0, 0, 64});
  manifest.digests["kernels/cpu.so"] = "";
  manifest.format = 9;
  manifest.buffers.push_back({Buffer::Kind::kOutput, "meets", DType::kI64, {3}, 24, 0, ""});
  manifest.checks.push_back({5, "{1} and {2} meet"});
  const auto parsed = ParseManifest(SerializeManifest(manifest));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  ASSERT_EQ(parsed->checks.size(), 1u);
  EXPECT_EQ(parsed->checks[0].buffer, 5);
  EXPECT_EQ(parsed->checks[0].message, "{1} and {2} meet");
  EXPECT_TRUE(ValidateManifest(*parsed, 80).ok()) << ValidateManifest(*parsed, 80);
  const auto why = [&](auto change) {
    Manifest changed = manifest;
    change(changed);
    return std::string(ValidateManifest(changed, 80).message());
  };
  EXPECT_THAT(why([](Manifest& m) { m.format = 8; }), HasSubstr("format 9"));
  EXPECT_THAT(why([](Manifest& m) { m.checks[0].buffer = 6; }), HasSubstr("no buffer 6"));
  EXPECT_THAT(why([](Manifest& m) { m.checks[0].buffer = 3; }), HasSubstr("no vector of i64 that is kept"));
  // A bundle without checks has the same text as before checks existed.
  manifest.checks.clear();
  EXPECT_THAT(SerializeManifest(manifest), ::testing::Not(HasSubstr("checks")));
}

TEST(ValidateManifest, PersistentKernels) {
  Manifest manifest = SmallManifest({0, 0, 64});
  manifest.digests["kernels/cpu.so"] = "";
  manifest.format = 5;
  manifest.kernels[0].persistent = true;
  manifest.kernels[0].phases.resize(1);
  const auto parsed = ParseManifest(SerializeManifest(manifest));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_TRUE(parsed->kernels[0].persistent);
  EXPECT_TRUE(ValidateManifest(*parsed, 80).ok()) << ValidateManifest(*parsed, 80);
  const auto why = [&](auto change) {
    Manifest changed = manifest;
    change(changed);
    return std::string(ValidateManifest(changed, 80).message());
  };
  EXPECT_THAT(why([](Manifest& m) { m.format = 4; }), HasSubstr("format 5"));
  EXPECT_THAT(why([](Manifest& m) { m.kernels[0].phases.resize(2, m.kernels[0].phases[0]); }), HasSubstr("one phase"));
}

TEST(ValidateManifest, Batches) {
  Manifest manifest = SmallManifest({0, 0, 64});
  manifest.digests["kernels/cpu.so"] = "";
  manifest.format = 8;
  manifest.launches[0].others = {{1, 0, 4}, {0, 0, 4}};
  ASSERT_TRUE(ValidateManifest(manifest, 256).ok()) << ValidateManifest(manifest, 256);
  const absl::StatusOr<Manifest> parsed = ParseManifest(SerializeManifest(manifest));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->launches[0].others, manifest.launches[0].others);
  EXPECT_EQ(SerializeManifest(*parsed), SerializeManifest(manifest));
  const auto why = [&](const std::function<void(Manifest&)>& change) {
    Manifest other = manifest;
    change(other);
    return std::string(ValidateManifest(other, 256).message());
  };
  EXPECT_THAT(why([](Manifest& m) { m.format = 7; }), HasSubstr("format 8"));
  EXPECT_THAT(why([](Manifest& m) { m.target = "opencl"; }), HasSubstr("target cpu"));
  EXPECT_THAT(why([](Manifest& m) { m.launches[0].others[1].pop_back(); }), HasSubstr("sets of different size"));
  EXPECT_THAT(why([](Manifest& m) { m.launches[0].others[0][2] = 5; }), HasSubstr("no buffer 5"));
}

}  // namespace
}  // namespace fusion
