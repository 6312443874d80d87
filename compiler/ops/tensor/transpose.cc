// Transpose, DepthToSpace, SpaceToDepth: permutations of elements.
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/def_parts.h"
#include "compiler/ops/registry/op_list.h"
#include "compiler/ops/shared/elementwise.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using te::Index;
using Types = std::vector<ecg::ValueType>;

absl::StatusOr<std::vector<int64_t>> Permutation(const OpContext& context) {
  std::vector<int64_t> perm = context.attrs.Ints("perm");
  if (!context.attrs.Has("perm")) {
    perm.resize(context.Rank(0));
    std::iota(perm.rbegin(), perm.rend(), 0);
  }
  if (static_cast<int>(perm.size()) != context.Rank(0)) {
    return context.Error(
        absl::StrCat("perm has ", perm.size(), " axes, the input ", ShapeToString(context.ShapeOf(0))));
  }
  return DistinctAxes(context, perm, context.Rank(0));
}

absl::StatusOr<Types> InferTranspose(const OpContext& context, int) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> perm, Permutation(context));
  Shape out;
  for (int64_t axis : perm) out.push_back(context.ShapeOf(0)[axis]);
  return Types{{context.Type(0).dtype, out}};
}

absl::Status LowerTranspose(LowerContext& context) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> perm, Permutation(context));
  DefineMap(context, 0, [&](const te::Builder::Idx& i) {
    te::Builder::Idx in(i.size());
    for (size_t d = 0; d < i.size(); ++d) in[perm[d]] = i[d];
    return context.builder->At(context.in[0], in);
  });
  return absl::OkStatus();
}

absl::StatusOr<int64_t> BlockSize(const OpContext& context) {
  const int64_t block = context.attrs.Int("blocksize");
  if (block < 1) return context.Error(absl::StrCat("blocksize ", block, " is not positive"));
  if (context.Rank(0) != 4)
    return context.Error(absl::StrCat("input ", ShapeToString(context.ShapeOf(0)), " is not [N, C, H, W]"));
  return block;
}

absl::StatusOr<Types> InferDepthToSpace(const OpContext& context, int) {
  ASSIGN_OR_RETURN(const int64_t block, BlockSize(context));
  const Shape& x = context.ShapeOf(0);
  if (x[1] % (block * block) != 0) {
    return context.Error(absl::StrCat("blocksize ", block, " squared does not divide C=", x[1]));
  }
  return Types{{context.Type(0).dtype, {x[0], x[1] / (block * block), x[2] * block, x[3] * block}}};
}

// (n, c, h, w) -> DCR: (n, (h%b)·b·C + (w%b)·C + c, h//b, w//b);  CRD: (n, c·b² + (h%b)·b + w%b, h//b, w//b)
absl::Status LowerDepthToSpace(LowerContext& context) {
  ASSIGN_OR_RETURN(const int64_t block, BlockSize(context));
  const bool crd = context.attrs.String("mode", "DCR") == "CRD";
  const int64_t channels = context.output_types[0].shape[1];
  DefineMap(context, 0, [&](const te::Builder::Idx& i) {
    const Index offset = Mod(i[2], block) * block + Mod(i[3], block);
    const Index channel = crd ? i[1] * (block * block) + offset : offset * channels + i[1];
    return context.builder->At(context.in[0], {i[0], channel, FloorDiv(i[2], block), FloorDiv(i[3], block)});
  });
  return absl::OkStatus();
}

absl::StatusOr<Types> InferSpaceToDepth(const OpContext& context, int) {
  ASSIGN_OR_RETURN(const int64_t block, BlockSize(context));
  const Shape& x = context.ShapeOf(0);
  if (x[2] % block != 0 || x[3] % block != 0) {
    return context.Error(absl::StrCat("blocksize ", block, " does not divide the image of ", ShapeToString(x)));
  }
  return Types{{context.Type(0).dtype, {x[0], x[1] * block * block, x[2] / block, x[3] / block}}};
}

// (n, k, h, w) -> (n, c, h·b + bh, w·b + bw), DCR: k = (bh·b + bw)·C + c;  CRD (opset 28): k = c·b² + bh·b + bw
absl::Status LowerSpaceToDepth(LowerContext& context) {
  ASSIGN_OR_RETURN(const int64_t block, BlockSize(context));
  const bool crd = context.attrs.String("mode", "DCR") == "CRD";
  const int64_t channels = context.ShapeOf(0)[1];
  DefineMap(context, 0, [&](const te::Builder::Idx& i) {
    std::vector<Index> parts = Delinearize(i[1], crd ? Shape{channels, block, block} : Shape{block, block, channels});
    if (crd) std::rotate(parts.begin(), parts.begin() + 1, parts.end());  // now bh, bw, c
    return context.builder->At(context.in[0], {i[0], parts[2], i[2] * block + parts[0], i[3] * block + parts[1]});
  });
  return absl::OkStatus();
}

OpDef Define(std::string name, std::vector<AttrSpec> attrs) {
  OpDef def;
  def.name = std::move(name);
  def.attrs = std::move(attrs);
  def.mapping = Always(MappingType::kShuffle);
  def.flops = NoFlops;
  return def;
}

}  // namespace

std::vector<OpDef> TransposeOps() {
  OpDef transpose = Define("Transpose", {{"perm", AttrKind::kInts}});
  transpose.infer = InferTranspose;
  transpose.lower = LowerTranspose;

  const std::vector<AttrSpec> blocks = {{"blocksize", AttrKind::kInt, true},
                                        {"mode", AttrKind::kString, false, {"DCR", "CRD"}}};
  OpDef depth_to_space = Define("DepthToSpace", blocks);
  depth_to_space.infer = InferDepthToSpace;
  depth_to_space.lower = LowerDepthToSpace;

  OpDef space_to_depth = Define("SpaceToDepth", blocks);
  space_to_depth.infer = InferSpaceToDepth;
  space_to_depth.lower = LowerSpaceToDepth;

  return {transpose, depth_to_space, space_to_depth};
}

}  // namespace fusion::ops
