#include "compiler/plan/planners/graph_turbo/depth_first_plan.h"

#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/plan/planners/graph_turbo/exact_order.h"
#include "compiler/plan/planners/graph_turbo/order.h"

namespace fusion::graph_turbo {
namespace {

void Count(const PlacedBuffer& buffer, ScopeCounts* counts) {
  LevelCount& level = buffer.scope == BufferScope::kLocal    ? counts->local
                      : buffer.scope == BufferScope::kGlobal ? counts->global
                                                             : counts->ddr;
  ++level.count;
  level.bytes += buffer.bytes;
}

// The part of a plan that follows from an order.
struct Placed {
  std::vector<int> order;
  std::vector<Binding> bindings;
  std::vector<Movement> movements;
  std::vector<PlacedBuffer> buffers;
  ScopeCounts outputs, movement_outputs;

  // The better order uses memory better: the fewest bytes in DDR, then in the GB.
  std::pair<double, double> Slow() const {
    return {outputs.ddr.bytes + movement_outputs.ddr.bytes, outputs.global.bytes + movement_outputs.global.bytes};
  }
};

}  // namespace

DepthFirstPlan MakeDepthFirstPlan(const OpGraph& graph, const Cluster& cluster) {
  const double local_bytes = cluster.local_bytes * (1 - cluster.weights_share);
  DepthFirstPlan plan;
  plan.grouping = GroupSubGraphs(graph, {local_bytes * cluster.cores, cluster.recomputation, cluster.literal});
  const std::vector<GroupedSubGraph>& sub_graphs = plan.grouping.sub_graphs;
  plan.instances = MakeInstances(graph, sub_graphs);
  const auto place = [&](std::vector<int> order) {
    Placed placed;
    placed.order = std::move(order);
    placed.bindings = InferBindings(graph, sub_graphs, plan.instances, placed.order, cluster.cores);
    placed.movements = InsertMovements(graph, sub_graphs, plan.instances, placed.bindings);
    placed.buffers = PlaceBuffers(graph, sub_graphs, plan.instances, placed.order, placed.bindings, placed.movements,
                                  {cluster.cores, local_bytes, cluster.global_bytes});
    for (const PlacedBuffer& buffer : placed.buffers) {
      if (buffer.use == BufferUse::kOutput) Count(buffer, &placed.outputs);
      if (buffer.use == BufferUse::kMovement) Count(buffer, &placed.movement_outputs);
    }
    return placed;
  };
  Placed best = place(BreadthFirstOrder(plan.instances));
  plan.order_name = "BFS";
  const auto consider = [&](const char* name, std::vector<int> order) {
    Placed other = place(std::move(order));
    if (other.Slow() >= best.Slow()) return;
    best = std::move(other);
    plan.order_name = name;
  };
  consider("DFS", DepthFirstOrder(plan.instances));
  if (!cluster.literal) {
    consider("demand", DemandOrder(plan.instances));
    const std::optional<std::vector<int>> exact = ExactOrder(
        plan.instances, BytesOfInstances(graph, sub_graphs, plan.instances), local_bytes * cluster.cores);
    if (exact) consider("exact", *exact);
  }
  std::tie(plan.order, plan.bindings, plan.movements, plan.buffers) = std::make_tuple(
      std::move(best.order), std::move(best.bindings), std::move(best.movements), std::move(best.buffers));
  plan.outputs = best.outputs;
  plan.movement_outputs = best.movement_outputs;
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
