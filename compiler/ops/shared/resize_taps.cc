#include "compiler/ops/shared/resize_taps.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fusion::ops {
namespace {

// Returns the position of output o in the input's coordinates. The resized length is scale·in, which need not be whole.
double Origin(const ResizeSpec& spec, const ResizeAxis& axis, int64_t o) {
  const double x = static_cast<double>(o);
  const double in = static_cast<double>(axis.in);
  const double length = axis.scale * in;
  if (spec.coordinates == "align_corners") return length == 1 ? 0 : x * (in - 1) / (length - 1);
  if (spec.coordinates == "asymmetric") return x / axis.scale;
  if (spec.coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / axis.scale;
  if (spec.coordinates == "pytorch_half_pixel") return length > 1 ? (x + 0.5) / axis.scale - 0.5 : 0;
  if (spec.coordinates == "half_pixel_symmetric") {
    const double adjustment = static_cast<double>(axis.out) / length;
    return in / 2 * (1 - adjustment) + (x + 0.5) / axis.scale - 0.5;
  }
  if (spec.coordinates == "tf_crop_and_resize") {
    const double extent = axis.roi_end - axis.roi_begin;
    return axis.roi_begin * (in - 1) + (length > 1 ? x * extent * (in - 1) / (length - 1) : extent * (in - 1) / 2);
  }
  return (x + 0.5) / axis.scale - 0.5;  // half_pixel
}

int64_t Nearest(const std::string& mode, double x) {
  if (mode == "floor") return static_cast<int64_t>(std::floor(x));
  if (mode == "ceil") return static_cast<int64_t>(std::ceil(x));
  if (mode == "round_prefer_ceil") return static_cast<int64_t>(std::floor(x + 0.5));
  return static_cast<int64_t>(std::ceil(x - 0.5));  // round_prefer_floor
}

double CubicKernel(double x, double a) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

// Returns the weights of the 2·reach inputs around a point that lies `ratio` (in (0, 1]) behind an input. The first
// weight belongs to offset 1 − reach from that input.
std::vector<double> KernelWeights(const ResizeSpec& spec, double scale, double ratio, int64_t reach) {
  const double shrink = spec.antialias ? std::min(scale, 1.0) : 1.0;
  std::vector<double> weights(2 * reach);
  double sum = 0;
  for (int64_t t = 0; t < 2 * reach; ++t) {
    const double distance = shrink * (static_cast<double>(t + 1 - reach) - ratio);
    weights[t] =
        spec.mode == "cubic" ? CubicKernel(distance, spec.cubic_coeff_a) : std::clamp(1 - std::abs(distance), 0.0, 1.0);
    sum += weights[t];
  }
  if (spec.antialias) {
    for (double& weight : weights) weight /= sum;
  }
  return weights;
}

}  // namespace

bool ResizeTaps::Copies() const {
  return index.size() == 1 && std::all_of(weight[0].begin(), weight[0].end(), [](double w) { return w == 1; });
}

double TapsPerOutput(const ResizeSpec& spec, const ResizeAxis& axis) {
  if (spec.mode == "nearest") return 1;
  const double half = spec.mode == "cubic" ? 2 : 1;
  const double shrink = spec.antialias ? std::min(axis.scale, 1.0) : 1.0;
  return 2 * std::ceil(half / shrink);
}

ResizeTaps MakeResizeTaps(const ResizeSpec& spec, const ResizeAxis& axis) {
  ResizeTaps taps;
  const int64_t count = static_cast<int64_t>(TapsPerOutput(spec, axis)), reach = count / 2;
  taps.index.assign(count, std::vector<int64_t>(axis.out, 0));
  taps.weight.assign(count, std::vector<double>(axis.out, 1));
  taps.inside_begin = axis.out;
  for (int64_t o = 0; o < axis.out; ++o) {
    // Positions far outside the image are clamped, so that the conversion to integers is safe; every tap reads the
    // border there anyway.
    const double x = std::clamp(Origin(spec, axis, o), -1e15, 1e15);
    const bool outside = spec.coordinates == "tf_crop_and_resize" && (x < 0 || x > static_cast<double>(axis.in - 1));
    if (!outside) {
      taps.inside_begin = std::min(taps.inside_begin, o);
      taps.inside_end = o + 1;
    }
    if (reach == 0) {
      taps.index[0][o] = std::clamp<int64_t>(Nearest(spec.nearest_mode, x), 0, axis.in - 1);
      continue;
    }
    const int64_t before = static_cast<int64_t>(std::ceil(x)) - 1;
    std::vector<double> weights = KernelWeights(spec, axis.scale, x - static_cast<double>(before), reach);
    double kept = 0;
    for (int64_t t = 0; t < count; ++t) {
      const int64_t at = before + 1 - reach + t;
      taps.index[t][o] = std::clamp<int64_t>(at, 0, axis.in - 1);
      if (spec.exclude_outside && at != taps.index[t][o]) weights[t] = 0;
      kept += weights[t];
    }
    for (int64_t t = 0; t < count; ++t) taps.weight[t][o] = spec.exclude_outside ? weights[t] / kept : weights[t];
  }
  for (int64_t t = static_cast<int64_t>(taps.index.size()) - 1; t >= 0 && taps.index.size() > 1; --t) {
    const std::vector<double>& weights = taps.weight[t];
    if (std::all_of(weights.begin(), weights.end(), [](double w) { return w == 0; })) {
      taps.index.erase(taps.index.begin() + t);
      taps.weight.erase(taps.weight.begin() + t);
    }
  }
  return taps;
}

}  // namespace fusion::ops
