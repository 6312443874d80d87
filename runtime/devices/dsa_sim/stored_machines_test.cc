#include "runtime/devices/dsa_sim/stored_machines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fusion::dsa {
namespace {

TEST(StoredMachines, AreThePapers) {
  EXPECT_THAT(StoredMachineNames(), ::testing::ElementsAre("goya", "stcp920"));
  // GraphTurbo, Eq. 2 and section 5.6.
  const Machine stcp920 = *StoredMachine("stcp920");
  EXPECT_EQ(stcp920.clusters, 4);
  EXPECT_EQ(stcp920.cores(), 8);
  EXPECT_EQ(stcp920.GroupOf(7).units.size(), 3);
  EXPECT_EQ(stcp920.GroupOf(7).local_bytes.value, 64 << 10);
  EXPECT_EQ(stcp920.global_bytes.value, 8 << 20);
  EXPECT_EQ(stcp920.ddr_bytes_per_s.value, 136e9);
  EXPECT_FALSE(stcp920.ddr_bytes_per_s.assumed());
  EXPECT_TRUE(stcp920.mover_bytes_per_cycle.assumed());
  // Section 1: nine cores with one unit each; the GEMM engine has no LB.
  const Machine goya = *StoredMachine("goya");
  EXPECT_EQ(goya.clusters, 1);
  EXPECT_EQ(goya.cores(), 9);
  EXPECT_EQ(goya.GroupOf(0).units, std::vector<std::string>{"tpc"});
  EXPECT_GT(goya.GroupOf(0).local_bytes.value, 0);
  EXPECT_EQ(goya.GroupOf(8).units, std::vector<std::string>{"gemm"});
  EXPECT_EQ(goya.GroupOf(8).local_bytes.value, 0);
}

TEST(StoredMachines, AnUnknownNameListsTheKnown) {
  EXPECT_THAT(std::string(StoredMachine("ascend910").status().message()),
              ::testing::HasSubstr("there are goya, stcp920"));
}

}  // namespace
}  // namespace fusion::dsa
