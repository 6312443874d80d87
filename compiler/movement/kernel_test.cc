#include "compiler/movement/kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "compiler/movement/cost.h"

namespace fusion::movement {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// y[i] = exp(x[i]) over 4 tasks of 16.
Kernel Sample() {
  Kernel kernel;
  kernel.buffers.resize(2);
  kernel.buffers[0].elements = kernel.buffers[1].elements = 64;
  const te::Axis task{0, 4}, i{1, 16};
  const te::Index at = te::Index(task) * 16 + te::Index(i);
  Step step;
  step.label = "y";
  step.loops = {{i, std::nullopt}};
  step.body = {te::Call(te::Op::kExp, {te::Load(0, DType::kF32, {at})})};
  step.stores = {{1, at}};
  step.store_types = {DType::kF32};
  step.strategy = VectorMap{.axis = 1};
  kernel.phases = {{{task}, {step}}};
  kernel.next_axis = 2;
  return kernel;
}

void ExpectRefused(const Kernel& kernel, const std::string& why) {
  const absl::Status status = Verify(kernel);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr(why));
}

TEST(Verify, AcceptsAGoodKernel) { EXPECT_TRUE(Verify(Sample()).ok()) << Verify(Sample()); }

TEST(Verify, RefusesAnUnboundAxis) {
  Kernel kernel = Sample();
  kernel.phases[0].steps[0].stores[0].address = te::Index(te::Axis{7, 64});
  ExpectRefused(kernel, "uses axis i7");
  kernel = Sample();
  kernel.phases[0].grid.clear();
  ExpectRefused(kernel, "uses axis i0");
}

TEST(Verify, RefusesAReductionAxisAfterTheReduction) {
  Kernel kernel = Sample();
  Step& step = kernel.phases[0].steps[0];
  step.reduction.emplace();
  step.reduction->axes = {{5, 3}};
  step.then = {te::Load(0, DType::kF32, {te::Index(te::Axis{5, 3})})};
  ExpectRefused(kernel, "uses axis i5");
}

TEST(Verify, RefusesBuffersThatDoNotExist) {
  Kernel kernel = Sample();
  kernel.phases[0].steps[0].body = {te::Load(9, DType::kF32, {te::Index(0)})};
  ExpectRefused(kernel, "no buffer");
  kernel = Sample();
  kernel.phases[0].steps[0].stores[0].buffer = 9;
  ExpectRefused(kernel, "no buffer");
}

TEST(Verify, RefusesABufferInRegisters) {
  Kernel kernel = Sample();
  kernel.buffers[1].scope = Scope::kWarp;
  ExpectRefused(kernel, "b1 lives in scope 'warp'");
}

TEST(Verify, RefusesReadingScratchBeforeItIsWritten) {
  Kernel kernel = Sample();
  kernel.buffers.push_back({Scope::kBlock, DType::kF32, 16});
  kernel.phases[0].steps[0].body = {te::Load(2, DType::kF32, {te::Index(te::Axis{1, 16})})};
  ExpectRefused(kernel, "before it is written");
}

TEST(Verify, RefusesScratchAcrossPhases) {
  Kernel kernel = Sample();
  kernel.buffers.push_back({Scope::kBlock, DType::kF32, 16});
  Step write = kernel.phases[0].steps[0], read = write;
  write.stores = {{2, te::Index(te::Axis{1, 16})}};
  read.body = {te::Load(2, DType::kF32, {te::Index(te::Axis{1, 16})})};
  kernel.phases = {{kernel.phases[0].grid, {write}}, {kernel.phases[0].grid, {read}}};
  ExpectRefused(kernel, "before it is written");
}

TEST(Verify, RefusesAddressesOutOfTheBuffer) {
  Kernel kernel = Sample();
  kernel.buffers[1].elements = 63;
  ExpectRefused(kernel, "b1");
  kernel = Sample();
  kernel.phases[0].steps[0].stores[0].address = te::Index(te::Axis{1, 16}) - 1;
  ExpectRefused(kernel, "b1");
}

TEST(Verify, RefusesStoresWithoutTypes) {
  Kernel kernel = Sample();
  kernel.phases[0].steps[0].store_types.clear();
  ExpectRefused(kernel, "stores");
}

TEST(Verify, RefusesAVectorAxisThatIsNoLoop) {
  Kernel kernel = Sample();
  kernel.phases[0].steps[0].As<VectorMap>()->axis = 0;
  ExpectRefused(kernel, "lanes");
}

TEST(VisitBuffers, VisitsLoadsInStoreAddressesAndLimits) {
  Kernel kernel = Sample();
  Step& step = kernel.phases[0].steps[0];
  const auto loaded = [](int buffer) { return te::Index::Load(buffer, {te::Index(0)}, {0, 3}); };
  step.loops[0].limit = loaded(2);
  step.stores[0].address = step.stores[0].address + loaded(3);
  step.lane_limit = Bound{loaded(4), 1};
  step.strategy = RegisterTile{.store_limit = Bound{loaded(5), 1}};
  std::set<int> visited;
  VisitBuffers(step, [&](int buffer) { visited.insert(buffer); });
  EXPECT_THAT(visited, ::testing::ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(Print, IsFreeOfNames) {
  Kernel kernel = Sample();
  const std::string text = Print(kernel);
  kernel.phases[0].steps[0].label = "another";
  kernel.buffers[0].tensor = 12;
  EXPECT_EQ(Print(kernel), text);
  EXPECT_THAT(text, HasSubstr("parallel (i0<4)"));
  kernel.phases[0].steps[0].strategy = ScalarLoops();
  EXPECT_NE(Print(kernel), text);
}

// The hash of the text is the key of stored measurements, so that everything in a strategy must be in it.
TEST(Print, HoldsWhatTheStrategyNeeds) {
  const auto printed = [](Strategy strategy) {
    Kernel kernel = Sample();
    kernel.phases[0].steps[0].strategy = std::move(strategy);
    return Print(kernel);
  };
  EXPECT_THAT(printed(ScalarLoops()), HasSubstr("step scalar {\n"));
  EXPECT_THAT(printed(VectorMap{1, true, true, {0, 2, {0, 1}}}),
              HasSubstr("step map{lanes i1 streaming rest in a vector} next i0 + 2 of b0, b1 {\n"));
  EXPECT_THAT(printed(BlockedTranspose{1, 0, true}), HasSubstr("step transpose{lanes i1 across i0 streaming} {\n"));
  EXPECT_THAT(printed(RowReduction{1}), HasSubstr("step row_reduction{lanes i1} {\n"));
  EXPECT_THAT(printed(PrefixPass{}), HasSubstr("step prefix {\n"));
  EXPECT_THAT(printed(PrefixPass{1}), HasSubstr("step prefix{lanes i1} {\n"));
  RegisterTile tile{.lane_axis = 1, .store_limit = Bound{0, 9}};
  tile.prefetch.emplace_back().buffer = 0;
  tile.prefetch[0].ahead = 64;
  EXPECT_THAT(printed(tile),
              AllOf(HasSubstr("step tile{1x1 rows i-1 vectors i-1 lanes i1 unroll 1} {\n    prefetch b0 ahead 64\n"),
                    HasSubstr("store if 0 < 9\n")));
  ThreadgroupTile threadgroup;
  threadgroup.rows = threadgroup.buffers = 2;
  threadgroup.shared_copies.emplace_back().strategy = RowReduction{5};
  EXPECT_THAT(printed(threadgroup),
              HasSubstr("step threadgroup_tile{2x1 of 1x1 rows i-1 columns i-1 buffers 2} {\n  step row_reduction"));
  EXPECT_THAT(printed(RoutineCall{"sort", DType::kF32, {0, 1}, {7, 8}}),
              HasSubstr("step scalar sort.f32(b0, b1) {7, 8} {\n"));
}

TEST(Kernel, ScratchIsAlignedAndHasSlack) {
  Kernel kernel = Sample();
  kernel.buffers.push_back({Scope::kBlock, DType::kF32, 17});
  kernel.buffers.push_back({Scope::kBlock, DType::kI64, 3});
  const std::vector<int64_t> offsets = kernel.scratch_offset_bytes();
  EXPECT_EQ(offsets[0], -1);
  EXPECT_EQ(offsets[2], 0);
  EXPECT_EQ(offsets[3] % 64, 0);
  EXPECT_GE(offsets[3], 17 * 4 + 64);
  EXPECT_EQ(kernel.num_args(), 2);
  EXPECT_EQ(kernel.phases[0].tasks(), 4);
}

}  // namespace
}  // namespace fusion::movement
