// Col2Im: x: [N, C · block.., L] to [N, C, image..]. Each element of the image sums the elements of all blocks that
// cover it.
#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/def_parts.h"
#include "compiler/ops/registry/op_list.h"
#include "compiler/ops/shared/elementwise.h"
#include "compiler/ops/shared/window.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using te::Index;
using te::Scalar;
using Idx = te::Builder::Idx;
using Types = std::vector<ecg::ValueType>;

// The window that cut the image into blocks; its `out` is the number of blocks per dimension.
absl::StatusOr<Window> BlocksOf(const OpContext& context) {
  RETURN_IF_ERROR(CheckDomain(context, 0, Domain::kNumeric));
  Window w;
  ASSIGN_OR_RETURN(w.in, context.ConstantInts(1, "image_shape"));
  ASSIGN_OR_RETURN(w.kernel, context.ConstantInts(2, "block_shape"));
  const int spatial = w.spatial();
  if (spatial < 1 || static_cast<int>(w.in.size()) != spatial) {
    return context.Error(
        absl::StrCat("image_shape ", ShapeToString(w.in), " and block_shape ", ShapeToString(w.kernel), " do not fit"));
  }
  ASSIGN_OR_RETURN(w.strides, SpatialInts(context, "strides", spatial, 1));
  ASSIGN_OR_RETURN(w.dilations, SpatialInts(context, "dilations", spatial, 1));
  RETURN_IF_ERROR(SplitPads(context, spatial, &w.before, &w.after));
  for (int d = 0; d < spatial; ++d) {
    constexpr int64_t kLargest = int64_t{1} << 31;
    if (w.kernel[d] < 1 || w.kernel[d] > kLargest || w.strides[d] < 1 || w.dilations[d] < 1 ||
        w.dilations[d] > kLargest || w.in[d] < 0 || w.in[d] > kLargest) {
      return context.Error("image_shape, block_shape, strides and dilations must be positive and in range");
    }
    const int64_t room = w.in[d] + w.before[d] + w.after[d] - w.Span(d);
    if (room < 0) return context.Error(absl::StrCat("a block does not fit spatial dimension ", d));
    w.out.push_back(room / w.strides[d] + 1);
  }
  return w;
}

absl::StatusOr<Types> Infer(const OpContext& context, int) {
  ASSIGN_OR_RETURN(const Window w, BlocksOf(context));
  const Shape& x = context.ShapeOf(0);
  const int64_t block = NumElements(w.kernel), blocks = NumElements(w.out);
  if (x.size() != 3 || x[1] % block != 0 || x[2] != blocks) {
    return context.Error(absl::StrCat("input ", ShapeToString(x), " must be [N, C·", block, ", ", blocks, "]"));
  }
  Shape out{x[0], x[1] / block};
  out.insert(out.end(), w.in.begin(), w.in.end());
  return Types{{context.Type(0).dtype, out}};
}

absl::Status Lower(LowerContext& context) {
  ASSIGN_OR_RETURN(const Window w, BlocksOf(context));
  te::Builder& b = *context.builder;
  const ecg::ValueType& type = context.output_types[0];
  const DType acc = ComputeType(type.dtype);
  const int64_t block = NumElements(w.kernel);
  context.out = {b.Reduce(
      "col2im", te::ReductionKind::kSum, type.dtype, acc, type.shape, w.kernel, [&](const Idx& i, const Idx& r) {
        const Idx k = DropUnit(r, w.kernel);
        Idx which;
        te::Pred hit;
        for (int d = 0; d < w.spatial(); ++d) {
          const Index at = i[d + 2] + Index(w.before[d]) - k[d] * w.dilations[d];
          which.push_back(te::FloorDiv(at, w.strides[d]));
          if (w.strides[d] > 1) hit.push_back({te::Mod(at, w.strides[d]), te::Cmp::kEq, Index(0)});
          hit.push_back({which[d], te::Cmp::kGe, Index(0)});
          hit.push_back({which[d], te::Cmp::kLt, Index(w.out[d])});
        }
        // The load is padded because the bounds of the single coordinates do not prove the bounds of their row-major
        // position.
        const Scalar x = te::Load(context.in[0], type.dtype,
                                  {i[0], i[1] * block + te::Linearize(k, w.kernel), te::Linearize(which, w.out)},
                                  te::Imm(type.dtype, 0));
        return te::If(hit, te::Cast(acc, x), te::Imm(acc, 0));
      })};
  return absl::OkStatus();
}

}  // namespace

std::vector<OpDef> Col2ImOps() {
  OpDef def;
  def.name = "Col2Im";
  def.min_inputs = def.max_inputs = 3;
  def.roles = {InputRole::kData, InputRole::kExtents, InputRole::kExtents};
  def.attrs = {{"dilations", AttrKind::kInts}, {"pads", AttrKind::kInts}, {"strides", AttrKind::kInts}};
  def.infer = Infer;
  def.lower = Lower;
  def.mapping = Always(MappingType::kManyToMany);
  def.flops = [](const OpContext& context, const Types&) {
    return static_cast<double>(NumElements(context.ShapeOf(0)));
  };
  return {def};
}

}  // namespace fusion::ops
