#include "compiler/plan/planners/graph_turbo/lowering/find_room.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace fusion::graph_turbo {

RoomFinder::RoomFinder(MemoryState* state) : state_(*state) {
  const dsa::Machine& machine = state_.machine;
  const auto rate = [&](const std::string& unit) { return machine.Unit(unit)->per_cycle.value; };
  rates_.matrix = rate(state_.units.matrix);
  rates_.vector = rate(state_.units.vector);
  rates_.special = rate(state_.units.special);
  rates_.transfer_bytes =
      std::min(machine.mover_bytes_per_cycle.value, machine.global_bytes_per_cycle.value / machine.cores());
  rates_.unit_startup = machine.Unit(state_.units.matrix)->startup_cycles.value;
  rates_.transfer_startup = machine.mover_startup_cycles.value;
  rates_.ddr_bytes =
      std::min(machine.dma_bytes_per_cycle.value, machine.ddr_bytes_per_s.value / machine.clock_hz.value);
  rates_.ddr_startup = machine.dma_startup_cycles.value;
  rates_.stream_bytes = kStreamSlots * PanelBytes(machine);
}

Factors RoomFinder::BindingOf(int s, LayerWork* work) {
  const Step& step = state_.steps[s];
  const Layer& layer = state_.LayerOf(step.op);
  std::vector<int64_t> key = {step.op};
  for (const Region& output : step.outputs) {
    for (const Range& range : output.ranges) key.push_back(range.length());
  }
  for (const LayerInput& input : work->inputs) {
    key.push_back(input.sources.empty() ? -1 : static_cast<int64_t>(input.sources[0]->block->memory.level));
    key.push_back(static_cast<int64_t>(input.sources.size()));
    if (input.sources.empty()) continue;
    for (const Range& range : input.sources[0]->box.ranges) key.push_back(range.length());
  }
  const auto [known, added] = bindings_.try_emplace(key);
  if (!added) return known->second;
  const auto fetched = [&](int core, const AccessMap::Needs& needs) {
    double bytes = 0;
    for (size_t k = 0; k < work->inputs.size(); ++k) {
      const Region& region = needs.tensors[layer.access.program().inputs[k]];
      if (region.nothing || work->inputs[k].table) continue;
      int64_t here = 0;
      for (const Held* piece : work->inputs[k].sources) {
        const int64_t shared = Intersect(piece->box, region).elements();
        if (piece->block->memory == dsa::Memory{dsa::Level::kLocal, {0, core}}) {
          here += shared;
        } else if (shared > 0) {
          bytes += rates_.transfer_startup * rates_.transfer_bytes;  // which costs as much as these
        }
      }
      bytes += static_cast<double>((region.elements() - here) * state_.emitter.element_bytes());
    }
    return bytes;
  };
  return known->second = ChooseBinding(layer, step.outputs, state_.machine.cores(), rates_, fetched);
}

Tiling RoomFinder::TilingOf(int s, const LayerWork& work, const std::vector<std::unique_ptr<CoreWork>>& cores,
                            std::optional<dsa::Level> to, int64_t budget, bool residents) {
  const Layer& layer = *work.layer;
  TilingRequest request;
  request.layer = &layer;
  size_t largest = 0;
  for (size_t c = 0; c < cores.size(); ++c) {
    if (cores[c]->outputs()[0].elements() > cores[largest]->outputs()[0].elements()) largest = c;
  }
  // A part in the middle has all its halos.
  if (cores[cores.size() / 2]->outputs()[0].elements() == cores[largest]->outputs()[0].elements()) {
    largest = cores.size() / 2;
  }
  request.outputs = cores[largest]->outputs();
  for (size_t k = 0; k < work.inputs.size(); ++k) {
    const auto resident = [&](const std::unique_ptr<CoreWork>& core) { return core->Resident(k); };
    request.resident.push_back(work.inputs[k].table ||
                               (residents && std::all_of(cores.begin(), cores.end(), resident)));
    request.weight.push_back(work.inputs[k].weight);
    // A stream brings parts from DDR, once for all cores that need the same (Lowerer).
    const te::TensorId tensor = layer.access.program().inputs[k];
    std::vector<const Region*> parts;
    for (const std::unique_ptr<CoreWork>& core : cores) {
      const Region& needed = core->core_regions()[tensor];
      const auto same = [&](const Region* part) { return *part == needed; };
      if (std::none_of(parts.begin(), parts.end(), same)) parts.push_back(&needed);
    }
    request.ddr_parts.push_back(IsInDdr(work.inputs[k]) ? static_cast<int>(parts.size()) : 0);
  }
  request.outputs_have_room = to == dsa::Level::kLocal;
  request.outputs_leave = to && *to != dsa::Level::kLocal;
  if (to == dsa::Level::kDdr) request.ddr_outputs = static_cast<int>(cores.size());
  request.element_bytes = state_.emitter.element_bytes();
  request.budget_bytes = budget / 1024 * 1024;
  if (request.budget_bytes == 0) request.budget_bytes = budget;
  std::vector<int64_t> key = {state_.steps[s].op, to ? static_cast<int64_t>(*to) : -1, request.budget_bytes};
  for (const Region& output : request.outputs) {
    for (const Range& range : output.ranges) key.push_back(range.length());
  }
  key.insert(key.end(), request.resident.begin(), request.resident.end());
  key.insert(key.end(), request.ddr_parts.begin(), request.ddr_parts.end());
  key.push_back(static_cast<int64_t>(cores.size()));
  const auto [known, added] = tilings_.try_emplace(key);
  if (added) known->second = ChooseTiling(request, rates_);
  return known->second;
}

bool RoomFinder::Place(int s, LayerWork* work, const std::vector<std::vector<Region>>& pieces, dsa::Level level,
                       bool choosy, Placement* placement) {
  const Step& step = state_.steps[s];
  placement->cores.clear();
  placement->targets.assign(pieces.size(), std::vector<OutputTarget>(step.outputs.size()));
  bool room = true;
  for (size_t c = 0; c < pieces.size(); ++c) {
    placement->cores.push_back(std::make_unique<CoreWork>(work, static_cast<int>(c), pieces[c]));
    for (size_t o = 0; o < step.outputs.size() && room; ++o) {
      OutputTarget& target = placement->targets[c][o];
      if (level == dsa::Level::kLocal) {
        target.local = {state_.emitter.NewLocal(static_cast<int>(c), pieces[c][o].elements()), pieces[c][o]};
        room = target.local.block != nullptr;
      } else {
        target.away = placement->away[o];
      }
    }
  }
  for (int tries = 0; tries < 3 && room; ++tries) {
    int64_t budget = std::numeric_limits<int64_t>::max();
    for (size_t c = 0; c < pieces.size(); ++c) {
      budget = std::min(budget, state_.emitter.LargestFreeLocal(static_cast<int>(c)));
    }
    // The search looks at one core's part alone, and blocks are rounded up, so that its answer may not fit all cores.
    budget -= budget * tries / 4;
    // Results that wait in the GB for a transfer to DDR leave the LBs for the GB.
    const dsa::Level to = level == dsa::Level::kDdr && placement->away_is_staged ? dsa::Level::kGlobal : level;
    const Tiling tiling = TilingOf(s, *work, placement->cores, to, budget, true);
    least_bytes_ = tiling.bytes;
    if (!tiling.fits || (choosy && tiling.cycles > Affordable(s, *work, placement->cores, to))) break;
    size_t reserved = 0;
    while (reserved < pieces.size() && placement->cores[reserved]->Reserve(tiling, placement->targets[reserved])) {
      ++reserved;
    }
    if (reserved == pieces.size()) {
      placement->chunks = tiling.chunks;
      placement->level = level;
      return true;
    }
    while (reserved-- > 0) placement->cores[reserved]->Release();
  }
  for (std::vector<OutputTarget>& targets : placement->targets) {
    for (OutputTarget& target : targets) {
      if (target.local.block != nullptr) state_.emitter.Free(target.local.block);
    }
  }
  placement->cores.clear();
  return false;
}

double RoomFinder::Affordable(int s, const LayerWork& work, const std::vector<std::unique_ptr<CoreWork>>& cores,
                              dsa::Level level) {
  const int64_t capacity = static_cast<int64_t>(state_.machine.groups[0].local_bytes.value);
  const Tiling empty = TilingOf(
      s, work, cores, level == dsa::Level::kLocal ? std::nullopt : std::optional<dsa::Level>(level), capacity, false);
  double bytes = 0;
  if (level == dsa::Level::kLocal) {
    for (const Region& output : state_.steps[s].outputs) bytes += static_cast<double>(output.elements());
  } else {
    for (size_t k = 0; k < work.inputs.size(); ++k) {
      for (const Held* piece : work.inputs[k].sources) {
        if (piece->block->memory.level == dsa::Level::kLocal) bytes += static_cast<double>(piece->box.elements());
      }
    }
  }
  // Out and in again.
  bytes *= 2 * static_cast<double>(state_.emitter.element_bytes());
  const double rate = state_.options.spill_to_global
                          ? rates_.transfer_bytes * state_.machine.cores()
                          : state_.machine.ddr_bytes_per_s.value / state_.machine.clock_hz.value;
  return 1.25 * empty.cycles + bytes / rate;
}

void RoomFinder::PlaceAway(int s, dsa::Level wanted, Placement* placement) {
  const Step& step = state_.steps[s];
  placement->away.clear();
  placement->away_is_staged = wanted == dsa::Level::kDdr;
  placement->level = wanted;
  for (size_t o = 0; o < step.outputs.size(); ++o) {
    Block* block = state_.NewGlobal(step.outputs[o].elements(), s, wanted == dsa::Level::kGlobal);
    if (block == nullptr) {
      for (const Held& held : placement->away) state_.emitter.Free(held.block);
      placement->away.clear();
      placement->level = dsa::Level::kDdr;
      placement->away_is_staged = false;
      break;
    }
    placement->away.push_back({block, step.outputs[o]});
  }
  if (!placement->away.empty()) return;
  for (size_t o = 0; o < step.outputs.size(); ++o) placement->away.push_back(state_.InDdr(s, o));
}

absl::Status RoomFinder::FindRoom(int s, LayerWork* work, const std::vector<std::vector<Region>>& pieces,
                                  Placement* placement) {
  const dsa::Level out = state_.options.spill_to_global ? dsa::Level::kGlobal : dsa::Level::kDdr;
  const auto spill = [&](bool used_too) {
    Part* part =
        LongestLived(state_.live, dsa::Level::kLocal, [&](const Part& p) { return used_too || !state_.InUse(p, s); });
    if (part == nullptr) return false;
    if (out == dsa::Level::kGlobal) {
      // Makes room in the GB as for a result.
      if (Block* block = state_.NewGlobal(part->region.elements(), s, true)) state_.emitter.Free(block);
    }
    MoveOut(&state_.emitter, state_.NewName(), out, part);
    // The layer reads it from the GB, in large transfers, and not from DDR tile by tile.
    if (used_too && part->level == dsa::Level::kDdr) state_.Stage(s);
    state_.FindSources(s, work);
    return true;
  };
  if (state_.options.results == BufferScope::kLocal) {
    do {
      state_.FindSources(s, work);
      if (Place(s, work, pieces, dsa::Level::kLocal, true, placement)) return absl::OkStatus();
    } while (spill(false));
  }
  PlaceAway(s, state_.options.results == BufferScope::kDdr ? dsa::Level::kDdr : out, placement);
  const dsa::Level level = placement->level;
  do {
    state_.FindSources(s, work);
    if (Place(s, work, pieces, level, true, placement)) return absl::OkStatus();
  } while (spill(true));
  if (Place(s, work, pieces, level, false, placement)) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("not even the smallest tile of the layer fits an LB: it takes ",
                                                   static_cast<int64_t>(least_bytes_), " bytes of ",
                                                   static_cast<int64_t>(state_.machine.groups[0].local_bytes.value),
                                                   " (a reduction is cut only where it is a product)"));
}

}  // namespace fusion::graph_turbo
