#include "compiler/plan/planners/dnnfusion/dnnfusion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace fusion {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ecg::Graph Parsed(const std::string& text) {
  auto graph = ecg::Parse(text);
  return std::move(graph).value();
}

// Values name their nodes: "a+b" is the fusion block of the nodes that make %a and %b.
std::string FusionBlockName(const ecg::Graph& graph, const std::vector<ecg::NodeId>& nodes) {
  std::vector<std::string> names;
  names.reserve(nodes.size());
  for (ecg::NodeId id : nodes) names.push_back(graph.value(graph.node(id).outputs[0]).name);
  return absl::StrJoin(names, "+");
}

// The planner asks for one fusion block, or two: "Conv > Relu".
std::string QuestionName(const ecg::Graph& graph, const FusionComparison& question) {
  EXPECT_EQ(question.ways.size(), 2u);
  EXPECT_EQ(question.ways.at(0).size(), 1u);
  std::vector<std::string> apart;
  for (const FusionBlock& fusion_block : question.ways.at(1))
    apart.push_back(FusionBlockName(graph, fusion_block.nodes));
  return absl::StrJoin(apart, " > ");
}

// Accepts every fusion block but those listed. Latencies are in us: 10 for a fusion block, unless listed.
class FakeOracle : public FusionOracle {
 public:
  absl::StatusOr<FusionBlockAccount> Fit(const ecg::Graph& graph, const FusionBlock& fusion_block) override {
    ++fit_calls;
    EXPECT_TRUE(std::is_sorted(fusion_block.nodes.begin(), fusion_block.nodes.end()));
    if (refused.count(FusionBlockName(graph, fusion_block.nodes))) {
      return absl::FailedPreconditionError("scratch of 2 MiB exceeds L2");
    }
    return FusionBlockAccount();
  }
  absl::StatusOr<FusionAnswers> Compare(const ecg::Graph& graph, const std::vector<FusionComparison>& questions,
                                        const std::vector<FusionComparison>& maybe) override {
    if (!failure.ok()) return failure;
    FusionAnswers answers;
    std::vector<std::string> names, maybe_names;
    auto latency = [&](const std::vector<ecg::NodeId>& nodes) {
      auto it = latency_us.find(FusionBlockName(graph, nodes));
      return 1e3 * (it == latency_us.end() ? 10 : it->second);
    };
    auto answer = [&](const FusionComparison& question) {
      WayLatencies latencies;
      for (const std::vector<FusionBlock>& way : question.ways) {
        latencies.push_back({0, source});
        for (const FusionBlock& fusion_block : way) latencies.back().latency_ns += latency(fusion_block.nodes);
      }
      return latencies;
    };
    for (const FusionComparison& question : questions) {
      names.push_back(QuestionName(graph, question));
      answers.asked.push_back(answer(question));
    }
    for (const FusionComparison& question : maybe) {
      maybe_names.push_back(QuestionName(graph, question));
      answers.maybe.emplace_back(answer(question));
    }
    batches.push_back(absl::StrJoin(names, ", "));
    if (!maybe_names.empty()) batches.back() += " | " + absl::StrJoin(maybe_names, ", ");
    return answers;
  }
  double EstimateNs(const ecg::Graph& graph, const std::vector<ecg::NodeId>& nodes) override {
    const auto it = estimates_ns.find(FusionBlockName(graph, nodes));
    return it == estimates_ns.end() ? estimate_ns : it->second;
  }
  int Devices() const override { return devices; }
  absl::StatusOr<bool> Knows(const ecg::Graph& graph, const FusionComparison& question) override {
    return known.count(QuestionName(graph, question)) > 0;
  }
  LatencySource source = LatencySource::kDatabase;
  std::set<std::string> known;  // answered without a measurement
  std::set<std::string> refused;
  std::map<std::string, double> latency_us;
  absl::Status failure;
  double estimate_ns = 0;  // of any fusion block not listed; 0: fused and apart tie, so the answer is yes
  std::map<std::string, double> estimates_ns;
  int devices = 1;
  int fit_calls = 0;
  std::vector<std::string> batches;
};

// An estimate so large that holding an intermediate result of these graphs never pays.
constexpr double kLarge = 1e6;

class DnnFusionTest : public testing::Test {
 protected:
  std::vector<std::string> Blocks(const std::string& text) {
    graph_ = Parsed(text);
    auto plan = planner_->Plan(graph_, DeviceModel(), oracle_, options_);
    EXPECT_TRUE(plan.ok()) << plan.status();
    if (!plan.ok()) return {};
    plan_ = std::move(plan).value();
    EXPECT_TRUE(CheckPlan(graph_, plan_).ok()) << CheckPlan(graph_, plan_);
    std::vector<std::string> fusion_blocks;
    for (const FusionBlock& fusion_block : plan_.fusion_blocks)
      fusion_blocks.push_back(FusionBlockName(graph_, fusion_block.nodes));
    return fusion_blocks;
  }
  // Returns the decision on the edge between the nodes that make these values.
  Decision Of(const std::string& producer, const std::string& consumer) {
    for (const Decision& d : plan_.decisions) {
      if (FusionBlockName(graph_, {d.producer}) == producer && FusionBlockName(graph_, {d.consumer}) == consumer)
        return d;
    }
    ADD_FAILURE() << "no decision on " << producer << " -> " << consumer;
    return {};
  }
  // Are the nodes that make these values in one fusion block?
  bool Together(const std::string& producer, const std::string& consumer) {
    for (const FusionBlock& fusion_block : plan_.fusion_blocks) {
      bool has_producer = false, has_consumer = false;
      for (ecg::NodeId id : fusion_block.nodes) {
        has_producer |= FusionBlockName(graph_, {id}) == producer;
        has_consumer |= FusionBlockName(graph_, {id}) == consumer;
      }
      if (has_producer || has_consumer) return has_producer && has_consumer;
    }
    ADD_FAILURE() << "no nodes " << producer << " and " << consumer;
    return false;
  }
  const Planner* planner_ = DnnFusionListingPlanner();
  FakeOracle oracle_;
  PlanOptions options_;
  ecg::Graph graph_;
  FusionPlan plan_;
};

// Most tests use the listing's order, as DNNFusion's example does.
//
// DNNFusion Fig. 3: Add is the first seed, its successors join, GEMM does not.
const char kFigure3[] = R"(graph g(%x: f32[1, 4, 8, 8], %m: f32[1, 4, 8, 8]) {
  %k: f32[8, 8] = const #0000000000000001
  %w: f32[4, 4, 1, 1] = const #0000000000000002
  %gemm: f32[1, 4, 8, 8] = MatMul(%x, %k)
  %add: f32[1, 4, 8, 8] = Add(%gemm, %m)
  %conv: f32[1, 4, 8, 8] = Conv(%add, %w)
  %relu: f32[1, 4, 8, 8] = Relu(%conv)
  %mul: f32[1, 4, 8, 8] = Mul(%relu, %m)
  %sub: f32[1, 4, 8, 8] = Sub(%mul, %m)
  return %sub
})";

TEST_F(DnnFusionTest, Figure3) {
  EXPECT_THAT(Blocks(kFigure3), ElementsAre("gemm", "add+conv+relu+mul+sub"));
  EXPECT_EQ(Of("gemm", "add").basis, Basis::kRule);
  EXPECT_EQ(Of("gemm", "add").reason, "Table 3: Many-to-Many then Many-to-Many is never fused");
  EXPECT_EQ(Of("add", "conv").reason, "Table 3: One-to-One then Many-to-Many is always fused");
  EXPECT_FALSE(Together("gemm", "add"));
  EXPECT_TRUE(Together("conv", "relu"));
  EXPECT_EQ(oracle_.fit_calls, 4);
  EXPECT_TRUE(oracle_.batches.empty());
  EXPECT_THAT(PrintPlan(graph_, plan_), HasSubstr("[4 by rule, 0 by latency]"));
}

TEST_F(DnnFusionTest, EpiloguesFirst) {
  planner_ = DnnFusionPlanner();
  oracle_.estimate_ns = kLarge;
  EXPECT_THAT(Blocks(kFigure3), ElementsAre("gemm+add", "conv+relu+mul+sub"));
  EXPECT_EQ(Of("add", "conv").reason,
            "Table 3: Many-to-Many then Many-to-Many; fusing could save at most 1.1 of 2000.0 us");
  // Add could not become an epilogue, so it joins its consumer instead, as a whole fusion block.
  oracle_.refused = {"gemm+add"};
  EXPECT_THAT(Blocks(kFigure3), ElementsAre("gemm", "add+conv+relu+mul+sub"));
  EXPECT_EQ(Of("gemm", "add").reason, "they cannot be one kernel: scratch of 2 MiB exceeds L2");
  EXPECT_EQ(Of("add", "conv").reason, "Table 3: One-to-One then Many-to-Many is always fused");
}

TEST_F(DnnFusionTest, ReductionsWaitForNothing) {
  // A reduction reads each element once, so nothing in front of it is evaluated twice.
  planner_ = DnnFusionPlanner();
  oracle_.estimate_ns = kLarge;
  EXPECT_THAT(Blocks(R"(graph g(%x: f32[1, 4, 8, 8]) {
    %w: f32[4, 4, 1, 1] = const #0000000000000002
    %a: f32[1, 4, 8, 8] = Conv(%x, %w)
    %b: f32[1, 4, 8, 8] = Relu(%a)
    %c: f32[1, 4, 1, 1] = GlobalAveragePool(%b)
    return %c
  })"),
              ElementsAre("a", "b+c"));
}

TEST_F(DnnFusionTest, NarrowValuesCrossBetweenBlocks) {
  planner_ = DnnFusionPlanner();
  oracle_.estimate_ns = kLarge;
  // %q is stored for %p, and %a is not. %q does not wait for the pooling, since 2x2 spends too little on an element.
  const std::string pooled = R"(graph g(%x: f32[1, 4, 8, 8]) {
    %w: f32[4, 4, 1, 1] = const #0000000000000002
    %s: f32[] = const {0.5}
    %a: f32[1, 4, 8, 8] = Conv(%x, %w)
    %q: u8[1, 4, 8, 8] = QuantizeLinear(%a, %s)
    %p: u8[1, 4, 4, 4] = MaxPool(%q) {kernel_shape = ints[2, 2], strides = ints[2, 2]}
    return %p
  })";
  EXPECT_THAT(Blocks(pooled), ElementsAre("a+q", "p"));
  // %c reads %q, the narrow value. %d, its wide copy, is made where it is added.
  const std::string residual = R"(graph g(%x: f32[1, 16, 8, 8]) {
    %v: f32[16, 16, 1, 1] = const #0000000000000002
    %w: i8[16, 16, 1, 1] = const #0000000000000002
    %s: f32[] = const {0.5}
    %a: f32[1, 16, 8, 8] = Conv(%x, %v)
    %q: u8[1, 16, 8, 8] = QuantizeLinear(%a, %s)
    %d: f32[1, 16, 8, 8] = DequantizeLinear(%q, %s)
    %c: i32[1, 16, 8, 8] = ConvInteger(%q, %w)
    %f: f32[1, 16, 8, 8] = Cast(%c) {to = 1}
    %y: f32[1, 16, 8, 8] = Add(%f, %d)
    return %y
  })";
  EXPECT_THAT(Blocks(residual), ElementsAre("a+q", "d+c+f+y"));
  // %d can join nothing else, so it is made with its original.
  oracle_.refused = {"d+c+f+y", "d+y", "d+f+y"};
  EXPECT_THAT(Blocks(residual), ElementsAre("a+q+d", "c+f+y"));
}

// Attention, then a product. The scores are its largest intermediate result.
const char kAttention[] = R"(graph g(%q: f32[64, 8], %k: f32[8, 64], %v: f32[64, 8]) {
  %w: f32[8, 8] = const #0000000000000001
  %s: f32[64, 64] = MatMul(%q, %k)
  %p: f32[64, 64] = Softmax(%s)
  %c: f32[64, 8] = MatMul(%p, %v)
  %y: f32[64, 8] = MatMul(%c, %w)
  return %y
})";

// %p is a part of a value that %u reads whole. In %r, its reader, it is an index; so %a can be the epilogue of %c.
TEST_F(DnnFusionTest, PartsOfSharedValuesStayWithTheirReaders) {
  planner_ = DnnFusionPlanner();
  oracle_.estimate_ns = kLarge;
  const std::string text = R"(graph g(%x: f32[8, 16], %z: f32[4, 16]) {
    %w: f32[16, 16] = const #0000000000000002
    %0: i64[1] = const {0}
    %4: i64[1] = const {4}
    %c: f32[8, 16] = MatMul(%x, %w)
    %a: f32[8, 16] = Sigmoid(%c)
    %p: f32[4, 16] = Slice(%a, %0, %4)
    %m: f32[4, 16] = MatMul(%z, %w)
    %r: f32[4, 16] = Mul(%m, %p)
    %u: f32[8, 16] = Softmax(%a) {axis = 1}
    return %r, %u
  })";
  oracle_.refused = {"c+a+p+m+r", "c+a+p+r"};
  EXPECT_THAT(Blocks(text), ElementsAre("c+a", "p+m+r", "u"));
}

// The lookup %g makes 128 rows of 512 from a table %i of indices. It joins its reader %y before %i can.
TEST_F(DnnFusionTest, TablesStayOutOfWhatTheyAddress) {
  planner_ = DnnFusionPlanner();
  const std::string text = R"(graph g(%t: f32[4, 512], %n: i64[128], %b: f32[128, 512]) {
    %one: i64[] = const {1}
    %i: i64[128] = Add(%n, %one)
    %g: f32[128, 512] = Gather(%t, %i)
    %y: f32[128, 512] = Mul(%g, %b)
    %s: i64[] = ReduceSum(%i) {keepdims = 0}
    return %y, %s
  })";
  oracle_.refused = {"i+g+y", "i+g+y+s"};
  EXPECT_THAT(Blocks(text), ElementsAre("i+s", "g+y"));
}

TEST_F(DnnFusionTest, BeyondTable3) {
  planner_ = DnnFusionPlanner();
  oracle_.estimate_ns = 2e5;  // a barrier and 16 KB of scores, written and read: 2.6 us of 400; for %c it is 1.2
  EXPECT_THAT(Blocks(kAttention), ElementsAre("s+p+c", "y"));
  EXPECT_THAT(oracle_.batches, ElementsAre("s > p, s+p > c"));
  EXPECT_EQ(Of("s", "p").basis, Basis::kLatency);
  EXPECT_EQ(Of("s", "p").reason, "beyond Table 3: measured 10.0 us fused against 20.0 us apart (database)");
  EXPECT_EQ(Of("c", "y").basis, Basis::kRule);
  EXPECT_THAT(Of("c", "y").reason, HasSubstr("fusing could save at most 1.2 of 400.0 us"));
  EXPECT_TRUE(Together("s", "p"));
}

// A pair that alone is not worth a question is worth one where the answer serves several pairs.
TEST_F(DnnFusionTest, PairsAlikeShareAQuestion) {
  planner_ = DnnFusionPlanner();
  oracle_.estimate_ns = 2e5;
  EXPECT_THAT(Blocks(R"(graph g(%a: f32[64, 8], %b: f32[64, 8]) {
  %w: f32[8, 8] = const #0000000000000001
  %v: f32[8, 8] = const #0000000000000002
  %c: f32[64, 8] = MatMul(%a, %w)
  %d: f32[64, 8] = MatMul(%b, %w)
  %y: f32[64, 8] = MatMul(%c, %v)
  %z: f32[64, 8] = MatMul(%d, %v)
  return %y, %z
})"),
              ElementsAre("c+y", "d+z"));
  // Pairs that share a fusion block do not count as alike: each would be another question.
  EXPECT_THAT(Blocks(R"(graph g(%a: f32[64, 8], %b: f32[8, 64]) {
  %w: f32[8, 8] = const #0000000000000001
  %c: f32[64, 8] = MatMul(%a, %w)
  %d: f32[8, 64] = MatMul(%w, %b)
  %y: f32[64, 64] = MatMul(%c, %d)
  return %y
})"),
              ElementsAre("c", "d", "y"));
}

// An estimate may be wrong by a tenth, unless measurements have shown that it is better.
TEST_F(DnnFusionTest, BeyondTable3AgainstAnEstimate) {
  planner_ = DnnFusionPlanner();
  oracle_.estimate_ns = 3e5;
  oracle_.estimates_ns = {{"s+p", 6.5e5}};
  EXPECT_THAT(Blocks(kAttention), ElementsAre("s+p+c", "y"));
  options_.trusted_factor = 1.05;
  EXPECT_THAT(Blocks(kAttention), ElementsAre("s", "p+c", "y"));
  EXPECT_THAT(Of("s", "p").reason, HasSubstr("estimated 650.0 us fused against 600.0 us apart"));
  options_.trusted_factor = 2;
  oracle_.estimates_ns = {{"s+p", 6.7e5}};
  EXPECT_THAT(Blocks(kAttention), ElementsAre("s", "p+c", "y"));
}

TEST_F(DnnFusionTest, BeyondTable3OnlyWhatIsFaster) {
  planner_ = DnnFusionPlanner();
  oracle_.estimate_ns = 3e5;
  oracle_.latency_us = {{"s+p", 21}};
  EXPECT_THAT(Blocks(kAttention), ElementsAre("s", "p+c", "y"));
  EXPECT_THAT(Of("s", "p").reason, HasSubstr("measured 21.0 us fused against 20.0 us apart"));
  oracle_.refused = {"p+c"};
  EXPECT_THAT(Blocks(kAttention), ElementsAre("s", "p", "c", "y"));
  oracle_.refused.clear();
  oracle_.latency_us.clear();
  options_.beyond_table = false;
  EXPECT_THAT(Blocks(kAttention), ElementsAre("s", "p", "c", "y"));
  options_.beyond_table = true;
  planner_ = DnnFusionListingPlanner();
  EXPECT_THAT(Blocks(kAttention), ElementsAre("s", "p", "c", "y"));
  EXPECT_EQ(Of("s", "p").reason, "Table 3: Many-to-Many then Many-to-Many is never fused");
}

TEST_F(DnnFusionTest, RefusedAsOneKernel) {
  oracle_.refused = {"add+conv"};
  EXPECT_THAT(Blocks(kFigure3), ElementsAre("gemm+add", "conv+relu+mul+sub"));
  EXPECT_EQ(Of("add", "conv").reason, "they cannot be one kernel: scratch of 2 MiB exceeds L2");
  EXPECT_EQ(Of("add", "conv").basis, Basis::kRule);
  EXPECT_FALSE(Of("add", "conv").fused);
}

TEST_F(DnnFusionTest, SmallestIntermediateResultFirst) {
  // The smaller %d is the seed, so MatMul is its predecessor. If %c were the seed, both would be successors.
  EXPECT_THAT(Blocks(R"(graph g(%x: f32[8, 8]) {
    %w: f32[8, 2] = const #0000000000000001
    %c: f32[8, 8] = Exp(%x)
    %p: f32[8, 2] = MatMul(%c, %w)
    %d: f32[8, 2] = Relu(%p)
    return %d
  })"),
              ElementsAre("c+p+d"));
  oracle_.refused = {"c+p+d"};
  EXPECT_THAT(Blocks(R"(graph g(%x: f32[8, 8]) {
    %w: f32[8, 2] = const #0000000000000001
    %c: f32[8, 8] = Exp(%x)
    %p: f32[8, 2] = MatMul(%c, %w)
    %d: f32[8, 2] = Relu(%p)
    return %d
  })"),
              ElementsAre("c", "p+d"));
}

TEST_F(DnnFusionTest, TiesAreSeedsOneAfterAnother) {
  // %a, %b and %c tie. %a is the first seed and takes %b, which then is no seed; %c is the next one.
  oracle_.refused = {"a+b+c"};
  EXPECT_THAT(Blocks(R"(graph g(%x: f32[8, 8]) {
    %a: f32[8, 8] = Exp(%x)
    %b: f32[8, 8] = Neg(%a)
    %c: f32[8, 8] = Relu(%b)
    %d: f32[8, 8] = Abs(%c)
    return %d
  })"),
              ElementsAre("a+b", "c+d"));
  EXPECT_EQ(oracle_.fit_calls, 3);
}

TEST_F(DnnFusionTest, SuccessorsBeforePredecessors) {
  // %p and %q are both Many-to-Many. Only one of them may join %b, and the successor comes first.
  EXPECT_THAT(Blocks(R"(graph g(%x: f32[8, 8]) {
    %a: f32[8, 8] = Exp(%x)
    %w: f32[8, 2] = const #0000000000000001
    %p: f32[8, 2] = MatMul(%a, %w)
    %b: f32[8, 2] = Relu(%p)
    %q: f32[8, 2] = Softmax(%b) {axis = 1}
    return %q
  })"),
              ElementsAre("a+p", "b+q"));
}

TEST_F(DnnFusionTest, SomePredecessorsJoinAndOthersDoNot) {
  // The seed %c reads three values. %p is red behind the reduction %r, the oracle refuses %a in its kernel, and %b
  // joins.
  oracle_.refused = {"a+c", "a+b+c", "a+c+r", "a+b+c+r"};
  EXPECT_THAT(Blocks(R"(graph g(%x: f32[8, 8], %y: f32[8, 8]) {
    %w: f32[8, 8] = const #0000000000000001
    %p: f32[8, 8] = MatMul(%x, %w)
    %a: f32[8, 8] = Exp(%x)
    %b: f32[8, 8] = Tanh(%y)
    %c: f32[8, 8] = Sum(%p, %a, %b)
    %r: f32[8, 8] = Softmax(%c) {axis = 1}
    return %r
  })"),
              ElementsAre("p", "a", "b+c+r"));
  EXPECT_EQ(Of("p", "c").basis, Basis::kRule);
  EXPECT_THAT(Of("a", "c").reason, HasSubstr("cannot be one kernel"));
}

const char kResidual[] = R"(graph g(%x: f32[1, 4, 8, 8]) {
  %w: f32[4, 4, 1, 1] = const #0000000000000002
  %a: f32[1, 4, 8, 8] = Relu(%x)
  %b: f32[1, 4, 8, 8] = Conv(%a, %w)
  %c: f32[1, 4, 8, 8] = Conv(%b, %w)
  %d: f32[1, 4, 8, 8] = Add(%c, %a)
  return %d
})";

TEST_F(DnnFusionTest, ResidualAroundTwoConvolutionsStaysConvex) {
  // a -> d would close the loop a -> b -> c -> d around Conv c.
  EXPECT_THAT(Blocks(kResidual), ElementsAre("a+b", "c+d"));
  EXPECT_THAT(Of("a", "d").reason, HasSubstr("fusing them would close a cycle through Conv"));
  EXPECT_EQ(Of("b", "c").basis, Basis::kRule);
}

TEST_F(DnnFusionTest, DiamondIsOneBlock) {
  EXPECT_THAT(Blocks(R"(graph g(%x: f32[8]) {
    %a: f32[8] = Relu(%x)
    %b: f32[8] = Exp(%a)
    %c: f32[8] = Neg(%b)
    %d: f32[8] = Add(%a, %c)
    return %d
  })"),
              ElementsAre("a+b+c+d"));
  EXPECT_EQ(Of("a", "d").reason, "other edges had already joined both to one kernel");
}

TEST_F(DnnFusionTest, NoCycleThroughTwoBlocks) {
  // Fusion blocks p -> q and r -> s, with edges p -> s and r -> q: each fusion block is convex alone, but together they
  // form a cycle.
  oracle_.refused = {"p+q+s", "p+r+q"};
  const auto fusion_blocks = Blocks(R"(graph g(%x: f32[8], %y: f32[8]) {
    %p: f32[8] = Relu(%x)
    %r: f32[8] = Exp(%y)
    %q: f32[8] = Add(%p, %r)
    %s: f32[8] = Sub(%r, %p)
    return %q, %s
  })");
  EXPECT_THAT(fusion_blocks, ElementsAre("r", "p+q", "s"));
  EXPECT_THAT(Of("r", "s").reason, HasSubstr("would close a cycle"));
}

const char kConvResize[] = R"(graph g(%x: f32[1, 4, 8, 8]) {
  %w: f32[4, 4, 1, 1] = const #0000000000000002
  %s: f32[4] = const {1.0, 1.0, 2.0, 2.0}
  %a: f32[1, 4, 8, 8] = Conv(%x, %w)
  %b: f32[1, 4, 8, 8] = Relu(%a)
  %c: f32[1, 4, 16, 16] = Resize(%b, _, %s)
  return %c
})";

TEST_F(DnnFusionTest, YellowIsFusedWhenFaster) {
  // The seed %b takes Resize as green; then Conv, in front of that fusion block, is profiled.
  oracle_.latency_us = {{"a+b+c", 12.3}, {"a", 5}, {"b+c", 10}};
  EXPECT_THAT(Blocks(kConvResize), ElementsAre("a+b+c"));
  const Decision d = Of("a", "b");
  EXPECT_EQ(d.basis, Basis::kLatency);
  EXPECT_TRUE(d.fused);
  EXPECT_EQ(d.reason, "measured 12.3 us fused against 15.0 us apart (database)");
  EXPECT_EQ(d.fused_ns, 12300);
  EXPECT_EQ(d.separate_ns, 15000);
  EXPECT_EQ(d.source, LatencySource::kDatabase);
  EXPECT_THAT(oracle_.batches, ElementsAre("a > b+c"));
}

TEST_F(DnnFusionTest, YellowIsKeptApartWhenSlower) {
  oracle_.latency_us = {{"a+b+c", 15.1}, {"a", 5}, {"b+c", 10}};
  EXPECT_THAT(Blocks(kConvResize), ElementsAre("a", "b+c"));
  EXPECT_FALSE(Of("a", "b").fused);
  EXPECT_EQ(Of("a", "b").basis, Basis::kLatency);
  oracle_.latency_us["a+b+c"] = 15;  // a tie fuses: Listing 1 asks for `>`
  EXPECT_THAT(Blocks(kConvResize), ElementsAre("a+b+c"));
}

TEST_F(DnnFusionTest, WhatCrashedWhenMeasuredIsKeptApart) {
  oracle_.latency_us = {{"a+b+c", 12.3}, {"a", 5}, {"b+c", 10}};
  oracle_.source = LatencySource::kFailed;
  EXPECT_THAT(Blocks(kConvResize), ElementsAre("a", "b+c"));
  EXPECT_EQ(Of("a", "b").reason, "kept apart, because a kernel failed when it was measured");
  oracle_.source = LatencySource::kModel;  // nobody could measure, so the estimate decides
  EXPECT_THAT(Blocks(kConvResize), ElementsAre("a+b+c"));
}

TEST_F(DnnFusionTest, WhatTakesNoTimeIsNotMeasured) {
  oracle_.latency_us = {{"a+b+c", 15.1}, {"a", 5}, {"b+c", 10}};
  oracle_.estimate_ns = 400;  // apart: 800
  options_.negligible_ns = 801;
  EXPECT_THAT(Blocks(kConvResize), ElementsAre("a+b+c"));
  EXPECT_EQ(Of("a", "b").reason,
            "estimated 0.4 us fused against 0.8 us apart (the difference is too small to measure)");
  EXPECT_EQ(Of("a", "b").source, LatencySource::kModel);
  EXPECT_TRUE(oracle_.batches.empty());
  options_.negligible_ns = 800;
  EXPECT_THAT(Blocks(kConvResize), ElementsAre("a", "b+c"));
  EXPECT_THAT(oracle_.batches, ElementsAre("a > b+c"));
}

TEST_F(DnnFusionTest, WhatAMeasurementCouldNotTellIsEstimated) {
  oracle_.latency_us = {{"a+b+c", 15.1}, {"a", 5}, {"b+c", 10}};
  oracle_.estimate_ns = 1e9;  // compared with it, a launch and some kilobytes are nothing
  oracle_.estimates_ns = {{"a+b+c", 1.9e9}};
  EXPECT_THAT(Blocks(kConvResize), ElementsAre("a+b+c"));
  EXPECT_THAT(Of("a", "b").reason, ::testing::HasSubstr("the difference is too small to measure"));
  EXPECT_TRUE(oracle_.batches.empty());
}

TEST_F(DnnFusionTest, EstimatesFurtherApartThanTheyAreWrongAreBelieved) {
  oracle_.latency_us = {{"a+b+c", 15.1}, {"a", 5}, {"b+c", 10}};
  oracle_.estimate_ns = 400;  // apart: 800
  options_.trusted_factor = 1.9;
  EXPECT_THAT(Blocks(kConvResize), ElementsAre("a+b+c"));
  EXPECT_EQ(Of("a", "b").reason,
            "estimated 0.4 us fused against 0.8 us apart (the difference exceeds the error of estimates)");
  EXPECT_TRUE(oracle_.batches.empty());
  // A question that was measured before costs nothing.
  oracle_.known = {"a > b+c"};
  EXPECT_THAT(Blocks(kConvResize), ElementsAre("a", "b+c"));
  oracle_.known.clear();
  options_.trusted_factor = 2;
  EXPECT_THAT(Blocks(kConvResize), ElementsAre("a", "b+c"));
}

TEST_F(DnnFusionTest, BlocksDoNotGrowWithoutEnd) {
  std::string text = "graph g(%x: f32[4]) {\n", last = "%x";
  for (int i = 0; i < 150; ++i) {
    absl::StrAppend(&text, "  %a", i, ": f32[4] = Abs(", last, ")\n");
    last = absl::StrCat("%a", i);
  }
  Blocks(absl::StrCat(text, "  return ", last, "\n}"));
  ASSERT_EQ(plan_.fusion_blocks.size(), 3u);
  EXPECT_EQ(plan_.fusion_blocks[0].nodes.size(), 64u);
  EXPECT_EQ(plan_.fusion_blocks[1].nodes.size(), 64u);
  EXPECT_EQ(Of("a63", "a64").reason, "the fused kernel would have 65 operators, and 64 is the limit");
}

TEST_F(DnnFusionTest, YellowQuestionsOfIndependentBlocksAreOneBatch) {
  const std::string two = R"(graph g(%x: f32[4, 8], %y: f32[4, 8]) {
    %w: f32[8, 8] = const #0000000000000002
    %s: i64[1] = const {32}
    %a: f32[4, 8] = MatMul(%x, %w)
    %b: f32[32] = Reshape(%a, %s)
    %c: f32[4, 8] = MatMul(%y, %w)
    %d: f32[8, 4] = Transpose(%c) {perm = ints[1, 0]}
    return %b, %d
  })";
  oracle_.latency_us = {{"a+b", 30}};
  EXPECT_THAT(Blocks(two), ElementsAre("a", "b", "c+d"));
  EXPECT_THAT(oracle_.batches, ElementsAre("a > b, c > d"));
  oracle_.failure = absl::UnavailableError("no worker");
  graph_ = Parsed(two);
  EXPECT_EQ(DnnFusionPlanner()->Plan(graph_, DeviceModel(), oracle_, {}).status().code(),
            absl::StatusCode::kUnavailable);
}

// If %a+b is refused, %b+c meets %d. If it is accepted, %a+b+c meets %d, which is red.
const char kTwoWays[] = R"(graph g(%x: f32[8, 8]) {
  %w: f32[8, 8] = const #0000000000000001
  %s: i64[2] = const {4, 16}
  %t: i64[2] = const {16, 4}
  %v: f32[4, 8] = const #0000000000000002
  %a: f32[8, 8] = MatMul(%x, %w)
  %b: f32[4, 16] = Reshape(%a, %s)
  %c: f32[16, 4] = Transpose(%b) {perm = ints[1, 0]}
  %d: f32[16, 8] = MatMul(%c, %v)
  return %d
})";

TEST_F(DnnFusionTest, QuestionsUnderEitherAnswerAreOneBatch) {
  oracle_.latency_us = {{"a+b", 30}};
  EXPECT_THAT(Blocks(kTwoWays), ElementsAre("a", "b+c+d"));
  EXPECT_THAT(oracle_.batches, ElementsAre("a > b, a+b > c", "b+c > d"));
  oracle_.batches.clear();
  oracle_.devices = 2;
  EXPECT_THAT(Blocks(kTwoWays), ElementsAre("a", "b+c+d"));
  EXPECT_THAT(oracle_.batches, ElementsAre("a > b, a+b > c | b+c > d, c > d"));
}

TEST_F(DnnFusionTest, YellowIsNotMeasuredWhenItCannotBeOneKernel) {
  oracle_.refused = {"a+b+c"};
  EXPECT_THAT(Blocks(kConvResize), ElementsAre("a", "b+c"));
  EXPECT_TRUE(oracle_.batches.empty());
}

TEST_F(DnnFusionTest, OneToManyThenManyToManyIsRed) {
  EXPECT_THAT(Blocks(R"(graph g(%x: f32[1, 8]) {
    %s: i64[2] = const {8, 8}
    %w: f32[8, 8] = const #0000000000000001
    %a: f32[8, 8] = Expand(%x, %s)
    %b: f32[8, 8] = MatMul(%a, %w)
    return %b
  })"),
              ElementsAre("a", "b"));
  EXPECT_EQ(Of("a", "b").reason, "Table 3: One-to-Many then Many-to-Many is never fused");
  EXPECT_EQ(oracle_.fit_calls, 0);
}

TEST_F(DnnFusionTest, BroadcastConstantIsOneToOneAndBroadcastValueIsNot) {
  const std::string text = R"(graph g(%x: f32[8, 8], %y: f32[1, 8]) {
    %w: f32[8, 8] = const #0000000000000001
    %k: f32[8] = const #0000000000000003
    %a: f32[8, 8] = MatMul(%x, %w)
    %b: f32[8, 8] = Add(%a, %BIAS)
    return %b
  })";
  auto with = [&](const std::string& bias) {
    std::string copy = text;
    return copy.replace(copy.find("%BIAS"), 5, bias);
  };
  EXPECT_THAT(Blocks(with("%k")), ElementsAre("a+b"));
  EXPECT_EQ(Of("a", "b").basis, Basis::kRule);
  EXPECT_THAT(Blocks(with("%y")), ElementsAre("a+b"));
  EXPECT_EQ(Of("a", "b").basis, Basis::kLatency);
}

TEST_F(DnnFusionTest, SplitWithTwoConsumers) {
  const std::string split = R"(graph g(%x: f32[8, 8]) {
    %a: f32[8, 8] = Exp(%x)
    %s: f32[8, 4], %t: f32[8, 4] = Split(%a) {axis = 1, num_outputs = 2}
    %b: f32[8, 4] = Sigmoid(%s)
    %c: f32[8, 4] = Mul(%b, %t)
    return %c
  })";
  EXPECT_THAT(Blocks(split), ElementsAre("a+s+b+c"));
  oracle_.refused = {"s+b+c"};
  EXPECT_THAT(Blocks(split), ElementsAre("a+s", "b+c"));
}

TEST_F(DnnFusionTest, PredecessorsOfSuccessorsJoin) {
  EXPECT_THAT(Blocks(R"(graph g(%x: f32[8], %y: f32[8]) {
    %a: f32[8] = Sigmoid(%x)
    %b: f32[8] = Tanh(%y)
    %c: f32[8] = Mul(%a, %b)
    return %c
  })"),
              ElementsAre("a+b+c"));
}

TEST_F(DnnFusionTest, FurtherSeedsJoinIndexMaps) {
  EXPECT_THAT(Blocks(R"(graph g(%x: f32[4, 8]) {
    %s: i64[3] = const {4, 2, 4}
    %a: f32[4, 2, 4] = Reshape(%x, %s)
    %b: f32[2, 4, 4] = Transpose(%a) {perm = ints[1, 0, 2]}
    return %b
  })"),
              ElementsAre("a+b"));
  EXPECT_TRUE(Together("a", "b"));
}

TEST_F(DnnFusionTest, ProgressAndCancellation) {
  graph_ = Parsed(kFigure3);
  PlanOptions options;
  std::vector<int64_t> done;
  options.progress = [&](int64_t d, int64_t total) {
    EXPECT_EQ(total, 6);
    done.push_back(d);
  };
  ASSERT_TRUE(planner_->Plan(graph_, DeviceModel(), oracle_, options).ok());
  EXPECT_THAT(done, ElementsAre(5, 6));
  options.cancelled = [] { return true; };
  EXPECT_EQ(planner_->Plan(graph_, DeviceModel(), oracle_, options).status().code(), absl::StatusCode::kCancelled);
}

TEST_F(DnnFusionTest, LongChainsAndEmptyGraphs) {
  std::string chain = "graph g(%v0: f32[8]) {\n";
  for (int i = 1; i <= 1500; ++i) absl::StrAppend(&chain, "%v", i, ": f32[8] = Relu(%v", i - 1, ")\n");
  EXPECT_EQ(Blocks(chain + "return %v1500 }").size(), 24);
  EXPECT_EQ(oracle_.fit_calls, 1476);
  EXPECT_TRUE(Blocks("graph g(%x: f32[8]) { return %x }").empty());
}

}  // namespace
}  // namespace fusion
