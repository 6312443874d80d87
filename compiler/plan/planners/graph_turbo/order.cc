#include "compiler/plan/planners/graph_turbo/order.h"

#include <set>
#include <utility>

namespace fusion::graph_turbo {

std::vector<int> BreadthFirstOrder(const InstanceGraph& graph) {
  std::vector<int> order, open;
  for (int i = 0; i < static_cast<int>(graph.instances.size()); ++i) {
    open.push_back(static_cast<int>(graph.instances[i].producers.size()));
    if (open.back() == 0) order.push_back(i);
  }
  for (size_t at = 0; at < order.size(); ++at) {
    for (const int consumer : graph.instances[order[at]].consumers) {
      if (--open[consumer] == 0) order.push_back(consumer);
    }
  }
  return order;
}

std::vector<int> DepthFirstOrder(const InstanceGraph& graph) {
  const int count = static_cast<int>(graph.instances.size());
  std::vector<int> order, open, place(count, kNone);  // place: in the list `ready`
  std::set<std::pair<int, int>> runnable;             // place, instance: those of `ready` that wait for nothing
  int length = 0;
  for (int i = 0; i < count; ++i) {
    open.push_back(static_cast<int>(graph.instances[i].producers.size()));
    if (open.back() > 0) continue;
    place[i] = length++;
    runnable.emplace(place[i], i);
  }
  while (!runnable.empty()) {
    const auto last = std::prev(runnable.end());
    const int instance = last->second;
    runnable.erase(last);
    order.push_back(instance);
    for (const int consumer : graph.instances[instance].consumers) {
      if (place[consumer] == kNone) place[consumer] = length++;
      if (--open[consumer] == 0) runnable.emplace(place[consumer], consumer);
    }
  }
  return order;
}

std::vector<int> DemandOrder(const InstanceGraph& graph) {
  const int count = static_cast<int>(graph.instances.size());
  std::vector<int> order;
  std::vector<bool> seen(count, false);
  std::vector<std::pair<int, size_t>> path;  // instances that wait, and the producer to look at next
  for (int end = 0; end < count; ++end) {
    if (!graph.instances[end].consumers.empty()) continue;
    path.emplace_back(end, 0);
    seen[end] = true;
    while (!path.empty()) {
      auto& [instance, next] = path.back();
      const std::vector<int>& producers = graph.instances[instance].producers;
      if (next == producers.size()) {
        order.push_back(instance);
        path.pop_back();
        continue;
      }
      const int producer = producers[next++];
      if (seen[producer]) continue;
      seen[producer] = true;
      path.emplace_back(producer, 0);
    }
  }
  return order;
}

}  // namespace fusion::graph_turbo
