// The order in which a model's nodes are imported.
#ifndef FUSION_COMPILER_ONNX_NODE_ORDER_H_
#define FUSION_COMPILER_ONNX_NODE_ORDER_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "onnx/onnx_pb.h"

namespace fusion::onnx_import {

// Returns the node's name, or its first output if it has none.
std::string NodeName(const onnx::NodeProto& node);
// Returns `Op "name"`.
std::string NodeTitle(const onnx::NodeProto& node);

// Returns the indices of the nodes that the graph's outputs need, each after those it depends on and otherwise in the
// file's order. Names that a subgraph captures count as used. `defined_outside(name)` tells whether inputs,
// initializers or an enclosing graph define a name. INVALID_ARGUMENT for a cycle (naming its nodes), an undefined input
// or output, or a name that is defined twice.
absl::StatusOr<std::vector<int>> NeededNodesInOrder(const onnx::GraphProto& graph,
                                                    const std::function<bool(const std::string&)>& defined_outside);

}  // namespace fusion::onnx_import

#endif  // FUSION_COMPILER_ONNX_NODE_ORDER_H_
