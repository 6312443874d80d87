// The post-dominator tree of a graph, with the most complex pattern on the way to each post-dominator (TVM's FuseOps).
#ifndef FUSION_COMPILER_PLAN_PLANNERS_TVM_LIKE_POST_DOMINATORS_H_
#define FUSION_COMPILER_PLAN_PLANNERS_TVM_LIKE_POST_DOMINATORS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "compiler/ecg/graph.h"
#include "compiler/plan/operator_kind.h"

namespace fusion {

// In increasing order of complexity.
enum class Pattern : uint8_t {
  kElementwise,
  kBroadcast,
  kInjective,
  kReduction,          // reads each element once
  kElementwiseBehind,  // a product, a window: elementwise operators may follow in its kernel
  kOpaque,             // alone
};
Pattern PatternOf(const OperatorTraits& traits);

struct PatternGraph {
  struct Edge {
    ecg::NodeId consumer = ecg::kNone;
    Pattern pattern = Pattern::kOpaque;  // how the consumer reads the value
  };
  std::vector<std::vector<Edge>> edges;  // by producer, consumers ascending, each once
  std::vector<Pattern> patterns;         // by node
  std::vector<bool> returned;            // by node: the model returns one of its values
};
PatternGraph MakePatternGraph(const ecg::Graph& graph, const std::vector<OperatorTraits>& traits);

struct PostDominator {
  ecg::NodeId node = ecg::kNone;       // on every path from this node to an output; kNone: there is none
  Pattern pattern = Pattern::kOpaque;  // the most complex edge on the paths to it
  int depth = 1;
};
std::vector<PostDominator> PostDominators(const PatternGraph& graph);  // by node

}  // namespace fusion

#endif  // FUSION_COMPILER_PLAN_PLANNERS_TVM_LIKE_POST_DOMINATORS_H_
