// A replacement on trial: nodes and constants that would be added to the graph, with their types and cost.
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
  // The replacement of `match`. An error says why the rule does not apply: a guard, or types that do not come out
  // equal.
  static absl::StatusOr<Draft> Make(const WorkGraph& graph, const Rule& rule, const Match& match, Ranges* ranges);

  // Do ranges prove what the rule demands (`provided`)? Asked last: it may look at the whole graph above the match.
  bool MeetsDemands(const Rule& rule, const Match& match, Ranges* ranges) const;

  // What the graph would cost less: nodes that nobody needs any more, minus those added.
  Cost Saving() const;

  // Adds the nodes and puts their result in the root's place; returns the result's value.
  ecg::ValueId Commit(WorkGraph* graph) const;

 private:
  explicit Draft(const WorkGraph& graph) : graph_(&graph), base_(graph.num_values()) {}
  const ecg::Value& value(ecg::ValueId id) const { return id < base_ ? graph_->value(id) : values_[id - base_].value; }
  bool IsKnown(ecg::ValueId id) const { return id < base_ ? graph_->IsKnown(id) : values_[id - base_].known; }
  Scope ScopeOf(const Match& match, Ranges* ranges) const;
  te::Known RangeOf(ecg::ValueId id, Ranges* ranges) const;
  // Are all floats tame that the pattern or the replacement reads or computes?
  bool ComputesTame(const Rule& rule, const Match& match, Ranges* ranges) const;
  ecg::ValueId AddConstant(Tensor tensor);
  // An equal node of the graph or the draft is taken instead of a new one.
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
