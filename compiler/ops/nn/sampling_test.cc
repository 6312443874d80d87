// Tests of GridSample, AffineGrid, RoiAlign, MaxRoiPool, DeformConv, Col2Im and Det.
#include <cmath>

#include "compiler/ops/registry/op_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion::ops {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using Ints = std::vector<int64_t>;

// An aligned grid of the identity samples every element at its own position, in two and three dimensions.
TEST(AffineGrid, IdentityReproducesTheImage) {
  for (const Shape& shape : {Shape{1, 2, 3, 4}, Shape{1, 1, 2, 3, 4}}) {
    const int64_t r = static_cast<int64_t>(shape.size()) - 2;
    Tensor theta(DType::kF32, {1, r, r + 1});
    for (int64_t d = 0; d < r; ++d) theta.SetDouble(d * (r + 1) + d, 1);
    for (const int64_t aligned : {0, 1}) {
      const auto grid = RunOp({"AffineGrid", {theta, I64({r + 2}, shape)}, {{"align_corners", aligned}}, {1}});
      ASSERT_TRUE(grid.ok()) << grid.status();
      const Tensor x = Wave(shape, 0.37);
      EXPECT_THAT(
          Values(RunOp({"GridSample", {x, (*grid)[0]}, {{"align_corners", aligned}, {"mode", std::string("linear")}}})),
          Pointwise(DoubleNear(1e-5), Elements(x)));
    }
  }
}

// Up to half a pixel outside the image the position stays as it is: taps are clamped one by one.
TEST(GridSample, CubicAtTheBorder) {
  const Tensor x = F32({1, 1, 1, 4}, {1, 2, 4, 8});
  const auto at = [&](double position) {  // in pixels
    const double normalised = (2 * position + 1) / 4 - 1;
    return Values(RunOp({"GridSample",
                         {x, F32({1, 1, 1, 2}, {normalised, 0})},
                         {{"mode", std::string("cubic")}, {"padding_mode", std::string("border")}}}))[0];
  };
  EXPECT_NEAR(at(1), 2, 1e-6);
  // At −0.25 the taps read inputs 0, 0, 0, 1 (a = −0.75). Only the last one, at distance 1.25, reads a different value.
  const double d = 1.25, far = ((-0.75 * d + 3.75) * d - 6) * d + 3;
  EXPECT_NEAR(at(-0.25), 1 + far, 1e-5);
  EXPECT_NEAR(at(-2), 1, 1e-6);
}

TEST(RoiAlign, AdaptiveSamplesAreAsManyAsPixels) {
  const Tensor x = Wave({2, 3, 6, 7}, 0.21), rois = F32({2, 4}, {0, 0, 6, 4, 1, 1, 1, 1});
  const OpCase op{"RoiAlign",
                  {x, rois, I64({2}, {1, 0})},
                  {{"output_height", int64_t{2}}, {"output_width", int64_t{3}}, {"sampling_ratio", int64_t{0}}}};
  OpCase fixed = op;  // bins of the first region are two pixels each way
  fixed.attrs[2].second = int64_t{2};
  const std::vector<double> adaptive = Values(RunOp(op)), two = Values(RunOp(fixed));
  ASSERT_EQ(adaptive.size(), two.size());
  for (size_t i = 0; i < adaptive.size(); ++i) {
    EXPECT_NEAR(adaptive[i], i < adaptive.size() / 2 ? two[i] : 0, 1e-6);  // a region without area has no samples
  }
}

TEST(MaxRoiPool, BinsOverlapAndMayBeEmpty) {
  const Tensor x = F32({1, 1, 3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const auto pool = [&](const std::vector<double>& roi) {
    return Values(RunOp({"MaxRoiPool", {x, F32({1, 5}, roi)}, {{"pooled_shape", Ints{2, 2}}}}));
  };
  EXPECT_THAT(pool({0, 0, 0, 2, 2}), ElementsAre(5, 6, 9, 10));
  EXPECT_THAT(pool({0, 10, 10, 12, 12}), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(pool({0, 3, 2, 0, 0}), ElementsAre(11, 11, 11, 11));  // a region covers at least one pixel
}

TEST(DeformConv, WithoutOffsetsIsConv) {
  const Tensor x = Wave({1, 4, 5, 6}, 0.3), w = Wave({6, 2, 3, 2}, 0.7), bias = Wave({6}, 0.4);
  const std::vector<std::pair<std::string, ecg::Attribute>> attrs = {
      {"group", int64_t{2}}, {"pads", Ints{1, 0, 1, 1}}, {"strides", Ints{2, 1}}};
  auto deform = attrs;
  deform.emplace_back("offset_group", int64_t{2});
  const Tensor offset(DType::kF32, {1, 2 * 6 * 2, 3, 6});
  Tensor mask(DType::kF32, {1, 2 * 6, 3, 6});
  for (int64_t i = 0; i < mask.num_elements(); ++i) mask.SetDouble(i, 1);
  EXPECT_THAT(Values(RunOp({"DeformConv", {x, w, offset, bias, mask}, deform})),
              Pointwise(DoubleNear(1e-5), Values(RunOp({"Conv", {x, w, bias}, attrs}))));
}

TEST(DeformConv, OffsetsMoveTapsAndMaskScalesThem) {
  const Tensor x = F32({1, 1, 2, 3}, {1, 2, 3, 4, 5, 6});
  const auto at = [&](double down, double right, double mask) {
    return Values(RunOp(
        {"DeformConv",
         {x, F32({1, 1, 2, 3}, {0, 1, 0, 0, 0, 0}), F32({1, 12, 1, 1}, {0, 0, down, right, 0, 0, 0, 0, 0, 0, 0, 0}),
          Absent(), F32({1, 6, 1, 1}, {1, mask, 1, 1, 1, 1})}}))[0];
  };
  EXPECT_NEAR(at(0, 0, 1), 2, 1e-6);
  EXPECT_NEAR(at(0.5, 0.25, 1), 2 * 0.5 * 0.75 + 3 * 0.5 * 0.25 + 5 * 0.5 * 0.75 + 6 * 0.5 * 0.25, 1e-6);
  EXPECT_NEAR(at(-0.5, 0, 2), 2, 1e-6);  // half of the sample lies outside
  EXPECT_NEAR(at(5, 0, 1), 0, 1e-6);
}

TEST(Col2Im, SumsOverlappingBlocks) {
  // Blocks of 2 with stride 1 over an image of 1x4: each inner pixel lies in two of them.
  const OpCase op{"Col2Im", {F32({1, 2, 3}, {1, 2, 3, 10, 20, 30}), I64({2}, {1, 4}), I64({2}, {1, 2})}, {}, {1, 2}};
  EXPECT_THAT(Values(RunOp(op)), ElementsAre(1, 12, 23, 30));
  OpCase strided = op;
  strided.inputs[0] = F32({1, 2, 2}, {1, 2, 10, 20});
  strided.attrs = {{"strides", Ints{1, 2}}};
  EXPECT_THAT(Values(RunOp(strided)), ElementsAre(1, 10, 2, 20));
  OpCase wrong = op;
  wrong.inputs[0] = F32({1, 2, 2}, {1, 2, 3, 4});
  EXPECT_THAT(std::string(RunOp(wrong).status().message()), HasSubstr("must be [N, C·2, 3]"));
}

TEST(Det, PivotsAndSigns) {
  EXPECT_THAT(Values(RunOp({"Det", {F32({1, 1}, {-3})}})), ElementsAre(-3));
  EXPECT_THAT(Values(RunOp({"Det", {F32({2, 2, 2}, {0, 1, 2, 3, 1, 2, 2, 4})}})), Pointwise(DoubleNear(1e-6), {-2, 0}));
  // An even permutation of the rows of a triangular matrix with determinant 2·3·4.
  EXPECT_THAT(Values(RunOp({"Det", {F32({3, 3}, {0, 3, 5, 0, 0, 4, 2, 7, 1})}})), Pointwise(DoubleNear(1e-4), {24}));
  // The matrix has 2 on the diagonal and 1 beside it; its determinant is 5.
  EXPECT_THAT(Values(RunOp({"Det", {F32({4, 4}, {2, 1, 0, 0, 1, 2, 1, 0, 0, 1, 2, 1, 0, 0, 1, 2})}})),
              Pointwise(DoubleNear(1e-5), {5}));
  EXPECT_EQ(RunOp({"Det", {Wave({65, 65}, 0.3)}}).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(RunOp({"Det", {F32({2, 3}, {1, 2, 3, 4, 5, 6})}}).status().message()),
              HasSubstr("must be square"));
}

}  // namespace
}  // namespace fusion::ops
