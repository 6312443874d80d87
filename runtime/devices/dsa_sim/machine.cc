#include "runtime/devices/dsa_sim/machine.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/check.h"
#include "runtime/base/status_macros.h"

namespace fusion::dsa {

using nlohmann::json;

namespace {

// Calls `visit` with the name and the rate of each figure of the machine itself.
template <typename M, typename Visit>
void VisitRates(M& machine, const Visit& visit) {
  visit("global_bytes", machine.global_bytes);
  visit("ddr_bytes", machine.ddr_bytes);
  visit("clock_hz", machine.clock_hz);
  visit("ddr_bytes_per_s", machine.ddr_bytes_per_s);
  visit("dma_bytes_per_cycle", machine.dma_bytes_per_cycle);
  visit("dma_startup_cycles", machine.dma_startup_cycles);
  visit("global_bytes_per_cycle", machine.global_bytes_per_cycle);
  visit("mover_bytes_per_cycle", machine.mover_bytes_per_cycle);
  visit("mover_startup_cycles", machine.mover_startup_cycles);
  visit("interconnect_bytes_per_cycle", machine.interconnect_bytes_per_cycle);
  visit("link_bytes_per_cycle", machine.link_bytes_per_cycle);
  visit("link_startup_cycles", machine.link_startup_cycles);
  visit("sync_cycles", machine.sync_cycles);
}

absl::Status Bad(const std::string& field, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("machine description: ", field, ": ", what));
}

absl::StatusOr<json> Field(const json& object, const std::string& name, const std::string& path) {
  if (!object.is_object() || !object.contains(name)) return Bad(path + name, "the field is missing");
  return object[name];
}

absl::StatusOr<int> Count(const json& object, const std::string& name, const std::string& path) {
  ASSIGN_OR_RETURN(const json value, Field(object, name, path));
  if (!value.is_number_integer() || value.get<int64_t>() < 1 || value.get<int64_t>() > 4096) {
    return Bad(path + name, absl::StrCat("expected an integer from 1 to 4096, found ", value.dump()));
  }
  return value.get<int>();
}

absl::StatusOr<Rate> ReadRate(const json& object, const std::string& name, const std::string& path, bool may_be_zero) {
  ASSIGN_OR_RETURN(const json value, Field(object, name, path));
  const std::string field = path + name;
  if (!value.is_object() || !value.contains("value") || !value["value"].is_number()) {
    return Bad(field, "expected an object with a number 'value' and a 'source'");
  }
  Rate rate;
  rate.value = rate.low = rate.high = value["value"].get<double>();
  if (!value.contains("source") || !value["source"].is_string() || value["source"].get<std::string>().empty()) {
    return Bad(field, "'source' must say where the figure comes from, or be \"assumed\"");
  }
  rate.source = value["source"].get<std::string>();
  const bool range = value.contains("low") && value.contains("high");
  if (rate.assumed()) {
    if (!range || !value["low"].is_number() || !value["high"].is_number()) {
      return Bad(field, "an assumed figure needs a range: the numbers 'low' and 'high'");
    }
    rate.low = value["low"].get<double>();
    rate.high = value["high"].get<double>();
  } else if (value.contains("low") || value.contains("high")) {
    return Bad(field, "a figure with a source has no range; use the source \"assumed\" for one that is not known");
  }
  if (!(rate.low <= rate.value && rate.value <= rate.high)) {
    return Bad(field,
               absl::StrCat("the value ", rate.value, " is outside its range [", rate.low, ", ", rate.high, "]"));
  }
  if (rate.low < 0 || (rate.low == 0 && !may_be_zero)) {
    return Bad(field, absl::StrCat("expected a positive figure, found ", rate.low));
  }
  return rate;
}

absl::StatusOr<std::vector<ComputeUnit>> ReadUnits(const json& root) {
  ASSIGN_OR_RETURN(const json units, Field(root, "units", ""));
  if (!units.is_object() || units.empty()) return Bad("units", "expected an object with at least one unit");
  std::vector<ComputeUnit> read;
  for (const auto& [name, unit] : units.items()) {
    const std::string path = absl::StrCat("units.", name, ".");
    ASSIGN_OR_RETURN(const json kind, Field(unit, "kind", path));
    if (kind != "matrix" && kind != "vector") {
      return Bad(path + "kind", absl::StrCat("expected \"matrix\" or \"vector\", found ", kind.dump()));
    }
    ComputeUnit& added = read.emplace_back();
    added.name = name;
    added.kind = kind == "matrix" ? UnitKind::kMatrix : UnitKind::kVector;
    ASSIGN_OR_RETURN(added.per_cycle, ReadRate(unit, "per_cycle", path, /*may_be_zero=*/false));
    ASSIGN_OR_RETURN(added.startup_cycles, ReadRate(unit, "startup_cycles", path, /*may_be_zero=*/true));
  }
  return read;
}

absl::StatusOr<std::vector<CoreGroup>> ReadGroups(const json& root, const Machine& machine) {
  ASSIGN_OR_RETURN(const json groups, Field(root, "core_groups", ""));
  if (!groups.is_array() || groups.empty()) return Bad("core_groups", "expected a list with at least one group");
  std::vector<CoreGroup> read;
  for (size_t g = 0; g < groups.size(); ++g) {
    const std::string path = absl::StrCat("core_groups[", g, "].");
    CoreGroup& group = read.emplace_back();
    ASSIGN_OR_RETURN(group.cores, Count(groups[g], "cores", path));
    ASSIGN_OR_RETURN(group.local_bytes, ReadRate(groups[g], "local_bytes", path, /*may_be_zero=*/true));
    ASSIGN_OR_RETURN(const json units, Field(groups[g], "units", path));
    if (!units.is_array() || units.empty()) return Bad(path + "units", "expected a list of names of units");
    std::set<std::string> seen;
    for (const json& unit : units) {
      if (!unit.is_string() || machine.Unit(unit.get<std::string>()) == nullptr) {
        return Bad(path + "units", absl::StrCat(unit.dump(), " is not described under 'units'"));
      }
      if (!seen.insert(unit.get<std::string>()).second) {
        return Bad(path + "units", absl::StrCat(unit.dump(), " occurs twice; give each unit a name of its own"));
      }
      group.units.push_back(unit.get<std::string>());
    }
  }
  return read;
}

json RateToJson(const Rate& rate) {
  json object = {{"value", rate.value}, {"source", rate.source}};
  if (rate.assumed()) {
    object["low"] = rate.low;
    object["high"] = rate.high;
  }
  return object;
}

}  // namespace

int Machine::cores() const {
  int sum = 0;
  for (const CoreGroup& group : groups) sum += group.cores;
  return sum;
}

const CoreGroup& Machine::GroupOf(int core) const {
  for (const CoreGroup& group : groups) {
    if (core < group.cores) return group;
    core -= group.cores;
  }
  FUSION_CHECK(false, "the core is not in the cluster");
}

const ComputeUnit* Machine::Unit(const std::string& name) const {
  for (const ComputeUnit& unit : units) {
    if (unit.name == name) return &unit;
  }
  return nullptr;
}

Machine Machine::WithAssumedRates(double factor) const {
  Machine scaled = *this;
  const auto scale = [&](const std::string& name, Rate& rate) {
    // A figure in cycles is a duration, which is shorter on a faster machine.
    const double times = name.ends_with("_cycles") ? 1 / factor : factor;
    if (rate.assumed()) rate.value = std::clamp(rate.value * times, rate.low, rate.high);
  };
  VisitRates(scaled, [&](const std::string& name, Rate& rate) {
    if (name != "global_bytes" && name != "ddr_bytes") scale(name, rate);
  });
  for (ComputeUnit& unit : scaled.units) {
    scale("per_cycle", unit.per_cycle);
    scale("startup_cycles", unit.startup_cycles);
  }
  return scaled;
}

absl::StatusOr<Machine> MachineFromJson(const std::string& text) {
  const json root = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) return absl::InvalidArgumentError("machine description: expected a JSON object");
  Machine machine;
  ASSIGN_OR_RETURN(const json name, Field(root, "name", ""));
  if (!name.is_string() || name.get<std::string>().empty()) return Bad("name", "expected a name");
  machine.name = name.get<std::string>();
  ASSIGN_OR_RETURN(machine.clusters, Count(root, "clusters", ""));
  ASSIGN_OR_RETURN(machine.units, ReadUnits(root));
  ASSIGN_OR_RETURN(machine.groups, ReadGroups(root, machine));
  absl::Status status;
  VisitRates(machine, [&](const std::string& field, Rate& rate) {
    if (!status.ok()) return;
    const bool may_be_zero = field.find("startup") != std::string::npos || field == "sync_cycles";
    absl::StatusOr<Rate> read = ReadRate(root, field, "", may_be_zero);
    if (read.ok()) {
      rate = *std::move(read);
    } else {
      status = read.status();
    }
  });
  RETURN_IF_ERROR(status);
  return machine;
}

std::string MachineToJson(const Machine& machine) {
  json root = {{"name", machine.name}, {"clusters", machine.clusters}};
  for (const ComputeUnit& unit : machine.units) {
    root["units"][unit.name] = {{"kind", unit.kind == UnitKind::kMatrix ? "matrix" : "vector"},
                                {"per_cycle", RateToJson(unit.per_cycle)},
                                {"startup_cycles", RateToJson(unit.startup_cycles)}};
  }
  root["core_groups"] = json::array();
  for (const CoreGroup& group : machine.groups) {
    root["core_groups"].push_back(
        {{"cores", group.cores}, {"local_bytes", RateToJson(group.local_bytes)}, {"units", group.units}});
  }
  VisitRates(machine, [&](const std::string& field, const Rate& rate) { root[field] = RateToJson(rate); });
  return root.dump(2);
}

}  // namespace fusion::dsa
