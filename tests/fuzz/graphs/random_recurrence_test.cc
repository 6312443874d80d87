#include "tests/fuzz/graphs/random_recurrence.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "compiler/ecg/text.h"
#include "compiler/ops/control/find_loops.h"
#include "tests/fuzz/graphs/random_graph.h"

namespace fusion::fuzz {
namespace {

TEST(RandomRecurrenceTest, ASeedIsAGraphThatItsTextKeeps) {
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    const std::string text = ecg::Print(RandomRecurrence(seed));
    EXPECT_EQ(ecg::Print(RandomRecurrence(seed)), text) << seed;
    const auto parsed = ecg::Parse(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(ecg::Print(*parsed), text);
  }
}

TEST(RandomRecurrenceTest, DrawsLoopsOfEveryForm) {
  std::map<std::string, int> counts;
  int two_loops = 0, aligned = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const ecg::Graph graph = RandomRecurrence(seed);
    CountOperators(graph, &counts);
    const auto loops = ecg::FindLoops(graph);
    ASSERT_TRUE(loops.ok()) << seed << ": " << loops.status();
    ASSERT_FALSE(loops->empty()) << seed;
    two_loops += loops->list.size() == 2;
    const ecg::Value& state = graph.value(graph.node(loops->list[0].begin).outputs[0]);
    aligned += NumElements(state.type.shape) % 16 == 0;
  }
  for (const char* op : {"MatMul", "Tanh", "Add", "Mul", "Concat", "Softmax", "ReduceMean"}) {
    EXPECT_GT(counts[op], 20) << op;
  }
  EXPECT_GT(two_loops, 50);
  EXPECT_GT(aligned, 150);
  EXPECT_LT(aligned, 195);
}

}  // namespace
}  // namespace fusion::fuzz
