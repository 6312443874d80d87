#include "compiler/plan/planners/graph_turbo/lowering/parts.h"

#include <gtest/gtest.h>

#include "runtime/devices/dsa_sim/testing/small_machine.h"

namespace fusion::graph_turbo {
namespace {

Region RegionOf(const std::vector<Range>& ranges) { return {false, {ranges.begin(), ranges.end()}}; }

class PartsTest : public ::testing::Test {
 protected:
  PartsTest() : emitter_(machine_, "p", DType::kF32) {}
  std::vector<dsa::Kind> Kinds() const {
    std::vector<dsa::Kind> kinds;
    for (const dsa::Instruction& instruction : emitter_.program().instructions) kinds.push_back(instruction.kind);
    return kinds;
  }
  dsa::Machine machine_ = dsa::SmallMachine();
  Emitter emitter_;
};

TEST_F(PartsTest, BoxesShareABoxOrNothing) {
  const Region a = RegionOf({{0, 4}, {2, 6}}), b = RegionOf({{2, 8}, {0, 3}});
  EXPECT_EQ(Intersect(a, b), RegionOf({{2, 4}, {2, 3}}));
  EXPECT_TRUE(Intersect(a, RegionOf({{4, 5}, {2, 6}})).nothing);
  EXPECT_TRUE(Contains(a, RegionOf({{1, 2}, {2, 6}})));
  EXPECT_FALSE(Contains(a, b));
}

TEST_F(PartsTest, APieceIsFetchedByTheInstructionThatItsPlaceAsksFor) {
  const Held here{emitter_.NewLocal(0, 4), RegionOf({{0, 4}})}, there{emitter_.NewLocal(1, 4), RegionOf({{4, 8}})},
      global{emitter_.NewGlobal(4), RegionOf({{8, 12}})},
      ddr{emitter_.NewDdr("d", 4, true, false), RegionOf({{12, 16}})};
  const Held to{emitter_.NewLocal(0, 14), RegionOf({{1, 15}})};
  Gather(&emitter_, {&here, &there, &global, &ddr}, to, to.box);
  EXPECT_EQ(Kinds(),
            (std::vector<dsa::Kind>{dsa::Kind::kVector, dsa::Kind::kRedistribute, dsa::Kind::kMove, dsa::Kind::kLoad}));
  EXPECT_EQ(dsa::PrintInstruction(emitter_.program(), 1), "redistribute b4[3 + 4:1] = b1[0 + 4:1]");
}

TEST_F(PartsTest, MovesOutToTheGbAndFromThereToDdr) {
  Part part;
  part.region = RegionOf({{0, 8}});
  part.pieces = {{emitter_.NewLocal(0, 4), RegionOf({{0, 4}})}, {emitter_.NewLocal(1, 4), RegionOf({{4, 8}})}};
  MoveOut(&emitter_, "s0", dsa::Level::kGlobal, &part);
  EXPECT_EQ(part.level, dsa::Level::kGlobal);
  EXPECT_EQ(emitter_.LargestFreeLocal(0), 1024);
  MoveOut(&emitter_, "s1", dsa::Level::kDdr, &part);
  EXPECT_EQ(part.level, dsa::Level::kDdr);
  EXPECT_EQ(Kinds(), (std::vector<dsa::Kind>{dsa::Kind::kMove, dsa::Kind::kMove, dsa::Kind::kStore}));
  // The store waits for both moves.
  EXPECT_EQ(emitter_.program().instructions[2].after.size(), 2u);
}

TEST_F(PartsTest, TheLongestLivedIsNotTheLargest) {
  Part large, old, elsewhere;
  for (Part* part : {&large, &old, &elsewhere}) part->pieces = {{nullptr, RegionOf({{0, 1}})}};
  large.birth = 3, large.death = 5;
  old.birth = 0, old.death = 6;
  elsewhere.birth = 0, elsewhere.death = 9, elsewhere.level = dsa::Level::kGlobal;
  const auto any = [](const Part&) { return true; };
  EXPECT_EQ(LongestLived({&large, &old, &elsewhere}, dsa::Level::kLocal, any), &old);
  EXPECT_EQ(LongestLived({&large}, dsa::Level::kGlobal, any), nullptr);
}

}  // namespace
}  // namespace fusion::graph_turbo
