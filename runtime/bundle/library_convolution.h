// A convolution of images that a library of the target performs (cuDNN), in terms that such libraries share.
#ifndef FUSION_RUNTIME_BUNDLE_LIBRARY_CONVOLUTION_H_
#define FUSION_RUNTIME_BUNDLE_LIBRARY_CONVOLUTION_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace fusion {

// y[n, k, p, q] = Σ(c, r, s) x[n, g·c_count + c, p·stride[0] + r·dilation[0] − pad[0], q·stride[1] + s·dilation[1] −
// pad[1]] · w[k, c, r, s], summed in f32. c_count = channels / groups is the number of channels of a group, g = k //
// (results / groups) is the group of k, and x is 0 outside its extents. x, w and y are all f32 or all f16.
struct LibraryConvolution {
  int x = -1, w = -1, y = -1;  // arguments of the kernel
  int64_t images = 1, channels = 1, results = 1, groups = 1;
  std::array<int64_t, 2> in = {1, 1}, taps = {1, 1}, out = {1, 1};          // rows and columns of x, w and y
  std::array<int64_t, 2> stride = {1, 1}, dilation = {1, 1}, pad = {0, 0};  // pad: at both ends; at the far end at most
  std::array<int64_t, 4> x_pitch = {0, 0, 0, 0}, y_pitch = {0, 0, 0, 0};    // elements between neighbours of n, c, h, w
  bool channels_last = false;  // w is [k, r, s, c] row-major; else [k, c, r, s]
  bool tf32 = false;           // f32 operands may be rounded to tf32

  std::array<int64_t, 4> x_extents() const { return {images, channels, in[0], in[1]}; }
  std::array<int64_t, 4> w_extents() const { return {results, channels / groups, taps[0], taps[1]}; }
  std::array<int64_t, 4> y_extents() const { return {images, results, out[0], out[1]}; }
  // Returns the number of result rows (d = 0) or columns (d = 1) that a library computes from these extents.
  int64_t OutOf(size_t d) const { return (in[d] + 2 * pad[d] - dilation[d] * (taps[d] - 1) - 1) / stride[d] + 1; }

  // Number of elements from the first one to the end of the last one, gaps included.
  int64_t x_elements() const { return Elements(x_extents(), x_pitch); }
  int64_t w_elements() const { return results * (channels / groups) * taps[0] * taps[1]; }
  int64_t y_elements() const { return Elements(y_extents(), y_pitch); }

 private:
  static int64_t Elements(const std::array<int64_t, 4>& extents, const std::array<int64_t, 4>& pitch) {
    int64_t last = 0;
    for (size_t d = 0; d < 4; ++d) last += (extents[d] - 1) * pitch[d];
    return last + 1;
  }
};

}  // namespace fusion

#endif  // FUSION_RUNTIME_BUNDLE_LIBRARY_CONVOLUTION_H_
