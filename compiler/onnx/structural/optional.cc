// Optionals: import knows whether there is a value.
#include <utility>

#include "compiler/onnx/structural/structural_op.h"
#include "runtime/base/status_macros.h"

namespace fusion::onnx_import {
namespace {

using Values = std::vector<ImportedValue>;

absl::StatusOr<Values> Make(StructuralContext&, const StructuralNode& node) {
  return Values{ImportedValue::Optional(node.Has(0) ? Values{node.inputs[0]} : Values{})};
}

bool IsOptional(const StructuralNode& node) {
  return node.Has(0) && node.inputs[0].kind == ImportedValue::Kind::kOptional;
}

// From opset 18 on a tensor or sequence stands for an optional with a value, and an absent input for one without.
absl::StatusOr<Values> HasElement(StructuralContext& importer, const StructuralNode& node) {
  const bool has = IsOptional(node) ? !node.inputs[0].elements.empty() : node.Has(0);
  return Values{ImportedValue::Tensor(importer.AddConstant(Tensor::From<int64_t>(DType::kBool, {}, {has ? 1 : 0})))};
}

absl::StatusOr<Values> GetElement(StructuralContext&, const StructuralNode& node) {
  if (!node.Has(0)) return node.Error("input 0 is missing");
  if (!IsOptional(node)) return Values{node.inputs[0]};
  if (node.inputs[0].elements.empty()) return node.Error("takes the element of an optional that has none");
  return node.inputs[0].elements;
}

}  // namespace

std::vector<StructuralOp> OptionalOps() {
  return {{"Optional", Make}, {"OptionalHasElement", HasElement}, {"OptionalGetElement", GetElement}};
}

}  // namespace fusion::onnx_import
