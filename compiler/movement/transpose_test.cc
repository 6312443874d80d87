#include "compiler/movement/transpose.h"

#include <gtest/gtest.h>

namespace fusion::movement {
namespace {

const te::Axis kLane{0, 64}, kAcross{1, 64};
constexpr int64_t kLanes = 16;

te::Scalar LoadAt(const te::Index& address, DType dtype = DType::kF32, int buffer = 0) {
  return te::Load(buffer, dtype, {address});
}
const te::Index kTurned = te::Index(kLane) * 64 + te::Index(kAcross), kStraight = te::Index(kAcross) * 64 + kLane;

bool Can(const te::Scalar& body, DType stored = DType::kF32) {
  return CanTranspose(body, stored, kLane, kAcross, kLanes);
}

TEST(CanTranspose, NeedsALoadThatLiesAcross) {
  EXPECT_TRUE(Can(LoadAt(kTurned)));
  EXPECT_FALSE(Can(LoadAt(kStraight))) << "all loads lie along the lanes";
  EXPECT_TRUE(Can(LoadAt(kTurned) + LoadAt(kStraight, DType::kF32, 1)));
  EXPECT_TRUE(Can(LoadAt(kTurned) * LoadAt(te::Index(kAcross), DType::kF32, 1))) << "one value for all lanes";
}

TEST(CanTranspose, NotWhereALoadLiesAlongNeither) {
  EXPECT_FALSE(Can(LoadAt(te::Index(kLane) * 64 + te::Index(kAcross) * 2)));
  EXPECT_FALSE(Can(LoadAt(kTurned) + LoadAt(te::Index(kLane) * 2, DType::kF32, 1)));
}

TEST(CanTranspose, OtherTypesAreMovedAloneAndWhole) {
  EXPECT_TRUE(Can(LoadAt(kTurned, DType::kU8), DType::kU8));
  EXPECT_TRUE(Can(LoadAt(kTurned, DType::kI32), DType::kI32));
  EXPECT_FALSE(Can(LoadAt(kTurned, DType::kI64), DType::kI64)) << "no vector holds as many";
  EXPECT_FALSE(Can(te::Cast(DType::kF32, LoadAt(kTurned, DType::kU8)))) << "it computes";
  // A tile of bytes has sixteen rows, whatever the lanes.
  EXPECT_EQ(TransposedBlock(DType::kU8, 4), 16);
  EXPECT_EQ(TransposedBlock(DType::kF32, 4), 4);
  const te::Axis short_lane{0, 8};
  const te::Index address = te::Index(short_lane) * 64 + te::Index(kAcross);
  EXPECT_TRUE(CanTranspose(LoadAt(address, DType::kI32), DType::kI32, short_lane, kAcross, 8));
  EXPECT_FALSE(CanTranspose(LoadAt(address, DType::kU8), DType::kU8, short_lane, kAcross, 8));
}

TEST(InsideBorder, IsTheValueBehindAnAffineTest) {
  const te::Scalar inside = LoadAt(kTurned), zero = te::Imm(DType::kF32, 0);
  const te::Scalar bordered = te::If({{te::Index(kLane) * 64 + te::Index(kAcross), te::Cmp::kLt, 4000}}, inside, zero);
  ASSERT_EQ(bordered->kind, te::ScalarKind::kIf);
  EXPECT_EQ(InsideBorder(bordered, kLane.id, kAcross.id), inside);
  EXPECT_TRUE(Can(bordered));
  // A tile may be inside although its corners are not, or the other way round.
  const te::Scalar periodic = te::If({{te::Mod(kLane, 5), te::Cmp::kLt, 3}}, inside, zero);
  EXPECT_EQ(InsideBorder(periodic, kLane.id, kAcross.id), periodic);
  EXPECT_FALSE(Can(periodic));
  const te::Scalar one_point = te::If({{kLane, te::Cmp::kNe, 3}}, inside, zero);
  EXPECT_EQ(InsideBorder(one_point, kLane.id, kAcross.id), one_point);
  const te::Scalar other = te::If({{kLane, te::Cmp::kLt, 30}}, inside, LoadAt(0, DType::kF32, 1));
  EXPECT_EQ(InsideBorder(other, kLane.id, kAcross.id), other) << "outside there is another load";
}

TEST(LoadsAcross, EachOnce) {
  const te::Scalar turned = LoadAt(kTurned);
  EXPECT_EQ(LoadsAcross(turned * turned + LoadAt(kStraight), kLane.id, kLanes).size(), 1u);
  EXPECT_TRUE(LoadsAcross(LoadAt(kStraight), kLane.id, kLanes).empty());
}

}  // namespace
}  // namespace fusion::movement
