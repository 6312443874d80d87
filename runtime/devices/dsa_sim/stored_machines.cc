#include "runtime/devices/dsa_sim/stored_machines.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/check.h"
#include "runtime/devices/dsa_sim/stored_machine_texts.h"

namespace fusion::dsa {
namespace {

std::map<std::string, Machine> Machines() {
  std::map<std::string, Machine> machines;
  for (const std::string& text : StoredMachineTexts()) {
    absl::StatusOr<Machine> machine = MachineFromJson(text);
    FUSION_CHECK(machine.ok(), "a stored machine description does not parse");
    const std::string name = machine->name;
    machines[name] = *std::move(machine);
  }
  return machines;
}

}  // namespace

std::vector<std::string> StoredMachineNames() {
  std::vector<std::string> names;
  for (const auto& [name, machine] : Machines()) names.push_back(name);
  return names;
}

absl::StatusOr<Machine> StoredMachine(const std::string& name) {
  std::map<std::string, Machine> machines = Machines();
  if (auto it = machines.find(name); it != machines.end()) return std::move(it->second);
  return absl::NotFoundError(absl::StrCat("there is no description of an accelerator '", name, "'; there are ",
                                          absl::StrJoin(StoredMachineNames(), ", ")));
}

}  // namespace fusion::dsa
