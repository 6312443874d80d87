// Compares convolution and pooling with direct loops.
#include <cmath>
#include <limits>

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

MATCHER(Close, "") { return std::abs(std::get<0>(arg) - std::get<1>(arg)) <= 1e-5 * (1 + std::abs(std::get<1>(arg))); }

struct ConvCase {
  int64_t channels, out_channels, height, width, kernel_h, kernel_w, group, stride, dilation;
  Ints pads;  // top, left, bottom, right
};

std::vector<double> DirectConv(const ConvCase& c, const Tensor& x, const Tensor& w) {
  const int64_t in_group = c.channels / c.group, out_group = c.out_channels / c.group;
  const int64_t oh = (c.height + c.pads[0] + c.pads[2] - (c.kernel_h - 1) * c.dilation - 1) / c.stride + 1;
  const int64_t ow = (c.width + c.pads[1] + c.pads[3] - (c.kernel_w - 1) * c.dilation - 1) / c.stride + 1;
  std::vector<double> y;
  for (int64_t o = 0; o < c.out_channels; ++o) {
    for (int64_t p = 0; p < oh; ++p) {
      for (int64_t q = 0; q < ow; ++q) {
        double sum = 0;
        for (int64_t i = 0; i < in_group; ++i) {
          for (int64_t kh = 0; kh < c.kernel_h; ++kh) {
            for (int64_t kw = 0; kw < c.kernel_w; ++kw) {
              const int64_t h = p * c.stride + kh * c.dilation - c.pads[0];
              const int64_t v = q * c.stride + kw * c.dilation - c.pads[1];
              if (h < 0 || h >= c.height || v < 0 || v >= c.width) continue;
              const int64_t channel = o / out_group * in_group + i;
              sum += x.GetDouble((channel * c.height + h) * c.width + v) *
                     w.GetDouble(((o * in_group + i) * c.kernel_h + kh) * c.kernel_w + kw);
            }
          }
        }
        y.push_back(sum);
      }
    }
  }
  return y;
}

TEST(Conv, GroupsStridesDilationsPads) {
  const ConvCase cases[] = {
      {3, 4, 6, 5, 3, 3, 1, 1, 1, {1, 1, 1, 1}}, {3, 4, 6, 5, 3, 2, 1, 2, 1, {0, 1, 2, 0}},
      {4, 6, 7, 7, 3, 3, 2, 1, 2, {2, 2, 2, 2}}, {4, 4, 5, 5, 3, 3, 4, 2, 1, {1, 1, 1, 1}},
      {4, 8, 5, 5, 3, 3, 4, 1, 1, {0, 0, 0, 0}}, {8, 4, 4, 4, 1, 1, 1, 1, 1, {0, 0, 0, 0}},
  };
  for (const ConvCase& c : cases) {
    const Tensor x = Wave({1, c.channels, c.height, c.width}, 0.7);
    const Tensor w = Wave({c.out_channels, c.channels / c.group, c.kernel_h, c.kernel_w}, 1.3);
    const OpCase conv{"Conv",
                      {x, w},
                      {{"group", c.group},
                       {"strides", Ints{c.stride, c.stride}},
                       {"dilations", Ints{c.dilation, c.dilation}},
                       {"pads", c.pads}}};
    EXPECT_THAT(Values(RunOp(conv)), Pointwise(Close(), DirectConv(c, x, w))) << c.kernel_h << " group " << c.group;
    EXPECT_EQ(CountTes(conv), 1);
  }
}

TEST(Conv, BiasIsAnEpilogue) {
  const OpCase conv{"Conv", {F32({1, 1, 2, 2}, {1, 2, 3, 4}), F32({2, 1, 1, 1}, {1, 2}), F32({2}, {10, 20})}};
  EXPECT_THAT(Values(RunOp(conv)), ElementsAre(11, 12, 13, 14, 22, 24, 26, 28));
  EXPECT_EQ(CountTes(conv), 2);
  EXPECT_EQ(MappingOf(conv), MappingType::kManyToMany);
}

TEST(Conv, OneDimensionAndSamePadding) {
  const OpCase same{
      "Conv", {F32({1, 1, 4}, {1, 2, 3, 4}), F32({1, 1, 2}, {1, 1})}, {{"auto_pad", std::string("SAME_LOWER")}}};
  EXPECT_THAT(Values(RunOp(same)), ElementsAre(1, 3, 5, 7));
}

TEST(Conv, NamesWhatDoesNotFit) {
  const auto message = [](const OpCase& op_case) { return std::string(TypeOf(op_case).status().message()); };
  EXPECT_THAT(message({"Conv", {Wave({1, 4, 5, 5}, 1), Wave({3, 4, 3, 3}, 1)}, {{"group", int64_t{3}}}}),
              HasSubstr("Conv 'n': group=3 does not divide C=4"));
  EXPECT_THAT(message({"Conv", {Wave({1, 4, 2, 2}, 1), Wave({3, 4, 3, 3}, 1)}}),
              HasSubstr("larger than the padded input"));
  EXPECT_THAT(message({"Conv", {Wave({1, 4, 5, 5}, 1), Wave({3, 2, 3, 3}, 1)}}), HasSubstr("has C=4"));
}

TEST(ConvTranspose, StridesAndGroups) {
  const OpCase plain{"ConvTranspose", {F32({1, 1, 2}, {1, 2}), F32({1, 1, 3}, {1, 10, 100})}, {{"strides", Ints{2}}}};
  EXPECT_THAT(Values(RunOp(plain)), ElementsAre(1, 10, 102, 20, 200));
  const OpCase unit{"ConvTranspose", {F32({1, 1, 2}, {1, 2}), F32({1, 1, 3}, {1, 10, 100})}};
  EXPECT_THAT(Values(RunOp(unit)), ElementsAre(1, 12, 120, 200));
  const OpCase padded{"ConvTranspose",
                      {F32({1, 1, 2}, {1, 2}), F32({1, 1, 3}, {1, 10, 100})},
                      {{"strides", Ints{2}}, {"pads", Ints{1, 1}}, {"output_padding", Ints{1}}}};
  EXPECT_THAT(Values(RunOp(padded)), ElementsAre(10, 102, 20, 200));
  const OpCase dilated{"ConvTranspose",
                       {F32({1, 1, 2}, {1, 2}), F32({1, 1, 2}, {1, 10})},
                       {{"strides", Ints{2}}, {"dilations", Ints{3}}}};
  EXPECT_THAT(Values(RunOp(dilated)), ElementsAre(1, 0, 2, 10, 0, 20));
  const OpCase even{"ConvTranspose",
                    {F32({1, 1, 2, 1}, {1, 2}), F32({1, 1, 2, 2}, {1, 2, 3, 4}), F32({1}, {10})},
                    {{"strides", Ints{2, 2}}}};
  EXPECT_THAT(Values(RunOp(even)), ElementsAre(11, 12, 13, 14, 12, 14, 16, 18));
  const OpCase sparse{"ConvTranspose", {F32({1, 1, 2}, {1, 2}), F32({1, 1, 2}, {1, 10})}, {{"strides", Ints{3}}}};
  EXPECT_THAT(Values(RunOp(sparse)), ElementsAre(1, 10, 0, 2, 20));
  const OpCase grouped{
      "ConvTranspose", {F32({1, 2, 1}, {1, 2}), F32({2, 1, 2}, {1, 10, 3, 4})}, {{"group", int64_t{2}}}};
  EXPECT_THAT(Values(RunOp(grouped)), ElementsAre(1, 10, 6, 8));
}

// Where the stride does not divide the kernel, some phases have a tap less, whose weight of 0 may not meet the operand.
// The first result has the first tap alone: the infinite weight of the other one would read beside the image.
TEST(ConvTranspose, InfiniteWeightMeetsNoPadding) {
  const double infinity = std::numeric_limits<double>::infinity();
  const OpCase both{"ConvTranspose",
                    {F32({1, 1, 2}, {1, 2}), F32({1, 1, 2}, {3, infinity})},
                    {{"strides", Ints{2}}, {"dilations", Ints{2}}}};
  EXPECT_THAT(Values(RunOp(both)), ElementsAre(3, 0, infinity, 0, infinity));
}

TEST(ConvTranspose, InfiniteInputStaysWhereItReaches) {
  const float infinity = std::numeric_limits<float>::infinity();
  const OpCase row{
      "ConvTranspose", {F32({1, 1, 3}, {1, infinity, 1}), F32({1, 1, 3}, {1, 10, 100})}, {{"strides", Ints{2}}}};
  EXPECT_THAT(Values(RunOp(row)), ElementsAre(1, 10, infinity, infinity, infinity, 10, 100));
}

TEST(MaxPool, PaddingNeverWins) {
  const OpCase pool{"MaxPool", {F32({1, 1, 3}, {-5, -7, -6})}, {{"kernel_shape", Ints{2}}, {"pads", Ints{1, 1}}}};
  EXPECT_THAT(Values(RunOp(pool)), ElementsAre(-5, -5, -6, -6));
  const OpCase ceil{"MaxPool",
                    {F32({1, 1, 4}, {1, 2, 3, 4})},
                    {{"kernel_shape", Ints{3}}, {"strides", Ints{2}}, {"ceil_mode", int64_t{1}}}};
  EXPECT_THAT(Values(RunOp(ceil)), ElementsAre(3, 4));
}

TEST(MaxPool, WindowOfOneIsASlice) {
  const OpCase pool{"MaxPool", {F32({1, 1, 3}, {1, 2, 3})}, {{"kernel_shape", Ints{1}}, {"strides", Ints{2}}}};
  EXPECT_THAT(Values(RunOp(pool)), ElementsAre(1, 3));
  EXPECT_EQ(MappingOf(pool), MappingType::kOneToOne);
}

TEST(MaxPool, Indices) {
  const OpCase pool{"MaxPool",
                    {F32({1, 2, 2, 2}, {1, 9, 9, 2, -1, -2, -3, -4})},
                    {{"kernel_shape", Ints{2, 2}}, {"pads", Ints{1, 0, 0, 0}}},
                    {},
                    2};
  EXPECT_THAT(Values(RunOp(pool), 0), ElementsAre(9, 9, -1, -1));
  EXPECT_THAT(Values(RunOp(pool), 1), ElementsAre(1, 1, 4, 4));
  OpCase column_major = pool;
  column_major.attrs.push_back({"storage_order", int64_t{1}});
  EXPECT_THAT(Values(RunOp(column_major), 1), ElementsAre(2, 2, 4, 4));
}

TEST(MaxPool, NanPropagates) {
  const OpCase pool{"MaxPool", {F32({1, 1, 3}, {1, NAN, 3})}, {{"kernel_shape", Ints{3}}}};
  EXPECT_TRUE(std::isnan(Values(RunOp(pool))[0]));
}

TEST(AveragePool, WhatCounts) {
  const auto pool = [](int64_t include) {
    return Values(RunOp({"AveragePool",
                         {F32({1, 1, 3}, {2, 4, 6})},
                         {{"kernel_shape", Ints{3}}, {"pads", Ints{1, 1}}, {"count_include_pad", include}}}));
  };
  EXPECT_THAT(pool(0), ElementsAre(DoubleNear(3, 1e-6), DoubleNear(4, 1e-6), DoubleNear(5, 1e-6)));
  EXPECT_THAT(pool(1), ElementsAre(DoubleNear(2, 1e-6), DoubleNear(4, 1e-6), DoubleNear(10.0 / 3, 1e-6)));
}

TEST(GlobalPool, AllSpatialDimensions) {
  const Tensor x = F32({1, 2, 2, 2}, {1, 2, 3, 4, 3, 4, 0, 0});
  EXPECT_THAT(Values(RunOp({"GlobalAveragePool", {x}})), ElementsAre(2.5, 1.75));
  EXPECT_THAT(Values(RunOp({"GlobalMaxPool", {x}})), ElementsAre(4, 4));
  EXPECT_THAT(Values(RunOp({"GlobalLpPool", {x}})), ElementsAre(DoubleNear(std::sqrt(30.0), 1e-6), 5));
  EXPECT_THAT(Values(RunOp({"LpPool", {x}, {{"kernel_shape", Ints{2, 2}}, {"p", int64_t{1}}}})), ElementsAre(10, 7));
}

}  // namespace
}  // namespace fusion::ops
