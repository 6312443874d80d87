// Sliding windows over the spatial dimensions of x: [N, C, D1, …], shared by convolution and pooling.
#ifndef FUSION_COMPILER_OPS_SHARED_WINDOW_H_
#define FUSION_COMPILER_OPS_SHARED_WINDOW_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ops/registry/op_def.h"

namespace fusion::ops {

inline const AttrSpec kAutoPad{"auto_pad", AttrKind::kString, false, {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"}};

// Tap k of output position i reads i·stride + k·dilation − before, for each spatial dimension.
struct Window {
  Shape in, out;
  Shape kernel, strides, dilations, before, after;

  int spatial() const { return static_cast<int>(kernel.size()); }
  // Returns the input position. i: output coordinates, k: taps, both spatial only.
  std::vector<te::Index> At(const std::vector<te::Index>& i, const std::vector<te::Index>& k) const;
  // Returns whether any tap of any output reads outside the input.
  bool ReadsOutside() const;
  // The extent of the kernel with its dilation.
  int64_t Span(int d) const { return (kernel[d] - 1) * dilations[d] + 1; }
};

// Builds the window from the attributes strides, dilations, pads, auto_pad and ceil_mode of a node whose input 0 is x.
// Drops a window that starts in the end padding (ceil_mode). INVALID_ARGUMENT when the kernel is larger than the padded
// input.
absl::StatusOr<Window> MakeWindow(const OpContext& context, Shape kernel);

// Returns an integer list attribute with one value per spatial dimension, each `otherwise` where it is absent.
absl::StatusOr<Shape> SpatialInts(const OpContext& context, const char* name, int spatial, int64_t otherwise);

// Splits pads = [begins…, ends…].
absl::Status SplitPads(const OpContext& context, int spatial, Shape* before, Shape* after);

// Returns a load from `tensor` that is padded with `outside` if `padded`.
te::Scalar LoadWindow(const te::Builder& builder, te::TensorId tensor, std::vector<te::Index> indices, bool padded,
                      const te::Scalar& outside);

// Returns the coordinates with the constant 0 where `shape` has extent 1, so that indices of degenerate taps vanish.
std::vector<te::Index> DropUnit(std::vector<te::Index> indices, const Shape& shape);

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_SHARED_WINDOW_H_
