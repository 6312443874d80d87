#include "compiler/te/index/reciprocals.h"

#include "gtest/gtest.h"

namespace fusion::te {
namespace {

const Scalar kOne = Imm(DType::kF32, 1);

Scalar X(int at) { return Load(0, DType::kF32, {Index(at)}); }

TEST(MergeReciprocals, MakesOneDivisionOfAProduct) {
  const Scalar b = X(1) + kOne;
  EXPECT_TRUE(StructurallyEqual(MergeReciprocals({X(0) * (kOne / b)})[0], X(0) / b));
  EXPECT_TRUE(StructurallyEqual(MergeReciprocals({(kOne / b) * X(0)})[0], X(0) / b));
  // The rewrite applies inside other operations, too; other divisions stay.
  const Scalar nested = MergeReciprocals({Max(X(2) * (kOne / b), X(3) / X(4))})[0];
  EXPECT_TRUE(StructurallyEqual(nested, Max(X(2) / b, X(3) / X(4))));
}

TEST(MergeReciprocals, LeavesWhatIsReadTwice) {
  const Scalar gate = kOne / (X(1) + kOne);
  const Scalar mixed = X(0) * gate + (kOne - gate) * X(2);  // as in a GRU
  EXPECT_EQ(MergeReciprocals({mixed})[0], mixed);
  // Another value reads the reciprocal, or an equal reciprocal is computed beside it.
  const std::vector<Scalar> two = {X(0) * gate, gate};
  EXPECT_EQ(MergeReciprocals(two), two);
  const std::vector<Scalar> equal = {X(0) * gate, kOne / (X(1) + kOne)};
  EXPECT_EQ(MergeReciprocals(equal), equal);
  const std::vector<Scalar> none = {X(0) * X(1)};
  EXPECT_EQ(MergeReciprocals(none), none);
}

}  // namespace
}  // namespace fusion::te
