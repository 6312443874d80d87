#include "tests/fuzz/graphs/random_experts.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "compiler/ecg/text.h"
#include "tests/fuzz/graphs/random_graph.h"

namespace fusion::fuzz {
namespace {

TEST(RandomExpertsTest, ASeedIsAGraphThatItsTextKeeps) {
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    const std::string text = ecg::Print(RandomExperts(seed));
    EXPECT_EQ(ecg::Print(RandomExperts(seed)), text) << seed;
    const auto parsed = ecg::Parse(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(ecg::Print(*parsed), text);
  }
}

TEST(RandomExpertsTest, DrawsLayersOfEveryForm) {
  std::map<std::string, int> counts;
  int two_products = 0, large = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const ecg::Graph graph = RandomExperts(seed);
    CountOperators(graph, &counts);
    int products = 0;
    for (const ecg::Node& node : graph.nodes()) products += node.op == "MatMul";
    two_products += products == 2;
    for (const ecg::Value& value : graph.values()) large += NumElements(value.type.shape) > 300000;
  }
  for (const char* op : {"Gather", "GatherND", "MatMul", "Transpose", "Slice", "Relu", "ReduceSum", "Sub"}) {
    EXPECT_GT(counts[op], 20) << op;
  }
  EXPECT_GT(two_products, 50);
  EXPECT_GT(large, 15);
}

}  // namespace
}  // namespace fusion::fuzz
