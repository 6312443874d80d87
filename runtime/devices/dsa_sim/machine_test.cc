#include "runtime/devices/dsa_sim/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/devices/dsa_sim/stored_machines.h"
#include "runtime/devices/dsa_sim/testing/small_machine.h"

namespace fusion::dsa {
namespace {

using ::testing::HasSubstr;

TEST(Machine, PrintsAndParsesBack) {
  const std::string text = MachineToJson(SmallMachine());
  const auto machine = MachineFromJson(text);
  ASSERT_TRUE(machine.ok()) << machine.status().message();
  EXPECT_EQ(MachineToJson(*machine), text);
  EXPECT_EQ(machine->cores(), 2);
  EXPECT_EQ(machine->Unit("mme")->kind, UnitKind::kMatrix);
  EXPECT_EQ(machine->Unit("tpc"), nullptr);
}

TEST(Machine, ErrorsNameTheField) {
  const auto refused = [](const char* pointer, const nlohmann::json& value, const char* why) {
    nlohmann::json root = nlohmann::json::parse(MachineToJson(SmallMachine()));
    root[nlohmann::json::json_pointer(pointer)] = value;
    const auto machine = MachineFromJson(root.dump());
    ASSERT_FALSE(machine.ok()) << pointer;
    EXPECT_THAT(std::string(machine.status().message()), HasSubstr(why)) << pointer;
  };
  refused("/clusters", 0, "clusters: expected an integer from 1 to 4096, found 0");
  refused("/sync_cycles", 7, "sync_cycles: expected an object");
  refused("/sync_cycles", {{"value", 7}}, "sync_cycles: 'source' must say");
  refused("/clock_hz", {{"value", 0}, {"source", "x"}}, "clock_hz: expected a positive figure");
  refused("/clock_hz", {{"value", 1}, {"source", "assumed"}}, "clock_hz: an assumed figure needs a range");
  refused("/clock_hz", {{"value", 5}, {"source", "assumed"}, {"low", 1}, {"high", 4}}, "outside its range [1, 4]");
  refused("/clock_hz", {{"value", 1}, {"source", "x"}, {"low", 1}}, "has no range");
  refused("/units/vme/kind", "scalar", "units.vme.kind: expected \"matrix\" or \"vector\"");
  refused("/core_groups/0/units/0", "tpc", "core_groups[0].units: \"tpc\" is not described");
  refused("/core_groups/0/units/0", "vme", "occurs twice");
  nlohmann::json root = nlohmann::json::parse(MachineToJson(SmallMachine()));
  root.erase("global_bytes");
  EXPECT_THAT(std::string(MachineFromJson(root.dump()).status().message()),
              HasSubstr("global_bytes: the field is missing"));
  EXPECT_THAT(std::string(MachineFromJson("[").status().message()), HasSubstr("expected a JSON object"));
}

TEST(Machine, AssumedRatesScaleWithinTheirRanges) {
  const Machine machine = *StoredMachine("stcp920");
  const Machine faster = machine.WithAssumedRates(100);
  EXPECT_EQ(faster.mover_bytes_per_cycle.value, machine.mover_bytes_per_cycle.high);
  EXPECT_EQ(machine.WithAssumedRates(0.5).mover_bytes_per_cycle.value, machine.mover_bytes_per_cycle.value / 2);
  // Known figures and capacities stay.
  EXPECT_EQ(faster.ddr_bytes_per_s.value, 136e9);
  EXPECT_EQ(faster.ddr_bytes.value, machine.ddr_bytes.value);
  EXPECT_EQ(faster.Unit("mme")->per_cycle.value, machine.Unit("mme")->per_cycle.value);
  EXPECT_GT(faster.Unit("vme")->per_cycle.value, machine.Unit("vme")->per_cycle.value);
  // A faster machine starts sooner.
  EXPECT_EQ(machine.WithAssumedRates(2).sync_cycles.value, machine.sync_cycles.value / 2);
  EXPECT_EQ(faster.mover_startup_cycles.value, machine.mover_startup_cycles.low);
  EXPECT_EQ(faster.Unit("vme")->startup_cycles.value, machine.Unit("vme")->startup_cycles.low);
}

}  // namespace
}  // namespace fusion::dsa
