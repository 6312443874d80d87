// FusedMatMul (formerly TransposeMatMul), FusedGemm and FusedConv of com.microsoft: products fused with transposes,
// factors, sums and an activation.
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ops/contrib/compose.h"
#include "compiler/ops/registry/op_list.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using ValueId = Compose::ValueId;

// `batched`: the rows come first, [M, batch.., K]. `transposed`: the last two axes are swapped after that.
ValueId Operand(Compose& c, int input, bool transposed, bool batched) {
  const int64_t rank = static_cast<int64_t>(c.ShapeOf(input).size());
  if (rank < 2 || (!transposed && !batched)) return c.In(input);
  std::vector<int64_t> perm;
  for (int64_t d = batched ? 1 : 0; d < rank - (batched ? 1 : 0); ++d) perm.push_back(d);
  if (batched) perm.insert(perm.end(), {0, rank - 1});
  if (transposed) std::swap(perm[rank - 1], perm[rank - 2]);
  return c.Transpose(c.In(input), perm);
}

absl::Status FusedMatMul(Compose& c) {
  const ecg::Attributes& attrs = c.Attributes();
  const ValueId a = Operand(c, 0, attrs.Int("transA") != 0, attrs.Int("transBatchA") != 0);
  const ValueId b = Operand(c, 1, attrs.Int("transB") != 0, attrs.Int("transBatchB") != 0);
  const double alpha = attrs.Float("alpha", 1.0);
  const ValueId y = c.Node("MatMul", {a, b});
  return c.Finish({alpha == 1 ? y : c.Mul(y, c.Number(c.Type(0).dtype, alpha))});
}

// `activation` names an operator of the default domain; `parameters` are its attributes in order.
absl::StatusOr<ValueId> Activate(Compose& c, ValueId x, const std::vector<double>& parameters) {
  const std::string op = c.Attributes().String("activation");
  if (op.empty()) return x;
  if (FindOp(op) == nullptr || op.find('.') != std::string::npos) {
    return c.Unsupported(absl::StrCat("activation '", op, "' is not supported"));
  }
  if (FindOp(op)->max_inputs == 3) {  // Clip takes its limits as inputs
    if (parameters.size() != 2) return c.Error(absl::StrCat("activation ", op, " needs two parameters"));
    const DType dtype = c.Type(0).dtype;
    return c.Node(op, {x, c.Number(dtype, parameters[0]), c.Number(dtype, parameters[1])});
  }
  Compose::Attrs attrs;
  const char* const names[] = {"alpha", "beta", "gamma"};
  for (size_t k = 0; k < parameters.size() && k < FindOp(op)->attrs.size() && k < 3; ++k) {
    attrs.emplace_back(names[k], parameters[k]);
  }
  return c.Node(op, {x}, attrs);
}

absl::Status FusedGemm(Compose& c) {
  Compose::Attrs attrs;
  std::vector<double> parameters;
  for (const char* name : {"activation_alpha", "activation_beta", "activation_gamma"}) {
    if (c.Attributes().Has(name)) parameters.push_back(c.Attributes().Float(name));
  }
  for (const auto& [name, value] : c.Attributes().all()) {
    if (name.rfind("activation", 0) != 0) attrs.emplace_back(name, value);
  }
  std::vector<ValueId> inputs{c.In(0), c.In(1)};
  if (c.Has(2)) inputs.push_back(c.In(2));
  ASSIGN_OR_RETURN(const ValueId y, Activate(c, c.Node("Gemm", inputs, attrs), parameters));
  return c.Finish({y});
}

absl::Status FusedConv(Compose& c) {
  Compose::Attrs attrs;
  for (const auto& [name, value] : c.Attributes().all()) {
    if (name.rfind("activation", 0) != 0) attrs.emplace_back(name, value);
  }
  std::vector<ValueId> inputs{c.In(0), c.In(1)};
  if (c.Has(2)) inputs.push_back(c.In(2));
  ValueId y = c.Node("Conv", inputs, attrs);
  if (c.Has(3)) y = c.Add(y, c.In(3));
  ASSIGN_OR_RETURN(y, Activate(c, y, c.Attributes().Floats("activation_params")));
  return c.Finish({y});
}

}  // namespace

std::vector<OpDef> ContribProductOps() {
  const std::vector<AttrSpec> matmul = {{"alpha", AttrKind::kFloat},
                                        {"transA", AttrKind::kInt},
                                        {"transB", AttrKind::kInt},
                                        {"transBatchA", AttrKind::kInt},
                                        {"transBatchB", AttrKind::kInt}};
  const std::vector<AttrSpec> gemm = {{"activation", AttrKind::kString},
                                      {"activation_alpha", AttrKind::kFloat},
                                      {"activation_beta", AttrKind::kFloat},
                                      {"activation_gamma", AttrKind::kFloat},
                                      {"alpha", AttrKind::kFloat},
                                      {"beta", AttrKind::kFloat},
                                      {"transA", AttrKind::kInt},
                                      {"transB", AttrKind::kInt}};
  const std::vector<AttrSpec> conv = {{"activation", AttrKind::kString}, {"activation_params", AttrKind::kFloats},
                                      {"auto_pad", AttrKind::kString},   {"dilations", AttrKind::kInts},
                                      {"group", AttrKind::kInt},         {"kernel_shape", AttrKind::kInts},
                                      {"pads", AttrKind::kInts},         {"strides", AttrKind::kInts}};
  return {DefineComposite("com.microsoft.FusedMatMul", 2, 2, 1, matmul, FusedMatMul),
          DefineComposite("com.microsoft.TransposeMatMul", 2, 2, 1, matmul, FusedMatMul),
          DefineComposite("com.microsoft.FusedGemm", 2, 3, 1, gemm, FusedGemm),
          DefineComposite("com.microsoft.FusedConv", 2, 4, 1, conv, FusedConv)};
}

}  // namespace fusion::ops
