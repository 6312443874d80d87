// The arithmetic of Resize along one axis, by ONNX's formula in double precision: which inputs an output reads, and
// with which weights. Nothing here depends on tensor expressions.
#ifndef FUSION_COMPILER_OPS_SHARED_RESIZE_TAPS_H_
#define FUSION_COMPILER_OPS_SHARED_RESIZE_TAPS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace fusion::ops {

struct ResizeSpec {
  std::string mode = "nearest";            // nearest, linear, cubic
  std::string coordinates = "half_pixel";  // coordinate_transformation_mode
  std::string nearest_mode = "round_prefer_floor";
  double cubic_coeff_a = -0.75;
  bool exclude_outside = false;
  bool antialias = false;
};

// One axis with `in` inputs and `out` outputs; `scale` = outputs per input; roi in normalised coordinates.
struct ResizeAxis {
  int64_t in = 1, out = 1;
  double scale = 1;
  double roi_begin = 0, roi_end = 1;
};

// taps × out: output o reads input index[t][o] with weight[t][o]. Taps whose weights are all 0 are left out. Outputs
// outside [inside_begin, inside_end) lie beyond the image (tf_crop_and_resize) and take the extrapolation value.
struct ResizeTaps {
  std::vector<std::vector<int64_t>> index;
  std::vector<std::vector<double>> weight;
  int64_t inside_begin = 0, inside_end = 0;

  bool Copies() const;  // whether there is one tap, of weight 1
};
// Takes memory for TapsPerOutput times the outputs of the axis.
ResizeTaps MakeResizeTaps(const ResizeSpec& spec, const ResizeAxis& axis);

// The taps of each output, those of weight 0 included. With antialias there are more the more the axis shrinks.
double TapsPerOutput(const ResizeSpec& spec, const ResizeAxis& axis);

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_SHARED_RESIZE_TAPS_H_
