// Constant and Identity give names to values.
#include "compiler/onnx/structural/structural_op.h"
#include "runtime/base/status_macros.h"

namespace fusion::onnx_import {
namespace {

absl::StatusOr<std::vector<ImportedValue>> ImportConstant(StructuralContext& importer, const StructuralNode& node) {
  if (node.proto->output_size() != 1 || node.proto->attribute_size() != 1) {
    return node.Error("needs one value and one output");
  }
  ASSIGN_OR_RETURN(const ecg::ValueId value, importer.ConstantOf(node.proto));
  return std::vector<ImportedValue>{ImportedValue::Tensor(value)};
}

absl::StatusOr<std::vector<ImportedValue>> ImportIdentity(StructuralContext&, const StructuralNode& node) {
  if (node.inputs.size() != 1 || !node.Has(0)) return node.Error("needs one input");
  return std::vector<ImportedValue>{node.inputs[0]};
}

}  // namespace

std::vector<StructuralOp> ConstantOps() { return {{"Constant", ImportConstant}, {"Identity", ImportIdentity}}; }

}  // namespace fusion::onnx_import
