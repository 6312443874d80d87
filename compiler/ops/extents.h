// Arithmetic of run-time extents for OpDef::dynamic: i64 scalars, as nodes of the graph. What is known at compile time
// folds as it is added.
#ifndef FUSION_COMPILER_OPS_EXTENTS_H_
#define FUSION_COMPILER_OPS_EXTENTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ops/op_def.h"

namespace fusion::ops {

ecg::ValueId IntScalar(ImportContext& import, int64_t value);

// `op` of i64 scalars: Add, Sub, Mul, Div, Mod, Min, Max.
absl::StatusOr<ecg::ValueId> ScalarOp(ImportContext& import, const std::string& op, ecg::ValueId a, ecg::ValueId b);

// The elements of a 1-D integer value, each an i64 scalar; and back.
absl::StatusOr<std::vector<ecg::ValueId>> Elements(ImportContext& import, ecg::ValueId vector);
absl::StatusOr<ecg::ValueId> Stack(ImportContext& import, const std::vector<ecg::ValueId>& scalars);

// The number that a value of one element always is.
std::optional<int64_t> KnownInt(const ImportContext& import, ecg::ValueId value);
// What memory is laid out for: the greatest value, at least 0. UNIMPLEMENTED naming the node and `what` where no bound
// is known.
absl::StatusOr<int64_t> UpperBound(const ImportContext& import, const OpContext& context, ecg::ValueId scalar,
                                   const std::string& what);

// `index` (i64, any shape) or, where it is negative, index + extent.
absl::StatusOr<ecg::ValueId> CountedFromEnd(ImportContext& import, ecg::ValueId index, ecg::ValueId extent);

// 0, 1, … along dimension `dim` of a tensor of this shape, as i64 of extent 1 elsewhere.
absl::StatusOr<ecg::ValueId> Positions(ImportContext& import, Shape shape, int dim);

// `value` with the scalar `fill` wherever it lies past one of its extents: static, at its bounds.
absl::StatusOr<ecg::ValueId> Masked(ImportContext& import, ecg::ValueId value, const Tensor& fill);
// The same at one dimension, past any i64 scalar.
absl::StatusOr<ecg::ValueId> MaskedAt(ImportContext& import, ecg::ValueId value, int dim, ecg::ValueId extent,
                                      const Tensor& fill);

// The first `extent` elements of a dimension, at the bounds.
absl::StatusOr<ecg::ValueId> Cut(ImportContext& import, ecg::ValueId value, int dim, int64_t extent);

// Elements of dimension `dim` of `value` at the positions `indices` (i64, 1-D), at the bounds.
absl::StatusOr<ecg::ValueId> Take(ImportContext& import, ecg::ValueId value, int dim, ecg::ValueId indices);

// Extents of every dimension, kNone where it is static.
std::vector<ecg::ValueId> ExtentsOf(ImportContext& import, ecg::ValueId value);

// Inference's view of a node on its way in, for its errors and helpers. `holder` keeps the values.
OpContext ContextOf(ImportContext& import, std::vector<ecg::Value>* holder);

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_EXTENTS_H_
