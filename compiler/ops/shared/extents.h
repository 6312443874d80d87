// Arithmetic of run-time extents for OpDef::dynamic. Extents are i64 scalars; the arithmetic is nodes of the graph,
// which fold to constants as they are added when their inputs are known.
#ifndef FUSION_COMPILER_OPS_SHARED_EXTENTS_H_
#define FUSION_COMPILER_OPS_SHARED_EXTENTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ops/registry/op_def.h"

namespace fusion::ops {

ecg::ValueId IntScalar(ImportContext& import, int64_t value);

// Returns `op` of two i64 scalars: Add, Sub, Mul, Div, Mod, Min or Max.
absl::StatusOr<ecg::ValueId> ScalarOp(ImportContext& import, const std::string& op, ecg::ValueId a, ecg::ValueId b);

// Elements returns the elements of a 1-D integer value, each as an i64 scalar; Stack is its inverse.
absl::StatusOr<std::vector<ecg::ValueId>> Elements(ImportContext& import, ecg::ValueId vector);
absl::StatusOr<ecg::ValueId> Stack(ImportContext& import, const std::vector<ecg::ValueId>& scalars);

// Returns the number that a value of one element always is, if known.
std::optional<int64_t> KnownInt(const ImportContext& import, ecg::ValueId value);
// Returns the extent that memory is laid out for: the greatest possible value of `scalar`, at least 0. UNIMPLEMENTED
// naming the node and `what` where no bound is known.
absl::StatusOr<int64_t> UpperBound(const ImportContext& import, const OpContext& context, ecg::ValueId scalar,
                                   const std::string& what);

// Returns `index` (i64, any shape), plus `extent` where it is negative.
absl::StatusOr<ecg::ValueId> CountedFromEnd(ImportContext& import, ecg::ValueId index, ecg::ValueId extent);

// Returns UNIMPLEMENTED where the tuples of `indices` (their last dimension) have a run-time length: it says how many
// axes an index counts in.
absl::Status CheckTuples(const ImportContext& import, const OpContext& context, ecg::ValueId indices);
// Returns the extents of the dimensions [first, first + count) of `value` as a 1-D i64 value, in which the components
// of such tuples count.
absl::StatusOr<ecg::ValueId> CountedExtents(ImportContext& import, ecg::ValueId value, int first, int count);

// Returns 0, 1, … along dimension `dim` of a tensor of this shape, as i64 of extent 1 elsewhere.
absl::StatusOr<ecg::ValueId> Positions(ImportContext& import, Shape shape, int dim);

// Returns `value` at its bounds, with the scalar `fill` in every element that lies past one of its extents. The
// result's extents are static.
absl::StatusOr<ecg::ValueId> Masked(ImportContext& import, ecg::ValueId value, const Tensor& fill);
// The same for one dimension, past the i64 scalar `extent`.
absl::StatusOr<ecg::ValueId> MaskedAt(ImportContext& import, ecg::ValueId value, int dim, ecg::ValueId extent,
                                      const Tensor& fill);

// Returns the first `extent` elements of dimension `dim` of `value`, which is taken at its bounds.
absl::StatusOr<ecg::ValueId> Cut(ImportContext& import, ecg::ValueId value, int dim, int64_t extent);

// Returns the elements of dimension `dim` of `value` at the positions `indices` (i64, 1-D). Both are taken at their
// bounds.
absl::StatusOr<ecg::ValueId> Take(ImportContext& import, ecg::ValueId value, int dim, ecg::ValueId indices);

// Returns the extents of all dimensions, kNone where one is static.
std::vector<ecg::ValueId> ExtentsOf(ImportContext& import, ecg::ValueId value);

// Returns inference's view of a node during import, for its errors and helpers. `holder` owns the values that the
// result points to.
OpContext ContextOf(ImportContext& import, std::vector<ecg::Value>* holder);

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_SHARED_EXTENTS_H_
