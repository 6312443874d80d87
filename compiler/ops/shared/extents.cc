#include "compiler/ops/shared/extents.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/def_parts.h"
#include "compiler/ops/registry/onnx_dtype.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

constexpr int64_t kOnnxInt64 = 7;

absl::StatusOr<ecg::ValueId> One(absl::StatusOr<std::vector<ecg::ValueId>> outputs) {
  if (!outputs.ok()) return outputs.status();
  return (*outputs)[0];
}

ecg::Attributes Axis(int64_t axis) {
  ecg::Attributes attrs;
  attrs.Set("axis", axis);
  return attrs;
}

}  // namespace

ecg::ValueId IntScalar(ImportContext& import, int64_t value) {
  return import.AddConstant(Tensor::From<int64_t>(DType::kI64, {}, {value}));
}

absl::StatusOr<ecg::ValueId> ScalarOp(ImportContext& import, const std::string& op, ecg::ValueId a, ecg::ValueId b) {
  return One(import.AddNode(op, {a, b}, {}));
}

absl::StatusOr<std::vector<ecg::ValueId>> Elements(ImportContext& import, ecg::ValueId vector) {
  if (import.value(vector).type.dtype != DType::kI64) {
    ecg::Attributes to;
    to.Set("to", kOnnxInt64);
    ASSIGN_OR_RETURN(vector, One(import.AddNode("Cast", {vector}, to)));
  }
  const int64_t count = NumElements(import.value(vector).type.shape);
  if (import.value(vector).type.shape.size() != 1) {
    const ecg::ValueId flat = import.AddConstant(IntsTensor({count}));
    ASSIGN_OR_RETURN(vector, One(import.AddBounded("Reshape", {vector, flat}, {})));
  }
  std::vector<ecg::ValueId> scalars;
  for (int64_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(const ecg::ValueId scalar, One(import.AddBounded("Gather", {vector, IntScalar(import, i)}, {})));
    scalars.push_back(scalar);
  }
  return scalars;
}

absl::StatusOr<ecg::ValueId> Stack(ImportContext& import, const std::vector<ecg::ValueId>& scalars) {
  if (scalars.empty()) return import.AddConstant(IntsTensor({}));
  std::vector<ecg::ValueId> parts;
  const ecg::ValueId one = import.AddConstant(IntsTensor({1}));
  for (ecg::ValueId scalar : scalars) {
    ASSIGN_OR_RETURN(const ecg::ValueId part, One(import.AddBounded("Reshape", {scalar, one}, {})));
    parts.push_back(part);
  }
  return One(import.AddBounded("Concat", std::move(parts), Axis(0)));
}

std::optional<int64_t> KnownInt(const ImportContext& import, ecg::ValueId value) {
  const auto ranges = import.Ranges(value);
  if (!ranges || ranges->size() != 1 || ranges->front().lo != ranges->front().hi) return std::nullopt;
  return ranges->front().lo;
}

absl::StatusOr<int64_t> UpperBound(const ImportContext& import, const OpContext& context, ecg::ValueId scalar,
                                   const std::string& what) {
  constexpr int64_t kMost = int64_t{1} << 40;
  const auto ranges = import.Ranges(scalar);
  if (ranges && ranges->size() == 1 && ranges->front().hi <= kMost) return std::max<int64_t>(ranges->front().hi, 0);
  return context.Unsupported(absl::StrCat(
      what,
      " is computed at run time, and how large it can become is not known; limit it in the model (Min) or make it "
      "a constant"));
}

absl::StatusOr<ecg::ValueId> CountedFromEnd(ImportContext& import, ecg::ValueId index, ecg::ValueId extent) {
  if (const auto ranges = import.Ranges(index)) {
    const bool front = std::all_of(ranges->begin(), ranges->end(), [](const te::Interval& r) { return r.lo >= 0; });
    const bool back = std::all_of(ranges->begin(), ranges->end(), [](const te::Interval& r) { return r.hi < 0; });
    if (front) return index;
    if (back) return One(import.AddNode("Add", {index, extent}, {}));
  }
  ASSIGN_OR_RETURN(const ecg::ValueId negative, One(import.AddNode("Less", {index, IntScalar(import, 0)}, {})));
  ASSIGN_OR_RETURN(const ecg::ValueId counted, One(import.AddNode("Add", {index, extent}, {})));
  return One(import.AddNode("Where", {negative, counted, index}, {}));
}

absl::Status CheckTuples(const ImportContext& import, const OpContext& context, ecg::ValueId indices) {
  const int last = static_cast<int>(import.value(indices).type.shape.size()) - 1;
  if (!import.IsDynamic(indices, last)) return absl::OkStatus();
  return context.Unsupported(absl::StrCat("the extent of dimension ", last,
                                          " of indices depends on data; it says how many axes an index counts in"));
}

absl::StatusOr<ecg::ValueId> CountedExtents(ImportContext& import, ecg::ValueId value, int first, int count) {
  std::vector<ecg::ValueId> extents;
  extents.reserve(count);
  for (int d = first; d < first + count; ++d) extents.push_back(import.Extent(value, d));
  return Stack(import, extents);
}

absl::StatusOr<ecg::ValueId> Positions(ImportContext& import, Shape shape, int dim) {
  const ecg::ValueId begin = IntScalar(import, 0), end = IntScalar(import, shape[dim]), step = IntScalar(import, 1);
  ASSIGN_OR_RETURN(ecg::ValueId positions, One(import.AddBounded("Range", {begin, end, step}, {})));
  const size_t behind = shape.size() - 1 - static_cast<size_t>(dim);
  if (behind == 0) return positions;
  std::vector<int64_t> column(behind + 1, 1);
  column[0] = shape[dim];
  return One(import.AddBounded("Reshape", {positions, import.AddConstant(IntsTensor(column))}, {}));
}

absl::StatusOr<ecg::ValueId> MaskedAt(ImportContext& import, ecg::ValueId value, int dim, ecg::ValueId extent,
                                      const Tensor& fill) {
  ASSIGN_OR_RETURN(const ecg::ValueId positions, Positions(import, import.value(value).type.shape, dim));
  ASSIGN_OR_RETURN(const ecg::ValueId inside, One(import.AddBounded("Less", {positions, extent}, {})));
  return One(import.AddBounded("Where", {inside, value, import.AddConstant(fill)}, {}));
}

absl::StatusOr<ecg::ValueId> Masked(ImportContext& import, ecg::ValueId value, const Tensor& fill) {
  const std::vector<ecg::ValueId> extents = ExtentsOf(import, value);
  for (size_t d = 0; d < extents.size(); ++d) {
    if (extents[d] == ecg::kNone) continue;
    ASSIGN_OR_RETURN(value, MaskedAt(import, value, static_cast<int>(d), extents[d], fill));
  }
  return value;
}

absl::StatusOr<ecg::ValueId> Cut(ImportContext& import, ecg::ValueId value, int dim, int64_t extent) {
  const ecg::ValueId begin = import.AddConstant(IntsTensor({0})), end = import.AddConstant(IntsTensor({extent}));
  const ecg::ValueId axis = import.AddConstant(IntsTensor({dim}));
  return One(import.AddBounded("Slice", {value, begin, end, axis}, {}));
}

absl::StatusOr<ecg::ValueId> Take(ImportContext& import, ecg::ValueId value, int dim, ecg::ValueId indices) {
  return One(import.AddBounded("Gather", {value, indices}, Axis(dim)));
}

std::vector<ecg::ValueId> ExtentsOf(ImportContext& import, ecg::ValueId value) {
  std::vector<ecg::ValueId> extents;
  const int rank = static_cast<int>(import.value(value).type.shape.size());
  extents.reserve(rank);
  for (int d = 0; d < rank; ++d) {
    extents.push_back(import.IsDynamic(value, d) ? import.Extent(value, d) : ecg::kNone);
  }
  return extents;
}

OpContext ContextOf(ImportContext& import, std::vector<ecg::Value>* holder) {
  const ecg::Node& node = import.node();
  holder->clear();
  holder->reserve(node.inputs.size());
  std::vector<const ecg::Value*> inputs;
  for (ecg::ValueId id : node.inputs) {
    if (id != ecg::kNone) holder->push_back(import.value(id));
    inputs.push_back(id == ecg::kNone ? nullptr : &holder->back());
  }
  return OpContext(node.op, node.name, node.attrs, std::move(inputs));
}

}  // namespace fusion::ops
