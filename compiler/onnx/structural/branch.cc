// If: imports the branch that is taken where the condition is known. Otherwise imports both, which is safe because
// branches have no effects, and selects between their outputs.
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/node_order.h"
#include "compiler/onnx/structural/structural_op.h"
#include "compiler/onnx/tensor_import.h"
#include "runtime/base/status_macros.h"

namespace fusion::onnx_import {
namespace {

absl::StatusOr<std::vector<ImportedValue>> ImportBranch(StructuralContext& importer, const StructuralNode& node,
                                                        const std::string& name, ecg::ValueId condition) {
  const ConditionScope runs(&importer.canonical(), condition);
  ASSIGN_OR_RETURN(onnx::GraphProto * graph, node.Graph(name));
  auto outputs = importer.Inline(graph, {}, absl::StrCat(NodeName(*node.proto), ".", name, "/"));
  if (!outputs.ok()) return Annotate(outputs.status(), node.title);
  if (static_cast<int>(outputs->size()) < node.proto->output_size()) {
    return node.Error(absl::StrCat("its ", name, " has too few outputs"));
  }
  return outputs;
}

absl::StatusOr<std::vector<ImportedValue>> ImportIf(StructuralContext& importer, const StructuralNode& node) {
  ASSIGN_OR_RETURN(const ecg::ValueId condition, node.TensorInput(0));
  if (importer.canonical().graph.value(condition).type.dtype != DType::kBool) {
    return node.Error("its condition is no single bool");
  }
  ASSIGN_OR_RETURN(const std::optional<int64_t> known, KnownInt(importer, node, condition, "its condition"));
  if (known.has_value()) return ImportBranch(importer, node, *known != 0 ? "then_branch" : "else_branch", ecg::kNone);
  ASSIGN_OR_RETURN(const ecg::ValueId scalar, AsScalar(importer, condition));
  ASSIGN_OR_RETURN(const std::vector<ImportedValue> taken, ImportBranch(importer, node, "then_branch", scalar));
  ASSIGN_OR_RETURN(const ecg::ValueId otherwise_taken, importer.AddNode("Not", {scalar}));
  ASSIGN_OR_RETURN(const std::vector<ImportedValue> otherwise,
                   ImportBranch(importer, node, "else_branch", otherwise_taken));
  std::vector<ImportedValue> outputs;
  for (int i = 0; i < node.proto->output_size(); ++i) {
    ASSIGN_OR_RETURN(ImportedValue output, Select(importer, node, scalar, taken[i], otherwise[i],
                                                  absl::StrCat("output ", Quoted(node.proto->output(i)))));
    outputs.push_back(std::move(output));
  }
  return outputs;
}

}  // namespace

std::vector<StructuralOp> BranchOps() { return {{"If", ImportIf}}; }

}  // namespace fusion::onnx_import
