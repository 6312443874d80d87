// An oracle for tests of planners: every fusion block fits, except those that the test refuses, and takes a launch and
// a time for each element that it reads or writes. It counts what it is asked.
#ifndef FUSION_COMPILER_PLAN_TESTING_ACCEPTING_ORACLE_H_
#define FUSION_COMPILER_PLAN_TESTING_ACCEPTING_ORACLE_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "compiler/plan/plan.h"

namespace fusion {

// "a+b" for the nodes that make %a and %b.
inline std::string NamesOf(const ecg::Graph& graph, const std::vector<ecg::NodeId>& nodes) {
  std::vector<std::string> names;
  for (ecg::NodeId id : nodes) names.push_back(graph.value(graph.node(id).outputs[0]).name);
  return absl::StrJoin(names, "+");
}

// One string for each fusion block: "a+b", and "b, again a" where it recomputes %a.
inline std::vector<std::string> FusionBlockNames(const ecg::Graph& graph, const FusionPlan& plan) {
  std::vector<std::string> names;
  for (const FusionBlock& fusion_block : plan.fusion_blocks) {
    names.push_back(NamesOf(graph, fusion_block.nodes));
    if (!fusion_block.recomputed.empty()) names.back() += ", again " + NamesOf(graph, fusion_block.recomputed);
  }
  return names;
}

class AcceptingOracle : public FusionOracle {
 public:
  absl::StatusOr<FusionBlockAccount> Fit(const ecg::Graph& graph, const FusionBlock& fusion_block) override {
    if (fits.insert(fusion_block).second) ++distinct_fits;
    if (refuse && refuse(graph, fusion_block)) return absl::FailedPreconditionError("the test refuses it");
    FusionBlockAccount account;
    account.tasks = 1;  // one for each element of the largest result
    for (ecg::ValueId v : LiveOut(graph, fusion_block)) {
      account.tasks = std::max(account.tasks, NumElements(graph.value(v).type.shape));
    }
    account.estimate_ns = Estimate(graph, fusion_block);
    return account;
  }
  absl::StatusOr<FusionAnswers> Compare(const ecg::Graph& graph, const std::vector<FusionComparison>& questions,
                                        const std::vector<FusionComparison>&) override {
    FusionAnswers answers;
    compared += static_cast<int64_t>(questions.size());
    for (const FusionComparison& question : questions) {
      WayLatencies& ways = answers.asked.emplace_back();
      for (const std::vector<FusionBlock>& way : question.ways) {
        ways.push_back({0, source});
        for (const FusionBlock& fusion_block : way) {
          ways.back().latency_ns += latency ? latency(graph, fusion_block) : Estimate(graph, fusion_block);
        }
      }
    }
    return answers;
  }
  double EstimateNs(const ecg::Graph& graph, const std::vector<ecg::NodeId>& nodes) override {
    return Estimate(graph, FusionBlock(nodes));
  }

  std::function<bool(const ecg::Graph&, const FusionBlock&)> refuse;     // may be empty
  std::function<double(const ecg::Graph&, const FusionBlock&)> latency;  // of Compare; may be empty: the estimate
  LatencySource source = LatencySource::kModel;
  std::set<FusionBlock> fits;
  int64_t distinct_fits = 0, compared = 0;

 private:
  static double Estimate(const ecg::Graph& graph, const FusionBlock& fusion_block) {
    const std::vector<ecg::NodeId> members = fusion_block.Members();
    std::set<ecg::ValueId> touched;
    for (ecg::NodeId id : members) {
      for (ecg::ValueId v : graph.node(id).inputs) {
        if (v == ecg::kNone) continue;
        const ecg::NodeId producer = graph.value(v).producer;
        if (producer == ecg::kNone || !std::binary_search(members.begin(), members.end(), producer)) touched.insert(v);
      }
    }
    for (ecg::ValueId v : LiveOut(graph, fusion_block)) touched.insert(v);
    double elements = 0;
    for (ecg::ValueId v : touched) elements += static_cast<double>(NumElements(graph.value(v).type.shape));
    return 2000 + elements;
  }
};

}  // namespace fusion

#endif  // FUSION_COMPILER_PLAN_TESTING_ACCEPTING_ORACLE_H_
