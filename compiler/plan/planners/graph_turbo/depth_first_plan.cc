#include "compiler/plan/planners/graph_turbo/depth_first_plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/plan/planners/graph_turbo/exact_order.h"
#include "compiler/plan/planners/graph_turbo/order.h"
#include "compiler/plan/planners/graph_turbo/weight_traffic.h"

namespace fusion::graph_turbo {
namespace {

void Count(const PlacedBuffer& buffer, ScopeCounts* counts) {
  LevelCount& level = buffer.scope == BufferScope::kLocal    ? counts->local
                      : buffer.scope == BufferScope::kGlobal ? counts->global
                                                             : counts->ddr;
  ++level.count;
  level.bytes += buffer.bytes;
}

// The most bytes of the GB that results need at once.
double PeakInGlobal(const std::vector<PlacedBuffer>& buffers) {
  std::map<int64_t, double> change;  // by step
  for (const PlacedBuffer& buffer : buffers) {
    if (buffer.scope != BufferScope::kGlobal) continue;
    change[buffer.birth] += buffer.bytes;
    change[buffer.death + 1] -= buffer.bytes;
  }
  double live = 0, peak = 0;
  for (const auto& [step, bytes] : change) {
    live += bytes;
    peak = std::max(peak, live);
  }
  return peak;
}

// The part of a plan that follows from an order.
struct Placed {
  std::vector<int> order;
  std::vector<Binding> bindings;
  std::vector<Movement> movements;
  std::vector<PlacedBuffer> buffers;
  ScopeCounts outputs, movement_outputs;
  double weight_bytes = 0;

  // The better order uses memory better: the fewest bytes to and from DDR, then in the GB. A result in DDR is written
  // and read.
  std::pair<double, double> Slow() const {
    return {2 * (outputs.ddr.bytes + movement_outputs.ddr.bytes) + weight_bytes,
            outputs.global.bytes + movement_outputs.global.bytes};
  }
};

// Instances of one size, in their best order.
struct Candidate {
  Grouping grouping;
  InstanceGraph instances;
  Placed placed;
  std::string order_name;
};

Candidate MakeCandidate(const OpGraph& graph, const Cluster& cluster, double instance_bytes) {
  const double local_bytes = cluster.local_bytes * (1 - cluster.weights_share);
  Candidate made;
  made.grouping = GroupSubGraphs(graph, {instance_bytes, cluster.recomputation, cluster.literal});
  const std::vector<GroupedSubGraph>& sub_graphs = made.grouping.sub_graphs;
  made.instances = MakeInstances(graph, sub_graphs);
  const auto place = [&](std::vector<int> order) {
    Placed placed;
    placed.order = std::move(order);
    placed.bindings = InferBindings(graph, sub_graphs, made.instances, placed.order, cluster.cores);
    placed.movements = InsertMovements(graph, sub_graphs, made.instances, placed.bindings);
    placed.buffers = PlaceBuffers(graph, sub_graphs, made.instances, placed.order, placed.bindings, placed.movements,
                                  {cluster.cores, local_bytes, cluster.global_bytes});
    for (const PlacedBuffer& buffer : placed.buffers) {
      if (buffer.use == BufferUse::kOutput) Count(buffer, &placed.outputs);
      if (buffer.use == BufferUse::kMovement) Count(buffer, &placed.movement_outputs);
    }
    if (cluster.weights && !cluster.literal) {
      placed.weight_bytes = WeightBytesFromDdr(graph, sub_graphs, made.instances, placed.order,
                                               cluster.global_bytes - PeakInGlobal(placed.buffers));
    }
    return placed;
  };
  made.placed = place(BreadthFirstOrder(made.instances));
  made.order_name = "BFS";
  const auto consider = [&](const char* name, std::vector<int> order) {
    Placed other = place(std::move(order));
    if (other.Slow() >= made.placed.Slow()) return;
    made.placed = std::move(other);
    made.order_name = name;
  };
  consider("DFS", DepthFirstOrder(made.instances));
  if (!cluster.literal) {
    consider("demand", DemandOrder(made.instances));
    const std::optional<std::vector<int>> exact =
        ExactOrder(made.instances, BytesOfInstances(graph, sub_graphs, made.instances), local_bytes * cluster.cores);
    if (exact) consider("exact", *exact);
  }
  return made;
}

bool IsSplit(const Grouping& grouping) {
  return std::any_of(grouping.sub_graphs.begin(), grouping.sub_graphs.end(),
                     [](const GroupedSubGraph& grouped) { return grouped.best && grouped.best->f > 1; });
}

}  // namespace

DepthFirstPlan MakeDepthFirstPlan(const OpGraph& graph, const Cluster& cluster) {
  const double fast_bytes = cluster.local_bytes * (1 - cluster.weights_share) * cluster.cores;
  Candidate best = MakeCandidate(graph, cluster, fast_bytes);
  // Larger instances keep a part of their results in the GB, and read weights less often.
  constexpr double kGrowth = 4;
  bool more = cluster.weights && !cluster.literal && IsSplit(best.grouping);
  for (double bytes = fast_bytes * kGrowth; more; bytes *= kGrowth) {
    // Beyond the GB there is one size more: whole sub-graphs.
    const bool whole = bytes > cluster.global_bytes;
    Candidate larger = MakeCandidate(graph, cluster, whole ? std::numeric_limits<double>::infinity() : bytes);
    more = !whole && IsSplit(larger.grouping);
    if (larger.placed.Slow().first < best.placed.Slow().first) best = std::move(larger);
  }
  DepthFirstPlan plan;
  plan.grouping = std::move(best.grouping);
  plan.instances = std::move(best.instances);
  plan.order_name = std::move(best.order_name);
  Placed& placed = best.placed;
  std::tie(plan.order, plan.bindings, plan.movements, plan.buffers) = std::make_tuple(
      std::move(placed.order), std::move(placed.bindings), std::move(placed.movements), std::move(placed.buffers));
  plan.outputs = placed.outputs;
  plan.movement_outputs = placed.movement_outputs;
  plan.weight_bytes = placed.weight_bytes;
  double work = 0, whole = 0;
  for (const Instance& instance : plan.instances.instances) work += instance.footprint.work;
  for (const Op& op : graph.ops) whole += op.work;
  if (whole > 0) plan.recomputation = work / whole;
  for (const PlacedBuffer& buffer : plan.buffers) {
    plan.returned += buffer.use == BufferUse::kOutput && graph.tensors[buffer.tensor].model_output;
  }
  return plan;
}

std::string Describe(const OpGraph& graph, const DepthFirstPlan& plan) {
  std::string text;
  for (const GroupedSubGraph& grouped : plan.grouping.sub_graphs) {
    const int output = OutputsOf(graph, grouped.sub_graph)[0];
    absl::StrAppend(&text, "sub-graph ", graph.tensors[output].name, " ", ShapeToString(graph.tensors[output].shape),
                    ": ", grouped.sub_graph.ops.size(), " operators, ");
    if (grouped.best) {
      absl::StrAppend(&text, grouped.best->f, " instances by ", absl::StrJoin(grouped.best->factors, "x"), ", peak ",
                      static_cast<int64_t>(grouped.best->peak_bytes), " bytes\n");
    } else {
      absl::StrAppend(&text, "no instance fits\n");
    }
  }
  const auto counts = [](const ScopeCounts& c) {
    return absl::StrCat(c.ddr.count, " in DDR, ", c.global.count, " in the GB, ", c.local.count, " in the LBs");
  };
  absl::StrAppend(&text, plan.order_name, ": ", plan.instances.instances.size(), " instances, ", plan.instances.edges,
                  " of ", plan.instances.inherited_edges, " edges\noutputs: ", counts(plan.outputs),
                  "\nmovements: ", counts(plan.movement_outputs), "\n");
  return text;
}

}  // namespace fusion::graph_turbo
