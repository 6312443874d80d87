#include "compiler/plan/planners/graph_turbo/lowering/weights.h"

#include <gtest/gtest.h>

#include "runtime/devices/dsa_sim/testing/small_machine.h"

namespace fusion::graph_turbo {
namespace {

class WeightsTest : public ::testing::Test {
 protected:
  // The GB has 4 KB; a weight takes 1600 bytes.
  WeightsTest() : emitter_(machine_, "p", DType::kF32), weights_(&emitter_) {
    for (int op = 0; op < 3; ++op) {
      const Held ddr{emitter_.NewDdr("w" + std::to_string(op), 400, true, false), WholeRegion({20, 20})};
      weights_.Add({op, 0}, ddr, op == 0 ? std::vector<int>{0, 9} : std::vector<int>{op});
    }
  }
  bool InGlobal(int op) const { return !weights_.InGlobal({op, 0}).empty(); }
  dsa::Machine machine_ = dsa::SmallMachine();
  Emitter emitter_;
  Weights weights_;
};

TEST_F(WeightsTest, TheOneThatIsReadLastMakesRoom) {
  EXPECT_TRUE(weights_.Bring({0, 0}, 0, 0));
  EXPECT_TRUE(weights_.Bring({1, 0}, 0, 1));
  EXPECT_EQ(emitter_.program().instructions.size(), 2u);
  EXPECT_TRUE(weights_.Bring({1, 0}, 1, 1));  // is there
  EXPECT_EQ(emitter_.program().instructions.size(), 2u);
  // From step 1 on, 0 is read at step 9.
  EXPECT_TRUE(weights_.Bring({2, 0}, 1, 2));
  EXPECT_FALSE(InGlobal(0));
  EXPECT_TRUE(InGlobal(1));
}

TEST_F(WeightsTest, NothingLeavesThatIsReadBefore) {
  EXPECT_TRUE(weights_.Bring({0, 0}, 0, 0));
  EXPECT_TRUE(weights_.Bring({1, 0}, 0, 1));
  // At step 0 both are read no later than 2 will be.
  EXPECT_FALSE(weights_.Bring({2, 0}, 0, 2));
  EXPECT_FALSE(InGlobal(2));
}

TEST_F(WeightsTest, IsForgottenAfterItsLastStep) {
  EXPECT_TRUE(weights_.Bring({0, 0}, 0, 0));
  weights_.Forget(0);
  EXPECT_TRUE(InGlobal(0));
  weights_.Forget(9);
  EXPECT_FALSE(InGlobal(0));
}

}  // namespace
}  // namespace fusion::graph_turbo
