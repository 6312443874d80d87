#include "compiler/pipeline/built_resources.h"

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "compiler/backends/backend.h"
#include "compiler/cost/occupancy.h"
#include "compiler/movement/work_groups.h"

namespace fusion {
namespace {

using nlohmann::json;

// The function of a kernel that fills a unit least.
struct Built {
  KernelResources resources;
  Occupancy occupancy;
};

std::optional<Built> BuiltKernel(const FusionKernel& kernel, const KernelTexts::Place& place,
                                 const ResourcesBySymbol& resources, const DeviceModel& device) {
  std::optional<Built> least;
  for (size_t p = 0; p < place.tasks.size(); ++p) {
    const auto found = resources.find(PhaseSymbol(place.symbol, static_cast<int>(p)));
    if (found == resources.end()) continue;  // a library's product
    const GroupDemand demand{movement::WorkItems(kernel.kernel, device.work_group_size), found->second.registers,
                             found->second.shared_bytes};
    const std::optional<Occupancy> occupancy = OccupancyOf(demand, device);
    if (occupancy && (!least || occupancy->share < least->occupancy.share)) least = {found->second, *occupancy};
  }
  return least;
}

json InJson(const Built& built) {
  return {{"registers", built.resources.registers},
          {"frame_bytes", built.resources.frame_bytes},
          {"shared_bytes", built.resources.shared_bytes},
          {"work_groups", built.occupancy.groups},
          {"share", built.occupancy.share},
          {"limit", built.occupancy.limit}};
}

}  // namespace

void AccountForBuilt(const std::vector<PlannedLaunch>& launches, const KernelTexts& texts,
                     std::vector<KernelTexts::Place>::const_iterator place, const std::vector<std::string>& binaries,
                     const DeviceModel& device, CompileAccount* account) {
  std::vector<ResourcesBySymbol> resources(texts.files.size());
  bool any = false;
  for (size_t f = 0; f < texts.files.size() && f < binaries.size(); ++f) {
    absl::StatusOr<ResourcesBySymbol> read = FindBackend(texts.files[f].kind)->ResourcesOf(binaries[f]);
    if (read.ok()) resources[f] = *std::move(read);
    any = any || !resources[f].empty();
  }
  if (!any) return;
  std::map<std::string, json> built_of;  // by the name of a node
  for (const PlannedLaunch& launch : launches) {
    const std::optional<Built> built =
        BuiltKernel(launch.fusion_kernel, *place, resources[static_cast<size_t>(place->file)], device);
    ++place;
    for (size_t n = 0; built && n < launch.nodes.size(); ++n) built_of.emplace(launch.nodes[n], InJson(*built));
  }
  json plan = json::parse(account->plan_json, nullptr, /*allow_exceptions=*/false);
  if (!plan.is_object() || !plan.contains("fusion_blocks")) return;
  for (json& fusion_block : plan["fusion_blocks"]) {
    for (const json& node : fusion_block["nodes"]) {
      const auto built = built_of.find(node.value("name", ""));
      if (built == built_of.end()) continue;
      fusion_block["built"] = built->second;
      break;
    }
  }
  account->plan_json = plan.dump(1, ' ', false, json::error_handler_t::replace);
}

}  // namespace fusion
