// NegativeLogLikelihoodLoss, SoftmaxCrossEntropyLoss. x: [N, C, D..], target: [N, D..], weight: [C].
#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/op_list.h"
#include "compiler/ops/shared/axes.h"
#include "compiler/ops/shared/elementwise.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using te::Call;
using te::Imm;
using te::Op;
using te::ReductionKind;
using te::Scalar;
using Idx = te::Builder::Idx;
using Types = std::vector<ecg::ValueType>;

absl::StatusOr<Types> Infer(const OpContext& context, int) {
  RETURN_IF_ERROR(CheckDomain(context, 0, Domain::kFloat));
  RETURN_IF_ERROR(CheckDomain(context, 1, Domain::kInteger));
  if (context.Rank(0) < 2 || ShapeWithout(context.ShapeOf(0), {1}) != context.ShapeOf(1)) {
    return context.Error(absl::StrCat("target ", ShapeToString(context.ShapeOf(1)), " does not fit input ",
                                      ShapeToString(context.ShapeOf(0))));
  }
  if (context.ShapeOf(0)[1] == 0 && NumElements(context.ShapeOf(1)) > 0) {
    return context.Error(absl::StrCat("input ", ShapeToString(context.ShapeOf(0)), " has no classes"));
  }
  if (context.Has(2) && context.ShapeOf(2) != Shape{context.ShapeOf(0)[1]}) {
    return context.Error(absl::StrCat("weight must have shape [", context.ShapeOf(0)[1], "]"));
  }
  const std::string reduction = context.attrs.String("reduction", "mean");
  return Types{{context.Type(0).dtype, reduction == "none" ? context.ShapeOf(1) : Shape{}}};
}

absl::Status Lower(LowerContext& context) {
  te::Builder& b = *context.builder;
  const ecg::ValueType& type = context.output_types[0];
  const DType compute = ComputeType(type.dtype);
  const Shape& shape = context.ShapeOf(1);
  const int64_t classes = context.ShapeOf(0)[1];
  const std::string reduction = context.attrs.String("reduction", "mean");

  // The ignored class may lie outside [0, C). Its weight is 0, but the index must stay in bounds.
  const te::TensorId index = b.Map("class", DType::kI64, shape, [&](const Idx& i) {
    const Scalar target = te::Cast(DType::kI64, b.At(context.in[1], i));
    return te::Min(te::Max(target, te::ImmInt(DType::kI64, 0)), te::ImmInt(DType::kI64, classes - 1));
  });
  const auto class_at = [&](const Idx& i) { return te::Index::Load(index, i, {0, classes - 1}); };
  const te::TensorId weight = b.Map("weight", compute, shape, [&](const Idx& i) {
    Scalar w = context.Has(2) ? te::Cast(compute, b.At(context.in[2], {class_at(i)})) : Imm(compute, 1);
    if (!context.attrs.Has("ignore_index")) return w;
    const Scalar target = te::Cast(DType::kI64, b.At(context.in[1], i));
    const Scalar ignored = Call(Op::kEq, {target, te::ImmInt(DType::kI64, context.attrs.Int("ignore_index"))});
    return te::Select(ignored, Imm(compute, 0), w);
  });
  const bool reduced = reduction != "none";
  const te::TensorId loss = b.Map("loss", reduced ? compute : type.dtype, shape, [&](const Idx& i) {
    const Scalar x = LoadCompute(b, context.in[0], MergeIndex(i, {class_at(i)}, {1}));
    return Call(Op::kNeg, {x}) * b.At(weight, i);
  });
  if (!reduced) {
    context.out[0] = loss;
    return absl::OkStatus();
  }
  const auto sum_of = [&](te::TensorId x) {
    return b.Reduce("sum", ReductionKind::kSum, reduction == "sum" ? type.dtype : compute, compute, {}, shape,
                    [&](const Idx&, const Idx& r) { return b.At(x, r); });
  };
  const te::TensorId sum = sum_of(loss);
  if (reduction == "sum") {
    context.out[0] = sum;
    return absl::OkStatus();
  }
  const te::TensorId weights = sum_of(weight);
  context.out[0] = b.Map("mean", type.dtype, {},
                         [&](const Idx&) { return te::Cast(type.dtype, b.At(sum, {}) / b.At(weights, {})); });
  return absl::OkStatus();
}

// Decomposes into log probabilities (the optional second output) and the loss.
absl::Status NormalizeCrossEntropy(ImportContext& context) {
  const std::vector<ecg::ValueId> inputs = context.node().inputs;
  const ecg::Attributes attrs = context.node().attrs;
  if (inputs.size() < 2) return absl::InvalidArgumentError("SoftmaxCrossEntropyLoss: input 1 is missing");
  ecg::Attributes softmax_attrs;
  softmax_attrs.Set("axis", int64_t{1});
  ASSIGN_OR_RETURN(const auto log_prob, context.AddNode("LogSoftmax", {inputs[0]}, softmax_attrs));
  std::vector<ecg::ValueId> loss_inputs = inputs;
  loss_inputs[0] = log_prob[0];
  ASSIGN_OR_RETURN(const auto loss, context.AddNode("NegativeLogLikelihoodLoss", loss_inputs, attrs));
  context.ReplaceWith({loss[0], log_prob[0]});
  return absl::OkStatus();
}

}  // namespace

std::vector<OpDef> LossOps() {
  OpDef nll;
  nll.name = "NegativeLogLikelihoodLoss";
  nll.min_inputs = 2;
  nll.max_inputs = 3;
  nll.attrs = {{"ignore_index", AttrKind::kInt}, {"reduction", AttrKind::kString, false, {"none", "sum", "mean"}}};
  nll.mapping = Always(MappingType::kManyToMany);
  nll.infer = Infer;
  nll.flops = [](const OpContext& context, const Types&) -> double { return 2.0 * NumElements(context.ShapeOf(1)); };
  nll.lower = Lower;

  OpDef cross_entropy = nll;
  cross_entropy.name = "SoftmaxCrossEntropyLoss";
  cross_entropy.num_outputs = 2;
  cross_entropy.infer = nullptr;
  cross_entropy.lower = nullptr;
  cross_entropy.normalize = NormalizeCrossEntropy;
  return {nll, cross_entropy};
}

}  // namespace fusion::ops
