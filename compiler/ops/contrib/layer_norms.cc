// RMSNormalization of ONNX, and four operators of onnxruntime:
//   - SimplifiedLayerNormalization, which its exporter puts into the default domain;
//   - SkipLayerNormalization, SkipSimplifiedLayerNormalization and EmbedLayerNormalization of com.microsoft.
#include "absl/strings/str_cat.h"
#include "compiler/ops/contrib/compose.h"
#include "compiler/ops/registry/op_list.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using ValueId = Compose::ValueId;

// The normalised values and 1/deviation.
struct Normalised {
  ValueId y, inverse_deviation;
};

// x / sqrt(mean(x²) + epsilon) · scale over the axes from `axis` on, computed in f32 or wider. The result has the type
// of scale.
Normalised RootMeanSquareNorm(Compose& c, ValueId x, DType dtype, int rank, int64_t axis, ValueId scale, DType result,
                              double epsilon) {
  const DType compute = dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  std::vector<int64_t> axes;
  for (int64_t d = axis < 0 ? axis + rank : axis; d < rank; ++d) axes.push_back(d);
  const bool narrow = dtype != compute;
  const ValueId wide = narrow ? c.Cast(x, compute) : x;
  const ValueId mean = c.Node("ReduceMean", {c.Mul(wide, wide), c.Ints(axes)});
  const ValueId deviation = c.Node("Sqrt", {c.Add(mean, c.Number(compute, epsilon))});
  const ValueId y = c.Node("Div", {wide, deviation});
  return {c.Mul(result == compute ? y : c.Cast(y, result), scale), c.Node("Reciprocal", {deviation})};
}

absl::Status SimplifiedLayerNorm(Compose& c) {
  const int rank = static_cast<int>(c.ShapeOf(0).size());
  const int64_t axis = c.Attributes().Int("axis", -1);
  if (axis < -rank || axis >= rank) return c.Error(absl::StrCat("axis ", axis, " is outside a tensor of rank ", rank));
  const Normalised norm = RootMeanSquareNorm(c, c.In(0), c.Type(0).dtype, rank, axis, c.In(1), c.Type(0).dtype,
                                             c.Attributes().Float("epsilon", 1e-5));
  return c.Finish({norm.y, norm.inverse_deviation});
}

absl::Status RmsNorm(Compose& c) {
  const int rank = static_cast<int>(c.ShapeOf(0).size());
  const int64_t axis = c.Attributes().Int("axis", -1);
  if (axis < -rank || axis >= rank) return c.Error(absl::StrCat("axis ", axis, " is outside a tensor of rank ", rank));
  const Shape &x = c.ShapeOf(0), &scale = c.ShapeOf(1);
  bool fits = scale.size() <= x.size();
  for (size_t d = 0; fits && d < scale.size(); ++d) {
    const int64_t extent = scale[scale.size() - 1 - d];
    fits = extent == 1 || extent == x[x.size() - 1 - d];
  }
  if (!fits) return c.Error(absl::StrCat("scale ", ShapeToString(scale), " does not broadcast to ", ShapeToString(x)));
  const Normalised norm = RootMeanSquareNorm(c, c.In(0), c.Type(0).dtype, rank, axis, c.In(1), c.Type(1).dtype,
                                             c.Attributes().Float("epsilon", 1e-5));
  return c.Finish({norm.y});
}

// Inputs are x, skip, gamma and an optional bias that is added to x + skip. Outputs are y, mean, 1/deviation and the
// sum.
absl::Status SkipLayerNorm(Compose& c) {
  ValueId sum = c.Add(c.In(0), c.In(1));
  if (c.Has(4)) sum = c.Add(sum, c.In(4));
  std::vector<ValueId> inputs{sum, c.In(2)};
  if (c.Has(3)) inputs.push_back(c.In(3));
  std::vector<ValueId> outputs =
      c.Nodes("LayerNormalization", inputs, {{"epsilon", c.Attributes().Float("epsilon", 1e-12)}}, 3);
  outputs.push_back(sum);
  return c.Finish(outputs);
}

absl::Status SkipSimplifiedLayerNorm(Compose& c) {
  ValueId sum = c.Add(c.In(0), c.In(1));
  if (c.Has(3)) sum = c.Add(sum, c.In(3));
  const DType dtype = c.Type(0).dtype;
  const Normalised norm = RootMeanSquareNorm(c, sum, dtype, static_cast<int>(c.ShapeOf(0).size()), -1, c.In(2), dtype,
                                             c.Attributes().Float("epsilon", 1e-12));
  const ValueId mean = c.Node("ReduceMean", {sum, c.Ints({-1})});
  return c.Finish({norm.y, mean, norm.inverse_deviation, sum});
}

absl::Status EmbedLayerNorm(Compose& c) {
  enum { kIds, kSegments, kWords, kPositions, kSegmentTable, kGamma, kBeta, kMask, kPositionIds };
  RETURN_IF_ERROR(c.Expect(kIds, "input_ids", {-1, -1}));
  RETURN_IF_ERROR(c.Expect(kWords, "word_embedding", {-1, -1}));
  RETURN_IF_ERROR(c.Expect(kPositions, "position_embedding", {-1, -1}));
  RETURN_IF_ERROR(c.Expect(kGamma, "gamma", {-1}));
  RETURN_IF_ERROR(c.Expect(kBeta, "beta", {-1}));
  const int64_t batch = c.ShapeOf(kIds)[0], length = c.ShapeOf(kIds)[1];
  if (c.Has(kSegments) != c.Has(kSegmentTable)) return c.Error("segment_ids and segment_embedding come together");
  const ValueId positions = c.Has(kPositionIds) ? c.Node("Gather", {c.In(kPositions), c.In(kPositionIds)})
                                                : c.Slice(c.In(kPositions), 0, 0, length);
  ValueId sum = c.Add(c.Node("Gather", {c.In(kWords), c.In(kIds)}), positions);
  if (c.Has(kSegments)) sum = c.Add(sum, c.Node("Gather", {c.In(kSegmentTable), c.In(kSegments)}));
  const ValueId y = c.Node("LayerNormalization", {sum, c.In(kGamma), c.In(kBeta)},
                           {{"epsilon", c.Attributes().Float("epsilon", 1e-12)}});
  if (c.Outputs() < 2) return c.Finish({y});
  ValueId words;  // per batch entry, how many words the mask leaves
  if (c.Has(kMask)) {
    const ValueId one = c.Number(c.Type(kMask).dtype, 1);
    const ValueId hit = c.Cast(c.Node("Equal", {c.In(kMask), one}), DType::kI32);
    words = c.Node("ReduceSum", {hit, c.Ints({1})}, {{"keepdims", int64_t{0}}});
  } else {
    words = c.Constant(Tensor(DType::kI32, {batch}));
  }
  return c.Finish({y, words, sum});
}

}  // namespace

std::vector<OpDef> ContribLayerNormOps() {
  const AttrSpec axis{"axis", AttrKind::kInt}, epsilon{"epsilon", AttrKind::kFloat},
      stash{"stash_type", AttrKind::kInt};
  return {
      DefineComposite("RMSNormalization", 2, 2, 1, {axis, epsilon, stash}, RmsNorm),
      DefineComposite("SimplifiedLayerNormalization", 2, 2, 2, {axis, epsilon, stash}, SimplifiedLayerNorm),
      DefineComposite("com.microsoft.SkipLayerNormalization", 3, 5, 4, {epsilon}, SkipLayerNorm),
      DefineComposite("com.microsoft.SkipSimplifiedLayerNormalization", 3, 4, 4, {epsilon}, SkipSimplifiedLayerNorm),
      DefineComposite("com.microsoft.EmbedLayerNormalization", 1, 9, 3, {epsilon, {"mask_index_type", AttrKind::kInt}},
                      EmbedLayerNorm)};
}

}  // namespace fusion::ops
