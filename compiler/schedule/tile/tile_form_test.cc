#include "compiler/schedule/tile/tile_form.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

TEST(TileForm, EveryOperationHasAVectorForm) {
  const te::Axis axis{0, 64};
  const te::Scalar x = te::Load(0, DType::kF32, {te::Index(axis)});
  EXPECT_TRUE(HasTileForm(x * x + te::Call(te::Op::kExp, {x})));
  const te::Scalar remainder = te::Call(te::Op::kMod, {te::Cast(DType::kI32, x), te::ImmInt(DType::kI32, 7)});
  EXPECT_FALSE(HasTileForm(x * te::Cast(DType::kF32, remainder))) << "one operation without vectors is enough";
}

}  // namespace
}  // namespace fusion
