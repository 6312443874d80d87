#include "compiler/schedule/cut_stages.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/nest/form_stages.h"

namespace fusion {
namespace {

// Sets of stages that are joined two by two. A set is named by its first stage.
class Groups {
 public:
  explicit Groups(int stages) : parent_(stages) { std::iota(parent_.begin(), parent_.end(), 0); }
  int Of(int stage) const { return parent_[stage] == stage ? stage : Of(parent_[stage]); }
  void Join(int a, int b) { parent_[std::max(Of(a), Of(b))] = std::min(Of(a), Of(b)); }

 private:
  std::vector<int> parent_;
};

struct StageEdge {
  int producer, consumer;
  te::TensorId tensor;
};

std::vector<StageEdge> EdgesOf(const te::Program& program) {
  std::vector<StageEdge> edges;
  for (int consumer = 0; consumer < static_cast<int>(program.tes.size()); ++consumer) {
    for (te::TensorId tensor : TensorsRead(program.tes[consumer])) {
      const int producer = program.DefiningTe(tensor);
      if (producer >= 0) edges.push_back({producer, consumer, tensor});
    }
  }
  return edges;
}

// The program with its stages by group, and where each group but the first begins. Groups keep their order where they
// can. A group that has to wait for itself, through others, is not placed.
CutProgram ByGroup(const te::Program& program, const std::vector<StageEdge>& edges, const Groups& groups,
                   std::set<int>* placed) {
  const int stages = static_cast<int>(program.tes.size());
  CutProgram result{program, {}};
  result.program.tes.clear();
  // A group may be placed when all that its stages read from outside is. The first such one comes next, so that stages
  // keep their order where they can.
  const auto ready = [&](int group) {
    return std::all_of(edges.begin(), edges.end(), [&](const StageEdge& edge) {
      return groups.Of(edge.consumer) != group || groups.Of(edge.producer) == group ||
             placed->count(groups.Of(edge.producer)) > 0;
    });
  };
  for (int stage = 0; stage < stages;) {
    const int group = groups.Of(stage);
    if (group != stage || placed->count(group) > 0 || !ready(group)) {
      ++stage;
      continue;
    }
    if (!placed->empty()) result.cuts.push_back(static_cast<int>(result.program.tes.size()));
    for (int member = 0; member < stages; ++member) {
      if (groups.Of(member) == group) result.program.tes.push_back(program.tes[member]);
    }
    placed->insert(group);
    stage = 0;
  }
  return result;
}

bool MakesAny(const te::Te& te, const std::set<te::TensorId>& tensors) {
  return std::any_of(te.outputs.begin(), te.outputs.end(), [&](te::TensorId t) { return tensors.count(t) > 0; });
}

}  // namespace

bool IsCut(const std::vector<HandOverRequest>& requests, te::TensorId tensor, const te::Te& consumer, CutEdges edges) {
  return std::any_of(requests.begin(), requests.end(), [&](const HandOverRequest& request) {
    const Scope scope = edges == CutEdges::kRequired ? request.nearest : request.furthest;
    return request.asked && request.tensor == tensor && scope >= Scope::kDevice &&
           std::binary_search(consumer.origins.begin(), consumer.origins.end(), request.consumer);
  });
}

absl::StatusOr<CutProgram> CutStages(const te::Program& program, const std::vector<HandOverRequest>& requests,
                                     CutEdges which, const std::set<te::TensorId>& partials) {
  const int stages = static_cast<int>(program.tes.size());
  const std::vector<StageEdge> edges = EdgesOf(program);
  Groups groups(stages);
  for (const StageEdge& edge : edges) {
    const te::Te& consumer = program.tes[edge.consumer];
    const bool cut = !MakesAny(consumer, partials) &&
                     (partials.count(edge.tensor) > 0 || IsCut(requests, edge.tensor, consumer, which));
    if (!cut) groups.Join(edge.producer, edge.consumer);
  }
  std::set<int> placed;  // groups
  CutProgram result = ByGroup(program, edges, groups, &placed);
  for (const StageEdge& edge : edges) {
    if (placed.count(groups.Of(edge.consumer)) > 0) continue;
    return absl::FailedPreconditionError(absl::StrCat("phases cannot be cut as the plan asks: the tasks that read '",
                                                      program.tensors[edge.tensor].name,
                                                      "' would have to wait for tasks that wait for them"));
  }
  return result;
}

CutProgram UnconnectedStages(const te::Program& program) {
  const std::vector<StageEdge> edges = EdgesOf(program);
  Groups groups(static_cast<int>(program.tes.size()));
  for (const StageEdge& edge : edges) groups.Join(edge.producer, edge.consumer);
  std::set<int> placed;
  return ByGroup(program, edges, groups, &placed);
}

bool MayCut(const std::vector<HandOverRequest>& requests) {
  return std::any_of(requests.begin(), requests.end(), [](const HandOverRequest& request) {
    return request.asked && request.furthest >= Scope::kDevice;
  });
}

}  // namespace fusion
