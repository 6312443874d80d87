// GraphImporter adds the model's nodes, in order, to a CanonicalGraph. It handles scopes of names, subgraphs and
// functions. All of these are inlined (docs/decisions/0009-control-flow-is-inlined.md), so that nothing after import
// knows of them.
#ifndef FUSION_COMPILER_ONNX_GRAPH_IMPORTER_H_
#define FUSION_COMPILER_ONNX_GRAPH_IMPORTER_H_

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/onnx/canonical_graph.h"
#include "compiler/onnx/function_bodies.h"
#include "compiler/onnx/imported_value.h"
#include "compiler/onnx/structural/structural_context.h"
#include "compiler/onnx/tensor_import.h"
#include "onnx/onnx_pb.h"

namespace fusion::onnx_import {

class GraphImporter : public StructuralContext {
 public:
  // `model` and `files` must outlive the importer, which takes the bytes of tensors out of the model.
  GraphImporter(onnx::ModelProto* model, std::map<std::string, int64_t> opsets, ExternalFiles* files);

  absl::StatusOr<std::vector<ImportedValue>> Inline(onnx::GraphProto* graph, const Bindings& bound,
                                                    const std::string& label) override;
  CanonicalGraph& canonical() override { return canonical_; }
  absl::StatusOr<ecg::ValueId> ConstantOf(onnx::NodeProto* node) override;
  absl::StatusOr<std::vector<ecg::ValueId>> AddNodes(const std::string& op, std::vector<ecg::ValueId> inputs,
                                                     ecg::Attributes attrs, int num_outputs) override;
  absl::Status Charge(int64_t steps) override;

 private:
  using Scope = std::unordered_map<std::string, ImportedValue>;

  const ImportedValue* Find(const std::string& name) const;
  absl::Status AddInitializers(onnx::GraphProto* graph);
  absl::StatusOr<const std::vector<int>*> OrderOf(const onnx::GraphProto& graph);
  absl::Status CheckSupported(const onnx::GraphProto& graph, const std::vector<int>& order);
  absl::Status ImportNode(onnx::NodeProto* proto);
  absl::StatusOr<std::vector<ImportedValue>> ImportOperator(onnx::NodeProto* proto, const std::string& op,
                                                            const std::vector<std::string>& output_names);
  absl::StatusOr<std::vector<ImportedValue>> CallFunction(const onnx::NodeProto& proto);
  int OpsetOf(const onnx::NodeProto& proto) const;

  CanonicalGraph canonical_;
  FunctionBodies functions_;
  ExternalFiles* files_;
  std::map<std::string, int64_t> opsets_;  // of the model, or of the function that is being imported
  std::vector<Scope> scopes_;              // outermost first
  std::string label_;                      // of the graph that is being imported
  std::string node_name_;                  // of the node that is being imported
  int64_t steps_ = 0;
  int depth_ = 0;
  // The parts taken out of the model are kept, because a graph may be imported again.
  std::unordered_map<const onnx::TensorProto*, ecg::ValueId> initializers_;
  std::unordered_map<const onnx::NodeProto*, ecg::ValueId> constants_;
  std::unordered_map<const onnx::NodeProto*, ecg::Attributes> attributes_;
  std::unordered_map<const onnx::GraphProto*, std::vector<int>> orders_;
};

}  // namespace fusion::onnx_import

#endif  // FUSION_COMPILER_ONNX_GRAPH_IMPORTER_H_
