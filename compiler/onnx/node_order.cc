#include "compiler/onnx/node_order.h"

#include <algorithm>
#include <queue>
#include <set>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/onnx/tensor_import.h"
#include "runtime/base/status_macros.h"

namespace fusion::onnx_import {
namespace {

using Edges = std::vector<std::vector<int>>;

void CollectUses(const onnx::NodeProto& node, std::set<std::string>* uses);

// Adds the names that a subgraph takes from the enclosing graphs. Recursion is as deep as the protobuf parser allowed
// (100).
void CollectCaptures(const onnx::GraphProto& graph, std::set<std::string>* uses) {
  std::set<std::string> inside, defined;
  for (const auto& node : graph.node()) {
    CollectUses(node, &inside);
    defined.insert(node.output().begin(), node.output().end());
  }
  for (const auto& output : graph.output()) inside.insert(output.name());
  for (const auto& input : graph.input()) defined.insert(input.name());
  for (const auto& tensor : graph.initializer()) defined.insert(tensor.name());
  std::set_difference(inside.begin(), inside.end(), defined.begin(), defined.end(), std::inserter(*uses, uses->end()));
}

void CollectUses(const onnx::NodeProto& node, std::set<std::string>* uses) {
  for (const std::string& input : node.input()) {
    if (!input.empty()) uses->insert(input);
  }
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_g()) CollectCaptures(attribute.g(), uses);
    for (const auto& graph : attribute.graphs()) CollectCaptures(graph, uses);
  }
}

// Follows unfinished dependencies until a node repeats; the nodes since its first visit form a cycle.
absl::Status CycleError(const onnx::GraphProto& graph, const Edges& dependencies, const std::vector<char>& done) {
  int at = static_cast<int>(std::find(done.begin(), done.end(), 0) - done.begin());
  std::vector<int> path;
  while (std::find(path.begin(), path.end(), at) == path.end()) {
    path.push_back(at);
    at = *std::find_if(dependencies[at].begin(), dependencies[at].end(), [&](int id) { return !done[id]; });
  }
  path.erase(path.begin(), std::find(path.begin(), path.end(), at));
  const size_t shown = std::min<size_t>(path.size(), 8);
  const std::string titles = absl::StrJoin(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(shown), ", ",
                                           [&](std::string* out, int id) { *out += NodeTitle(graph.node(id)); });
  return absl::InvalidArgumentError(
      absl::StrCat("the graph has a cycle of ", path.size(), " node(s): ", titles, shown < path.size() ? ", …" : ""));
}

absl::StatusOr<Edges> Dependencies(const onnx::GraphProto& graph,
                                   const std::function<bool(const std::string&)>& defined_outside) {
  std::unordered_map<std::string, int> producer;
  for (int id = 0; id < graph.node_size(); ++id) {
    for (const std::string& output : graph.node(id).output()) {
      if (output.empty()) continue;
      if (!producer.emplace(output, id).second || defined_outside(output)) {
        return absl::InvalidArgumentError(
            absl::StrCat(NodeTitle(graph.node(id)), " defines ", Quoted(output), ", which is already defined"));
      }
    }
  }
  Edges dependencies(graph.node_size());
  for (int id = 0; id < graph.node_size(); ++id) {
    std::set<std::string> uses;
    CollectUses(graph.node(id), &uses);
    for (const std::string& name : uses) {
      if (auto it = producer.find(name); it != producer.end()) {
        dependencies[id].push_back(it->second);
      } else if (!defined_outside(name)) {
        return absl::InvalidArgumentError(
            absl::StrCat(NodeTitle(graph.node(id)), " reads ", Quoted(name), ", which nothing defines"));
      }
    }
  }
  return dependencies;
}

}  // namespace

std::string NodeName(const onnx::NodeProto& node) {
  if (!node.name().empty()) return node.name();
  const auto named = std::find_if(node.output().begin(), node.output().end(), [](const auto& o) { return !o.empty(); });
  return named == node.output().end() ? "" : *named;
}

std::string NodeTitle(const onnx::NodeProto& node) { return absl::StrCat(node.op_type(), " ", Quoted(NodeName(node))); }

absl::StatusOr<std::vector<int>> NeededNodesInOrder(const onnx::GraphProto& graph,
                                                    const std::function<bool(const std::string&)>& defined_outside) {
  ASSIGN_OR_RETURN(const Edges dependencies, Dependencies(graph, defined_outside));
  const int count = graph.node_size();
  Edges dependents(count);
  std::vector<int> missing(count, 0);
  for (int id = 0; id < count; ++id) {
    missing[id] = static_cast<int>(dependencies[id].size());
    for (int dependency : dependencies[id]) dependents[dependency].push_back(id);
  }
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int id = 0; id < count; ++id) {
    if (missing[id] == 0) ready.push(id);
  }
  std::vector<int> order;
  std::vector<char> done(count, 0);
  while (!ready.empty()) {
    const int id = ready.top();
    ready.pop();
    order.push_back(id);
    done[id] = 1;
    for (int dependent : dependents[id]) {
      if (--missing[dependent] == 0) ready.push(dependent);
    }
  }
  if (static_cast<int>(order.size()) != count) return CycleError(graph, dependencies, done);

  std::set<std::string> outputs;
  for (const auto& output : graph.output()) outputs.insert(output.name());
  std::vector<char> needed(count, 0);
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const auto& names = graph.node(*it).output();
    if (std::any_of(names.begin(), names.end(), [&](const std::string& name) { return outputs.count(name) != 0; })) {
      needed[*it] = 1;
    }
    for (const std::string& name : names) outputs.erase(name);
    if (!needed[*it]) continue;
    for (int dependency : dependencies[*it]) needed[dependency] = 1;
  }
  for (const std::string& name : outputs) {
    if (!defined_outside(name)) {
      return absl::InvalidArgumentError(absl::StrCat("graph output ", Quoted(name), " is not defined by anything"));
    }
  }
  order.erase(std::remove_if(order.begin(), order.end(), [&](int id) { return !needed[id]; }), order.end());
  return order;
}

}  // namespace fusion::onnx_import
