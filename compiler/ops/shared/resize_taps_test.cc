#include "compiler/ops/shared/resize_taps.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace fusion::ops {
namespace {

ResizeAxis Axis(int64_t in, int64_t out) { return {in, out, static_cast<double>(out) / static_cast<double>(in), 0, 1}; }

// Whatever is resized how: indices are those of inputs, and a constant stays what it is.
TEST(MakeResizeTaps, WeightsOfAnOutputAddUpToOne) {
  int shapes = 0;
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    for (const char* coordinates : {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                                    "asymmetric", "tf_half_pixel_for_nn"}) {
      for (const bool antialias : {false, true}) {
        for (const bool exclude_outside : {false, true}) {
          for (const auto& [in, out] : std::vector<std::pair<int64_t, int64_t>>{
                   {1, 1}, {1, 7}, {7, 1}, {5, 5}, {4, 9}, {9, 4}, {100, 3}, {3, 100}}) {
            const ResizeSpec spec{mode, coordinates, "round_prefer_floor", -0.75, exclude_outside, antialias};
            const ResizeTaps taps = MakeResizeTaps(spec, Axis(in, out));
            ASSERT_EQ(taps.index.size(), taps.weight.size());
            ASSERT_GE(taps.index.size(), 1u);
            EXPECT_LE(static_cast<double>(taps.index.size()), TapsPerOutput(spec, Axis(in, out)));
            for (int64_t o = 0; o < out; ++o) {
              double sum = 0;
              for (size_t t = 0; t < taps.index.size(); ++t) {
                ASSERT_GE(taps.index[t][o], 0);
                ASSERT_LT(taps.index[t][o], in);
                sum += taps.weight[t][o];
              }
              EXPECT_NEAR(sum, 1, 1e-12) << mode << " " << coordinates << " " << in << " to " << out << " at " << o;
            }
            EXPECT_EQ(taps.inside_begin, 0);
            EXPECT_EQ(taps.inside_end, out);
            ++shapes;
          }
        }
      }
    }
  }
  EXPECT_EQ(shapes, 3 * 6 * 4 * 8);
}

TEST(MakeResizeTaps, TheSameSizeIsACopy) {
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    ResizeSpec spec;
    spec.mode = mode;
    const ResizeTaps taps = MakeResizeTaps(spec, Axis(6, 6));
    EXPECT_TRUE(taps.Copies()) << mode;
    for (int64_t o = 0; o < 6; ++o) EXPECT_EQ(taps.index[0][o], o) << mode;
  }
}

TEST(MakeResizeTaps, TheHalfOfAWidthMeansTwo) {
  ResizeSpec spec;
  spec.mode = "linear";
  const ResizeTaps taps = MakeResizeTaps(spec, Axis(8, 4));
  for (int64_t o = 0; o < 4; ++o) {
    double position = 0;
    for (size_t t = 0; t < taps.index.size(); ++t) {
      position += taps.weight[t][o] * static_cast<double>(taps.index[t][o]);
    }
    EXPECT_DOUBLE_EQ(position, 2 * static_cast<double>(o) + 0.5);
  }
}

TEST(MakeResizeTaps, OutputsBeyondTheCropAreOutside) {
  ResizeSpec spec;
  spec.mode = "linear";
  spec.coordinates = "tf_crop_and_resize";
  const ResizeTaps taps = MakeResizeTaps(spec, {10, 5, 0.5, -0.5, 1.0});
  EXPECT_GT(taps.inside_begin, 0);
  EXPECT_EQ(taps.inside_end, 5);
}

TEST(TapsPerOutput, GrowAsAntialiasShrinks) {
  ResizeSpec spec;
  EXPECT_EQ(TapsPerOutput(spec, Axis(1 << 20, 1)), 1);
  spec.mode = "linear";
  EXPECT_EQ(TapsPerOutput(spec, Axis(1 << 20, 1)), 2);
  spec.antialias = true;
  EXPECT_EQ(TapsPerOutput(spec, Axis(1 << 20, 1)), 1 << 21);
  EXPECT_EQ(TapsPerOutput(spec, Axis(1, 16)), 2);
  spec.mode = "cubic";
  EXPECT_EQ(TapsPerOutput(spec, Axis(16, 4)), 16);
  EXPECT_GT(TapsPerOutput(spec, {4, 0, 1e-300, 0, 1}), 1e300);
}

}  // namespace
}  // namespace fusion::ops
