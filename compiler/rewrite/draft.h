// A replacement before it is applied: the nodes and constants that it would add to the graph, with their types and
// cost.
#ifndef FUSION_COMPILER_REWRITE_DRAFT_H_
#define FUSION_COMPILER_REWRITE_DRAFT_H_

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/rewrite/functions.h"
#include "compiler/rewrite/match.h"
#include "compiler/rewrite/ranges.h"
#include "compiler/rewrite/rule.h"
#include "compiler/rewrite/work_graph.h"

namespace fusion::rewrite {

class Draft {
 public:
  // Builds the replacement of `match`. An error says why the rule does not apply: a guard, or a result of another type.
  static absl::StatusOr<Draft> Make(const WorkGraph& graph, const Rule& rule, const Match& match, Ranges* ranges);

  // Returns whether ranges prove what the rule demands (`provided`). Ask this last: it may look at the whole graph
  // above the match.
  bool MeetsDemands(const Rule& rule, const Match& match, Ranges* ranges) const;

  // Returns what the graph saves: the cost of nodes that are no longer needed minus the cost of those added.
  Cost Saving() const;

  // Adds the nodes and replaces the root by their result. Returns the result's value.
  ecg::ValueId Commit(WorkGraph* graph) const;

 private:
  explicit Draft(const WorkGraph& graph) : graph_(&graph), base_(graph.num_values()) {}
  const ecg::Value& value(ecg::ValueId id) const { return id < base_ ? graph_->value(id) : values_[id - base_].value; }
  bool IsKnown(ecg::ValueId id) const { return id < base_ ? graph_->IsKnown(id) : values_[id - base_].known; }
  Scope ScopeOf(const Match& match, Ranges* ranges) const;
  te::ValueRange RangeOf(ecg::ValueId id, Ranges* ranges) const;
  // Returns whether all floats that the pattern or the replacement reads or computes are tame.
  bool ComputesTame(const Rule& rule, const Match& match, Ranges* ranges) const;
  ecg::ValueId AddConstant(Tensor tensor);
  // Reuses an equal node of the graph or the draft instead of adding one.
  absl::StatusOr<ecg::ValueId> AddNode(const std::string& op, std::vector<ecg::ValueId> inputs, ecg::Attributes attrs);
  absl::StatusOr<ecg::ValueId> Join(const std::string& op, std::vector<ecg::ValueId> values);
  absl::StatusOr<ecg::ValueId> Build(const Term& term, const Match& match, const Scope& scope, DType number_type);
  ecg::ValueId FindEqual(const std::string& op, const std::vector<ecg::ValueId>& inputs,
                         const ecg::Attributes& attrs) const;

  struct DraftValue {
    ecg::Value value;  // `producer` is an index into nodes_
    bool known = false;
  };
  const WorkGraph* graph_;
  ecg::ValueId base_;
  std::deque<DraftValue> values_;  // ids from base_ on
  std::vector<ecg::Node> nodes_;
  std::vector<ecg::ValueId> bound_;  // by variable slot
  ecg::ValueId root_ = ecg::kNone, result_ = ecg::kNone;
};

}  // namespace fusion::rewrite

#endif  // FUSION_COMPILER_REWRITE_DRAFT_H_
