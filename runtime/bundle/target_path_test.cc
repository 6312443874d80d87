#include "runtime/bundle/target_path.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

TEST(TargetPathTest, TheTargetStandsBeforeTheExtension) {
  EXPECT_EQ(PathForTarget("a.b/model.fusion", "cpu"), "a.b/model.cpu.fusion");
  EXPECT_EQ(PathForTarget("model.v2.fusion", "cuda:sm_90"), "model.v2.cuda-sm_90.fusion");
  EXPECT_EQ(PathForTarget("a.b/model", "opencl"), "a.b/model.opencl");
}

}  // namespace
}  // namespace fusion
