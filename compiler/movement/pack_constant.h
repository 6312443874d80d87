// ConstantPacker: makes the bytes of a packed constant (Pack), any range of them at a time, so that several threads can
// share one constant.
#ifndef FUSION_COMPILER_MOVEMENT_PACK_CONSTANT_H_
#define FUSION_COMPILER_MOVEMENT_PACK_CONSTANT_H_

#include <cstdint>
#include <vector>

#include "compiler/movement/kernel.h"
#include "runtime/base/tensor.h"

namespace fusion::movement {

// Immutable once made, so that threads may share it. It does not apply the pack's transform: its source is the constant
// after Transformed (constant_transform.h).
class ConstantPacker {
 public:
  // `pack` must outlive the packer.
  ConstantPacker(const Pack& pack, int64_t source_elements);

  int64_t rows() const { return rows_; }        // of the packed box: points of all axes but the innermost
  int64_t columns() const { return columns_; }  // elements of a row
  int64_t held() const;                         // elements of the box whose predicate holds
  // Writes rows [begin, end) to `out`, beginning with row `begin`. Elements whose predicate does not hold are zero.
  void PackRows(const Tensor& source, int64_t begin, int64_t end, void* out) const;

 private:
  // An index as constant + Σ over the axes of table[position on the axis]. Only a term that mixes axes has no such
  // form.
  struct Sum {
    int64_t constant = 0;
    std::vector<std::vector<int64_t>> by_axis;  // an empty table: the axis does not matter
  };
  // A sum with the axes of a tile joined: constant + Σ outer axes + row[r] + column[c].
  struct Tiled {
    Sum outer;
    std::vector<int64_t> row, column;  // positions in a tile
    int64_t Base(const std::vector<int64_t>& at) const;
  };
  struct Condition {
    te::Cmp cmp = te::Cmp::kLt;
    Tiled difference;             // lhs - rhs, compared with zero: equal for all rows of a tile
    int64_t least = 0, most = 0;  // of the column part
  };
  bool Separate(const te::Index& index, Sum* sum) const;
  Tiled Tile(Sum sum) const;
  bool MakeTables();
  std::vector<int64_t> OuterAt(int64_t tile) const;
  // Sets which columns of a tile fulfil the predicate, and returns how many.
  int64_t ColumnsThatHold(const std::vector<int64_t>& at, std::vector<uint8_t>* holds) const;
  bool Holds(const std::vector<int64_t>& at) const;
  template <typename T>
  void PackTiled(const T* in, int64_t begin, int64_t end, T* out) const;
  template <typename T>
  void PackEach(const T* in, int64_t begin, int64_t end, T* out) const;

  const Pack& pack_;
  int64_t source_elements_, rows_ = 1, columns_ = 1;
  std::vector<int> ids_;
  std::vector<int64_t> extents_;
  bool tables_ = false;
  size_t outer_axes_ = 0;  // the axes before those of a tile
  int64_t tile_rows_ = 1;
  Tiled address_;
  int64_t least_ = 0, most_ = 0;  // of row + column in the address
  bool adjacent_columns_ = false;
  std::vector<Condition> conditions_;
};

// Returns a whole packed constant. `source` is the constant as the model has it.
Tensor PackedConstant(const Pack& pack, const Tensor& source);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_PACK_CONSTANT_H_
