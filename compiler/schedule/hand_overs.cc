#include "compiler/schedule/hand_overs.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/nest/form_stages.h"

namespace fusion {
namespace {

// The phases in which a tensor is written, and in which each stage reads it.
struct Places {
  bool in_registers = false;
  std::set<int> written;
  std::map<int, std::set<int>> read;  // by stage
};

std::map<te::TensorId, Places> PlacesOf(const movement::Kernel& kernel) {
  std::map<te::TensorId, Places> places;
  for (int p = 0; p < static_cast<int>(kernel.phases.size()); ++p) {
    movement::VisitSteps(kernel.phases[p], [&](const movement::Step& step) {
      for (const movement::Store& store : step.stores) {
        const movement::Buffer& buffer = kernel.buffers[store.buffer];
        Places& place = places[buffer.tensor];
        place.written.insert(p);
        place.in_registers = buffer.scope == Scope::kWarp;
      }
      movement::VisitBuffers(step, [&](int buffer) {
        places[kernel.buffers[buffer].tensor].read[step.stage].insert(p);
      });
    });
  }
  return places;
}

bool Contains(const std::vector<int>& origins, int origin) {
  return std::binary_search(origins.begin(), origins.end(), origin);
}

}  // namespace

std::vector<StageHandOver> HandOversOf(const te::Program& program, const movement::Kernel& kernel) {
  const std::map<te::TensorId, Places> places = PlacesOf(kernel);
  std::vector<StageHandOver> result;
  const int stages = static_cast<int>(program.tes.size());
  for (int producer = 0; producer < stages; ++producer) {
    for (te::TensorId tensor : program.tes[producer].outputs) {
      const auto place = places.find(tensor);
      if (place == places.end()) continue;
      for (int consumer = producer + 1; consumer < stages; ++consumer) {
        const auto read = place->second.read.find(consumer);
        if (read == place->second.read.end() || !TensorsRead(program.tes[consumer]).count(tensor)) continue;
        // A phase that both writes and reads the tensor hands it over inside a task; any other reader waits for all
        // tasks of an earlier phase.
        const bool inside = read->second == place->second.written && read->second.size() == 1;
        const Scope within = place->second.in_registers ? Scope::kWarp : Scope::kBlock;
        result.push_back({tensor, program.tes[producer].origins, program.tes[consumer].origins,
                          inside ? within : Scope::kDevice});
      }
    }
  }
  return result;
}

std::vector<std::vector<int>> PhaseOriginsOf(const te::Program& program, const movement::Kernel& kernel) {
  std::vector<std::vector<int>> phases;
  for (const movement::Phase& phase : kernel.phases) {
    std::set<int> origins;
    for (const movement::Step& step : phase.steps) {
      const std::vector<int>& of_stage = program.tes[step.stage].origins;
      origins.insert(of_stage.begin(), of_stage.end());
    }
    phases.emplace_back(origins.begin(), origins.end());
  }
  return phases;
}

Scope RealisedScope(const std::vector<StageHandOver>& hand_overs, const HandOverRequest& request,
                    const std::vector<HandOverRequest>& all) {
  Scope scope = Scope::kLane;
  for (const StageHandOver& hand_over : hand_overs) {
    if (!Contains(hand_over.consumer, request.consumer)) continue;
    const bool of_its_own = std::any_of(
        all.begin(), all.end(), [&](const HandOverRequest& other) { return other.tensor == hand_over.tensor; });
    const bool rest = !of_its_own && Contains(hand_over.producer, request.producer) &&
                      !Contains(hand_over.producer, request.consumer);
    if (hand_over.tensor == request.tensor || rest) scope = std::max(scope, hand_over.scope);
  }
  return scope;
}

absl::Status CheckWithin(const std::vector<HandOverRequest>& requests, const std::vector<StageHandOver>& hand_overs,
                         const te::Program& program, bool only_asked) {
  for (const HandOverRequest& request : requests) {
    if (only_asked && !request.asked) continue;
    const Scope scope = RealisedScope(hand_overs, request, requests);
    if (request.nearest <= scope && scope <= request.furthest) continue;
    const std::string& name = program.tensors[request.tensor].name;
    if (!request.asked) return absl::FailedPreconditionError(absl::StrCat("'", name, "' would cross a barrier"));
    const auto why = std::find_if(hand_overs.begin(), hand_overs.end(), [&](const StageHandOver& hand_over) {
      return hand_over.tensor == request.tensor && !hand_over.why.empty();
    });
    return absl::FailedPreconditionError(
        absl::StrCat("'", name, "' is handed over at ", ScopeName(scope),
                     " scope, and the plan allows ", ScopeName(request.nearest),
                     request.nearest == request.furthest ? "" : absl::StrCat(" to ", ScopeName(request.furthest)),
                     why == hand_overs.end() ? "" : absl::StrCat(": ", why->why)));
  }
  return absl::OkStatus();
}

}  // namespace fusion
