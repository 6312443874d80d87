// Index maps for lowerings: integer tables that become quasi-affine indices where they can, reshapes that keep the
// dimensions they preserve, and lazy choice by ranges of an axis.
#ifndef FUSION_COMPILER_OPS_SHARED_INDEX_TABLE_H_
#define FUSION_COMPILER_OPS_SHARED_INDEX_TABLE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ops/registry/op_def.h"

namespace fusion::ops {

// A function from the points of a box to integers, known in full at compile time. A table becomes that Index if it is
// affine in the coordinates or, in one dimension, has the form c·((a·i+b)//d)+e. Any other becomes a constant i64
// tensor of the program and a load from it, with the table's exact value range.
class IndexTable {
 public:
  // `values` row-major over `shape`. Creates the constant on first use.
  IndexTable(te::Builder* builder, std::string name, Shape shape, std::vector<int64_t> values);
  te::Index operator()(const std::vector<te::Index>& point);
  bool IsArithmetic() const { return formula_ != nullptr; }

 private:
  te::Builder* builder_;
  std::string name_;
  Shape shape_;
  std::vector<int64_t> values_;
  std::function<te::Index(const std::vector<te::Index>&)> formula_;
  te::TensorId tensor_ = -1;
};

// Returns the coordinates in `in_shape` of the element that has coordinates `out` in `out_shape`. Both shapes have the
// same number of elements, not zero. Dimensions that the reshape preserves map directly; only split and merged groups
// are linearised.
std::vector<te::Index> ReshapeIndices(const std::vector<te::Index>& out, const Shape& out_shape, const Shape& in_shape);

// Returns pieces[k] for begins[k] <= i < begins[k + 1]. begins is increasing, and begins[0] is i's smallest value. The
// result is a balanced tree of lazy ifs: a piece's loads happen only inside its range.
te::Scalar ByRange(const te::Index& i, const std::vector<int64_t>& begins, const std::vector<te::Scalar>& pieces);

// Maximal runs [begin, end) on which values[i] = values[begin] + step·(i − begin).
struct Run {
  int64_t begin = 0, end = 0, first = 0, step = 0;
};
std::vector<Run> AffineRuns(const std::vector<int64_t>& values);

// The elements of an index tensor, brought into [0, extent): negative ones count from the end, others are clamped. A
// constant index tensor becomes an IndexTable, any other a te that is a map. extent must be positive.
class WrappedIndices {
 public:
  WrappedIndices(LowerContext& context, int input, int64_t extent);
  te::Index operator()(const std::vector<te::Index>& point);

 private:
  std::optional<IndexTable> table_;
  te::TensorId tensor_ = -1;
  int64_t extent_ = 0;
};

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_SHARED_INDEX_TABLE_H_
