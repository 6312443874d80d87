// ConstantPacker: the bytes of a packed constant (Pack), any range of them at a time, so that several threads share
// one.
#ifndef FUSION_COMPILER_MOVEMENT_PACK_CONSTANT_H_
#define FUSION_COMPILER_MOVEMENT_PACK_CONSTANT_H_

#include <cstdint>
#include <vector>

#include "compiler/movement/kernel.h"
#include "runtime/base/tensor.h"

namespace fusion::movement {

// Immutable once made, so that threads may share it. The transform of the pack is not applied here: the source is what
// Transformed (constant_transform.h) makes of the constant.
class ConstantPacker {
 public:
  // `pack` outlives the packer.
  ConstantPacker(const Pack& pack, int64_t source_elements);

  int64_t rows() const { return rows_; }        // of the packed box: all axes but the innermost
  int64_t columns() const { return columns_; }  // elements of a row
  int64_t held() const;                         // elements of the box whose predicate holds
  // Writes rows [begin, end) to `out`, where row `begin` comes first. Elements whose predicate does not hold are zero.
  void PackRows(const Tensor& source, int64_t begin, int64_t end, void* out) const;

 private:
  // An index as constant + Σ over the axes of table[position of the axis]: true unless a term mixes axes.
  struct Sum {
    int64_t constant = 0;
    std::vector<std::vector<int64_t>> by_axis;  // empty: the axis does not matter
  };
  // A sum with the axes of a tile joined: constant + Σ outer axes + row[r] + column[c].
  struct Tiled {
    Sum outer;
    std::vector<int64_t> row, column;  // of a tile
    int64_t Base(const std::vector<int64_t>& at) const;
  };
  struct Condition {
    te::Cmp cmp = te::Cmp::kLt;
    Tiled difference;             // of its sides, compared with zero: all rows of a tile are alike
    int64_t least = 0, most = 0;  // of its columns
  };
  bool Separate(const te::Index& index, Sum* sum) const;
  Tiled Tile(Sum sum) const;
  bool MakeTables();
  std::vector<int64_t> OuterAt(int64_t tile) const;
  // Which columns of a tile hold what the source has; how many.
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
  size_t outer_axes_ = 0;  // those before a tile's
  int64_t tile_rows_ = 1;
  Tiled address_;
  int64_t least_ = 0, most_ = 0;  // of row + column of the address
  bool adjacent_columns_ = false;
  std::vector<Condition> conditions_;
};

// The bytes of a whole packed constant. `source` is the constant as the model has it.
Tensor PackedConstant(const Pack& pack, const Tensor& source);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_PACK_CONSTANT_H_
