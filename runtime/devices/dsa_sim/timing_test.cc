#include "runtime/devices/dsa_sim/timing.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "runtime/devices/dsa_sim/testing/small_machine.h"

namespace fusion::dsa {
namespace {

Timing Time(const std::string& lines) {
  const auto program = Parse(absl::StrCat(R"(program p for small {
    buffer x ddr 0 f32[128] input
    buffer g gb 0 0 f32[128]
    buffer h gb 1 0 f32[128]
    buffer a lb 0.0 0 f32[128]
    buffer b lb 0.1 0 f32[128]
    )",
                                          lines, "\n}\n"));
  EXPECT_TRUE(program.ok()) << program.status().message();
  return TimeProgram(SmallMachine(), *program);
}

// The small machine: DDR gives 8 bytes a cycle, a DMA engine 16, a mover 8, a GB 16, a link 4.
TEST(Timing, ATransferTakesStartUpAndItsSlowestPart) {
  EXPECT_EQ(Time("0: load g[0 + 128:1] = x[0 + 128:1]").cycles, 10 + 512 / 8);
  EXPECT_EQ(Time("0: move a[0 + 128:1] = g[0 + 128:1]").cycles, 4 + 512 / 8);
  EXPECT_EQ(Time("0: redistribute b[0 + 128:1] = a[0 + 128:1]").cycles, 4 + 512 / 4);
}

TEST(Timing, TransfersShareWhatTheyPass) {
  // Two clusters load at once: DDR serves one after the other.
  EXPECT_EQ(Time("0: load g[0 + 128:1] = x[0 + 128:1]\n1: load h[0 + 128:1] = x[0 + 128:1]").cycles, 10 + 2 * 512 / 8);
  // Two cores move at once: the GB is as fast as both movers together.
  EXPECT_EQ(Time("0: move a[0 + 128:1] = g[0 + 128:1]\n1: move b[0 + 128:1] = g[0 + 128:1]").cycles, 4 + 512 / 8);
}

TEST(Timing, UnitsRunInParallelUnlessTheyWait) {
  const char* const product = "0: matrix mme 0.0 a[0 + 4:4, 4:1] = a[16 + 4:4, 4:1] * a[32 + 4:4, 4:1]\n";
  const Timing parallel = Time(absl::StrCat(product, "1: vector vme 0.0 relu a[64 + 64:1] = a[64 + 64:1]"));
  EXPECT_EQ(parallel.spans[0].end, 2 + 64 / 4);
  EXPECT_EQ(parallel.spans[1].start, 0);
  EXPECT_EQ(parallel.cycles, 1 + 64 / 2);
  const Timing ordered = Time(absl::StrCat(product, "1: vector vme 0.0 relu a[64 + 64:1] = a[64 + 64:1] after 0"));
  EXPECT_EQ(ordered.cycles, 2 + 64 / 4 + 1 + 64 / 2);
  const Timing synced = Time(absl::StrCat(product, "1: sync 0\n2: vector vme 0.1 relu b[0 + 64:1] = b[0 + 64:1]"));
  EXPECT_EQ(synced.cycles, 2 + 64 / 4 + 5 + 1 + 64 / 2);
}

TEST(Timing, AnEngineRunsOneInstructionAfterTheOther) {
  const Timing timing =
      Time("0: vector vme 0.0 relu a[0 + 8:1] = a[0 + 8:1]\n1: vector vme 0.0 relu b[0 + 8:1] = b[0 + 8:1]");
  EXPECT_EQ(timing.spans[1].start, 5);
  EXPECT_EQ(timing.cycles, 10);
}

TEST(Timing, AReductionCountsWhatItReads) {
  EXPECT_EQ(Time("0: vector vme 0.0 sum a[0 + 4:1] = a[16 + 4:8, 8:1]").cycles, 1 + 32 / 2);
}

TEST(Timing, CountsBytesAndUse) {
  const Timing timing = Time(
      "0: load a[0 + 128:1] = x[0 + 128:1]\n1: vector vme 0.0 relu a[0 + 128:1] = a[0 + 128:1] after 0\n"
      "2: redistribute b[0 + 4:1] = a[0 + 4:1] after 1\n3: move g[0 + 8:1] = a[0 + 8:1] after 1\n"
      "4: store x[0 + 16:1] = a[0 + 16:1] after 1");
  EXPECT_EQ(timing.ddr_read_bytes, 512);
  EXPECT_EQ(timing.ddr_written_bytes, 64);
  EXPECT_EQ(timing.moved_bytes, 32);
  EXPECT_EQ(timing.redistributed_bytes, 16);
  EXPECT_EQ(timing.units.at("vme").units, 4);
  EXPECT_EQ(timing.units.at("vme").busy_cycles, 65);
  EXPECT_EQ(timing.units.at("vme").work_cycles, 64);
  EXPECT_EQ(timing.units.at("mme").busy_cycles, 0);
  EXPECT_EQ(timing.seconds, timing.cycles / 1e9);
}

}  // namespace
}  // namespace fusion::dsa
