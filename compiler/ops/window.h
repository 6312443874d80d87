// Sliding windows over the spatial dimensions of x: [N, C, D1, …], shared by convolution and pooling.
#ifndef FUSION_COMPILER_OPS_WINDOW_H_
#define FUSION_COMPILER_OPS_WINDOW_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ops/op_def.h"

namespace fusion::ops {

inline const AttrSpec kAutoPad{"auto_pad", AttrKind::kString, false, {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"}};

// Output position i, tap k reads i·stride + k·dilation − before, all per spatial dimension.
struct Window {
  Shape in, out;
  Shape kernel, strides, dilations, before, after;

  int spatial() const { return static_cast<int>(kernel.size()); }
  // i: output coordinates, k: taps, both spatial only.
  std::vector<te::Index> At(const std::vector<te::Index>& i, const std::vector<te::Index>& k) const;
  // Does any tap of any output read outside the input?
  bool ReadsOutside() const;
  // Extent of the kernel with its dilation.
  int64_t Span(int d) const { return (kernel[d] - 1) * dilations[d] + 1; }
};

// From the attributes strides, dilations, pads, auto_pad and ceil_mode of a node whose input 0 is x. A window that
// starts in the end padding is dropped (ceil_mode). INVALID_ARGUMENT when the kernel is larger than the padded input.
absl::StatusOr<Window> MakeWindow(const OpContext& context, Shape kernel);

// An integer list attribute with one value per spatial dimension (`otherwise` where absent).
absl::StatusOr<Shape> SpatialInts(const OpContext& context, const char* name, int spatial, int64_t otherwise);

// pads = [begins…, ends…].
absl::Status SplitPads(const OpContext& context, int spatial, Shape* before, Shape* after);

// A load from `tensor` that is padded with `outside` only where `padded`.
te::Scalar LoadWindow(const te::Builder& builder, te::TensorId tensor, std::vector<te::Index> indices, bool padded,
                      const te::Scalar& outside);

// Coordinates over `shape` where an extent of 1 is the constant 0, so that indices of degenerate taps vanish.
std::vector<te::Index> DropUnit(std::vector<te::Index> indices, const Shape& shape);

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_WINDOW_H_
