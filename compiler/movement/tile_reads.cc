#include "compiler/movement/tile_reads.h"

#include <algorithm>
#include <cstdlib>

#include "runtime/base/dtype.h"

namespace fusion::movement {

TileReads ReadsOfTile(const te::Scalar& body, const te::Reduction& reduction, int lane, int row) {
  TileReads reads;
  te::Visit(body, [&](const te::ScalarNode& node) {
    if (node.kind != te::ScalarKind::kLoad) return;
    const te::Index& address = node.indices[0];
    if (address.UsesAxis(lane)) {
      reads.shared = reads.shared || !address.UsesAxis(row);
      return;
    }
    reads.broadcast = true;
    // A line holds the next elements of its row only where these lie beside each other.
    const bool along = std::any_of(reduction.axes.begin(), reduction.axes.end(), [&](const te::Axis& axis) {
      int64_t step = 0;
      return address.AffineIn(axis.id, &step) && step == 1;
    });
    int64_t stride = 0;
    if (along && address.AffineIn(row, &stride)) {
      reads.row_stride = std::max<int64_t>(reads.row_stride, std::abs(stride) * DTypeBytes(node.dtype));
    }
  });
  reads.broadcast = reads.broadcast && reads.shared;
  return reads;
}

}  // namespace fusion::movement
