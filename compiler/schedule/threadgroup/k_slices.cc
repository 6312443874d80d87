#include "compiler/schedule/threadgroup/k_slices.h"

namespace fusion {
namespace {

using te::Axis;
using te::Index;

constexpr int64_t kBlockRows = movement::FragmentProduct::kBlockRows;

// Padding behind each row of a K-slice whose rows are the operand's, so that work-items that load rows together access
// different banks, and vectors along a row stay whole.
constexpr int64_t kRowPadBytes = 16;

int64_t BlockColumns(const Multiplier& by) { return movement::FragmentProduct::kBlockBytes / DTypeBytes(by.dtype); }

// Is a row of the K-slice a row or column of the operand, else a step of its depth? Then vectors of the depth are
// copied and loaded whole.
bool RowsOfOperand(const Multiplier& by, bool along_k_slice) { return by.product.fragments() || along_k_slice; }

// Elements between the starts of two rows of a K-slice.
int64_t Pitch(const Multiplier& by, int64_t k_slice, int64_t side, bool along_k_slice) {
  if (by.product.from_memory) return k_slice;
  return RowsOfOperand(by, along_k_slice) ? k_slice + kRowPadBytes / DTypeBytes(by.dtype) : side;
}

}  // namespace

int64_t KSliceElements(const Multiplier& by, int64_t k_slice, int64_t side, bool along_k_slice) {
  return (RowsOfOperand(by, along_k_slice) ? side : k_slice) * Pitch(by, k_slice, side, along_k_slice);
}

Index PlaceInKSlice(const Multiplier& by, const Axis& of_side, const Axis& in_k_slice, bool along_k_slice) {
  const int64_t pitch = Pitch(by, in_k_slice.extent, of_side.extent, along_k_slice);
  if (!RowsOfOperand(by, along_k_slice)) return Index(in_k_slice) * pitch + Index(of_side);
  if (!by.product.from_memory) return Index(of_side) * pitch + Index(in_k_slice);
  const int64_t columns = BlockColumns(by);
  return te::Linearize({te::FloorDiv(of_side, kBlockRows), te::FloorDiv(in_k_slice, columns),
                        te::Mod(of_side, kBlockRows), te::Mod(in_k_slice, columns)},
                       {of_side.extent / kBlockRows, in_k_slice.extent / columns, kBlockRows, columns});
}

KSliceAxes::KSliceAxes(const Multiplier& by, const Axis& of_side, const Axis& in_k_slice, AxisSource* axes)
    : of_side_(of_side), in_k_slice_(in_k_slice), side_{of_side}, depth_{in_k_slice} {
  if (by.product.from_memory) {
    const int64_t columns = BlockColumns(by);
    side_ = {axes->New(of_side.extent / kBlockRows), axes->New(kBlockRows)};
    depth_ = {axes->New(in_k_slice.extent / columns), axes->New(columns)};
    row_ = Index(side_[0]) * kBlockRows + Index(side_[1]);
    column_ = Index(depth_[0]) * columns + Index(depth_[1]);
    order = {side_[0], depth_[0], side_[1], depth_[1]};
  } else {
    row_ = of_side;
    column_ = in_k_slice;
    order = by.product.fragments() ? std::vector<Axis>{of_side, in_k_slice} : std::vector<Axis>{in_k_slice, of_side};
  }
}

const Index* KSliceAxes::Find(const Axis& axis) const {
  return axis.id == of_side_.id ? &row_ : axis.id == in_k_slice_.id ? &column_ : nullptr;
}

std::vector<Axis> KSliceAxes::Loops(bool packed, bool along_k_slice) const {
  if (packed) return order;
  std::vector<Axis> loops = along_k_slice ? side_ : depth_;
  const std::vector<Axis>& inner = along_k_slice ? depth_ : side_;
  loops.insert(loops.end(), inner.begin(), inner.end());
  return loops;
}

}  // namespace fusion
