#include "compiler/ops/dynamic/dynamic_reshape.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/def_parts.h"
#include "compiler/ops/shared/extents.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using ecg::ValueId;

struct Dim {
  ValueId extent = ecg::kNone;  // an i64 scalar
  int64_t bound = 0;
  bool dynamic = false;
};

bool Same(const Dim& a, const Dim& b) {
  return a.dynamic == b.dynamic && (a.dynamic ? a.extent == b.extent : true) && a.bound == b.bound;
}

absl::StatusOr<ValueId> ProductOf(ImportContext& import, const std::vector<Dim>& dims) {
  ValueId product = IntScalar(import, 1);
  for (const Dim& dim : dims) {
    ASSIGN_OR_RETURN(product, ScalarOp(import, "Mul", product, dim.extent));
  }
  return product;
}

// Returns the extents that the shape input asks for, with -1 and 0 resolved.
absl::StatusOr<std::vector<Dim>> Wanted(ImportContext& import, const OpContext& context, const std::vector<Dim>& in) {
  const bool allow_zero = context.attrs.Int("allowzero") != 0;
  ASSIGN_OR_RETURN(const std::vector<ValueId> shape, Elements(import, import.node().inputs[1]));
  std::vector<Dim> out(shape.size());
  int unknown = -1;
  for (size_t d = 0; d < shape.size(); ++d) {
    const std::optional<int64_t> known = KnownInt(import, shape[d]);
    const auto range = import.Ranges(shape[d]);
    if (known == 0 && !allow_zero) {
      if (d >= in.size()) return context.Error(absl::StrCat("shape[", d, "] = 0 copies a dimension that is not there"));
      out[d].extent = in[d].extent;
    } else if (known == -1) {
      if (unknown >= 0) return context.Error("shape has more than one -1");
      unknown = static_cast<int>(d);
    } else if (range && range->front().lo < 0) {
      return context.Unsupported(absl::StrCat("shape[", d, "] is computed at run time and may be negative"));
    } else {
      out[d].extent = shape[d];
    }
  }
  if (unknown >= 0) {
    std::vector<Dim> others = out, rest = in;
    others.erase(others.begin() + unknown);
    std::erase_if(others, [&](const Dim& other) {  // extents on both sides cancel
      const auto same = std::find_if(rest.begin(), rest.end(), [&](const Dim& d) { return d.extent == other.extent; });
      if (same == rest.end()) return false;
      rest.erase(same);
      return true;
    });
    ASSIGN_OR_RETURN(const ValueId all, ProductOf(import, rest));
    ASSIGN_OR_RETURN(const ValueId given, ProductOf(import, others));
    ASSIGN_OR_RETURN(out[unknown].extent, ScalarOp(import, "Div", all, given));
  }
  for (size_t d = 0; d < out.size(); ++d) {
    const std::optional<int64_t> known = KnownInt(import, out[d].extent);
    out[d].dynamic = !known;
    ASSIGN_OR_RETURN(out[d].bound, UpperBound(import, context, out[d].extent, absl::StrCat("shape[", d, "]")));
  }
  return out;
}

int64_t BoundProduct(const std::vector<Dim>& dims, size_t begin, size_t end) {
  int64_t product = 1;
  for (size_t d = begin; d < end; ++d) product *= dims[d].bound;
  return product;
}

// Returns whether no dimension but the first that is not 1 is dynamic. `*place` receives the dynamic dimension, or
// `end` when there is none.
bool OnlyFirstIsDynamic(const std::vector<Dim>& dims, size_t begin, size_t end, size_t* place) {
  *place = end;
  bool first = true;
  for (size_t d = begin; d < end; ++d) {
    if (dims[d].dynamic) {
      if (!first) return false;
      *place = d;
    }
    first = first && !dims[d].dynamic && dims[d].bound == 1;
  }
  return true;
}

// Returns whether a reshape at the bounds keeps every element in its place. If so, `out` receives the bounds of that
// reshape.
bool StaysRowMajor(const std::vector<Dim>& in, std::vector<Dim>* out) {
  size_t begin = 0, in_end = in.size(), out_end = out->size();
  while (begin < in_end && begin < out_end && Same(in[begin], (*out)[begin])) ++begin;
  while (in_end > begin && out_end > begin && Same(in[in_end - 1], (*out)[out_end - 1])) --in_end, --out_end;
  size_t in_place = 0, out_place = 0;
  if (!OnlyFirstIsDynamic(in, begin, in_end, &in_place)) return false;
  if (!OnlyFirstIsDynamic(*out, begin, out_end, &out_place)) return false;
  const int64_t elements = BoundProduct(in, begin, in_end);
  if (out_place == out_end) return BoundProduct(*out, begin, out_end) == elements;
  (*out)[out_place].bound = 1;
  const int64_t others = BoundProduct(*out, begin, out_end);
  if (others == 0 || elements % others != 0) return false;
  (*out)[out_place].bound = elements / others;
  return true;
}

Shape Bounds(const std::vector<Dim>& dims) {
  Shape shape;
  for (const Dim& dim : dims) shape.push_back(dim.bound);
  return shape;
}

// Returns, for every element of the result, its address in the flattened input at its bounds.
absl::StatusOr<ValueId> Addresses(ImportContext& import, const std::vector<Dim>& in, const std::vector<Dim>& out) {
  const Shape shape = Bounds(out);
  ValueId linear = IntScalar(import, 0), stride = IntScalar(import, 1);
  for (size_t d = out.size(); d-- > 0;) {
    ASSIGN_OR_RETURN(const ValueId position, Positions(import, shape, static_cast<int>(d)));
    ASSIGN_OR_RETURN(const auto step, import.AddBounded("Mul", {position, stride}, {}));
    ASSIGN_OR_RETURN(const auto sum, import.AddBounded("Add", {linear, step[0]}, {}));
    linear = sum[0];
    ASSIGN_OR_RETURN(stride, ScalarOp(import, "Mul", stride, out[d].extent));
  }
  ValueId address = IntScalar(import, 0);
  int64_t bound_stride = 1;
  for (size_t d = in.size(); d-- > 0;) {
    ASSIGN_OR_RETURN(const auto coordinate, import.AddBounded("Mod", {linear, in[d].extent}, {}));
    ASSIGN_OR_RETURN(const auto rest, import.AddBounded("Div", {linear, in[d].extent}, {}));
    linear = rest[0];
    ASSIGN_OR_RETURN(const auto step, import.AddBounded("Mul", {coordinate[0], IntScalar(import, bound_stride)}, {}));
    ASSIGN_OR_RETURN(const auto sum, import.AddBounded("Add", {address, step[0]}, {}));
    address = sum[0];
    bound_stride *= in[d].bound;
  }
  return address;
}

}  // namespace

absl::Status DynamicReshape(ImportContext& import) {
  std::vector<ecg::Value> held;
  const OpContext context = ContextOf(import, &held);
  if (!context.Has(0) || !context.Has(1)) return absl::OkStatus();  // CheckSchema refuses it
  const ValueId x = import.node().inputs[0];
  if (!import.IsDynamic(x) && context.Constant(1) != nullptr) return absl::OkStatus();
  std::vector<Dim> in;
  in.reserve(context.Rank(0));
  for (int d = 0; d < context.Rank(0); ++d) {
    in.push_back({import.Extent(x, d), context.ShapeOf(0)[d], import.IsDynamic(x, d)});
  }
  ASSIGN_OR_RETURN(std::vector<Dim> out, Wanted(import, context, in));
  // A dimension that is passed on unchanged keeps its bound, even where a tighter one is known by now.
  for (size_t d = 0; d < out.size(); ++d) {
    for (const Dim& dim : in) {
      if (out[d].dynamic && dim.dynamic && dim.extent == out[d].extent) out[d].bound = dim.bound;
    }
  }
  std::vector<Dim> row_major = out;
  ValueId result = ecg::kNone;
  if (StaysRowMajor(in, &row_major)) {
    out = std::move(row_major);
    const ValueId shape = import.AddConstant(IntsTensor(Bounds(out)));
    ecg::Attributes literal;
    literal.Set("allowzero", int64_t{1});
    ASSIGN_OR_RETURN(const auto reshaped, import.AddBounded("Reshape", {x, shape}, literal));
    result = reshaped[0];
  } else {
    const ValueId flat_shape = import.AddConstant(IntsTensor({BoundProduct(in, 0, in.size())}));
    ASSIGN_OR_RETURN(const auto flat, import.AddBounded("Reshape", {x, flat_shape}, {}));
    ASSIGN_OR_RETURN(const ValueId addresses, Addresses(import, in, out));
    ASSIGN_OR_RETURN(result, Take(import, flat[0], 0, addresses));
  }
  std::vector<ValueId> extents;
  extents.reserve(out.size());
  for (const Dim& dim : out) extents.push_back(dim.dynamic ? dim.extent : ecg::kNone);
  ASSIGN_OR_RETURN(result, import.WithExtents(result, std::move(extents)));
  import.ReplaceWith({result});
  return absl::OkStatus();
}

}  // namespace fusion::ops
