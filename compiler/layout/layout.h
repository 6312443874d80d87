// Layout: how a logical tensor lies in memory, as an index map from logical coordinates to a row-major physical box.
// - Plain is the identity.
// - Blocked by B on axis a: (.., c, ..) -> (.., c//B, .., c%B), the channel-blocked form NCHWc that convolutions read
//   and write by whole vectors. Physical lanes past the logical extent always hold zero (pad=zero), so that a consumer
//   that reduces over them with zero weights meets no NaN.
// - Axis a last: (.., c, ..) -> (.., c), NHWC of an image, which has no lanes to pad.
#ifndef FUSION_COMPILER_LAYOUT_LAYOUT_H_
#define FUSION_COMPILER_LAYOUT_LAYOUT_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/te/index/index.h"
#include "runtime/base/tensor.h"

namespace fusion {

struct Layout {
  int axis = -1;      // blocked or moved axis, -1: plain
  int64_t block = 1;  // elements per layout block; kWhole: the axis is not cut and moves behind all others

  static constexpr int64_t kWhole = 0;

  bool plain() const { return axis < 0; }
  bool axis_last() const { return !plain() && block == kWhole; }
  bool operator==(const Layout& other) const { return axis == other.axis && block == other.block; }

  // `of_dimensions` has one entry for each logical dimension. Returns them in the order of memory of a layout whose
  // axis moves last; not for blocked layouts.
  template <typename T>
  std::vector<T> MoveLast(std::vector<T> of_dimensions) const {
    std::rotate(of_dimensions.begin() + axis, of_dimensions.begin() + axis + 1, of_dimensions.end());
    return of_dimensions;
  }
  // Extents of the physical row-major box for a logical shape.
  Shape PhysicalShape(const Shape& logical) const;
  // Physical coordinates of logical ones.
  std::vector<te::Index> Apply(const std::vector<te::Index>& logical) const;
  // "(d0, d1, d2, d3) -> (d0, d1//16, d2, d3, d1%16)"; "(d0, d1, d2, d3) -> (d0, d2, d3, d1)"; "plain".
  std::string ToString(int rank) const;
};

}  // namespace fusion

#endif  // FUSION_COMPILER_LAYOUT_LAYOUT_H_
