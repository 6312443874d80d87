#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/ops/registry/op_testing.h"

namespace fusion::ops {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(TopK, LargestAndSmallestAlongAnAxis) {
  const Tensor x = F32({2, 3}, {1, 5, 3, 4, 2, 6});
  OpCase top{"TopK", {x, I64({1}, {2})}, {}, {1}, 2};
  EXPECT_THAT(Values(RunOp(top)), ElementsAre(5, 3, 6, 4));
  EXPECT_THAT(Values(RunOp(top), 1), ElementsAre(1, 2, 2, 0));
  top.attrs = {{"axis", int64_t{0}}, {"largest", int64_t{0}}};
  top.inputs[1] = I64({1}, {1});
  EXPECT_THAT(Values(RunOp(top)), ElementsAre(1, 2, 3));
  EXPECT_THAT(Values(RunOp(top), 1), ElementsAre(0, 1, 0));
  top.num_outputs = 1;
  EXPECT_EQ(RunOp(top)->size(), 1u);
}

TEST(TopK, MoreThanThereAre) {
  const auto type = TypeOf({"TopK", {F32({2, 3}, {}), I64({1}, {4})}, {}, {1}, 2});
  EXPECT_THAT(std::string(type.status().message()),
              HasSubstr("K [4] does not lie between 0 and 3, the extent of axis 1"));
}

}  // namespace
}  // namespace fusion::ops
