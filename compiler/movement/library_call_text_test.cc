#include "compiler/movement/library_call_text.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace fusion::movement {
namespace {

// The text is part of the key of stored measurements, so each field changes it.
TEST(LibraryCallText, OfAProductHoldsEveryField) {
  LibraryProduct p;
  p.a = 0, p.b = 1, p.d = 2, p.m = 8, p.n = 6, p.depth = 5;
  p.a_pitch = 8, p.b_pitch = 6, p.d_pitch = 9, p.batches = 3, p.a_batch = 40, p.b_batch = 30, p.d_batch = 54;
  EXPECT_EQ(LibraryCallText(p), "b2[8, 6] pitch 9 = b0 pitch 8 * b1 pitch 6 depth 5 batches 3 of 54, 40, 30");
  std::set<std::string> texts = {LibraryCallText(p)};
  const auto changed = [&](auto change) {
    LibraryProduct other = p;
    change(other);
    EXPECT_TRUE(texts.insert(LibraryCallText(other)).second) << LibraryCallText(other);
  };
  for (int LibraryProduct::*field :
       {&LibraryProduct::a, &LibraryProduct::b, &LibraryProduct::d, &LibraryProduct::bias}) {
    changed([&](LibraryProduct& other) { other.*field = 7; });
  }
  for (int64_t LibraryProduct::*field :
       {&LibraryProduct::m, &LibraryProduct::n, &LibraryProduct::depth, &LibraryProduct::batches,
        &LibraryProduct::a_pitch, &LibraryProduct::b_pitch, &LibraryProduct::d_pitch, &LibraryProduct::a_batch,
        &LibraryProduct::b_batch, &LibraryProduct::d_batch}) {
    changed([&](LibraryProduct& other) { other.*field = 77; });
  }
  for (bool LibraryProduct::*field :
       {&LibraryProduct::a_along_depth, &LibraryProduct::b_along_depth, &LibraryProduct::tf32}) {
    changed([&](LibraryProduct& other) { other.*field = true; });
  }
}

TEST(LibraryCallText, OfAConvolutionHoldsEveryField) {
  LibraryConvolution c;
  c.x = 0, c.w = 1, c.y = 2, c.images = 2, c.channels = 16, c.results = 32, c.groups = 4;
  c.in = {10, 12}, c.taps = {3, 5}, c.out = {10, 11}, c.pad = {1, 2};
  std::set<std::string> texts = {LibraryCallText(c)};
  const auto changed = [&](auto change) {
    LibraryConvolution other = c;
    change(other);
    EXPECT_TRUE(texts.insert(LibraryCallText(other)).second) << LibraryCallText(other);
  };
  for (int LibraryConvolution::*field : {&LibraryConvolution::x, &LibraryConvolution::w, &LibraryConvolution::y}) {
    changed([&](LibraryConvolution& other) { other.*field = 7; });
  }
  for (int64_t LibraryConvolution::*field : {&LibraryConvolution::images, &LibraryConvolution::channels,
                                             &LibraryConvolution::results, &LibraryConvolution::groups}) {
    changed([&](LibraryConvolution& other) { other.*field = 64; });
  }
  for (auto field : {&LibraryConvolution::in, &LibraryConvolution::taps, &LibraryConvolution::out,
                     &LibraryConvolution::stride, &LibraryConvolution::dilation, &LibraryConvolution::pad}) {
    for (const size_t d : {0, 1}) changed([&](LibraryConvolution& other) { (other.*field)[d] = 9; });
  }
  for (auto field : {&LibraryConvolution::x_pitch, &LibraryConvolution::y_pitch}) {
    for (size_t d = 0; d < 4; ++d) changed([&](LibraryConvolution& other) { (other.*field)[d] = 99; });
  }
  for (bool LibraryConvolution::*field : {&LibraryConvolution::channels_last, &LibraryConvolution::tf32}) {
    changed([&](LibraryConvolution& other) { other.*field = true; });
  }
}

}  // namespace
}  // namespace fusion::movement
