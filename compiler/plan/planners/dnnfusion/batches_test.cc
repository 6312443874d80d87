// Speculative batches must give the plan of asking one question at a time, in far fewer calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/plan/planners/dnnfusion/dnnfusion.h"

namespace fusion {
namespace {

using NodeSet = std::vector<ecg::NodeId>;

// A random graph on 8 x 8 matrices, with operators of all mapping types. Most pairs are yellow.
ecg::Graph RandomGraph(std::mt19937& random, int nodes) {
  auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  std::string text = R"(graph g(%x: f32[8, 8], %row: f32[1, 8]) {
    %w: f32[8, 8] = const #0000000000000001
    %s: i64[2] = const {4, 16}
    %t: i64[2] = const {8, 8}
)";
  std::vector<std::string> values = {"x"};
  std::set<std::string> unused;
  auto pick = [&] {
    const size_t recent = std::min<size_t>(values.size(), 6);
    const std::string value = values[values.size() - 1 - below(recent)];
    unused.erase(value);
    return "%" + value;
  };
  for (int n = 0; n < nodes; ++n) {
    const std::string value = absl::StrCat("v", n), head = absl::StrCat("    %", value, ": f32[8, 8] = ");
    switch (below(6)) {
      case 0:
        absl::StrAppend(&text, head, "MatMul(", pick(), ", %w)\n");
        break;
      case 1:
        absl::StrAppend(&text, head, "Transpose(", pick(), ") {perm = ints[1, 0]}\n");
        break;
      case 2:
        absl::StrAppend(&text, "    %r", n, ": f32[4, 16] = Reshape(", pick(), ", %s)\n", head, "Reshape(%r", n,
                        ", %t)\n");
        break;
      case 3:
        absl::StrAppend(&text, head, "Mul(", pick(), ", %row)\n");
        break;
      case 4: {
        const std::string a = pick(), b = pick();
        absl::StrAppend(&text, head, "Add(", a, ", ", b, ")\n");
        break;
      }
      default:
        absl::StrAppend(&text, head, "Relu(", pick(), ")\n");
    }
    values.push_back(value);
    unused.insert(value);
  }
  absl::StrAppend(&text, "    return %", absl::StrJoin(unused, ", %"), "\n}");
  auto graph = ecg::Parse(text);
  return std::move(graph).value();
}

// The latency of a fusion block is the sum over its operators, times a number that its nodes and the seed determine;
// the estimate does not know that number. It answers questions of `maybe` while the last turn of the devices has room.
class SyntheticOracle : public FusionOracle {
 public:
  SyntheticOracle(unsigned seed, size_t devices) : seed_(seed), devices_(devices) {}

  absl::StatusOr<FusionBlockAccount> Fit(const ecg::Graph&, const FusionBlock& fusion_block) override {
    if (Number(fusion_block.nodes, 1) < 0.05) return absl::FailedPreconditionError("too large");
    return FusionBlockAccount();
  }
  absl::StatusOr<FusionAnswers> Compare(const ecg::Graph& graph, const std::vector<FusionComparison>& questions,
                                        const std::vector<FusionComparison>& maybe) override {
    ++calls;
    FusionAnswers answers;
    for (const FusionComparison& question : questions) answers.asked.push_back(Answer(graph, question));
    size_t room = (devices_ - questions.size() % devices_) % devices_;
    for (const FusionComparison& question : maybe) {
      answers.maybe.emplace_back();
      if (room > 0) answers.maybe.back() = Answer(graph, question);
      room -= room > 0 ? 1 : 0;
    }
    turns += static_cast<int64_t>((questions.size() + devices_ - 1) / devices_);
    return answers;
  }
  double EstimateNs(const ecg::Graph&, const NodeSet& nodes) override {
    return 1000.0 * static_cast<double>(nodes.size());
  }
  int Devices() const override { return static_cast<int>(devices_); }

  int calls = 0;
  std::multiset<FusionComparison> asked;
  int64_t turns = 0;  // the time that the devices took, if each question takes 1

 private:
  WayLatencies Answer(const ecg::Graph& graph, const FusionComparison& question) {
    asked.insert(question);
    WayLatencies latencies;
    for (const std::vector<FusionBlock>& way : question.ways) {
      latencies.push_back({0, LatencySource::kMeasured});
      for (const FusionBlock& fusion_block : way)
        latencies.back().latency_ns += Latency(graph, fusion_block.nodes).latency_ns;
    }
    return latencies;
  }
  LatencyAnswer Latency(const ecg::Graph& graph, const NodeSet& nodes) {
    return {EstimateNs(graph, nodes) * (0.8 + 0.5 * Number(nodes, 2)), LatencySource::kMeasured};
  }
  // Returns a number in [0, 1).
  double Number(const NodeSet& nodes, unsigned purpose) const {
    uint64_t hash = seed_ * 2 + purpose;
    for (ecg::NodeId id : nodes) hash = (hash ^ static_cast<uint64_t>(id + 1)) * 0x9E3779B97F4A7C15u ^ (hash >> 29);
    return static_cast<double>(hash >> 11) / 9007199254740992.0;
  }

  const unsigned seed_;
  const size_t devices_;
};

std::string Everything(const ecg::Graph& graph, const FusionPlan& plan) {
  std::string text = PrintPlan(graph, plan);
  for (const Decision& d : plan.decisions) {
    absl::StrAppend(&text, d.producer, ">", d.consumer, " ", d.fused, " ", d.fused_ns, " ", d.separate_ns, " ",
                    d.reason, "\n");
  }
  return text;
}

TEST(BatchesTest, PlanIsThatOfOneQuestionAtATime) {
  int64_t needed = 0, one_by_one = 0;
  std::map<size_t, int64_t> calls, asked, turns;  // by number of devices
  for (unsigned seed = 0; seed < 120; ++seed) {
    std::mt19937 random(seed);
    const ecg::Graph graph = RandomGraph(random, 10 + static_cast<int>(seed));
    const Planner* planner = seed % 2 == 0 ? DnnFusionPlanner() : DnnFusionListingPlanner();
    SyntheticOracle patient(seed, 1);
    PlanOptions options;
    options.one_at_a_time = true;
    auto expected = planner->Plan(graph, DeviceModel(), patient, options);
    ASSERT_TRUE(expected.ok()) << expected.status();
    ASSERT_TRUE(CheckPlan(graph, *expected).ok());
    needed += static_cast<int64_t>(patient.asked.size());
    one_by_one += patient.calls;
    for (size_t devices : {1, 2, 4, 16}) {
      SyntheticOracle oracle(seed, devices);
      auto plan = planner->Plan(graph, DeviceModel(), oracle, {});
      ASSERT_TRUE(plan.ok()) << plan.status();
      EXPECT_EQ(Everything(graph, *plan), Everything(graph, *expected)) << "seed " << seed << ", devices " << devices;
      const std::set<FusionComparison> distinct(oracle.asked.begin(), oracle.asked.end());
      EXPECT_EQ(distinct.size(), oracle.asked.size()) << "asked again what had been answered";
      EXPECT_TRUE(std::includes(distinct.begin(), distinct.end(), patient.asked.begin(), patient.asked.end()));
      EXPECT_LE(oracle.calls, patient.calls);
      calls[devices] += oracle.calls;
      turns[devices] += oracle.turns;
      asked[devices] += static_cast<int64_t>(oracle.asked.size());
    }
  }
  for (size_t devices : {1, 2, 4, 16}) {
    EXPECT_LT(calls[devices] * 5, one_by_one) << devices << " devices";
    // A guess about one of these made-up latencies is hardly better than tossing a coin.
    EXPECT_LT(4 * asked[devices], 9 * needed) << devices << " devices";
  }
  EXPECT_GT(static_cast<double>(turns[1]), 1.8 * static_cast<double>(turns[2]));
  EXPECT_GT(static_cast<double>(turns[1]), 3.5 * static_cast<double>(turns[4]));
  EXPECT_LT(calls[16], calls[1]);
}

}  // namespace
}  // namespace fusion
