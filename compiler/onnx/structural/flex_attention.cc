// FlexAttention of ai.onnx.preview: softmax(score_mod(scale · Q · Kᵀ)), then prob_mod, times V, per head. The two
// modifiers are graphs in attributes; they are inlined, so that they fuse like any other nodes.
//
//   q: [B, N, S, H], k: [B, G, T, H], v: [B, G, T, Hv], where G divides N -> [B, N, S, Hv]
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/node_order.h"
#include "compiler/onnx/structural/structural_op.h"
#include "compiler/onnx/tensor_import.h"
#include "compiler/ops/registry/onnx_dtype.h"
#include "runtime/base/status_macros.h"

namespace fusion::onnx_import {
namespace {

ecg::Attributes One(const char* name, ecg::Attribute value) {
  ecg::Attributes attrs;
  attrs.Set(name, std::move(value));
  return attrs;
}

class Flex {
 public:
  Flex(StructuralContext& importer, const StructuralNode& node) : importer_(importer), node_(node) {}

  absl::StatusOr<std::vector<ImportedValue>> Run() {
    ASSIGN_OR_RETURN(const ecg::ValueId q, node_.TensorInput(0));
    ASSIGN_OR_RETURN(const ecg::ValueId k, node_.TensorInput(1));
    ASSIGN_OR_RETURN(const ecg::ValueId v, node_.TensorInput(2));
    const ecg::ValueType query = TypeOf(q), key = TypeOf(k), value = TypeOf(v);
    const Shape &qs = query.shape, &ks = key.shape, &vs = value.shape;
    const bool fits = qs.size() == 4 && ks.size() == 4 && vs.size() == 4 && qs[0] == ks[0] && qs[0] == vs[0] &&
                      ks[1] == vs[1] && ks[1] > 0 && qs[1] % ks[1] == 0 && qs[3] == ks[3] && ks[2] == vs[2];
    if (!fits) {
      return node_.Error(absl::StrCat("Q ", ShapeToString(qs), ", K ", ShapeToString(ks), " and V ", ShapeToString(vs),
                                      " must be [B, N, S, H], [B, G, T, H] and [B, G, T, Hv], where G divides N"));
    }
    DType precise = query.dtype == DType::kF64 ? DType::kF64 : DType::kF32;
    if (const int64_t number = node_.Int("softmax_precision", 0); number != 0) {
      const auto named = ops::DTypeFromOnnx(number);
      if (!named || !IsFloat(*named)) return node_.Unsupported("softmax_precision names no float type");
      precise = *named;
    }
    const onnx::AttributeProto* scale = node_.Attribute("scale");
    const double factor = scale != nullptr ? scale->f() : 1 / std::sqrt(static_cast<double>(qs[3]));
    // Heads that share keys and values are further rows of one product.
    const int64_t rows = qs[1] / ks[1] * qs[2];
    ASSIGN_OR_RETURN(ecg::ValueId grouped, Reshape(q, {qs[0], ks[1], rows, qs[3]}));
    ASSIGN_OR_RETURN(grouped, Cast(grouped, precise));
    ASSIGN_OR_RETURN(ecg::ValueId columns,
                     importer_.AddNode("Transpose", {k}, One("perm", std::vector<int64_t>{0, 1, 3, 2})));
    ASSIGN_OR_RETURN(columns, Cast(columns, precise));
    ASSIGN_OR_RETURN(ecg::ValueId scores, importer_.AddNode("MatMul", {grouped, columns}));
    ASSIGN_OR_RETURN(scores, Reshape(scores, {qs[0], qs[1], qs[2], ks[2]}));
    const ecg::ValueId number = importer_.AddConstant(Tensor::From<double>(precise, {}, {factor}));
    ASSIGN_OR_RETURN(scores, importer_.AddNode("Mul", {scores, number}));
    ASSIGN_OR_RETURN(scores, Modified("score_mod", scores));
    ASSIGN_OR_RETURN(ecg::ValueId p, importer_.AddNode("Softmax", {scores}, One("axis", int64_t{-1})));
    ASSIGN_OR_RETURN(p, Modified("prob_mod", p));
    ASSIGN_OR_RETURN(p, Cast(p, value.dtype));
    ASSIGN_OR_RETURN(p, Reshape(p, {qs[0], ks[1], rows, ks[2]}));
    ASSIGN_OR_RETURN(ecg::ValueId y, importer_.AddNode("MatMul", {p, v}));
    ASSIGN_OR_RETURN(y, Cast(y, query.dtype));
    ASSIGN_OR_RETURN(y, Reshape(y, {qs[0], qs[1], qs[2], vs[3]}));
    return std::vector<ImportedValue>{ImportedValue::Tensor(y)};
  }

 private:
  ecg::ValueType TypeOf(ecg::ValueId id) const { return importer_.canonical().graph.value(id).type; }

  absl::StatusOr<ecg::ValueId> Cast(ecg::ValueId x, DType dtype) {
    if (TypeOf(x).dtype == dtype) return x;
    return importer_.AddNode("Cast", {x}, One("to", ops::OnnxNumber(dtype)));
  }

  absl::StatusOr<ecg::ValueId> Reshape(ecg::ValueId x, const Shape& shape) {
    if (TypeOf(x).shape == shape) return x;
    return importer_.AddNode("Reshape", {x, importer_.AddInts(shape)});
  }

  // Applies the graph of this attribute to x; returns x where there is none.
  absl::StatusOr<ecg::ValueId> Modified(const std::string& name, ecg::ValueId x) {
    if (node_.Attribute(name) == nullptr) return x;
    ASSIGN_OR_RETURN(onnx::GraphProto * graph, node_.Graph(name));
    if (graph->input_size() != 1 || graph->output_size() != 1) {
      return node_.Error(absl::StrCat("its ", name, " must have one input and one output"));
    }
    const StructuralContext::Bindings bound{{graph->input(0).name(), ImportedValue::Tensor(x)}};
    auto outputs = importer_.Inline(graph, bound, absl::StrCat(NodeName(*node_.proto), ".", name, "/"));
    if (!outputs.ok()) return Annotate(outputs.status(), node_.title);
    const ImportedValue& y = outputs->front();
    if (y.kind != ImportedValue::Kind::kTensor || y.tensor == ecg::kNone || TypeOf(y.tensor) != TypeOf(x)) {
      return node_.Error(absl::StrCat("its ", name, " must keep the type ", DTypeName(TypeOf(x).dtype),
                                      ShapeToString(TypeOf(x).shape)));
    }
    return y.tensor;
  }

  StructuralContext& importer_;
  const StructuralNode& node_;
};

absl::StatusOr<std::vector<ImportedValue>> FlexAttention(StructuralContext& importer, const StructuralNode& node) {
  return Flex(importer, node).Run();
}

}  // namespace

std::vector<StructuralOp> FlexAttentionOps() { return {{"ai.onnx.preview.FlexAttention", FlexAttention}}; }

}  // namespace fusion::onnx_import
