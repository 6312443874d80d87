// Facts that follow from a graph and the operator registry and are never stored (DNNFusion §3.1): mapping types, FLOPs,
// bytes, and the intermediate results that a fusion block would remove.
#ifndef FUSION_COMPILER_ANALYSIS_DERIVED_H_
#define FUSION_COMPILER_ANALYSIS_DERIVED_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "compiler/ecg/graph.h"
#include "compiler/ops/registry/op_def.h"

namespace fusion::ecg {

int64_t ValueBytes(const Value& value);

struct NodeFacts {
  ops::MappingType mapping = ops::MappingType::kOneToOne;  // the most complex input→output pair
  double flops = 0;
  int64_t bytes_read = 0;     // each distinct input once, constants included
  int64_t bytes_written = 0;  // all outputs
};
NodeFacts DeriveNode(const Graph& graph, NodeId node);

// An intermediate result is made by a node and is no graph output. IRS (the paper's intermediate result size) is its
// size in bytes.
bool IsIntermediate(const Graph& graph, ValueId value);
// Σ bytes of all intermediate results.
int64_t IntermediateBytes(const Graph& graph);
// IRS_removable: the value is intermediate and all its consumers are in the fusion block, so the fused kernel never
// stores it.
bool IsRemovable(const Graph& graph, ValueId value, const std::function<bool(NodeId)>& in_fusion_block);

}  // namespace fusion::ecg

#endif  // FUSION_COMPILER_ANALYSIS_DERIVED_H_
