#include "compiler/plan/planners/graph_turbo/exact_order.h"

#include <algorithm>
#include <unordered_map>

namespace fusion::graph_turbo {
namespace {

using Set = uint64_t;  // of instances

constexpr size_t kMostInstances = 64;

Set Only(int instance) { return Set{1} << instance; }

Set SetOf(const std::vector<int>& instances) {
  Set set = 0;
  for (const int instance : instances) set |= Only(instance);
  return set;
}

class Lattice {
 public:
  Lattice(const InstanceGraph& graph, const std::vector<InstanceBytes>& bytes, double capacity)
      : bytes_(bytes), capacity_(capacity) {
    for (const Instance& instance : graph.instances) {
      producers_.push_back(SetOf(instance.producers));
      consumers_.push_back(SetOf(instance.consumers));
    }
  }

  int count() const { return static_cast<int>(producers_.size()); }
  Set Whole() const { return count() == kMostInstances ? ~Set{0} : Only(count()) - 1; }
  bool MayRun(Set done, int instance) const {
    return (done & Only(instance)) == 0 && (producers_[instance] & ~done) == 0;
  }

  // The cost of running one instance when these have run.
  OrderCost StepCost(Set done, int instance) const {
    double waiting = 0;
    for (int i = 0; i < count(); ++i) {
      if ((done & Only(i)) != 0 && (consumers_[i] & ~done) != 0) waiting += bytes_[i].outputs;
    }
    return {std::max(0.0, waiting + bytes_[instance].own - capacity_), waiting};
  }

 private:
  const std::vector<InstanceBytes>& bytes_;
  const double capacity_;
  std::vector<Set> producers_, consumers_;
};

OrderCost Sum(const OrderCost& a, const OrderCost& b) { return {a.overflow + b.overflow, a.waiting + b.waiting}; }

}  // namespace

std::vector<InstanceBytes> BytesOfInstances(const OpGraph& graph, const std::vector<GroupedSubGraph>& sub_graphs,
                                            const InstanceGraph& instances) {
  std::vector<InstanceBytes> all;
  for (const Instance& instance : instances.instances) {
    InstanceBytes& bytes = all.emplace_back();
    const std::vector<int> outputs = OutputsOf(graph, sub_graphs[instance.sub_graph].sub_graph);
    for (size_t o = 0; o < outputs.size(); ++o) bytes.outputs += graph.tensors[outputs[o]].bytes(instance.outputs[o]);
    bytes.own = instance.footprint.peak_bytes;
    for (const auto& [tensor, makers] : instance.makers) {
      bytes.own -= graph.tensors[tensor].bytes(instance.footprint.regions.at(tensor));
    }
    bytes.own = std::max(bytes.own, bytes.outputs);
  }
  return all;
}

OrderCost CostOfOrder(const InstanceGraph& graph, const std::vector<InstanceBytes>& bytes, double capacity,
                      const std::vector<int>& order) {
  const Lattice lattice(graph, bytes, capacity);
  OrderCost cost;
  Set done = 0;
  for (const int instance : order) {
    cost = Sum(cost, lattice.StepCost(done, instance));
    done |= Only(instance);
  }
  return cost;
}

std::optional<std::vector<int>> ExactOrder(const InstanceGraph& graph, const std::vector<InstanceBytes>& bytes,
                                           double capacity, int64_t most_sets) {
  if (graph.instances.empty() || graph.instances.size() > kMostInstances) return std::nullopt;
  const Lattice lattice(graph, bytes, capacity);
  // The least cost of coming to a set, and the instance that runs last on the way.
  struct Reached {
    OrderCost cost;
    int last = kNone;
  };
  std::unordered_map<Set, Reached> reached = {{0, {}}};
  std::vector<Set> level = {0};  // all reached sets of one size
  for (int size = 0; size < lattice.count(); ++size) {
    std::vector<Set> next;
    for (const Set done : level) {
      const OrderCost so_far = reached.at(done).cost;
      for (int instance = 0; instance < lattice.count(); ++instance) {
        if (!lattice.MayRun(done, instance)) continue;
        const Reached candidate{Sum(so_far, lattice.StepCost(done, instance)), instance};
        const auto [known, added] = reached.try_emplace(done | Only(instance), candidate);
        if (added) next.push_back(known->first);
        if (candidate.cost < known->second.cost) known->second = candidate;
      }
      if (static_cast<int64_t>(reached.size()) > most_sets) return std::nullopt;
    }
    level = std::move(next);
  }
  std::vector<int> order;
  for (Set done = lattice.Whole(); done != 0; done &= ~Only(order.back())) order.push_back(reached.at(done).last);
  std::reverse(order.begin(), order.end());
  return order;
}

}  // namespace fusion::graph_turbo
