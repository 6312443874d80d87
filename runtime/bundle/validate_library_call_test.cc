#include "runtime/bundle/validate_library_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/bundle/testing/small_manifest.h"

namespace fusion {
namespace {

using ::fusion::testing::SmallManifest;
using ::testing::HasSubstr;

TEST(ValidateLibraryCall, ProductsOfALibrary) {
  Manifest manifest = SmallManifest({0, 0, 64});
  manifest.digests["kernels/cpu.so"] = "";
  manifest.format = 6;
  manifest.kernels[0].phases.resize(1);
  manifest.buffers = {{Buffer::Kind::kInput, "x", DType::kF32, {3, 5}, 60, 0, ""},
                      {Buffer::Kind::kInput, "y", DType::kF32, {5, 4}, 80, 0, ""},
                      {Buffer::Kind::kOutput, "z", DType::kF32, {3, 4}, 48, 0, ""}};
  manifest.inputs = {{"x", DType::kF32, {3, 5}, 0}, {"y", DType::kF32, {5, 4}, 1}};
  manifest.outputs = {{"z", DType::kF32, {3, 4}, 2}};
  manifest.launches.resize(1);
  manifest.launches[0].buffers = {0, 1, 2};
  auto& product = manifest.kernels[0].phases[0].library.emplace().emplace<LibraryProduct>();
  product.a = 1, product.b = 0, product.d = 2;
  product.m = 4, product.n = 3, product.depth = 5;
  product.b_along_depth = true;
  product.a_pitch = 4, product.b_pitch = 5, product.d_pitch = 4;
  const auto parsed = ParseManifest(SerializeManifest(manifest));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  ASSERT_TRUE(parsed->kernels[0].phases[0].library.has_value());
  const auto* again = std::get_if<LibraryProduct>(&*parsed->kernels[0].phases[0].library);
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->b_pitch, 5);
  EXPECT_TRUE(again->b_along_depth);
  EXPECT_TRUE(ValidateManifest(*parsed, 80).ok()) << ValidateManifest(*parsed, 80);
  const auto why = [&](auto change) {
    Manifest changed = manifest;
    change(changed, std::get<LibraryProduct>(*changed.kernels[0].phases[0].library));
    return std::string(ValidateManifest(changed, 80).message());
  };
  EXPECT_THAT(why([](Manifest& m, LibraryProduct&) { m.format = 5; }), HasSubstr("format 6"));
  EXPECT_THAT(why([](Manifest&, LibraryProduct& p) { p.b = 3; }), HasSubstr("no argument 3"));
  EXPECT_THAT(why([](Manifest&, LibraryProduct& p) { p.bias = 3; }), HasSubstr("no argument 3"));
  EXPECT_THAT(why([](Manifest&, LibraryProduct& p) { p.n = 0; }), HasSubstr("0 rows"));
  EXPECT_THAT(why([](Manifest&, LibraryProduct& p) { p.a_batch = -1; }), HasSubstr("-1 elements apart"));
  EXPECT_THAT(why([](Manifest&, LibraryProduct& p) { p.depth = 6; }), HasSubstr("leaves its buffers"));
  EXPECT_THAT(why([](Manifest&, LibraryProduct& p) { p.batches = INT32_MAX, p.d_batch = INT32_MAX; }),
              HasSubstr("leaves its buffers"));
  EXPECT_THAT(why([](Manifest& m, LibraryProduct&) {
                m.buffers[1].dtype = DType::kI32;
                m.inputs[1].dtype = DType::kI32;
              }),
              HasSubstr("a product of i32"));
}

TEST(ValidateLibraryCall, ConvolutionsOfALibrary) {
  // The input is two images of 5 × 6 pixels and 4 channels. The filter has 3 × 3 taps in 2 groups. Rows have stride 2
  // and a padding of 1.
  Manifest manifest = SmallManifest({0, 0, 64});
  manifest.digests["kernels/cpu.so"] = "";
  manifest.format = 7;
  manifest.kernels[0].phases.resize(1);
  manifest.buffers = {{Buffer::Kind::kInput, "x", DType::kF32, {2, 4, 5, 6}, 960, 0, ""},
                      {Buffer::Kind::kInput, "w", DType::kF32, {6, 2, 3, 3}, 432, 0, ""},
                      {Buffer::Kind::kOutput, "y", DType::kF32, {2, 6, 3, 4}, 576, 0, ""}};
  manifest.inputs = {{"x", DType::kF32, {2, 4, 5, 6}, 0}, {"w", DType::kF32, {6, 2, 3, 3}, 1}};
  manifest.outputs = {{"y", DType::kF32, {2, 6, 3, 4}, 2}};
  manifest.launches.resize(1);
  manifest.launches[0].buffers = {0, 1, 2};
  auto& c = manifest.kernels[0].phases[0].library.emplace().emplace<LibraryConvolution>();
  c.x = 0, c.w = 1, c.y = 2;
  c.images = 2, c.channels = 4, c.results = 6, c.groups = 2;
  c.in = {5, 6}, c.taps = {3, 3}, c.out = {3, 4}, c.stride = {2, 1}, c.pad = {1, 0};
  c.x_pitch = {120, 30, 6, 1}, c.y_pitch = {72, 12, 4, 1};
  const auto parsed = ParseManifest(SerializeManifest(manifest));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  ASSERT_TRUE(parsed->kernels[0].phases[0].library.has_value());
  const auto* again = std::get_if<LibraryConvolution>(&*parsed->kernels[0].phases[0].library);
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->x_pitch, c.x_pitch);
  EXPECT_EQ(again->stride, c.stride);
  EXPECT_TRUE(ValidateManifest(*parsed, 80).ok()) << ValidateManifest(*parsed, 80);
  const auto why = [&](auto change) {
    Manifest changed = manifest;
    change(changed, std::get<LibraryConvolution>(*changed.kernels[0].phases[0].library));
    return std::string(ValidateManifest(changed, 80).message());
  };
  using C = LibraryConvolution;
  EXPECT_THAT(why([](Manifest& m, C&) { m.format = 6; }), HasSubstr("format 7"));
  EXPECT_THAT(why([](Manifest&, C& c) { c.w = 3; }), HasSubstr("no argument 3"));
  EXPECT_THAT(why([](Manifest&, C& c) { c.y = -1; }), HasSubstr("no argument -1"));
  EXPECT_THAT(why([](Manifest&, C& c) { c.groups = 0; }), HasSubstr("0 images"));
  EXPECT_THAT(why([](Manifest&, C& c) { c.groups = 4; }), HasSubstr("4 groups"));
  EXPECT_THAT(why([](Manifest&, C& c) { c.stride[1] = 0; }), HasSubstr("0 images"));
  EXPECT_THAT(why([](Manifest&, C& c) { c.pad[0] = -1; }), HasSubstr("3 taps into 3"));
  EXPECT_THAT(why([](Manifest&, C& c) { c.out[0] = 4; }), HasSubstr("3 taps into 4"));
  EXPECT_THAT(why([](Manifest&, C& c) { c.dilation[1] = 6; }), HasSubstr("3 taps into 4"));
  EXPECT_THAT(why([](Manifest&, C& c) { c.x_pitch[2] = 0; }), HasSubstr("0 apart"));
  EXPECT_THAT(why([](Manifest&, C& c) { c.x_pitch[0] = 121; }), HasSubstr("leaves its buffers"));
  EXPECT_THAT(why([](Manifest&, C& c) { c.y_pitch[0] = INT32_MAX; }), HasSubstr("leaves its buffers"));
  EXPECT_THAT(why([](Manifest&, C& c) { c.results = 12, c.y_pitch[1] = 6; }), HasSubstr("leaves its buffers"));
  EXPECT_THAT(why([](Manifest& m, C&) {
                m.buffers[1].dtype = DType::kF16;
                m.buffers[1].size_bytes = 216;
                m.inputs[1].dtype = DType::kF16;
              }),
              HasSubstr("a convolution of f32 with f16"));
  std::string text = SerializeManifest(manifest);
  const std::string from = "\"taps\": [\n", to = "\"taps\": [7,\n";
  ASSERT_NE(text.find(from), std::string::npos) << text;
  text.replace(text.find(from), from.size(), to);
  EXPECT_THAT(std::string(ParseManifest(text).status().message()), HasSubstr("taps does not hold 2 integers"));
}

}  // namespace
}  // namespace fusion
