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
constexpr int64_t kStreamSlots = 4;

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
  // Weights that are not in the GB pass through it, if cores need the same parts of them.
  void MakeStreams(int s, const Placement& placement, LayerWork* work) {
    for (size_t k = 0; k < work->inputs.size(); ++k) {
      LayerInput& input = work->inputs[k];
      input.stream = {};
      if (!input.weight || input.table || placement.cores.size() < 2) continue;
      if (input.sources[0]->block->memory.level != dsa::Level::kDdr) continue;
      if (!(placement.cores[0]->Needed(0, k) == placement.cores[1]->Needed(0, k))) continue;
      int64_t elements = 0;
      for (const std::unique_ptr<CoreWork>& core : placement.cores) {
        elements = std::max(elements, core->LargestBox(k));
      }
      while (static_cast<int64_t>(input.stream.slots.size()) < kStreamSlots) {
        Block* block = state_.NewGlobal(elements, s, false);
        if (block == nullptr) break;
        input.stream.slots.push_back({block, {}});
      }
      if (input.stream.slots.size() == 1) {
        state_.emitter.Free(input.stream.slots[0].block);
        input.stream.slots.clear();
      }
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
      for (const Held& slot : input.stream.slots) state_.emitter.Free(slot.block);
    }
    for (const auto& [input, held] : state_.staged) {
      for (const Held& piece : held) state_.emitter.Free(piece.block);
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
