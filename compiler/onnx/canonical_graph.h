// CanonicalGraph: a Graph under construction from canonical operators, with inference, limits and folding at each node.
#ifndef FUSION_COMPILER_ONNX_CANONICAL_GRAPH_H_
#define FUSION_COMPILER_ONNX_CANONICAL_GRAPH_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"
#include "compiler/ops/op_def.h"

namespace fusion::onnx_import {

class CanonicalGraph {
 public:
  ecg::Graph graph;

  // Checks the node against the registry and the limits and appends it, or, when it is foldable and small, the
  // constants it evaluates to: shape arithmetic ends here. Returns its outputs.
  absl::StatusOr<std::vector<ecg::ValueId>> Add(const ecg::Node& node, int num_outputs,
                                                const std::vector<std::string>& output_names = {});

  // One node of the model: `normalize` of its operator (of `opset`), then Add for whatever it became.
  absl::StatusOr<std::vector<ecg::ValueId>> AddModelNode(ecg::Node node, int opset,
                                                         const std::vector<std::string>& output_names);

 private:
  absl::Status CheckLimits(const ops::OpContext& context, const std::vector<ecg::ValueType>& types);
  int64_t activation_bytes_ = 0;
};

}  // namespace fusion::onnx_import

#endif  // FUSION_COMPILER_ONNX_CANONICAL_GRAPH_H_
