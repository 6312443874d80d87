#include "runtime/devices/dsa_sim/workload.h"

#include <gtest/gtest.h>

#include "runtime/devices/dsa_sim/testing/small_machine.h"
#include "runtime/devices/dsa_sim/timing.h"

namespace fusion::dsa {
namespace {

constexpr char kText[] = R"(program p for small {
  buffer x ddr 0 f32[64] input
  buffer g gb 0 0 f32[64]
  buffer a lb 0.0 0 f32[64]
  buffer b lb 0.1 0 f32[64]
  0: load g[0 + 64:1] = x[0 + 64:1]
  1: move a[0 + 32:1] = g[0 + 32:1] after 0
  2: matrix mme 0.0 a[32 + 2:4, 4:1] = a[0 + 2:4, 4:1] * a[8 + 4:4, 4:1] after 1
  3: vector vme 0.0 sum a[60 + 4:1] = a[0 + 4:8, 8:1] after 2
  4: sync 0
  5: redistribute b[0 + 8:1] = a[32 + 8:1]
  6: store x[0 + 8:1] = b[0 + 8:1] after 5
  7: sync all
}
)";

TEST(Workload, HasTheWorkOfEachInstruction) {
  const Machine machine = SmallMachine();
  const Workload workload(machine, *Parse(kText));
  ASSERT_EQ(workload.size(), 8u);
  EXPECT_EQ(workload.task(0), (Workload::Task{Kind::kLoad, -1, 0, 256}));
  EXPECT_EQ(workload.task(1), (Workload::Task{Kind::kMove, -1, 1, 128}));
  const Workload::Task &product = workload.task(2), &sum = workload.task(3);
  EXPECT_EQ(product.amount, 2 * 4 * 4);
  EXPECT_EQ(machine.units[product.unit].name, "mme");
  EXPECT_EQ(sum.amount, 4 * 8);
  EXPECT_EQ(machine.units[sum.unit].name, "vme");
  EXPECT_EQ(workload.task(4), (Workload::Task{Kind::kSync, -1, 0, 0}));
  EXPECT_EQ(workload.task(7), (Workload::Task{Kind::kSync, -1, -1, 0}));
  EXPECT_EQ(workload.Waits(6), (std::vector<int>{0, 4, 5}));
}

// A workload that is made without a program takes as long as the program.
TEST(Workload, IsAllThatTimeDependsOn) {
  const Machine machine = SmallMachine();
  const Program program = *Parse(kText);
  const Workload of_program(machine, program);
  Workload made(machine);
  for (size_t i = 0; i < of_program.size(); ++i) made.Add(of_program.task(i), program.instructions[i].after);
  const Timing expected = TimeProgram(machine, program), timing = TimeProgram(machine, made);
  ASSERT_EQ(timing.spans.size(), expected.spans.size());
  for (size_t i = 0; i < timing.spans.size(); ++i) {
    EXPECT_EQ(timing.spans[i].start, expected.spans[i].start) << i;
    EXPECT_EQ(timing.spans[i].end, expected.spans[i].end) << i;
  }
  EXPECT_EQ(timing.ddr_read_bytes, 256);
  const Timing without = TimeProgram(machine, made, /*spans=*/false);
  EXPECT_TRUE(without.spans.empty());
  EXPECT_EQ(without.cycles, expected.cycles);
  EXPECT_EQ(timing.units.at("vme").work_cycles, expected.units.at("vme").work_cycles);
}

}  // namespace
}  // namespace fusion::dsa
