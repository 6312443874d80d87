#include "compiler/plan/planners/graph_turbo/lowering/emitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/devices/dsa_sim/check.h"
#include "runtime/devices/dsa_sim/testing/small_machine.h"

namespace fusion::graph_turbo {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Region RegionOf(const std::vector<Range>& ranges) { return {false, {ranges.begin(), ranges.end()}}; }

TEST(Emitter, ABlockThatIsWrittenAnewWaitsForItsReaders) {
  const dsa::Machine machine = dsa::SmallMachine();
  Emitter emitter(machine, "p", DType::kF32);
  const Held in{emitter.NewDdr("in", 16, true, false), WholeRegion({4, 4})};
  const Held out{emitter.NewDdr("out", 16, false, true), WholeRegion({4, 4})};
  Block* const block = emitter.NewLocal(0, 8);
  for (const int64_t row : {0, 2}) {
    const Region rows = RegionOf({{row, row + 2}, {0, 4}});
    Emitter::Recycle(block);
    emitter.Copy(in, {block, rows}, rows);
    emitter.Copy({block, rows}, out, rows);
  }
  // Loads and stores are one engine's, so nothing has to be said.
  for (const dsa::Instruction& instruction : emitter.program().instructions) {
    EXPECT_THAT(instruction.after, IsEmpty());
  }
  EXPECT_EQ(dsa::PrintInstruction(emitter.program(), 2), "load b2[0 + 2:4, 4:1] = in[8 + 2:4, 4:1]");
  EXPECT_TRUE(dsa::CheckOperands(machine, emitter.program()).ok());
  EXPECT_TRUE(dsa::CheckAccesses(machine, emitter.program()).ok());
}

TEST(Emitter, InstructionsOfOtherEnginesWait) {
  const dsa::Machine machine = dsa::SmallMachine();
  Emitter emitter(machine, "p", DType::kF32);
  const Held in{emitter.NewDdr("in", 4, true, false), WholeRegion({4})};
  const Held global{emitter.NewGlobal(4), WholeRegion({4})};
  emitter.Copy(in, global, global.box);
  const Held a{emitter.NewLocal(0, 4), WholeRegion({4})};
  emitter.Copy(global, a, a.box);
  EXPECT_THAT(emitter.program().instructions[1].after, ElementsAre(0));
  emitter.Free(a.block);
  const Held b{emitter.NewLocal(0, 4), WholeRegion({4})};  // at the same place
  emitter.Copy(in, b, b.box);
  EXPECT_THAT(emitter.program().instructions[2].after, ElementsAre(1));
  emitter.Sync();
  emitter.Copy(b, global, b.box);
  EXPECT_THAT(emitter.program().instructions[4].after, IsEmpty());
  EXPECT_TRUE(dsa::CheckAccesses(machine, emitter.program()).ok());
}

TEST(Emitter, HasNoMoreThanTheMachine) {
  const dsa::Machine machine = dsa::SmallMachine();
  Emitter emitter(machine, "p", DType::kF32);
  EXPECT_EQ(emitter.NewLocal(0, 257), nullptr);
  EXPECT_NE(emitter.NewLocal(0, 256), nullptr);
  EXPECT_EQ(emitter.NewGlobal(1025), nullptr);
}

}  // namespace
}  // namespace fusion::graph_turbo
