// Slice and Split take boxes of a tensor with strides; Concat joins boxes.
#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/def_parts.h"
#include "compiler/ops/registry/op_list.h"
#include "compiler/ops/shared/axes.h"
#include "compiler/ops/shared/elementwise.h"
#include "compiler/ops/shared/extents.h"
#include "compiler/ops/shared/index_table.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using Types = std::vector<ecg::ValueType>;

// For each dimension of the input: output index i reads start + step·i.
struct SliceRange {
  int64_t start = 0, step = 1, length = 0;
};

absl::StatusOr<std::vector<SliceRange>> SliceRanges(const OpContext& context) {
  const Shape& in = context.ShapeOf(0);
  std::vector<SliceRange> ranges;
  for (int64_t extent : in) ranges.push_back({0, 1, extent});
  ASSIGN_OR_RETURN(const std::vector<int64_t> starts, context.ConstantInts(1, "starts"));
  ASSIGN_OR_RETURN(const std::vector<int64_t> ends, context.ConstantInts(2, "ends"));
  std::vector<int64_t> axes(starts.size());
  std::iota(axes.begin(), axes.end(), 0);
  if (context.Has(3)) {
    ASSIGN_OR_RETURN(axes, context.ConstantInts(3, "axes"));
  }
  std::vector<int64_t> steps(starts.size(), 1);
  if (context.Has(4)) {
    ASSIGN_OR_RETURN(steps, context.ConstantInts(4, "steps"));
  }
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size()) {
    return context.Error("starts, ends, axes and steps differ in length");
  }
  ASSIGN_OR_RETURN(axes, DistinctAxes(context, axes, context.Rank(0)));
  for (size_t k = 0; k < axes.size(); ++k) {
    const int64_t extent = in[axes[k]];
    const int64_t step = steps[k];
    if (step == 0) return context.Error("a step is 0");
    const auto count = [extent](int64_t v) { return v < 0 ? v + extent : v; };
    SliceRange& range = ranges[axes[k]];
    range.step = step;
    if (step > 0) {
      range.start = std::clamp<int64_t>(count(starts[k]), 0, extent);
      const int64_t end = std::clamp<int64_t>(count(ends[k]), 0, extent);
      range.length = end <= range.start ? 0 : (end - range.start - 1) / step + 1;
    } else {
      if (step == std::numeric_limits<int64_t>::min()) return context.Error("a step is out of range");
      range.start = std::clamp<int64_t>(count(starts[k]), extent == 0 ? 0 : -1, std::max<int64_t>(extent - 1, 0));
      const int64_t end = std::clamp<int64_t>(count(ends[k]), -1, std::max<int64_t>(extent - 1, 0));
      range.length = extent == 0 || end >= range.start ? 0 : (range.start - end - 1) / -step + 1;
    }
    if (range.length <= 1) range.step = 1;  // keeps huge steps out of index arithmetic
  }
  return ranges;
}

absl::StatusOr<Types> InferSlice(const OpContext& context, int) {
  ASSIGN_OR_RETURN(const std::vector<SliceRange> ranges, SliceRanges(context));
  Shape out;
  for (const SliceRange& range : ranges) out.push_back(range.length);
  return Types{{context.Type(0).dtype, out}};
}

absl::Status LowerSlice(LowerContext& context) {
  ASSIGN_OR_RETURN(const std::vector<SliceRange> ranges, SliceRanges(context));
  DefineMap(context, 0, [&](const te::Builder::Idx& i) {
    te::Builder::Idx in;
    for (size_t d = 0; d < i.size(); ++d) in.push_back(i[d] * ranges[d].step + te::Index(ranges[d].start));
    return context.builder->At(context.in[0], in);
  });
  return absl::OkStatus();
}

// Returns `given`, counted from the end where it is negative, clamped to [lowest, highest].
absl::StatusOr<ecg::ValueId> Clamped(ImportContext& import, ecg::ValueId given, ecg::ValueId extent, int64_t lowest,
                                     ecg::ValueId highest) {
  ASSIGN_OR_RETURN(const ecg::ValueId counted, CountedFromEnd(import, given, extent));
  ASSIGN_OR_RETURN(const ecg::ValueId above, ScalarOp(import, "Max", counted, IntScalar(import, lowest)));
  return ScalarOp(import, "Min", above, highest);
}

// Slices one axis whose start, end or extent is computed at run time. `extents` are those of all dimensions of the
// value.
absl::StatusOr<ecg::ValueId> SliceAt(ImportContext& import, const OpContext& context, ecg::ValueId x, int axis,
                                     ecg::ValueId start, ecg::ValueId end, int64_t step,
                                     std::vector<ecg::ValueId>* extents) {
  const int64_t bound = import.value(x).type.shape[axis];
  const ecg::ValueId extent = (*extents)[axis] == ecg::kNone ? IntScalar(import, bound) : (*extents)[axis];
  ecg::ValueId highest = extent;
  if (step < 0) {
    ASSIGN_OR_RETURN(highest, ScalarOp(import, "Sub", extent, IntScalar(import, 1)));
  }
  ASSIGN_OR_RETURN(const ecg::ValueId from, Clamped(import, start, extent, step > 0 ? 0 : -1, highest));
  ASSIGN_OR_RETURN(const ecg::ValueId to, Clamped(import, end, extent, step > 0 ? 0 : -1, highest));
  ASSIGN_OR_RETURN(const ecg::ValueId span,
                   step > 0 ? ScalarOp(import, "Sub", to, from) : ScalarOp(import, "Sub", from, to));
  const int64_t stride = std::abs(step);
  ASSIGN_OR_RETURN(const ecg::ValueId rounded, ScalarOp(import, "Add", span, IntScalar(import, stride - 1)));
  ASSIGN_OR_RETURN(const ecg::ValueId positive, ScalarOp(import, "Max", rounded, IntScalar(import, 0)));
  ASSIGN_OR_RETURN(const ecg::ValueId length, ScalarOp(import, "Div", positive, IntScalar(import, stride)));
  ASSIGN_OR_RETURN(int64_t most, UpperBound(import, context, length, "its length"));
  most = std::min(most, bound);
  (*extents)[axis] = length;
  if (KnownInt(import, from) == 0 && step == 1) return Cut(import, x, axis, most);
  ASSIGN_OR_RETURN(const ecg::ValueId positions, Positions(import, {most}, 0));
  ASSIGN_OR_RETURN(const auto steps, import.AddBounded("Mul", {positions, IntScalar(import, step)}, {}));
  ASSIGN_OR_RETURN(const auto indices, import.AddBounded("Add", {steps[0], from}, {}));
  // Past the length an index may leave the tensor. Gather clamps it at the end, Max at the start.
  ASSIGN_OR_RETURN(const auto inside, import.AddBounded("Max", {indices[0], IntScalar(import, 0)}, {}));
  return Take(import, x, axis, inside[0]);
}

absl::Status DynamicSlice(ImportContext& import) {
  const ecg::Node node = import.node();
  std::vector<ecg::Value> held;
  const OpContext context = ContextOf(import, &held);
  if (!context.Has(0) || !context.Has(1) || !context.Has(2)) return absl::OkStatus();  // CheckSchema refuses it
  const size_t count = static_cast<size_t>(NumElements(context.ShapeOf(1)));
  std::vector<int64_t> axes(count), steps(count, 1);
  std::iota(axes.begin(), axes.end(), 0);
  if (context.Has(3)) {
    ASSIGN_OR_RETURN(axes, context.ConstantInts(3, "axes"));
  }
  if (context.Has(4)) {
    ASSIGN_OR_RETURN(steps, context.ConstantInts(4, "steps"));
  }
  if (NumElements(context.ShapeOf(2)) != NumElements(context.ShapeOf(1)) || axes.size() != count ||
      steps.size() != count) {
    return context.Error("starts, ends, axes and steps differ in length");
  }
  ASSIGN_OR_RETURN(axes, DistinctAxes(context, axes, context.Rank(0)));
  bool known = context.Constant(1) != nullptr && context.Constant(2) != nullptr;
  for (int64_t axis : axes) known = known && !import.IsDynamic(node.inputs[0], static_cast<int>(axis));
  if (known) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<ecg::ValueId> starts, Elements(import, node.inputs[1]));
  ASSIGN_OR_RETURN(const std::vector<ecg::ValueId> ends, Elements(import, node.inputs[2]));
  ecg::ValueId x = node.inputs[0];
  std::vector<ecg::ValueId> extents = ExtentsOf(import, x);
  for (size_t k = 0; k < axes.size(); ++k) {
    if (steps[k] == 0 || steps[k] == std::numeric_limits<int64_t>::min())
      return context.Error("a step is out of range");
    ASSIGN_OR_RETURN(x, SliceAt(import, context, x, static_cast<int>(axes[k]), starts[k], ends[k], steps[k], &extents));
  }
  ASSIGN_OR_RETURN(x, import.WithExtents(x, std::move(extents)));
  import.ReplaceWith({x});
  return absl::OkStatus();
}

// Slice-1 carries starts, ends and axes as attributes.
absl::Status NormalizeSlice(ImportContext& import) {
  AttributeToInput(import, "starts", 1);
  AttributeToInput(import, "ends", 2);
  AttributeToInput(import, "axes", 3);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> SplitSizes(const OpContext& context, int64_t axis, int num_outputs) {
  const int64_t extent = context.ShapeOf(0)[axis];
  if (context.Has(1)) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, context.ConstantInts(1, "split"));
    int64_t sum = 0;
    for (int64_t size : sizes) {
      if (size < 0 || size > extent) return context.Error(absl::StrCat("split size ", size, " of an axis of ", extent));
      sum += size;
    }
    if (sum != extent) return context.Error(absl::StrCat("split sizes add up to ", sum, ", the axis has ", extent));
    if (static_cast<int>(sizes.size()) != num_outputs) {
      return context.Error(absl::StrCat(sizes.size(), " split sizes for ", num_outputs, " outputs"));
    }
    return sizes;
  }
  // Parts are equal. Where they do not divide the axis (allowed with num_outputs), the last one is smaller.
  const int64_t parts = context.attrs.Int("num_outputs", num_outputs);
  if (parts != num_outputs) return context.Error(absl::StrCat("num_outputs=", parts, ", the node has ", num_outputs));
  if (extent % parts != 0 && !context.attrs.Has("num_outputs")) {
    return context.Error(absl::StrCat("cannot split an axis of ", extent, " into ", parts, " equal parts"));
  }
  const int64_t size = (extent + parts - 1) / parts;
  std::vector<int64_t> sizes(parts, size);
  for (int64_t k = 0; k < parts; ++k) sizes[k] = std::clamp<int64_t>(extent - k * size, 0, size);
  return sizes;
}

absl::StatusOr<Types> InferSplit(const OpContext& context, int num_outputs) {
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context, context.attrs.Int("axis"), context.Rank(0)));
  ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, SplitSizes(context, axis, num_outputs));
  Types types;
  for (int64_t size : sizes) {
    types.push_back(context.Type(0));
    types.back().shape[axis] = size;
  }
  return types;
}

absl::Status LowerSplit(LowerContext& context) {
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context, context.attrs.Int("axis"), context.Rank(0)));
  int64_t begin = 0;
  for (size_t o = 0; o < context.output_types.size(); ++o) {
    DefineMap(context, static_cast<int>(o), [&](te::Builder::Idx i) {
      i[axis] = i[axis] + te::Index(begin);
      return context.builder->At(context.in[0], i);
    });
    begin += context.output_types[o].shape[axis];
  }
  return absl::OkStatus();
}

// Becomes Slices, each of which turns into an index where its part is read. A Split would be a copy wherever its parts
// go to different kernels.
absl::Status NormalizeSplit(ImportContext& import) {
  AttributeToInput(import, "split", 1);
  const ecg::Node node = import.node();
  if (import.input(0) == nullptr || import.IsDynamic(node.inputs[0])) return absl::OkStatus();
  std::vector<const ecg::Value*> inputs;
  for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i) inputs.push_back(import.input(i));
  const OpContext context(node.op, node.name, node.attrs, inputs);
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context, context.attrs.Int("axis"), context.Rank(0)));
  ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, SplitSizes(context, axis, static_cast<int>(node.outputs.size())));
  const ecg::ValueId axes = import.AddConstant(IntsTensor({axis}));
  std::vector<ecg::ValueId> parts;
  int64_t begin = 0;
  for (const int64_t size : sizes) {
    const ecg::ValueId start = import.AddConstant(IntsTensor({begin}));
    const ecg::ValueId end = import.AddConstant(IntsTensor({begin += size}));
    ASSIGN_OR_RETURN(const auto part, import.AddNode("Slice", {node.inputs[0], start, end, axes}, {}));
    parts.push_back(part[0]);
  }
  import.ReplaceWith(std::move(parts));
  return absl::OkStatus();
}

absl::StatusOr<Types> InferConcat(const OpContext& context, int) {
  if (!context.Has(0)) return context.Error("has no inputs");
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context, context.attrs.Int("axis"), context.Rank(0)));
  ecg::ValueType type = context.Type(0);
  for (int k = 1; k < static_cast<int>(context.inputs.size()); ++k) {
    if (!context.Has(k)) return context.Error(absl::StrCat("input ", k, " is absent"));
    Shape shape = context.ShapeOf(k);
    bool agrees = context.Type(k).dtype == type.dtype && shape.size() == type.shape.size();
    if (agrees) {
      const int64_t length = std::exchange(shape[axis], type.shape[axis]);
      agrees = shape == type.shape;
      type.shape[axis] += length;
    }
    if (!agrees) {
      return context.Error(absl::StrCat("input ", k, " is ", DTypeName(context.Type(k).dtype),
                                        ShapeToString(context.ShapeOf(k)), ", which does not continue ",
                                        DTypeName(context.Type(0).dtype), ShapeToString(context.ShapeOf(0)),
                                        " along axis ", axis));
    }
  }
  return Types{type};
}

absl::Status LowerConcat(LowerContext& context) {
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context, context.attrs.Int("axis"), context.Rank(0)));
  DefineMap(context, 0, [&](const te::Builder::Idx& i) {
    std::vector<int64_t> begins;
    std::vector<te::Scalar> pieces;
    int64_t begin = 0;
    for (size_t k = 0; k < context.in.size(); ++k) {
      const int64_t length = context.ShapeOf(static_cast<int>(k))[axis];
      if (length == 0) continue;
      te::Builder::Idx in = i;
      in[axis] = in[axis] - te::Index(begin);
      begins.push_back(begin);
      pieces.push_back(context.builder->At(context.in[k], in));
      begin += length;
    }
    return ByRange(i[axis], begins, pieces);
  });
  return absl::OkStatus();
}

// Cuts the pieces to common bounds outside `axis`. Where one piece has a static extent, the others must have the same
// in a valid model, so they are cut to it. *extents receives the extents that stay dynamic.
absl::Status Align(ImportContext& import, const OpContext& context, int axis, std::vector<ecg::ValueId>* pieces,
                   std::vector<ecg::ValueId>* extents) {
  const std::vector<ecg::ValueId> given = *pieces;
  for (int d = 0; d < static_cast<int>(extents->size()); ++d) {
    if (d == axis) continue;
    const auto is_static = [&](ecg::ValueId piece) { return !import.IsDynamic(piece, d); };
    if (auto it = std::find_if(given.begin(), given.end(), is_static); it != given.end()) {
      const int64_t extent = import.value(*it).type.shape[d];
      for (size_t k = 0; k < given.size(); ++k) {
        if (is_static(given[k]) || import.value(given[k]).type.shape[d] <= extent) continue;
        ASSIGN_OR_RETURN((*pieces)[k], Cut(import, (*pieces)[k], d, extent));
      }
      continue;
    }
    (*extents)[d] = import.Extent(given[0], d);
    for (ecg::ValueId piece : given) {
      if (import.Extent(piece, d) == (*extents)[d]) continue;
      return context.Unsupported(absl::StrCat("whether the pieces' dimensions ", d, " are equal is not known"));
    }
  }
  return absl::OkStatus();
}

// Joins pieces whose extents along the axis depend on data. They are joined at their bounds; then a gather leaves out
// the gaps: from where each next piece begins, its index grows by the gap before that piece.
absl::Status DynamicConcat(ImportContext& import) {
  const ecg::Node node = import.node();
  std::vector<ecg::Value> held;
  const OpContext context = ContextOf(import, &held);
  if (!context.Has(0)) return absl::OkStatus();  // CheckSchema refuses it
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context, context.attrs.Int("axis"), context.Rank(0)));
  bool dynamic = false;
  for (ecg::ValueId piece : node.inputs) {
    if (piece == ecg::kNone || import.value(piece).type.shape.size() != context.ShapeOf(0).size()) {
      return absl::OkStatus();
    }
    dynamic = dynamic || import.IsDynamic(piece);
  }
  if (!dynamic) return absl::OkStatus();
  std::vector<ecg::ValueId> extents(context.Rank(0), ecg::kNone), pieces = node.inputs;
  RETURN_IF_ERROR(Align(import, context, axis, &pieces, &extents));
  ASSIGN_OR_RETURN(const auto joined, import.AddBounded("Concat", pieces, node.attrs));
  ecg::ValueId result = joined[0];
  ASSIGN_OR_RETURN(const ecg::ValueId positions, Positions(import, {import.value(result).type.shape[axis]}, 0));
  ecg::ValueId indices = positions, end = IntScalar(import, 0);
  bool gaps = false;
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    const ecg::ValueId piece = node.inputs[k];
    const int64_t bound = import.value(piece).type.shape[axis];
    const ecg::ValueId own = import.Extent(piece, axis);
    ASSIGN_OR_RETURN(end, ScalarOp(import, "Add", end, own));
    if (!import.IsDynamic(piece, axis) || k + 1 == node.inputs.size()) continue;
    gaps = true;
    ASSIGN_OR_RETURN(const ecg::ValueId gap, ScalarOp(import, "Sub", IntScalar(import, bound), own));
    ASSIGN_OR_RETURN(const auto before, import.AddBounded("Less", {positions, end}, {}));
    ASSIGN_OR_RETURN(const auto added, import.AddBounded("Where", {before[0], IntScalar(import, 0), gap}, {}));
    ASSIGN_OR_RETURN(const auto sum, import.AddBounded("Add", {indices, added[0]}, {}));
    indices = sum[0];
  }
  if (gaps) {
    ASSIGN_OR_RETURN(result, Take(import, result, axis, indices));
  }
  extents[axis] = end;
  ASSIGN_OR_RETURN(result, import.WithExtents(result, std::move(extents)));
  import.ReplaceWith({result});
  return absl::OkStatus();
}

}  // namespace

std::vector<OpDef> SliceOps() {
  OpDef slice;
  slice.name = "Slice";
  slice.min_inputs = 3;
  slice.max_inputs = 5;
  slice.roles = {InputRole::kData, InputRole::kPositions, InputRole::kPositions, InputRole::kAxes, InputRole::kSteps};
  slice.infer = InferSlice;
  slice.lower = LowerSlice;
  slice.normalize = NormalizeSlice;
  slice.dynamic = DynamicSlice;

  OpDef split;
  split.name = "Split";
  split.max_inputs = 2;
  split.roles = {InputRole::kData, InputRole::kParts};
  split.num_outputs = -1;
  split.attrs = {{"axis", AttrKind::kInt}, {"num_outputs", AttrKind::kInt}};
  split.infer = InferSplit;
  split.lower = LowerSplit;
  split.normalize = NormalizeSplit;

  OpDef concat;
  concat.name = "Concat";
  concat.max_inputs = -1;
  concat.attrs = {{"axis", AttrKind::kInt, true}};
  concat.infer = InferConcat;
  concat.lower = LowerConcat;
  concat.dynamic = DynamicConcat;

  std::vector<OpDef> defs = {slice, split, concat};
  for (OpDef& def : defs) {
    def.mapping = Always(MappingType::kOneToOne);
    def.flops = NoFlops;
  }
  return defs;
}

}  // namespace fusion::ops
