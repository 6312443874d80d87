#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/infer_types.h"
#include "compiler/ops/registry/op_def.h"
#include "compiler/pipeline/testing/run_fusion_block.h"
#include "runtime/base/check.h"
#include "runtime/base/random_inputs.h"

namespace fusion::testing {

ecg::ValueId GraphMaker::In(Shape shape, DType dtype) {
  return graph_.AddInput(absl::StrCat("x", graph_.values().size()), {dtype, std::move(shape)});
}

ecg::ValueId GraphMaker::In(Tensor value) {
  const ecg::ValueId v = In(value.shape(), value.dtype());
  inputs_[v] = std::move(value);
  return v;
}

ecg::ValueId GraphMaker::Weight(const Shape& shape, DType dtype) {
  return Const(RandomTensor(dtype, shape, DeriveSeed(5, seed_++)));
}

ecg::ValueId GraphMaker::Const(Tensor value) {
  return graph_.AddConstant(absl::StrCat("c", graph_.values().size()), std::move(value));
}

ecg::ValueId GraphMaker::Scalar(double value, DType dtype) { return Const(Tensor::From<double>(dtype, {}, {value})); }

ecg::ValueId GraphMaker::Ints(const std::vector<int64_t>& values) {
  return Const(Tensor::From<int64_t>(DType::kI64, {static_cast<int64_t>(values.size())}, values));
}

ecg::ValueId GraphMaker::Op(const std::string& op, std::vector<ecg::ValueId> inputs, const Attrs& attrs) {
  return Ops(op, std::move(inputs), attrs, 1)[0];
}

std::vector<ecg::ValueId> GraphMaker::Ops(const std::string& op, std::vector<ecg::ValueId> inputs, const Attrs& attrs,
                                          int outputs) {
  ecg::Node node;
  node.op = op;
  node.name = absl::StrCat(op, graph_.nodes().size());
  node.inputs = std::move(inputs);
  for (const auto& [name, value] : attrs) node.attrs.Set(name, value);
  const auto types = ops::InferTypes(ops::MakeContext(graph_, node), outputs);
  FUSION_CHECK(types.ok(), std::string(types.status().message()).c_str());
  const ecg::NodeId id = graph_.AddNode(node.op, node.name, node.inputs, node.attrs, *types);
  return graph_.node(id).outputs;
}

void GraphMaker::Out(ecg::ValueId value) { graph_.AddOutput(value, absl::StrCat("y", graph_.outputs().size())); }

}  // namespace fusion::testing
