#include "compiler/movement/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "compiler/movement/testing/look_kernel.h"
#include "compiler/movement/testing/sample_kernel.h"

namespace fusion::movement {
namespace {

using ::fusion::movement::testing::Sample;
using ::testing::HasSubstr;

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

TEST(Verify, RefusesLimitsOfUnboundAxes) {
  const Bound unbound{te::Index(te::Axis{7, 64}), 40};
  Kernel kernel = Sample();
  kernel.phases[0].steps[0].lane_limit = unbound;
  ExpectRefused(kernel, "the limit of lanes of step");
  kernel = Sample();
  RegisterTile tile;
  tile.store_limit = unbound;
  kernel.phases[0].steps[0].strategy = tile;
  ExpectRefused(kernel, "the limit of stores of step");
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

TEST(Verify, Looks) {
  using ::fusion::movement::testing::LookingSums;
  EXPECT_TRUE(Verify(LookingSums()).ok()) << Verify(LookingSums());
  Kernel kernel = LookingSums();
  kernel.phases[0].steps[0].look.reset();
  ExpectRefused(kernel, "waits for a look that no step in front of it takes");
  kernel = LookingSums();
  kernel.phases[0].steps[1].look = Look{3, te::Index(0)};
  ExpectRefused(kernel, "has no sums to look at");
  kernel = LookingSums();
  kernel.phases[0].steps[0].strategy = RowReduction{2};
  ExpectRefused(kernel, "has no sums to look at");
  kernel = LookingSums();
  kernel.buffers[3].dtype = DType::kI32;
  ExpectRefused(kernel, "has no buffer of f32 for its look");
  kernel = LookingSums();
  kernel.phases[0].steps[0].look->address = te::Index(1);
  ExpectRefused(kernel, "addresses b3");
  kernel = LookingSums();
  kernel.phases[0].steps[0].look->address = te::Index(te::Axis{1, 1});
  ExpectRefused(kernel, "a look of step 'sum' uses axis i1");
  kernel = LookingSums();
  kernel.phases[0].row_nests = {{1, 1, 0}};
  ExpectRefused(kernel, "of a row nest or a loop");
}

TEST(Verify, RefusesABufferInRegisters) {
  Kernel kernel = Sample();
  kernel.buffers[1].scope = Scope::kWarp;
  ExpectRefused(kernel, "b1 of scope 'warp' has");
}

TEST(Verify, RefusesABufferOfALane) {
  Kernel kernel = Sample();
  kernel.buffers[1].scope = Scope::kLane;
  ExpectRefused(kernel, "b1 lives in scope 'lane'");
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

// Two samples, y[i] = exp(x[i]) and z[i] = exp(x[i]), as phases beside each other.
Kernel Neighbours() {
  Kernel kernel = Sample();
  kernel.buffers.push_back(kernel.buffers[1]);
  kernel.phases.push_back(kernel.phases[0]);
  kernel.phases[1].beside = true;
  kernel.phases[1].steps[0].stores[0].buffer = 2;
  return kernel;
}

TEST(Verify, PhasesBesideEachOtherMayReadTheSame) { EXPECT_TRUE(Verify(Neighbours()).ok()) << Verify(Neighbours()); }

TEST(Verify, RefusesWhatTouchesANeighboursResults) {
  Kernel both = Neighbours();
  both.phases[1].steps[0].stores[0].buffer = 1;
  ExpectRefused(both, "phase 0 writes b1, which phase 1 beside it reads or writes");
  both.phases[1].beside = false;
  EXPECT_TRUE(Verify(both).ok()) << "a barrier is between them";
  Kernel read = Neighbours();
  const te::Index at = read.phases[1].steps[0].stores[0].address;
  read.phases[1].steps[0].body = {te::Load(1, DType::kF32, {at})};
  ExpectRefused(read, "phase 0 writes b1");
  // The reader comes first: it could find what was written meanwhile.
  Kernel earlier = Neighbours();
  earlier.phases[0].steps[0].body = {te::Load(2, DType::kF32, {at})};
  ExpectRefused(earlier, "phase 1 writes b2, which phase 0 beside it reads or writes");
  // An index or a condition reads, too.
  Kernel looked_up = Neighbours();
  looked_up.phases[0].steps[0].body = {
      te::If({{te::Index(0), te::Cmp::kLt, te::Index(1)}}, te::Load(2, DType::kF32, {at}), te::Imm(DType::kF32, 0))};
  ExpectRefused(looked_up, "phase 1 writes b2");
}

TEST(Verify, RefusesAFirstPhaseBesideNothing) {
  Kernel kernel = Sample();
  kernel.phases[0].beside = true;
  ExpectRefused(kernel, "nothing runs in front of the first phase");
}

TEST(Verify, RefusesAPersistentKernelWithoutABarrier) {
  Kernel kernel = Neighbours();
  kernel.persistent = true;
  ExpectRefused(kernel, "needs a barrier");
}

TEST(Verify, EachTaskHasScratchOfItsOwn) {
  Kernel kernel = Neighbours();
  kernel.buffers.push_back({Scope::kBlock, DType::kF32, 16});
  for (Phase& phase : kernel.phases) {
    Step write = phase.steps[0];
    write.stores = {{3, te::Index(te::Axis{1, 16})}};
    phase.steps.insert(phase.steps.begin(), write);
  }
  EXPECT_TRUE(Verify(kernel).ok()) << Verify(kernel);
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

}  // namespace
}  // namespace fusion::movement
