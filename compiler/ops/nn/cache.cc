// TensorScatter writes new entries into a cache of keys or values, at a position of its own for each batch entry.
#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/def_parts.h"
#include "compiler/ops/registry/op_list.h"
#include "compiler/ops/shared/axes.h"
#include "compiler/ops/shared/elementwise.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using Idx = te::Builder::Idx;
using Types = std::vector<ecg::ValueType>;

enum { kPast, kUpdate, kPlaces };

absl::StatusOr<int> SequenceAxis(const OpContext& context) {
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context, context.attrs.Int("axis", -2), context.Rank(kPast)));
  if (axis == 0) return context.Error("axis 0 is the batch, it cannot be the sequence");
  return axis;
}

absl::StatusOr<Types> InferTensorScatter(const OpContext& context, int) {
  RETURN_IF_ERROR(CheckSameType(context, kPast, kPlaces));
  ASSIGN_OR_RETURN(const int axis, SequenceAxis(context));
  const Shape &past = context.ShapeOf(kPast), &update = context.ShapeOf(kUpdate);
  bool fits = update.size() == past.size();
  for (int d = 0; fits && d < static_cast<int>(past.size()); ++d) {
    fits = d == axis ? update[d] <= past[d] : update[d] == past[d];
  }
  if (!fits) {
    return context.Error(absl::StrCat("update ", ShapeToString(update), " must be past_cache ", ShapeToString(past),
                                      " with at most its extent of axis ", axis));
  }
  if (context.Has(kPlaces) &&
      (context.ShapeOf(kPlaces) != Shape{past[0]} || context.Type(kPlaces).dtype != DType::kI64)) {
    return context.Error(absl::StrCat("write_indices must be i64 [", past[0], "]"));
  }
  return Types{context.Type(kPast)};
}

// (b, .., s, ..) -> update(b, .., s - place(b), ..) where that is inside, else past(b, .., s, ..)
absl::Status LowerTensorScatter(LowerContext& context) {
  te::Builder& b = *context.builder;
  ASSIGN_OR_RETURN(const int axis, SequenceAxis(context));
  const int64_t extent = context.ShapeOf(kPast)[axis], fresh = context.ShapeOf(kUpdate)[axis];
  const bool circular = context.attrs.String("mode", "linear") == "circular";
  if (NumElements(context.ShapeOf(kUpdate)) == 0) {
    DefineMap(context, 0, [&](const Idx& i) { return b.At(context.in[kPast], i); });
    return absl::OkStatus();
  }
  const auto number = [](int64_t value) { return te::ImmInt(DType::kI64, value); };
  // The row of `update` that an element of the result comes from, or -1 where the cache keeps its element.
  const te::TensorId source =
      b.Map("source", DType::kI64, {context.ShapeOf(kPast)[0], extent}, [&](const Idx& i) -> te::Scalar {
        te::Scalar from = te::FromIndex(i[1]);
        if (context.Has(kPlaces)) from = from - b.At(context.in[kPlaces], {i[0]});
        if (circular) from = te::Call(te::Op::kMod, {from, number(extent)});
        const te::Scalar inside = te::Call(
            te::Op::kAnd, {te::Call(te::Op::kGe, {from, number(0)}), te::Call(te::Op::kLt, {from, number(fresh)})});
        return te::Select(inside, from, number(-1));
      });
  DefineMap(context, 0, [&](const Idx& i) {
    Idx in = i;
    in[axis] = te::Index::Load(source, {i[0], i[axis]}, {-1, fresh - 1});
    return te::If({{in[axis], te::Cmp::kGe, te::Index(0)}}, b.AtOr(context.in[kUpdate], in, 0),
                  b.At(context.in[kPast], i));
  });
  return absl::OkStatus();
}

}  // namespace

std::vector<OpDef> CacheOps() {
  OpDef scatter;
  scatter.name = "TensorScatter";
  scatter.min_inputs = 2;
  scatter.max_inputs = 3;
  scatter.attrs = {{"axis", AttrKind::kInt}, {"mode", AttrKind::kString, false, {"linear", "circular"}}};
  scatter.roles = {InputRole::kData, InputRole::kData, InputRole::kIndices};
  scatter.mapping = Always(MappingType::kManyToMany);
  scatter.flops = NoFlops;
  scatter.infer = InferTensorScatter;
  scatter.lower = LowerTensorScatter;
  return {scatter};
}

}  // namespace fusion::ops
