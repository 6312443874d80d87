// ScatterElements, ScatterND (and Scatter, its old name), MaxUnpool. A tensor expression writes every element once, so
// a scatter is turned around: each element of the result searches the updates for those that address it, in order. The
// last one wins, or `reduction` combines all. Updates that are whole slices are searched once per slice. Where that
// search is long, a routine applies the updates one after another. Constant indices that address a box of the data, as
// exporters write `x[:, 2:5] = y`, need no search: the result is a choice by coordinates, as a Concat of slices is.
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/def_parts.h"
#include "compiler/ops/registry/onnx_dtype.h"
#include "compiler/ops/registry/op_list.h"
#include "compiler/ops/shared/axes.h"
#include "compiler/ops/shared/elementwise.h"
#include "compiler/ops/shared/extents.h"
#include "compiler/ops/shared/index_table.h"
#include "compiler/ops/shared/window.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using te::Index;
using te::Scalar;
using Idx = te::Builder::Idx;
using Types = std::vector<ecg::ValueType>;

const AttrSpec kReductionAttr{"reduction", AttrKind::kString, false, {"none", "add", "mul", "max", "min"}};

// The order is that of the numbers in the routines.
enum class Reduction { kNone, kAdd, kMul, kMax, kMin };

absl::StatusOr<Reduction> ReductionOf(const OpContext& context) {
  const std::string name = context.attrs.String("reduction", "none");
  if (name == "none") return Reduction::kNone;
  if (name == "add") return Reduction::kAdd;
  if (name == "mul") return Reduction::kMul;
  if (name == "max") return Reduction::kMax;
  if (name == "min") return Reduction::kMin;
  return context.Error(absl::StrCat("reduction '", name, "' is none of none, add, mul, max, min"));
}

// Bools are 0 and 1, and no result is more: their sum and maximum is "or", their product and minimum is "and".
Scalar Combine(Reduction reduction, const Scalar& a, const Scalar& b) {
  const bool logical = a->dtype == DType::kBool;
  switch (reduction) {
    case Reduction::kNone:
      return b;
    case Reduction::kAdd:
      return logical ? te::Call(te::Op::kOr, {a, b}) : a + b;
    case Reduction::kMul:
      return logical ? te::Call(te::Op::kAnd, {a, b}) : a * b;
    case Reduction::kMax:
      return logical ? te::Call(te::Op::kOr, {a, b}) : te::Max(a, b);
    case Reduction::kMin:
      return logical ? te::Call(te::Op::kAnd, {a, b}) : te::Min(a, b);
  }
  return b;
}

// Sums and products of halves are rounded once, at the end.
DType WideType(Reduction reduction, DType dtype) {
  return reduction == Reduction::kAdd || reduction == Reduction::kMul ? ComputeType(dtype) : dtype;
}

// Whether the update at (i, r) addresses element i, and its value.
struct Candidate {
  Scalar addressed;
  Scalar value;
};

// Number of evaluations beyond which a search through all updates for each result costs more than a kernel of its own.
constexpr double kMostSearched = 1 << 22;

bool LastWins(const OpContext& context) { return context.attrs.String("reduction", "none") == "none"; }

bool IsLongSearch(const OpContext& context, double updates_searched, int64_t results) {
  // Routines treat bools as bytes, which would give wrong sums and products of bools.
  const bool as_bytes = context.Type(0).dtype != DType::kBool || LastWins(context);
  return as_bytes && updates_searched * static_cast<double>(results) > kMostSearched;
}

// Counts the evaluations for each result element. Where the last update wins, ScatterND searches the last row once per
// slice, also for slices of several elements.
bool IsLongSearchND(const OpContext& context) {
  const Shape &data = context.ShapeOf(0), &indices = context.ShapeOf(1);
  const Shape slices(data.begin(), LastWins(context) ? data.begin() + indices.back() : data.end());
  return IsLongSearch(context, static_cast<double>(NumElements({indices.begin(), indices.end() - 1})),
                      NumElements(slices));
}

bool IsLongSearchElements(const OpContext& context, int axis) {
  return IsLongSearch(context, static_cast<double>(context.ShapeOf(1)[axis]), NumElements(context.ShapeOf(0)));
}

void CallScatter(LowerContext& context, const char* routine, std::vector<int64_t> params) {
  const ecg::ValueType& type = context.output_types[0];
  context.out = context.builder->Call({routine, {context.in[0], context.in[1], context.in[2]}, std::move(params)},
                                      {{type.dtype, type.shape}});
}

// The elements that the updates address, each once and in the updates' own order: those from `begins` on, as many as
// the updates have, which have the data's rank.
struct Box {
  Shape begins;
};
// Constants of more indices are not looked at.
constexpr int64_t kMostLookedAt = 1 << 18;

// The scatter's constant indices; nullptr: they are not constant, or none, or too many.
const Tensor* FewIndices(const OpContext& context) {
  const Tensor* indices = context.Constant(1);
  if (indices == nullptr || indices->num_elements() == 0 || indices->num_elements() > kMostLookedAt) return nullptr;
  return indices;
}

// Counts an index from the beginning; nullopt where the extent has no such element.
std::optional<int64_t> Counted(int64_t index, int64_t extent) {
  if (index < 0) index += extent;
  return index >= 0 && index < extent ? std::optional(index) : std::nullopt;
}

// Every `stride`-th index from `offset` on belongs to one dimension of the data, of this extent. Returns the first one
// if each is that plus its position's coordinate: position n has n / inner mod length.
std::optional<int64_t> FirstOfRange(const Tensor& indices, int64_t offset, int64_t stride, int64_t inner,
                                    int64_t length, int64_t extent) {
  const std::optional<int64_t> first = Counted(indices.GetInt(offset), extent);
  for (int64_t n = 0; first && n < indices.num_elements() / stride; ++n) {
    if (Counted(indices.GetInt(n * stride + offset), extent) != *first + n / inner % length) return std::nullopt;
  }
  return first;
}

// Do constant indices address a box? Position p of the updates then addresses begins + p.
std::optional<Box> BoxOfElements(const OpContext& context) {
  const Tensor* indices = FewIndices(context);
  const absl::StatusOr<int> axis = NormalizeAxis(context, context.attrs.Int("axis"), context.Rank(0));
  if (indices == nullptr || !axis.ok()) return std::nullopt;
  const Shape& shape = indices->shape();
  const int64_t inner = NumElements({shape.begin() + *axis + 1, shape.end()});
  const auto first = FirstOfRange(*indices, 0, 1, inner, shape[*axis], context.ShapeOf(0)[*axis]);
  if (!first) return std::nullopt;
  Box box{Shape(shape.size(), 0)};
  box.begins[*axis] = *first;
  return box;
}

std::optional<Box> BoxOfND(const OpContext& context) {
  const Tensor* indices = FewIndices(context);
  if (indices == nullptr) return std::nullopt;
  const Shape &data = context.ShapeOf(0), &shape = indices->shape();
  const int64_t depth = shape.back();
  if (static_cast<int64_t>(shape.size()) != depth + 1) return std::nullopt;
  Box box{Shape(data.size(), 0)};
  for (int64_t k = 0; k < depth; ++k) {
    const int64_t inner = NumElements({shape.begin() + k + 1, shape.end() - 1});
    const auto first = FirstOfRange(*indices, k, depth, inner, shape[k], data[k]);
    if (!first) return std::nullopt;
    box.begins[k] = *first;
  }
  return box;
}

absl::Status LowerBox(LowerContext& context, const Box& box) {
  ASSIGN_OR_RETURN(const Reduction reduction, ReductionOf(context));
  const Shape &data = context.ShapeOf(0), &updates = context.ShapeOf(2);
  const DType dtype = context.output_types[0].dtype, wide = WideType(reduction, dtype);
  te::Builder& b = *context.builder;
  DefineMap(context, 0, [&](const Idx& i) {
    Idx at;
    for (size_t d = 0; d < i.size(); ++d) at.push_back(i[d] - box.begins[d]);
    const Scalar old = b.At(context.in[0], i), given = b.At(context.in[2], at);
    Scalar value = reduction == Reduction::kNone
                       ? given
                       : te::Cast(dtype, Combine(reduction, te::Cast(wide, old), te::Cast(wide, given)));
    for (size_t d = i.size(); d-- > 0;) {
      std::vector<int64_t> begins;
      std::vector<Scalar> pieces;
      const auto add = [&](int64_t begin, const Scalar& piece) {
        begins.push_back(begin);
        pieces.push_back(piece);
      };
      const int64_t begin = box.begins[d], end = begin + updates[d];
      if (begin > 0) add(0, old);
      add(begin, value);
      if (end < data[d]) add(end, old);
      value = ByRange(i[d], begins, pieces);
    }
    return value;
  });
  return absl::OkStatus();
}

absl::Status LowerSearch(LowerContext& context, const Shape& searched,
                         const std::function<Candidate(const Idx& i, const Idx& r)>& candidate) {
  ASSIGN_OR_RETURN(const Reduction reduction, ReductionOf(context));
  const ecg::ValueType& type = context.output_types[0];
  te::Builder& b = *context.builder;
  if (NumElements(type.shape) == 0 || NumElements(searched) == 0) {
    DefineMap(context, 0, [&](const Idx& i) { return b.At(context.in[0], i); });
    return absl::OkStatus();
  }
  const DType wide = WideType(reduction, type.dtype);
  // The accumulators are the combined updates and whether there was one. They are combined with the data at the end.
  context.out = b.GeneralReduction(
      "scatter", {type.dtype}, type.shape, searched, {te::Imm(wide, 0), te::ImmInt(DType::kBool, 0)},
      [&](const Idx& i, const Idx& r, const std::vector<Scalar>& acc) -> std::vector<Scalar> {
        const Candidate c = candidate(i, r);
        const Scalar value = te::Cast(wide, c.value);
        const Scalar combined = te::Select(acc[1], Combine(reduction, acc[0], value), value);
        return {te::Select(c.addressed, combined, acc[0]), te::Call(te::Op::kOr, {acc[1], c.addressed})};
      },
      [&](const Idx& i, const std::vector<Scalar>& acc) -> std::vector<Scalar> {
        const Scalar data = te::Cast(wide, b.At(context.in[0], i));
        return {te::Select(acc[1], Combine(reduction, data, acc[0]), data)};
      });
  return absl::OkStatus();
}

absl::StatusOr<Types> InferScatterElements(const OpContext& context, int) {
  RETURN_IF_ERROR(ExpectInteger(context, 1, "indices"));
  RETURN_IF_ERROR(ReductionOf(context).status());
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context, context.attrs.Int("axis"), context.Rank(0)));
  const Shape& data = context.ShapeOf(0);
  const Shape& indices = context.ShapeOf(1);
  bool fits =
      indices.size() == data.size() && indices == context.ShapeOf(2) && context.Type(2).dtype == context.Type(0).dtype;
  for (size_t d = 0; fits && d < data.size(); ++d) fits = static_cast<int64_t>(d) == axis || indices[d] <= data[d];
  if (!fits) {
    return context.Error(absl::StrCat("data ", ShapeToString(data), ", indices ", ShapeToString(indices),
                                      " and updates ", ShapeToString(context.ShapeOf(2)), " do not fit"));
  }
  return Types{context.Type(0)};
}

absl::Status LowerScatterElements(LowerContext& context) {
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context, context.attrs.Int("axis"), context.Rank(0)));
  if (const std::optional<Box> box = BoxOfElements(context)) return LowerBox(context, *box);
  const Shape& data = context.ShapeOf(0);
  const Shape& indices = context.ShapeOf(1);
  if (context.Type(1).dtype == DType::kI64 && IsLongSearchElements(context, axis)) {
    ASSIGN_OR_RETURN(const Reduction reduction, ReductionOf(context));
    std::vector<int64_t> params = {context.Rank(0), axis, static_cast<int64_t>(reduction)};
    params.insert(params.end(), data.begin(), data.end());
    params.insert(params.end(), indices.begin(), indices.end());
    CallScatter(context, "scatter_elements", std::move(params));
    return absl::OkStatus();
  }
  return LowerSearch(context, {indices[axis]}, [&](const Idx& i, const Idx& r) {
    Idx at = i;
    at[axis] = r[0];
    // An element outside the indices' box is not addressed: its padded load gives a value that is no index.
    const Scalar outside =
        te::ImmInt(context.Type(1).dtype, context.Type(1).dtype == DType::kI32 ? std::numeric_limits<int32_t>::max()
                                                                               : std::numeric_limits<int64_t>::max());
    bool smaller = false;
    for (size_t d = 0; d < data.size(); ++d) smaller |= static_cast<int64_t>(d) != axis && indices[d] < data[d];
    const Scalar given = te::Load(context.in[1], context.Type(1).dtype, at, smaller ? outside : nullptr);
    const Scalar value =
        te::Load(context.in[2], context.Type(2).dtype, at, smaller ? te::Imm(context.Type(2).dtype, 0) : nullptr);
    return Candidate{te::Call(te::Op::kEq, {CountedIndex(given, data[axis]), te::FromIndex(i[axis])}), value};
  });
}

absl::StatusOr<Types> InferScatterND(const OpContext& context, int) {
  RETURN_IF_ERROR(ExpectInteger(context, 1, "indices"));
  RETURN_IF_ERROR(ReductionOf(context).status());
  const Shape& data = context.ShapeOf(0);
  const Shape& indices = context.ShapeOf(1);
  bool fits = !indices.empty() && indices.back() >= 0 && indices.back() <= static_cast<int64_t>(data.size()) &&
              context.Type(2).dtype == context.Type(0).dtype;
  if (fits) {
    Shape updates(indices.begin(), indices.end() - 1);
    updates.insert(updates.end(), data.begin() + indices.back(), data.end());
    fits = updates == context.ShapeOf(2);
  }
  if (!fits) {
    return context.Error(absl::StrCat("data ", ShapeToString(data), ", indices ", ShapeToString(indices),
                                      " and updates ", ShapeToString(context.ShapeOf(2)), " do not fit"));
  }
  return Types{context.Type(0)};
}

// Returns, for each slice of the data, the last row of indices that addresses it, or -1. Its shape is the
// extents that the indices count in.
te::TensorId LastRow(LowerContext& context, const Shape& slices, int64_t rows,
                     const std::function<Scalar(const Idx& i, const Idx& r)>& addressed) {
  const Shape& indices = context.ShapeOf(1);
  const Scalar none = te::ImmInt(DType::kI64, -1);
  return context.builder->Reduce("last", te::ReductionKind::kMax, DType::kI64, DType::kI64, slices, {rows},
                                 [&](const Idx& i, const Idx& r) {
                                   const Idx row = te::Delinearize(r[0], {indices.begin(), indices.end() - 1});
                                   return te::Select(addressed(i, row), te::FromIndex(r[0]), none);
                                 });
}

absl::Status LowerScatterND(LowerContext& context) {
  if (const std::optional<Box> box = BoxOfND(context)) return LowerBox(context, *box);
  const Shape& data = context.ShapeOf(0);
  const Shape& indices = context.ShapeOf(1);
  const int64_t depth = indices.back();
  te::Builder& b = *context.builder;
  const int64_t rows = NumElements({indices.begin(), indices.end() - 1});
  const Shape slice_shape(data.begin(), data.begin() + depth);
  const int64_t slices = NumElements(slice_shape);
  const auto addressed = [&](const Idx& i, const Idx& r) {
    Scalar all = te::ImmInt(DType::kBool, 1);
    for (int64_t k = 0; k < depth; ++k) {
      Idx at = r;
      at.push_back(Index(k));
      const Scalar same = te::Call(te::Op::kEq, {CountedIndex(b.At(context.in[1], at), data[k]), te::FromIndex(i[k])});
      all = k == 0 ? same : te::Call(te::Op::kAnd, {all, same});
    }
    return all;
  };
  if (context.Type(1).dtype == DType::kI64 && IsLongSearchND(context)) {
    ASSIGN_OR_RETURN(const Reduction reduction, ReductionOf(context));
    std::vector<int64_t> params = {rows, depth, NumElements({data.begin() + depth, data.end()}), slices,
                                   static_cast<int64_t>(reduction)};
    params.insert(params.end(), data.begin(), data.begin() + depth);
    CallScatter(context, "scatter_nd", std::move(params));
    return absl::OkStatus();
  }
  if (LastWins(context) && depth > 0 && NumElements(data) > slices && rows > 0) {
    const te::TensorId last = LastRow(context, slice_shape, rows, addressed);
    const te::TensorId row = b.Map("row", DType::kI64, slice_shape,
                                   [&](const Idx& i) { return te::Max(b.At(last, i), te::ImmInt(DType::kI64, 0)); });
    DefineMap(context, 0, [&](const Idx& i) {
      const Idx slice(i.begin(), i.begin() + depth);
      Idx at = te::Delinearize(Index::Load(row, slice, {0, rows - 1}), {indices.begin(), indices.end() - 1});
      at.insert(at.end(), i.begin() + depth, i.end());
      const Scalar written = te::Call(te::Op::kGe, {b.At(last, slice), te::ImmInt(DType::kI64, 0)});
      return te::Select(written, b.At(context.in[2], at), b.At(context.in[0], i));
    });
    return absl::OkStatus();
  }
  return LowerSearch(context, {indices.begin(), indices.end() - 1}, [&](const Idx& i, const Idx& r) {
    Idx at = r;
    at.insert(at.end(), i.begin() + depth, i.end());
    return Candidate{addressed(i, r), b.At(context.in[2], at)};
  });
}

// Indices past their extents address nothing; negative ones count from the data's extent, and those that are negative
// even then address nothing either. The lowering would count them again, from the bound.
absl::Status DynamicScatter(ImportContext& import) {
  const ecg::Node node = import.node();
  std::vector<ecg::Value> held;
  const OpContext context = ContextOf(import, &held);
  if (!context.Has(0) || !context.Has(1) || !context.Has(2) || context.Rank(1) == 0) return absl::OkStatus();
  const ecg::ValueId data = node.inputs[0];
  if (!import.IsDynamic(data) && !import.IsDynamic(node.inputs[1])) return absl::OkStatus();
  const DType dtype = context.Type(1).dtype;
  const Tensor nowhere = Tensor::From<int64_t>(
      dtype, {}, {dtype == DType::kI32 ? std::numeric_limits<int32_t>::max() : std::numeric_limits<int64_t>::max()});
  ecg::ValueId indices = node.inputs[1], extent = ecg::kNone;
  if (node.op == "ScatterND") {
    RETURN_IF_ERROR(CheckTuples(import, context, indices));
    const auto depth = static_cast<int>(std::min<int64_t>(context.ShapeOf(1).back(), context.Rank(0)));
    if (import.IsDynamic(data)) {
      ASSIGN_OR_RETURN(extent, CountedExtents(import, data, 0, depth));
    }
  } else {
    ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context, context.attrs.Int("axis"), context.Rank(0)));
    if (import.IsDynamic(data, axis)) {
      if (dtype != DType::kI64) return context.Unsupported("indices that count in a dynamic dimension must be i64");
      extent = import.Extent(data, axis);
    }
  }
  if (extent != ecg::kNone) {
    ASSIGN_OR_RETURN(const ecg::ValueId counted, CountedFromEnd(import, indices, extent));
    if (counted != indices) {
      ASSIGN_OR_RETURN(const auto before, import.AddNode("Less", {counted, IntScalar(import, 0)}, {}));
      ASSIGN_OR_RETURN(const auto within,
                       import.AddNode("Where", {before[0], import.AddConstant(nowhere), counted}, {}));
      indices = within[0];
    }
  }
  ASSIGN_OR_RETURN(indices, Masked(import, indices, nowhere));
  ASSIGN_OR_RETURN(const auto scattered, import.AddBounded(node.op, {data, indices, node.inputs[2]}, node.attrs));
  ASSIGN_OR_RETURN(const ecg::ValueId result, import.WithExtents(scattered[0], ExtentsOf(import, data)));
  import.ReplaceWith({result});
  return absl::OkStatus();
}

// MaxUnpool takes x and its positions, row-major indices into the unpooled tensor: [N, C, D…].
absl::StatusOr<Shape> UnpooledShape(const OpContext& context) {
  const int spatial = context.Rank(0) - 2;
  ASSIGN_OR_RETURN(const Shape kernel, SpatialInts(context, "kernel_shape", spatial, 1));
  ASSIGN_OR_RETURN(const Shape strides, SpatialInts(context, "strides", spatial, 1));
  Shape before, after;
  RETURN_IF_ERROR(SplitPads(context, spatial, &before, &after));
  Shape shape = context.ShapeOf(0);
  for (int d = 0; d < spatial; ++d) {
    shape[d + 2] = (shape[d + 2] - 1) * strides[d] + kernel[d] - before[d] - after[d];
    if (shape[d + 2] < 1) return context.Error(absl::StrCat("pads leave nothing of spatial dimension ", d));
  }
  return shape;
}

absl::StatusOr<Types> InferMaxUnpool(const OpContext& context, int) {
  RETURN_IF_ERROR(ExpectInteger(context, 1, "I"));
  if (context.Rank(0) < 3 || context.ShapeOf(0) != context.ShapeOf(1)) {
    return context.Error(absl::StrCat("X ", ShapeToString(context.ShapeOf(0)), " and I ",
                                      ShapeToString(context.ShapeOf(1)), " must be one shape [N, C, D...]"));
  }
  ASSIGN_OR_RETURN(Shape shape, UnpooledShape(context));
  if (context.Has(2)) {
    const size_t rank = shape.size();
    ASSIGN_OR_RETURN(shape, context.ConstantInts(2, "output_shape"));
    if (shape.size() != rank)
      return context.Error(absl::StrCat("output_shape ", ShapeToString(shape), " has the wrong rank"));
    for (int64_t extent : shape) {
      if (extent < 0) return context.Error(absl::StrCat("output_shape ", ShapeToString(shape), " is negative"));
    }
  }
  return Types{{context.Type(0).dtype, shape}};
}

// Positions count in the shape that the window implies, even where output_shape is larger.
absl::Status LowerMaxUnpool(LowerContext& context) {
  ASSIGN_OR_RETURN(const Shape implied, UnpooledShape(context));
  const ecg::ValueType& type = context.output_types[0];
  const Shape& in = context.ShapeOf(0);
  te::Builder& b = *context.builder;
  if (NumElements(type.shape) == 0 || NumElements(in) == 0) {
    DefineMap(context, 0, [&](const Idx&) { return te::Imm(type.dtype, 0); });
    return absl::OkStatus();
  }
  const Scalar zero = te::Imm(type.dtype, 0);
  context.out = b.GeneralReduction(
      "unpool", {type.dtype}, type.shape, {in.begin() + 2, in.end()}, {zero},
      [&](const Idx& i, const Idx& r, const std::vector<Scalar>& acc) -> std::vector<Scalar> {
        Idx from = {i[0], i[1]};
        from.insert(from.end(), r.begin(), r.end());
        te::Pred inside;
        for (size_t d = 0; d < implied.size(); ++d) {
          if (type.shape[d] > implied[d]) inside.push_back({i[d], te::Cmp::kLt, Index(implied[d])});
        }
        const Scalar here = te::Call(
            te::Op::kEq, {te::Cast(DType::kI64, b.At(context.in[1], from)), te::FromIndex(te::Linearize(i, implied))});
        const Scalar next = te::Select(here, b.At(context.in[0], from), acc[0]);
        return {inside.empty() ? next : te::If(inside, next, acc[0])};
      });
  return absl::OkStatus();
}

// Returns indices [n] to use instead of `indices` (not empty), if these repeat one number along all axes but the first;
// kNone if that is not known. Exporters expand the indices of whole slices to the slices' shape.
absl::StatusOr<ecg::ValueId> SliceIndices(ImportContext& import, ecg::ValueId indices) {
  const Shape shape = import.value(indices).type.shape;
  if (const std::optional<Tensor>& known = import.value(indices).constant) {
    const int64_t slice = NumElements(shape) / shape[0];
    std::vector<int64_t> first;
    for (int64_t i = 0; i < known->num_elements(); ++i) {
      if (i % slice == 0) first.push_back(known->GetInt(i));
      if (known->GetInt(i) != first.back()) return ecg::kNone;
    }
    return import.AddConstant(Tensor::From<int64_t>(known->dtype(), {shape[0]}, first));
  }
  const ecg::Node* expand = import.producer(indices);
  if (expand == nullptr || expand->op != "Expand") return ecg::kNone;
  const ecg::ValueId given = expand->inputs[0];
  const Shape& from = import.value(given).type.shape;
  if (from.size() != shape.size() || NumElements(from) != shape[0] || from[0] != shape[0]) return ecg::kNone;
  std::vector<int64_t> others;
  for (size_t d = 1; d < from.size(); ++d) {
    if (import.IsDynamic(given, static_cast<int>(d))) return ecg::kNone;
    others.push_back(static_cast<int64_t>(d));
  }
  ASSIGN_OR_RETURN(const auto slices, import.AddNode("Squeeze", {given, import.AddConstant(IntsTensor(others))}, {}));
  return slices[0];
}

// The routines read i64.
absl::Status WidenIndices(ImportContext& import) {
  std::vector<ecg::Value> held;
  const OpContext context = ContextOf(import, &held);
  if (context.Type(1).dtype != DType::kI32) return absl::OkStatus();
  const bool nd = import.node().op == "ScatterND";
  if (nd ? !InferScatterND(context, 0).ok() : !InferScatterElements(context, 0).ok()) return absl::OkStatus();
  if (nd) {
    if (!IsLongSearchND(context)) return absl::OkStatus();
  } else {
    ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context, context.attrs.Int("axis"), context.Rank(0)));
    if (!IsLongSearchElements(context, axis)) return absl::OkStatus();
  }
  ecg::Attributes attrs;
  attrs.Set("to", OnnxNumber(DType::kI64));
  ASSIGN_OR_RETURN(const auto wide, import.AddNode("Cast", {import.node().inputs[1]}, std::move(attrs)));
  import.node().inputs[1] = wide[0];
  return absl::OkStatus();
}

// Turns a scatter whose updates are whole slices of the first axis into ScatterND.
absl::Status SlicesToND(ImportContext& import) {
  ecg::Node& node = import.node();
  std::vector<ecg::Value> held;
  const OpContext context = ContextOf(import, &held);
  const Shape &data = context.ShapeOf(0), &updates = context.ShapeOf(2);
  const int rank = context.Rank(0);
  const int64_t axis = node.attrs.Int("axis");
  if (rank < 2 || (axis != 0 && axis != -rank) || !IsInteger(context.Type(1).dtype)) return absl::OkStatus();
  bool slices = updates.size() == data.size() && context.ShapeOf(1) == updates && NumElements(updates) > 0;
  for (int d = 1; slices && d < rank; ++d) {
    slices = updates[d] == data[d] && !import.IsDynamic(node.inputs[0], d) && !import.IsDynamic(node.inputs[2], d);
  }
  if (!slices) return absl::OkStatus();
  ASSIGN_OR_RETURN(const ecg::ValueId indices, SliceIndices(import, node.inputs[1]));
  if (indices == ecg::kNone) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto column, import.AddNode("Unsqueeze", {indices, import.AddConstant(IntsTensor({1}))}, {}));
  ecg::Attributes attrs;
  if (node.attrs.Has("reduction")) attrs.Set("reduction", node.attrs.String("reduction"));
  node.op = "ScatterND";
  node.inputs[1] = column[0];
  node.attrs = std::move(attrs);
  return absl::OkStatus();
}

absl::Status NormalizeScatter(ImportContext& import) {
  ecg::Node& node = import.node();
  if (node.op == "Scatter") node.op = "ScatterElements";
  std::vector<ecg::Value> held;
  const OpContext context = ContextOf(import, &held);
  if (node.inputs.size() != 3 || !context.Has(0) || !context.Has(1) || !context.Has(2)) return absl::OkStatus();
  if (node.op == "ScatterElements") RETURN_IF_ERROR(SlicesToND(import));
  return WidenIndices(import);
}

double ScatterFlops(const OpContext& context, const std::vector<ecg::ValueType>&) {
  return !context.attrs.Has("reduction") || context.attrs.String("reduction") == "none"
             ? 0
             : static_cast<double>(NumElements(context.ShapeOf(2)));
}

}  // namespace

std::vector<OpDef> ScatterOps() {
  OpDef elements;
  elements.name = "ScatterElements";
  elements.attrs = {{"axis", AttrKind::kInt}, kReductionAttr};
  elements.infer = InferScatterElements;
  elements.lower = LowerScatterElements;
  elements.normalize = NormalizeScatter;
  elements.dynamic = DynamicScatter;

  OpDef scatter = elements;
  scatter.name = "Scatter";

  OpDef nd;
  nd.name = "ScatterND";
  nd.attrs = {kReductionAttr};
  nd.infer = InferScatterND;
  nd.lower = LowerScatterND;
  nd.normalize = NormalizeScatter;
  nd.dynamic = DynamicScatter;

  OpDef unpool;
  unpool.name = "MaxUnpool";
  unpool.roles = {InputRole::kData, InputRole::kData, InputRole::kExtents};
  unpool.attrs = {{"kernel_shape", AttrKind::kInts, true}, {"pads", AttrKind::kInts}, {"strides", AttrKind::kInts}};
  unpool.infer = InferMaxUnpool;
  unpool.lower = LowerMaxUnpool;

  std::vector<OpDef> defs = {elements, scatter, nd, unpool};
  for (OpDef& def : defs) {
    def.min_inputs = def.max_inputs = 3;
    def.mapping = Always(MappingType::kManyToMany);
    def.flops = ScatterFlops;
  }
  // A box of the updates is where it is in the result, as the parts of a Concat are.
  const auto by_box = [](std::optional<Box> (*box)(const OpContext&)) {
    return [box](const OpContext& context, int) {
      return box(context) ? MappingType::kOneToOne : MappingType::kManyToMany;
    };
  };
  defs[0].mapping = defs[1].mapping = by_box(BoxOfElements);
  defs[2].mapping = by_box(BoxOfND);
  defs.back().min_inputs = 2;
  return defs;
}

}  // namespace fusion::ops
