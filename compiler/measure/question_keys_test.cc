#include "compiler/measure/question_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/kernels/kernel_cache.h"
#include "compiler/measure/testing/pairs.h"

namespace fusion {
namespace {

class QuestionKeysTest : public ::testing::Test {
 protected:
  QuestionKeysTest() { kernels_.Start(&maker_.graph(), &layouts_, &device_); }
  std::shared_ptr<const FusionKernel> Kernel(const std::vector<ecg::NodeId>& nodes) {
    const KernelCache::KernelOr kernel = kernels_.Get(nodes);
    EXPECT_TRUE(kernel.ok()) << kernel.status();
    return kernel.value();
  }
  std::string Key(const KernelSequence& kernels, int threads = 1) { return QuestionKey(kernels, device_, threads); }

  const testing::GraphMaker maker_ = testing::TwentyPairs();
  const DeviceModel device_ = testing::Avx512Device();
  const ValueLayouts layouts_;
  KernelCache kernels_{1};
};

TEST_F(QuestionKeysTest, AKeyHoldsWhatTheTimeDependsOn) {
  const std::string key = Key({Kernel({0, 1})});
  EXPECT_EQ(key, Key({Kernel({40, 41})}));  // the same kernel for other values
  EXPECT_NE(key, Key({Kernel({2, 3})}));
  EXPECT_NE(key, Key({Kernel({0, 1})}, 2));
  EXPECT_NE(key, QuestionKey({Kernel({0, 1})}, testing::Avx2Device(), 1));
}

TEST_F(QuestionKeysTest, WhatASecondKernelReadsOfTheFirstCounts) {
  EXPECT_NE(Key({Kernel({0}), Kernel({1})}), Key({Kernel({0}), Kernel({41})}));
  EXPECT_EQ(Key({Kernel({0}), Kernel({1})}), Key({Kernel({40}), Kernel({41})}));
}

TEST_F(QuestionKeysTest, AQuestionInAnotherGroupIsAnother) {
  const KernelQuestion small{{Kernel({0, 1})}, "small"}, large{{Kernel({2, 3})}, "large"};
  const auto in = [](KernelQuestion question, const std::string& group) {
    question.group = group;
    return question;
  };
  const auto keys = [&](const std::vector<KernelQuestion>& asked) { return KeysInGroups(asked, device_, 1); };
  EXPECT_THAT(keys({small, large}), ::testing::ElementsAre(Key(small.kernels), Key(large.kernels)));
  const std::vector<std::string> beside = keys({in(small, "a"), in(large, "a")});
  EXPECT_NE(beside[0], Key(small.kernels));
  EXPECT_NE(beside[0], keys({in(small, "a")})[0]);
  // Neither the group's name nor the order of its members counts.
  EXPECT_THAT(keys({in(large, "b"), in(small, "b")}), ::testing::ElementsAre(beside[1], beside[0]));
}

TEST_F(QuestionKeysTest, AStructureHasNoSizes) {
  const auto structure = [&](const std::vector<ecg::NodeId>& nodes) {
    return StructureKey(*Kernel(nodes), device_, 1);
  };
  EXPECT_EQ(structure({0, 1}), structure({2, 3}));
  EXPECT_NE(structure({0, 1}), structure({0}));
}

}  // namespace
}  // namespace fusion
