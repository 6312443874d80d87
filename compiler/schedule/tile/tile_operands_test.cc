#include "compiler/schedule/tile/tile_operands.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/schedule/testing/schedule_text.h"

namespace fusion {
namespace {

using testing::DraftedProgram;

using te::Axis;

// A product of rows by columns; the roles of its axes.
struct Product {
  explicit Product(const std::string& body, const char* axes = "i0<32, i1<64", const char* reduction = "i2<128")
      : drafted(absl::StrCat("te p(%0: f32[64, 1024], %1: f32[1024, 1024], %2: f32[128, 64] const) {\n  %3[", axes,
                             "]: f32 = sum.f32(", reduction, ") ", body, "\n  return %3\n}")),
        nest(drafted.NestOf()),
        loads(BodyLoads(nest)) {}
  Axis row() const { return nest.axes.at(0); }
  Axis column() const { return nest.axes.at(1); }
  LaneUse Use(size_t load, const Axis& lane) const {
    return UseOfLanes(loads.at(load), lane, 16, nest.axes, drafted.draft.kernel);
  }

  DraftedProgram drafted;
  const Nest nest;
  const std::vector<Operand> loads;
};

TEST(TileOperands, RolesAreReadOffTheAddresses) {
  const Product plain("mul(%0[i0, i2], %1[i2, i1])");
  ASSERT_EQ(plain.loads.size(), 2u);
  EXPECT_EQ(plain.Use(0, plain.column()), LaneUse::kBroadcast);
  EXPECT_EQ(plain.Use(1, plain.column()), LaneUse::kVector);
  EXPECT_EQ(Reuse(plain.loads[0], plain.column(), plain.nest.axes), 1) << "one for each vector of the lanes";
  EXPECT_EQ(Reuse(plain.loads[1], plain.column(), plain.nest.axes), 32);

  const Product turned("mul(%0[i0, i2], %1[i1, i2])");
  EXPECT_EQ(turned.Use(1, turned.column()), LaneUse::kPackRuntime) << "32 rows read it again";
  const Product few("mul(%0[i0, i2], %1[i1, i2])", "i0<4, i1<64");
  EXPECT_EQ(few.Use(1, few.column()), LaneUse::kImpossible) << "4 rows do not pay for a copy";
  const Product constant("mul(%0[i0, i2], %2[i2, i1])");
  EXPECT_EQ(constant.Use(1, constant.column()), LaneUse::kPackConstant);
}

// Where data pick an operand's place, it is read there, also if it is a constant.
TEST(TileOperands, NothingThatDataPickIsPacked) {
  DraftedProgram drafted(R"(te p(%0: f32[32, 128], %1: i64[32], %2: f32[4, 128, 64] const) {
  %3[i0<32, i1<64]: f32 = sum.f32(i2<128) mul(%0[i0, i2], %2[%1[i0]{0..3}, i2, i1])
  return %3
})");
  const Nest nest = drafted.NestOf();
  const std::vector<Operand> loads = BodyLoads(nest);
  ASSERT_EQ(loads.size(), 2u);
  EXPECT_FALSE(IsPackable(loads[0], drafted.draft.kernel)) << "no constant";
  EXPECT_FALSE(IsPackable(loads[1], drafted.draft.kernel));
  const auto use = [&](const Axis& lane) { return UseOfLanes(loads[1], lane, 16, nest.axes, drafted.draft.kernel); };
  EXPECT_EQ(use(nest.axes[1]), LaneUse::kVector);
  EXPECT_EQ(use(nest.axes[0]), LaneUse::kImpossible) << "neighbouring rows are no neighbours there";
}

TEST(TileOperands, StepsOfTheReduction) {
  const Product plain("mul(%0[i0, i2], %1[i2, i1])");
  EXPECT_FALSE(StridesOverReduction(plain.nest, plain.loads.at(0)));
  EXPECT_TRUE(StridesOverReduction(plain.nest, plain.loads.at(1)));
  EXPECT_FALSE(StepsFar(plain.nest, plain.loads.at(0)));
  EXPECT_TRUE(StepsFar(plain.nest, plain.loads.at(1))) << "rows of 1024 elements are a page apart";
  const Product near("mul(%0[i0, i2], %2[i2, i1])");
  EXPECT_FALSE(StepsFar(near.nest, near.loads.at(1))) << "rows of 64 elements are four lines apart";
  const Product few("mul(%0[i0, i2], %1[i2, i1])", "i0<32, i1<64", "i2<64");
  EXPECT_FALSE(StepsFar(few.nest, few.loads.at(1))) << "64 lines fit the sets of the cache";
}

TEST(TileOperands, OverlappingWindowsAreTouchedOnce) {
  const Product rows("mul(%0[i0, i2], %1[i2, i1])");
  EXPECT_EQ(TouchedBytes(rows.loads.at(0), rows.nest.reduction->axes), 4 * 128);
  const Product windows("mul(%0[0, i0 + i2], %1[i2, i1])");
  std::vector<Axis> axes = windows.nest.axes;
  axes.insert(axes.end(), windows.nest.reduction->axes.begin(), windows.nest.reduction->axes.end());
  EXPECT_EQ(TouchedBytes(windows.loads.at(0), axes), 4 * (32 + 128 - 1));
}

TEST(TileOperands, TapsSlideAlongTheRows) {
  const Product window("mul(%0[i1, i0 + i2], %1[i2, 0])", "i0<32, i1<64", "i2<3");
  const Slide slide = FindSlide(window.nest, window.column(), window.row());
  EXPECT_EQ(slide.axis.id, window.nest.reduction->axes.at(0).id);
  EXPECT_EQ(slide.row_stride, 1);
  EXPECT_EQ(slide.tap_stride, 1);
  EXPECT_TRUE(slide.weighted);
  const Product apart("mul(%0[i1, 3*i0 + i2], %1[i2, 0])", "i0<32, i1<64", "i2<3");
  EXPECT_EQ(FindSlide(apart.nest, apart.column(), apart.row()).axis.id, -1) << "neighbours share no tap";
  const Product two("mul(%0[i1, i0 + i2], %1[i2, 0])", "i0<32, i1<64", "i2<2");
  EXPECT_EQ(FindSlide(two.nest, two.column(), two.row()).axis.id, -1) << "two taps save nothing";
}

TEST(TileOperands, FourProductsOfBytesAtOnce) {
  const auto is_dot = [](const char* type, const char* role, int rows) {
    DraftedProgram drafted(absl::StrFormat(R"(te p(%%0: u8[%1$d, 64], %%1: %2$s[64, 32]%3$s) {
  %%2[i0<%1$d, i1<32]: i32 = sum.i32(i2<64) mul(cast.i32(%%0[i0, i2]), cast.i32(%%1[i2, i1]))
  return %%2
})",
                                           rows, type, role));
    const Nest nest = drafted.NestOf();
    return IsDotProduct(nest, nest.axes.at(1), nest.axes.at(0), drafted.draft.kernel);
  };
  EXPECT_TRUE(is_dot("i8", " const", 4));
  EXPECT_TRUE(is_dot("i8", "", 8)) << "eight rows pay for the copy";
  EXPECT_FALSE(is_dot("i8", "", 4));
  EXPECT_FALSE(is_dot("i16", " const", 8));
}

TEST(TileOperands, AxesOfTheGridAroundATask) {
  Product product("mul(%0[i0, i2], %1[i2, i1])");
  Nest in_task = product.nest;
  const Axis row = in_task.axes.at(0);
  in_task.axes.erase(in_task.axes.begin());
  const std::vector<Axis> outside = AxesOutside(product.loads, in_task);
  ASSERT_EQ(outside.size(), 1u);
  EXPECT_EQ(outside[0].id, row.id);
}

}  // namespace
}  // namespace fusion
