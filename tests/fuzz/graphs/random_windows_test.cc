#include "tests/fuzz/graphs/random_windows.h"

#include <gtest/gtest.h>

#include <map>

#include "compiler/ecg/text.h"
#include "tests/fuzz/graphs/random_graph.h"

namespace fusion::fuzz {
namespace {

TEST(RandomWindowsTest, ASeedIsAGraphThatItsTextKeeps) {
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    const std::string text = ecg::Print(RandomWindows(seed));
    EXPECT_EQ(ecg::Print(RandomWindows(seed)), text) << seed;
    const auto parsed = ecg::Parse(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(ecg::Print(*parsed), text);
  }
}

TEST(RandomWindowsTest, DrawsWindowsOfEveryKind) {
  std::map<std::string, int> counts;
  int chains = 0, strides = 0, dilations = 0, depthwise = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const ecg::Graph graph = RandomWindows(seed);
    CountOperators(graph, &counts);
    chains += IsChainOfWindows(graph) ? 1 : 0;
    for (const ecg::Node& node : graph.nodes()) {
      const auto above_one = [&](const char* name) {
        for (const int64_t value : node.attrs.Ints(name)) {
          if (value > 1) return 1;
        }
        return 0;
      };
      strides += above_one("strides");
      dilations += above_one("dilations");
      depthwise += node.attrs.Int("group", 1) > 1 ? 1 : 0;
    }
  }
  for (const char* op : {"Conv", "ConvTranspose", "MaxPool", "AveragePool", "Relu", "Add"}) EXPECT_GT(counts[op], 10) << op;
  EXPECT_GT(chains, 180);
  EXPECT_GT(strides, 50);
  EXPECT_GT(dilations, 50);
  EXPECT_GT(depthwise, 20);
}

TEST(RandomWindowsTest, OneWindowIsNoChain) {
  const auto graph = ecg::Parse(R"(graph g(%x: f32[1, 2, 4, 4]) {
  %a: f32[1, 2, 4, 4] = Relu(%x)
  %b: f32[1, 2, 3, 3] = MaxPool(%a) {kernel_shape = ints[2, 2]}
  return %b
}
)");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_FALSE(IsChainOfWindows(*graph));
}

}  // namespace
}  // namespace fusion::fuzz
