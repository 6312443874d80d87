#include "compiler/onnx/structural/structural_context.h"

#include "runtime/base/status_macros.h"

namespace fusion::onnx_import {

absl::StatusOr<ecg::ValueId> StructuralContext::AddNode(const std::string& op, std::vector<ecg::ValueId> inputs,
                                                        ecg::Attributes attrs) {
  ASSIGN_OR_RETURN(const std::vector<ecg::ValueId> outputs, AddNodes(op, std::move(inputs), std::move(attrs), 1));
  return outputs[0];
}

ecg::ValueId StructuralContext::AddInts(const std::vector<int64_t>& values) {
  return AddConstant(Tensor::From(DType::kI64, {static_cast<int64_t>(values.size())}, values));
}

}  // namespace fusion::onnx_import
