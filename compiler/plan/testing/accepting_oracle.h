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
inline std::vector<std::string> BlockNames(const ecg::Graph& graph, const FusionPlan& plan) {
  std::vector<std::string> names;
  for (const FusionBlock& block : plan.blocks) {
    names.push_back(NamesOf(graph, block.nodes));
    if (!block.recomputed.empty()) names.back() += ", again " + NamesOf(graph, block.recomputed);
  }
  return names;
}

class AcceptingOracle : public BlockOracle {
 public:
  absl::StatusOr<BlockAccount> Fit(const ecg::Graph& graph, const FusionBlock& block) override {
    if (fits.insert(block).second) ++distinct_fits;
    if (refuse && refuse(graph, block)) return absl::FailedPreconditionError("the test refuses it");
    BlockAccount account;
    account.tasks = 1;  // one for each element of the largest result
    for (ecg::ValueId v : LiveOut(graph, block)) {
      account.tasks = std::max(account.tasks, NumElements(graph.value(v).type.shape));
    }
    account.estimate_ns = Estimate(graph, block);
    return account;
  }
  absl::StatusOr<BlockAnswers> Compare(const ecg::Graph& graph, const std::vector<BlockComparison>& questions,
                                       const std::vector<BlockComparison>&) override {
    BlockAnswers answers;
    compared += static_cast<int64_t>(questions.size());
    for (const BlockComparison& question : questions) {
      WayLatencies& ways = answers.asked.emplace_back();
      for (const std::vector<FusionBlock>& way : question.ways) {
        ways.push_back({0, source});
        for (const FusionBlock& block : way) {
          ways.back().latency_ns += latency ? latency(graph, block) : Estimate(graph, block);
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
  static double Estimate(const ecg::Graph& graph, const FusionBlock& block) {
    const std::vector<ecg::NodeId> members = block.Members();
    std::set<ecg::ValueId> touched;
    for (ecg::NodeId id : members) {
      for (ecg::ValueId v : graph.node(id).inputs) {
        if (v == ecg::kNone) continue;
        const ecg::NodeId producer = graph.value(v).producer;
        if (producer == ecg::kNone || !std::binary_search(members.begin(), members.end(), producer)) touched.insert(v);
      }
    }
    for (ecg::ValueId v : LiveOut(graph, block)) touched.insert(v);
    double elements = 0;
    for (ecg::ValueId v : touched) elements += static_cast<double>(NumElements(graph.value(v).type.shape));
    return 2000 + elements;
  }
};

}  // namespace fusion

#endif  // FUSION_COMPILER_PLAN_TESTING_ACCEPTING_ORACLE_H_
