#include "compiler/plan/planners/graph_turbo/lowering/sequence.h"

#include <algorithm>
#include <map>
#include <utility>

namespace fusion::graph_turbo {

std::vector<Step> SequenceOf(const OpGraph& graph, const DepthFirstPlan& plan) {
  std::vector<Step> steps;
  std::map<std::pair<int, int>, int> made;  // by instance and operator: the step
  for (const int i : plan.order) {
    const Instance& instance = plan.instances.instances[i];
    const std::vector<int>& ops = plan.grouping.sub_graphs[instance.sub_graph].sub_graph.ops;
    for (const int o : ops) {
      const Op& op = graph.ops[o];
      Step step;
      step.op = o;
      bool anything = false;
      for (const int tensor : op.outputs) {
        const auto region = instance.footprint.regions.find(tensor);
        step.outputs.push_back(region == instance.footprint.regions.end() ? Region() : region->second);
        anything = anything || !step.outputs.back().nothing;
      }
      if (!anything) continue;
      for (const int tensor : op.inputs) {
        std::vector<int>& sources = step.sources.emplace_back();
        if (tensor == kNone || graph.tensors[tensor].producer == kNone) continue;
        const int producer = graph.tensors[tensor].producer;
        if (const auto own = made.find({i, producer}); own != made.end()) {
          sources.push_back(own->second);
        } else if (const auto makers = instance.makers.find(tensor); makers != instance.makers.end()) {
          for (const int maker : makers->second) sources.push_back(made.at({maker, producer}));
        }
      }
      made[{i, o}] = static_cast<int>(steps.size());
      steps.push_back(std::move(step));
    }
  }
  return steps;
}

std::vector<Step> WholeLayers(const OpGraph& graph) {
  std::vector<Step> steps;
  for (int o = 0; o < static_cast<int>(graph.ops.size()); ++o) {
    Step step;
    step.op = o;
    for (const int tensor : graph.ops[o].outputs) step.outputs.push_back(WholeRegion(graph.tensors[tensor].shape));
    for (const int tensor : graph.ops[o].inputs) {
      std::vector<int>& sources = step.sources.emplace_back();
      if (tensor != kNone && graph.tensors[tensor].producer != kNone) sources.push_back(graph.tensors[tensor].producer);
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace fusion::graph_turbo
