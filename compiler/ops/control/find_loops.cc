#include "compiler/ops/control/find_loops.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ops/control/loop.h"

namespace fusion::ecg {
namespace {

std::string Named(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  return absl::StrCat(node.op, " '", node.name.empty() ? graph.value(node.outputs[0]).name : node.name, "'");
}

bool IsBegin(const Node& node) { return node.op == ops::kLoopBegin; }

absl::Status AddBegin(const Graph& graph, NodeId id, int inside, Loops* loops) {
  if (inside != Loops::kOnce) {
    return absl::InternalError(absl::StrCat("graph broken: ", Named(graph, id), " begins a loop within a loop"));
  }
  const ops::LoopForm form = ops::LoopFormOf(graph.node(id));
  loops->list.push_back({id, kNone, form.trips, form.carried});
  return absl::OkStatus();
}

absl::Status AddEnd(const Graph& graph, NodeId id, int inside, Loops* loops) {
  const Node& node = graph.node(id);
  const NodeId begin = graph.value(node.inputs[0]).producer;
  const ops::LoopForm form = ops::LoopFormOf(node);
  if (begin == kNone || !IsBegin(graph.node(begin)) || inside < 0 ||
      loops->list[static_cast<size_t>(inside)].begin != begin) {
    return absl::InternalError(absl::StrCat("graph broken: ", Named(graph, id), " ends another loop than it is in"));
  }
  Loop& loop = loops->list[static_cast<size_t>(inside)];
  if (loop.end != kNone || loop.trips != form.trips || loop.carried != form.carried) {
    return absl::InternalError(absl::StrCat("graph broken: ", Named(graph, id), " does not fit ", Named(graph, begin)));
  }
  loop.end = id;
  return absl::OkStatus();
}

// A loop without end computes nothing that an output needs: import gave it up.
void DropUnfinished(Loops* loops) {
  std::vector<int> kept(loops->list.size(), Loops::kDead);
  std::vector<Loop> list;
  for (size_t l = 0; l < loops->list.size(); ++l) {
    if (loops->list[l].end == kNone) {
      loops->of_node[loops->list[l].begin] = Loops::kDead;
      continue;
    }
    kept[l] = static_cast<int>(list.size());
    list.push_back(loops->list[l]);
  }
  loops->list = std::move(list);
  for (int& loop : loops->of_node) {
    if (loop >= 0) loop = kept[static_cast<size_t>(loop)];
  }
}

}  // namespace

absl::StatusOr<Loops> FindLoops(const Graph& graph) {
  Loops loops;
  loops.of_node.assign(graph.nodes().size(), Loops::kOnce);
  std::vector<int> of_value(graph.values().size(), Loops::kOnce);  // the loop in which a value is computed
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    int inside = Loops::kOnce;
    for (const ValueId input : node.inputs) {
      if (input == kNone || of_value[input] == Loops::kOnce) continue;
      if (inside != Loops::kOnce && inside != of_value[input]) {
        return absl::InternalError(absl::StrCat("graph broken: ", Named(graph, id), " reads values of two loops"));
      }
      inside = of_value[input];
    }
    int results = inside;
    if (IsBegin(node)) {
      if (absl::Status status = AddBegin(graph, id, inside, &loops); !status.ok()) return status;
      results = static_cast<int>(loops.list.size()) - 1;
    } else if (ops::IsLoopBoundary(node)) {
      if (absl::Status status = AddEnd(graph, id, inside, &loops); !status.ok()) return status;
      results = Loops::kOnce;
    }
    loops.of_node[id] = ops::IsLoopBoundary(node) ? Loops::kBoundary : inside;
    for (const ValueId output : node.outputs) of_value[output] = results;
  }
  for (const ValueId output : graph.outputs()) {
    if (of_value[output] == Loops::kOnce) continue;
    return absl::InternalError(
        absl::StrCat("graph broken: output '", graph.value(output).name, "' is computed within a loop"));
  }
  DropUnfinished(&loops);
  return loops;
}

Loops LoopsOf(const Graph& verified) {
  absl::StatusOr<Loops> loops = FindLoops(verified);
  if (loops.ok()) return *std::move(loops);
  return {{}, std::vector<int>(verified.nodes().size(), Loops::kOnce)};
}

absl::Status CheckSameLoop(const Graph& graph, const Loops& loops, const std::vector<NodeId>& nodes) {
  if (nodes.size() < 2 || loops.empty()) return absl::OkStatus();
  for (const NodeId id : nodes) {
    const int a = loops.of_node[nodes[0]], b = loops.of_node[id];
    if (a == b && b != Loops::kBoundary) continue;
    if (id == nodes[0] && b != Loops::kBoundary) continue;
    return absl::FailedPreconditionError(
        b == Loops::kBoundary || a == Loops::kBoundary
            ? absl::StrCat(Named(graph, b == Loops::kBoundary ? id : nodes[0]),
                           " only hands values to and from a loop, and has no kernel to share")
            : absl::StrCat(Named(graph, nodes[0]), " runs ", loops.Trips(nodes[0]), " times and ", Named(graph, id),
                           " ", loops.Trips(id), " times, in different loops: they cannot share a kernel"));
  }
  return absl::OkStatus();
}

}  // namespace fusion::ecg
