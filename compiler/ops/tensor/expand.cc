// Expand and Tile repeat elements; Trilu keeps a triangle; ReverseSequence reverses the start of each row.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/def_parts.h"
#include "compiler/ops/registry/op_list.h"
#include "compiler/ops/shared/elementwise.h"
#include "compiler/ops/shared/extents.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using te::Index;
using te::Scalar;
using Types = std::vector<ecg::ValueType>;

absl::StatusOr<Types> InferExpand(const OpContext& context, int) {
  ASSIGN_OR_RETURN(Shape out, context.ConstantInts(1, "shape"));
  const Shape& in = context.ShapeOf(0);
  const Shape wanted = out;
  if (out.size() < in.size()) out.insert(out.begin(), in.size() - out.size(), 1);
  const size_t lead = out.size() - in.size();
  for (size_t d = 0; d < in.size(); ++d) {
    int64_t& extent = out[lead + d];
    if (extent == 1) {
      extent = in[d];
    } else if (in[d] != 1 && in[d] != extent) {
      return context.Error(absl::StrCat("cannot expand ", ShapeToString(in), " to ", ShapeToString(wanted)));
    }
  }
  for (int64_t extent : out) {
    if (extent < 0) return context.Error(absl::StrCat("shape ", ShapeToString(wanted), " has a negative extent"));
  }
  return Types{{context.Type(0).dtype, out}};
}

absl::Status LowerExpand(LowerContext& context) {
  const Shape& in = context.ShapeOf(0);
  DefineMap(context, 0, [&](const te::Builder::Idx& i) {
    te::Builder::Idx source;
    for (size_t d = 0; d < in.size(); ++d) source.push_back(in[d] == 1 ? Index(0) : i[i.size() - in.size() + d]);
    return context.builder->At(context.in[0], source);
  });
  return absl::OkStatus();
}

// Handles extents that are computed at run time. Where a dimension of the input may have one element or as many as the
// result, the input is read at min(i, extent - 1).
absl::Status DynamicExpand(ImportContext& import) {
  const ecg::Node node = import.node();
  std::vector<ecg::Value> held;
  const OpContext context = ContextOf(import, &held);
  if (!context.Has(0) || !context.Has(1)) return absl::OkStatus();  // CheckSchema refuses it
  if (!import.IsDynamic(node.inputs[0]) && context.Constant(1) != nullptr) return absl::OkStatus();
  ecg::ValueId x = node.inputs[0];
  ASSIGN_OR_RETURN(std::vector<ecg::ValueId> wanted, Elements(import, node.inputs[1]));
  const size_t rank = std::max(wanted.size(), context.ShapeOf(0).size());
  wanted.insert(wanted.begin(), rank - wanted.size(), IntScalar(import, 1));
  const size_t lead = rank - context.ShapeOf(0).size();
  std::vector<int64_t> bounds;
  for (size_t d = 0; d < rank; ++d) {
    ecg::ValueId& extent = wanted[d];
    const std::optional<int64_t> given = KnownInt(import, extent);
    if (d >= lead) {
      const int at = static_cast<int>(d - lead);
      const int64_t in = import.value(x).type.shape[at];
      const ecg::ValueId own = import.Extent(x, at);
      // For a static dimension of the input that is not 1, a valid model can only ask for 1 or for that extent.
      if (given == 1 || own == extent || (in != 1 && !import.IsDynamic(x, at))) {
        extent = own;
      } else if (import.IsDynamic(x, at)) {
        // The two extents are equal, or one of them is 1: the result has `own` where `extent` is 1, otherwise `extent`.
        ASSIGN_OR_RETURN(const auto one, import.AddNode("Equal", {extent, IntScalar(import, 1)}, {}));
        ASSIGN_OR_RETURN(const auto both, import.AddNode("Where", {one[0], own, extent}, {}));
        extent = both[0];
        ASSIGN_OR_RETURN(const int64_t bound, UpperBound(import, context, extent, absl::StrCat("shape[", d, "]")));
        ASSIGN_OR_RETURN(const ecg::ValueId positions, Positions(import, {bound}, 0));
        ASSIGN_OR_RETURN(const ecg::ValueId last, ScalarOp(import, "Sub", own, IntScalar(import, 1)));
        ASSIGN_OR_RETURN(const auto indices, import.AddBounded("Min", {positions, last}, {}));
        ASSIGN_OR_RETURN(const auto inside, import.AddBounded("Max", {indices[0], IntScalar(import, 0)}, {}));
        std::vector<ecg::ValueId> extents = ExtentsOf(import, x);
        extents[at] = extent;
        ASSIGN_OR_RETURN(x, Take(import, x, at, inside[0]));
        ASSIGN_OR_RETURN(x, import.WithExtents(x, std::move(extents)));
      }
    }
    int64_t bound = 0;
    if (d >= lead && import.Extent(x, static_cast<int>(d - lead)) == extent) {
      bound = import.value(x).type.shape[d - lead];
    } else {
      ASSIGN_OR_RETURN(bound, UpperBound(import, context, extent, absl::StrCat("shape[", d, "]")));
    }
    bounds.push_back(bound);
  }
  ASSIGN_OR_RETURN(const auto expanded, import.AddBounded("Expand", {x, import.AddConstant(IntsTensor(bounds))}, {}));
  ASSIGN_OR_RETURN(const ecg::ValueId result, import.WithExtents(expanded[0], std::move(wanted)));
  import.ReplaceWith({result});
  return absl::OkStatus();
}

absl::StatusOr<Types> InferTile(const OpContext& context, int) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> repeats, context.ConstantInts(1, "repeats"));
  Shape out = context.ShapeOf(0);
  if (repeats.size() != out.size()) {
    return context.Error(absl::StrCat("repeats has ", repeats.size(), " values for ", ShapeToString(out)));
  }
  for (size_t d = 0; d < out.size(); ++d) {
    if (repeats[d] < 0 || repeats[d] > (int64_t{1} << 40) / std::max<int64_t>(out[d], 1)) {
      return context.Error(absl::StrCat("repeats[", d, "] = ", repeats[d], " is out of range"));
    }
    out[d] *= repeats[d];
  }
  return Types{{context.Type(0).dtype, out}};
}

absl::Status LowerTile(LowerContext& context) {
  const Shape& in = context.ShapeOf(0);
  DefineMap(context, 0, [&](const te::Builder::Idx& i) {
    te::Builder::Idx source;
    for (size_t d = 0; d < in.size(); ++d) source.push_back(Mod(i[d], in[d]));
    return context.builder->At(context.in[0], source);
  });
  return absl::OkStatus();
}

// An Expand or Tile that keeps the shape repeats nothing and is One-to-One.
MappingType RepeatMapping(const OpContext& context, int) {
  const auto types = context.op == "Expand" ? InferExpand(context, 1) : InferTile(context, 1);
  const bool same = types.ok() && (*types)[0].shape == context.ShapeOf(0);
  return same ? MappingType::kOneToOne : MappingType::kOneToMany;
}

absl::StatusOr<Types> InferTrilu(const OpContext& context, int) {
  if (context.Rank(0) < 2)
    return context.Error(absl::StrCat("input ", ShapeToString(context.ShapeOf(0)), " is no matrix"));
  if (context.Has(1) && (NumElements(context.ShapeOf(1)) != 1 || context.Type(1).dtype != DType::kI64)) {
    return context.Error("input 'k' must be one i64");
  }
  return Types{context.Type(0)};
}

// Upper: column − row >= k; lower: column − row <= k.
absl::Status LowerTrilu(LowerContext& context) {
  const bool upper = context.attrs.Int("upper", 1) != 0;
  const DType dtype = context.Type(0).dtype;
  DefineMap(context, 0, [&](const te::Builder::Idx& i) {
    const Scalar x = context.builder->At(context.in[0], i);
    const Scalar zero = te::Imm(dtype, 0);
    const Index offset = i[i.size() - 1] - i[i.size() - 2];
    const Tensor* k = context.Constant(1);
    if (context.Has(1) && k == nullptr) {
      const Scalar bound = context.builder->At(context.in[1], te::Builder::Idx(context.Rank(1), Index(0)));
      const Scalar keep = te::Call(upper ? te::Op::kGe : te::Op::kLe, {te::FromIndex(offset), bound});
      return te::Select(keep, x, zero);
    }
    constexpr int64_t kFar = int64_t{1} << 41;  // beyond any tensor, and k + 1 does not overflow
    const int64_t diagonal = k == nullptr ? 0 : std::clamp<int64_t>(k->GetInt(0), -kFar, kFar);
    if (upper) return te::If({{offset, te::Cmp::kGe, Index(diagonal)}}, x, zero);
    return te::If({{offset, te::Cmp::kLt, Index(diagonal + 1)}}, x, zero);
  });
  return absl::OkStatus();
}

absl::StatusOr<Types> InferReverseSequence(const OpContext& context, int) {
  const int64_t batch = context.attrs.Int("batch_axis", 1);
  const int64_t time = context.attrs.Int("time_axis", 0);
  if (context.Rank(0) < 2 || batch + time != 1 || batch * time != 0) {
    return context.Error("batch_axis and time_axis must be 0 and 1 of a tensor of rank 2 or more");
  }
  if (context.ShapeOf(1) != Shape{context.ShapeOf(0)[batch]} || context.Type(1).dtype != DType::kI64) {
    return context.Error(absl::StrCat("sequence_lens must be i64 [", context.ShapeOf(0)[batch], "]"));
  }
  return Types{context.Type(0)};
}

absl::Status LowerReverseSequence(LowerContext& context) {
  const int64_t batch = context.attrs.Int("batch_axis", 1);
  const int64_t time = 1 - batch;
  const int64_t steps = context.ShapeOf(0)[time];
  te::Builder& b = *context.builder;
  // source[b, t] = t < length[b] ? length[b] − 1 − t : t, clamped to the tensor whatever the lengths are.
  const te::TensorId source =
      b.Map("source", DType::kI64, {context.ShapeOf(1)[0], steps}, [&](const te::Builder::Idx& i) {
        const Scalar t = te::FromIndex(i[1]);
        const Scalar length = te::Min(b.At(context.in[1], {i[0]}), te::ImmInt(DType::kI64, steps));
        return te::Select(te::Call(te::Op::kLt, {t, length}), length - te::ImmInt(DType::kI64, 1) - t, t);
      });
  DefineMap(context, 0, [&](te::Builder::Idx i) {
    i[time] = Index::Load(source, {i[batch], i[time]}, {0, steps - 1});
    return b.At(context.in[0], i);
  });
  return absl::OkStatus();
}

}  // namespace

std::vector<OpDef> ExpandOps() {
  OpDef expand;
  expand.name = "Expand";
  expand.min_inputs = expand.max_inputs = 2;
  expand.roles = {InputRole::kData, InputRole::kExtents};
  expand.infer = InferExpand;
  expand.lower = LowerExpand;
  expand.mapping = RepeatMapping;
  expand.dynamic = DynamicExpand;

  OpDef tile;
  tile.name = "Tile";
  tile.min_inputs = tile.max_inputs = 2;
  tile.roles = {InputRole::kData, InputRole::kCounts};
  tile.infer = InferTile;
  tile.lower = LowerTile;
  tile.mapping = RepeatMapping;

  OpDef trilu;
  trilu.name = "Trilu";
  trilu.max_inputs = 2;
  trilu.roles = {InputRole::kData, InputRole::kScalar};
  trilu.attrs = {{"upper", AttrKind::kInt}};
  trilu.infer = InferTrilu;
  trilu.lower = LowerTrilu;
  trilu.mapping = Always(MappingType::kOneToOne);

  OpDef reverse;
  reverse.name = "ReverseSequence";
  reverse.min_inputs = reverse.max_inputs = 2;
  reverse.attrs = {{"batch_axis", AttrKind::kInt}, {"time_axis", AttrKind::kInt}};
  reverse.infer = InferReverseSequence;
  reverse.lower = LowerReverseSequence;
  reverse.mapping = Always(MappingType::kShuffle);

  std::vector<OpDef> defs = {expand, tile, trilu, reverse};
  for (OpDef& def : defs) def.flops = NoFlops;
  return defs;
}

}  // namespace fusion::ops
