// Gelu, FastGelu, BiasGelu, QuickGelu, BiasSplitGelu and BiasAdd of com.microsoft, and SwiGLU of ONNX.
#include "absl/strings/str_cat.h"
#include "compiler/ops/contrib/compose.h"
#include "compiler/ops/registry/op_list.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using ValueId = Compose::ValueId;

absl::Status Gelu(Compose& c) { return c.Finish({c.Node("Gelu", {c.In(0)})}); }

absl::Status FastGelu(Compose& c) {
  const ValueId x = c.Has(1) ? c.Add(c.In(0), c.In(1)) : c.In(0);
  return c.Finish({c.Node("Gelu", {x}, {{"approximate", std::string("tanh")}})});
}

absl::Status BiasGelu(Compose& c) { return c.Finish({c.Node("Gelu", {c.Add(c.In(0), c.In(1))})}); }

absl::Status QuickGelu(Compose& c) {
  const ValueId scaled = c.Mul(c.In(0), c.Number(c.Type(0).dtype, c.Attributes().Float("alpha", 1.702)));
  return c.Finish({c.Mul(c.In(0), c.Node("Sigmoid", {scaled}))});
}

absl::Status BiasSplitGelu(Compose& c) {
  const Shape& x = c.ShapeOf(0);
  if (x.empty() || x.back() % 2 != 0) return c.Error("the last axis must be even");
  RETURN_IF_ERROR(c.ExpectStatic(0, "X", {-1}));
  const int64_t half = x.back() / 2, axis = static_cast<int64_t>(x.size()) - 1;
  const ValueId sum = c.Add(c.In(0), c.In(1));
  return c.Finish({c.Mul(c.Slice(sum, axis, 0, half), c.Node("Gelu", {c.Slice(sum, axis, half, 2 * half)}))});
}

absl::Status BiasAdd(Compose& c) { return c.Finish({c.Add(c.Add(c.In(0), c.In(1)), c.In(2))}); }

absl::Status SwiGlu(Compose& c) {
  if (c.ShapeOf(0) != c.ShapeOf(1)) {
    return c.Error(absl::StrCat("A ", ShapeToString(c.ShapeOf(0)), " and B ", ShapeToString(c.ShapeOf(1)),
                                " must have one shape"));
  }
  return c.Finish({c.Mul(c.Node("Swish", {c.In(0)}, {{"alpha", c.Attributes().Float("alpha", 1)}}), c.In(1))});
}

}  // namespace

std::vector<OpDef> ContribActivationOps() {
  return {DefineComposite("com.microsoft.Gelu", 1, 1, 1, {}, Gelu),
          DefineComposite("com.microsoft.FastGelu", 1, 2, 1, {}, FastGelu),
          DefineComposite("com.microsoft.BiasGelu", 2, 2, 1, {}, BiasGelu),
          DefineComposite("com.microsoft.QuickGelu", 1, 1, 1, {{"alpha", AttrKind::kFloat}}, QuickGelu),
          DefineComposite("com.microsoft.BiasSplitGelu", 2, 2, 1, {}, BiasSplitGelu),
          DefineComposite("com.microsoft.BiasAdd", 3, 3, 1, {}, BiasAdd),
          DefineComposite("SwiGLU", 2, 2, 1, {{"alpha", AttrKind::kFloat}}, SwiGlu)};
}

}  // namespace fusion::ops
