// The order in which a model's nodes are imported.
#ifndef FUSION_COMPILER_ONNX_NODE_ORDER_H_
#define FUSION_COMPILER_ONNX_NODE_ORDER_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "onnx/onnx_pb.h"

namespace fusion::onnx_import {

// The node's name; its first output stands in for a missing one.
std::string NodeName(const onnx::NodeProto& node);
// `Op "name"`.
std::string NodeTitle(const onnx::NodeProto& node);

// Indices of the nodes that the graph's outputs need, each after those it depends on, otherwise in the file's order;
// what a subgraph captures counts as used. `defined_outside(name)` says whether inputs, initializers or an enclosing
// graph define it. INVALID_ARGUMENT for a cycle (naming its nodes), an undefined input or output, a name defined twice.
absl::StatusOr<std::vector<int>> NeededNodesInOrder(const onnx::GraphProto& graph,
                                                    const std::function<bool(const std::string&)>& defined_outside);

}  // namespace fusion::onnx_import

#endif  // FUSION_COMPILER_ONNX_NODE_ORDER_H_
