#include "compiler/plan/planners/graph_turbo/lowering/lower.h"

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/plan/planners/graph_turbo/lowering/find_room.h"
#include "compiler/plan/planners/graph_turbo/lowering/memory_state.h"
#include "runtime/base/status_macros.h"

namespace fusion::graph_turbo {
namespace {

// Layers ahead whose weights are brought into the GB while there is room.
constexpr int kLookAhead = 6;

absl::StatusOr<Units> UnitsOf(const dsa::Machine& machine) {
  Units units;
  if (machine.groups.size() == 1 && machine.groups[0].local_bytes.value > 0) {
    double fast = 0, slow = 0;
    for (const std::string& name : machine.groups[0].units) {
      const dsa::ComputeUnit& unit = *machine.Unit(name);
      if (unit.kind == dsa::UnitKind::kMatrix) units.matrix = name;
      if (unit.kind != dsa::UnitKind::kVector) continue;
      if (units.vector.empty() || unit.per_cycle.value > fast) {
        units.vector = name;
        fast = unit.per_cycle.value;
      }
      if (units.special.empty() || unit.per_cycle.value < slow) {
        units.special = name;
        slow = unit.per_cycle.value;
      }
    }
  }
  if (units.matrix.empty() || units.vector.empty()) {
    return absl::UnimplementedError(
        absl::StrCat(machine.name,
                     " has cores without an LB, a matrix or a vector unit; programs are made for cores that have all"));
  }
  return units;
}

class Lowerer {
 public:
  explicit Lowerer(MemoryState* state) : state_(*state), room_(state) {}

  absl::StatusOr<LoweredProgram> Run() {
    for (int s = 0; s < static_cast<int>(state_.steps.size()); ++s) {
      const Op& op = state_.graph.ops[state_.steps[s].op];
      RETURN_IF_ERROR(Annotate(LowerStep(s), state_.graph.tensors[op.outputs[0]].name));
      if (!state_.options.across_layers) state_.emitter.Sync();
    }
    std::tie(state_.lowered.program, state_.lowered.workload) = std::move(state_.emitter).Take();
    return std::move(state_.lowered);
  }

 private:
  // Makes streams for inputs in DDR, weights and tensors: they pass through the GB.
  void MakeStreams(int s, const Placement& placement, LayerWork* work) {
    for (size_t k = 0; k < work->inputs.size(); ++k) {
      LayerInput& input = work->inputs[k];
      input.streams.clear();
      input.stream_of.clear();
      if (!input.table && IsInDdr(input)) MakeStreamsOf(s, k, placement, &input);
    }
  }

  // A stream for all cores that need the same. Its slots have room for a tile's part, and for so much that the start-up
  // of a transfer from DDR costs little beside it, where the GB has room and the cores need as much. A part that one
  // core alone needs comes from DDR directly, if its tiles are large enough by themselves.
  void MakeStreamsOf(int s, size_t k, const Placement& placement, LayerInput* input) {
    const te::TensorId tensor = state_.LayerOf(state_.steps[s].op).access.program().inputs[k];
    const int64_t panel_elements = static_cast<int64_t>(PanelBytes(state_.machine)) / state_.emitter.element_bytes();
    struct Group {
      std::vector<size_t> cores;
      int64_t tile_elements = 0, all_elements = 0;  // the largest tile's part, what one core needs of all
    };
    std::vector<Group> groups;
    for (size_t c = 0; c < placement.cores.size(); ++c) {
      const CoreWork& core = *placement.cores[c];
      auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& known) {
        return placement.cores[known.cores[0]]->Needed(0, k) == core.Needed(0, k);
      });
      if (group == groups.end()) group = groups.insert(groups.end(), Group());
      group->cores.push_back(c);
      group->tile_elements = std::max(group->tile_elements, core.LargestBox(k));
      group->all_elements = std::max(group->all_elements, core.core_regions()[tensor].elements());
    }
    const int64_t room_elements = state_.emitter.LargestFreeGlobal() / state_.emitter.element_bytes() * 3 / 4 /
                                  (kStreamSlots * static_cast<int64_t>(groups.size()));
    input->stream_of.assign(placement.cores.size(), kNone);
    for (const Group& group : groups) {
      const int64_t wanted = std::min({panel_elements, room_elements, group.all_elements});
      if (group.cores.size() == 1 && wanted < 2 * group.tile_elements) continue;
      Stream stream;
      stream.slot_elements = std::max(wanted, group.tile_elements);
      while (static_cast<int64_t>(stream.slots.size()) < kStreamSlots) {
        Block* block = state_.NewGlobal(stream.slot_elements, s, false);
        if (block == nullptr) break;
        stream.slots.emplace_back().block = block;
      }
      if (stream.slots.size() < 2) {
        for (const Held& slot : stream.slots) state_.emitter.Free(slot.block);
        continue;
      }
      for (const size_t core : group.cores) input->stream_of[core] = static_cast<int>(input->streams.size());
      input->streams.push_back(std::move(stream));
    }
  }

  // Where the GB has room for what the steps until then read and make as well: a weight that pushes out another one, or
  // that results push out, passes DDR twice, and results that find no room beside weights go to DDR.
  void BringWeightsAhead(int s) {
    constexpr int64_t kReadAndMade = 2;  // steps read about as much as they make
    int64_t results = 0;
    for (const Region& output : state_.steps[s].outputs) results += output.elements();
    for (int next = s + 1; next <= s + kLookAhead && next < static_cast<int>(state_.steps.size()); ++next) {
      for (const Region& output : state_.steps[next].outputs) results += output.elements();
      state_.BringWeights(s, next, kReadAndMade * results * state_.emitter.element_bytes());
    }
  }

  absl::Status LowerStep(int s) {
    const Step& step = state_.steps[s];
    state_.parts[s].resize(step.outputs.size());
    const auto empty = [](const Region& output) { return output.elements() == 0; };
    if (std::all_of(step.outputs.begin(), step.outputs.end(), empty)) return absl::OkStatus();
    LayerWork work;
    work.emitter = &state_.emitter;
    work.spare_tables = &state_.spare_tables;
    work.layer = &state_.LayerOf(step.op);
    work.expressions = state_.layers[step.op].expressions;
    work.units = state_.layers[step.op].units;
    work.inputs.resize(state_.graph.ops[step.op].inputs.size());
    state_.BringWeights(s, s);
    if (state_.options.across_layers) BringWeightsAhead(s);
    state_.Stage(s);
    state_.FindSources(s, &work);
    std::vector<std::vector<Region>> pieces = CutOutputs(step.outputs, room_.BindingOf(s, &work));
    pieces.erase(std::remove_if(pieces.begin(), pieces.end(),
                                [](const std::vector<Region>& piece) { return piece[0].elements() == 0; }),
                 pieces.end());
    Placement placement;
    RETURN_IF_ERROR(room_.FindRoom(s, &work, pieces, &placement));
    MakeStreams(s, placement, &work);
    size_t tiles = 0;
    for (const std::unique_ptr<CoreWork>& core : placement.cores) tiles = std::max(tiles, core->tiles());
    for (size_t tile = 0; tile < tiles; ++tile) {
      for (size_t chunk = 0; chunk < static_cast<size_t>(placement.chunks); ++chunk) {
        for (const std::unique_ptr<CoreWork>& core : placement.cores) {
          if (tile < core->tiles()) core->EmitChunk(tile, chunk);
        }
      }
    }
    for (const std::unique_ptr<CoreWork>& core : placement.cores) core->Release();
    for (LayerInput& input : work.inputs) {
      for (const Stream& stream : input.streams) {
        for (const Held& slot : stream.slots) state_.emitter.Free(slot.block);
      }
    }
    for (const auto& [input, held] : state_.staged) {
      for (const MemoryState::Staged& piece : held) state_.emitter.Free(piece.held.block);
    }
    state_.staged.clear();
    KeepResults(s, &placement);
    state_.weights.Forget(s);
    return absl::OkStatus();
  }

  // Makes the parts of the step, takes a model's results to DDR, and frees what nothing reads any more.
  void KeepResults(int s, Placement* placement) {
    const Step& step = state_.steps[s];
    const Op& op = state_.graph.ops[step.op];
    for (size_t o = 0; o < step.outputs.size(); ++o) {
      Part& part = state_.parts[s][o];
      part.region = step.outputs[o];
      part.level = placement->level;
      ResultCounts& counts = state_.lowered.results;
      ++(part.level == dsa::Level::kLocal    ? counts.local
         : part.level == dsa::Level::kGlobal ? counts.global
                                             : counts.ddr);
      part.birth = s;
      part.death = state_.death[s];
      if (placement->level == dsa::Level::kLocal) {
        for (const std::vector<OutputTarget>& targets : placement->targets) part.pieces.push_back(targets[o].local);
      } else {
        part.pieces.push_back(placement->away[o]);
      }
      const bool returned = state_.graph.tensors[op.outputs[o]].model_output;
      if (placement->away_is_staged || (returned && part.level != dsa::Level::kDdr)) {
        const Held to = state_.InDdr(s, o);
        CopyToDdr(&state_.emitter, part.pieces, to, part.region);
        if (placement->away_is_staged) {
          state_.emitter.Free(part.pieces[0].block);
          part.pieces = {to};
          part.level = dsa::Level::kDdr;
        }
      }
      state_.live.push_back(&part);
    }
    std::vector<Part*> left;
    for (Part* part : state_.live) {
      if (part->death > s) {
        left.push_back(part);
        continue;
      }
      for (const Held& piece : part->pieces) state_.emitter.Free(piece.block);
      part->pieces.clear();
    }
    state_.live = std::move(left);
  }

  MemoryState& state_;
  RoomFinder room_;
};

}  // namespace

dsa::Machine OneCluster(const dsa::Machine& machine) {
  dsa::Machine one = machine;
  one.clusters = 1;
  for (double* rate : {&one.ddr_bytes_per_s.value, &one.ddr_bytes_per_s.low, &one.ddr_bytes_per_s.high}) {
    *rate /= machine.clusters;
  }
  return one;
}

absl::StatusOr<LoweredProgram> LowerToProgram(const OpGraph& graph, const std::vector<Step>& steps,
                                              const dsa::Machine& machine, const LowerOptions& options) {
  ASSIGN_OR_RETURN(const Units units, UnitsOf(machine));
  MemoryState state(graph, steps, machine, units, options);
  return Lowerer(&state).Run();
}

}  // namespace fusion::graph_turbo
