#include "runtime/devices/dsa_sim/order.h"

#include <gtest/gtest.h>

#include "runtime/devices/dsa_sim/testing/small_machine.h"

namespace fusion::dsa {
namespace {

constexpr char kText[] = R"(program p for small {
  buffer x ddr 0 f32[8] input
  buffer a lb 0.0 0 f32[8]
  buffer b lb 0.1 0 f32[8]
  buffer c lb 1.0 0 f32[8]
  buffer g gb 0 0 f32[8]
  0: load a[0 + 8:1] = x[0 + 8:1]
  1: vector vme 0.0 relu a[0 + 8:1] = a[0 + 8:1] after 0
  2: redistribute b[0 + 8:1] = a[0 + 8:1] after 1
  3: load c[0 + 8:1] = x[0 + 8:1]
  4: sync 0
  5: move g[0 + 8:1] = b[0 + 8:1]
  6: vector vme 1.0 relu c[0 + 8:1] = c[0 + 8:1]
  7: load a[0 + 4:1] = x[0 + 4:1]
  8: sync all
  9: vector vme 1.0 relu c[0 + 8:1] = c[0 + 8:1]
}
)";

TEST(Order, EnginesAreNumberedClusterByCluster) {
  const Machine machine = SmallMachine();
  const Program program = *Parse(kText);
  // A cluster has a DMA engine and two cores of mover, link, mme and vme.
  const Engines engines(machine);
  EXPECT_EQ(engines.count(), 18);
  std::vector<int> numbers;
  for (const Instruction& instruction : program.instructions) numbers.push_back(engines.Of(program, instruction));
  EXPECT_EQ(numbers, (std::vector<int>{0, 4, 2, 9, -1, 5, 13, 0, -1, 13}));
  EXPECT_EQ(engines.ClusterOf(8), 0);
  EXPECT_EQ(engines.ClusterOf(9), 1);
}

TEST(Order, PredecessorsAreEngineDependencesAndSyncs) {
  const Machine machine = SmallMachine();
  const Predecessors predecessors(Engines(machine), *Parse(kText));
  EXPECT_EQ(predecessors[1], std::vector<int>{0});
  EXPECT_EQ(predecessors[4], (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(predecessors[5], std::vector<int>{4});
  EXPECT_TRUE(predecessors[6].empty());
  EXPECT_EQ(predecessors[7], (std::vector<int>{0, 4}));
  EXPECT_EQ(predecessors[9], (std::vector<int>{6, 8}));
}

TEST(Order, HappensBeforeIsTransitive) {
  const HappensBefore before(SmallMachine(), *Parse(kText));
  EXPECT_TRUE(before(0, 2));
  EXPECT_FALSE(before(2, 0));
  EXPECT_FALSE(before(0, 3));
  EXPECT_TRUE(before(2, 5));
  EXPECT_FALSE(before(3, 6));  // no engine, dependence or sync joins them
  EXPECT_FALSE(before(5, 7));
  EXPECT_TRUE(before(5, 9));
  EXPECT_TRUE(before(3, 9));
}

}  // namespace
}  // namespace fusion::dsa
