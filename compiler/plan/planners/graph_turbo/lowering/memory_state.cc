#include "compiler/plan/planners/graph_turbo/lowering/memory_state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace fusion::graph_turbo {
namespace {

// Pieces in which a tensor of DDR comes into the GB, so that the cores need not wait for all of it.
constexpr int64_t kStagedPieces = 8;

std::string Word(const std::string& name) {
  std::string word;
  for (const char c : name) word += absl::ascii_isalnum(c) ? c : '_';
  return word;
}

}  // namespace

MemoryState::MemoryState(const OpGraph& graph, const std::vector<Step>& steps, const dsa::Machine& machine,
                         const Units& units, const LowerOptions& options)
    : graph(graph),
      steps(steps),
      machine(machine),
      units(units),
      options(options),
      emitter(machine, "model", options.dtype, options.instructions),
      weights(&emitter),
      layers(graph.ops.size()),
      parts(steps.size()) {
  AddInputs();
}

const Layer& MemoryState::LayerOf(int op) {
  LayerInfo& info = layers[op];
  if (info.layer) return *info.layer;
  info.layer = std::make_unique<Layer>(MakeLayer(graph.ops[op]));
  for (size_t s = 0; s < info.layer->segments.size(); ++s) {
    const Segment& segment = info.layer->segments[s];
    const std::string name = absl::StrCat("e", op, "_", s, "_", Word(graph.ops[op].name));
    info.expressions.push_back(emitter.AddExpression(name, te::Print(segment.expression, name)));
    lowered.expressions.push_back(segment.expression);
    info.units.push_back(segment.unit == SegmentUnit::kMatrix    ? units.matrix
                         : segment.unit == SegmentUnit::kSpecial ? units.special
                                                                 : units.vector);
  }
  const te::Program& program = info.layer->access.program();
  std::vector<Region> outputs;
  for (const te::TensorId output : program.outputs) outputs.push_back(WholeRegion(program.tensors[output].shape));
  const std::vector<Region> needed = info.layer->access.RequiredTensors(outputs);
  for (const te::TensorId input : program.inputs) info.unread.push_back(needed[input].elements() == 0);
  info.table.resize(graph.ops[op].inputs.size(), false);
  for (const Segment& segment : info.layer->segments) {
    for (size_t i = 0; i < segment.in.size(); ++i) {
      if (!segment.table[i]) continue;
      const std::vector<te::TensorId>& inputs = program.inputs;
      info.table[std::find(inputs.begin(), inputs.end(), segment.in[i]) - inputs.begin()] = true;
    }
  }
  return *info.layer;
}

void MemoryState::AddInputs() {
  for (int t = 0; t < static_cast<int>(graph.tensors.size()); ++t) {
    const Tensor& tensor = graph.tensors[t];
    const bool input = tensor.producer == kNone;
    if ((!input && !tensor.model_output) || NumElements(tensor.shape) == 0) continue;
    const std::string name = absl::StrCat(input ? "in" : "out", t);
    const Region whole = WholeRegion(tensor.shape);
    ddr[t] = {emitter.NewDdr(name, whole.elements(), input, !input), whole};
    if (input) lowered.inputs.push_back({name, t});
    if (!input) lowered.outputs.push_back({name, t});
  }
  std::map<int, std::vector<int>> steps_of;  // by operator
  death.resize(steps.size());
  for (int s = 0; s < static_cast<int>(steps.size()); ++s) {
    steps_of[steps[s].op].push_back(s);
    death[s] = s;
    for (const std::vector<int>& sources : steps[s].sources) {
      for (const int source : sources) death[source] = s;
    }
  }
  for (const auto& [op, steps] : steps_of) {
    const Layer& layer = LayerOf(op);
    for (size_t k = 0; k < graph.ops[op].inputs.size(); ++k) {
      if (graph.ops[op].inputs[k] != kNone) continue;
      const std::string name = absl::StrCat("w", op, "_", k);
      const Region whole = WholeRegion(layer.access.program().tensors[layer.access.program().inputs[k]].shape);
      if (IsUnread(op, k)) continue;
      weights.Add({op, static_cast<int>(k)}, {emitter.NewDdr(name, whole.elements(), true, false), whole}, steps);
      lowered.inputs.push_back({name, kNone, op, static_cast<int>(k)});
    }
  }
}

bool MemoryState::IsUnread(int op, size_t input) {
  LayerOf(op);
  return layers[op].unread[input];
}

Part* MemoryState::PartOf(int s, int tensor) {
  for (size_t o = 0; o < parts[s].size(); ++o) {
    if (graph.ops[steps[s].op].outputs[o] == tensor) return &parts[s][o];
  }
  return nullptr;
}

void MemoryState::BringWeights(int now, int s, int64_t spare_bytes) {
  const Op& op = graph.ops[steps[s].op];
  LayerOf(steps[s].op);
  for (size_t k = 0; k < op.inputs.size(); ++k) {
    if (op.inputs[k] != kNone || layers[steps[s].op].table[k] || IsUnread(steps[s].op, k)) continue;
    // A weight that would take most of the GB passes through it in tiles.
    const Weights::Key key{steps[s].op, static_cast<int>(k)};
    const double bytes = static_cast<double>(weights.InDdr(key).box.elements() * emitter.element_bytes());
    if (bytes > machine.global_bytes.value / 2) continue;
    const bool ahead = s > now;
    if (ahead && static_cast<double>(emitter.LargestFreeGlobal() - spare_bytes) < bytes) continue;
    weights.Bring(key, now, s, /*evict=*/!ahead);
  }
}

void MemoryState::FindSources(int s, LayerWork* work) {
  const Step& step = steps[s];
  const Op& op = graph.ops[step.op];
  for (size_t k = 0; k < op.inputs.size(); ++k) {
    LayerInput& input = work->inputs[k];
    input.sources.clear();
    if (IsUnread(step.op, k)) continue;  // nothing reads it
    input.weight = op.inputs[k] == kNone;
    input.table = layers[step.op].table[k];
    if (input.weight) {
      const Weights::Key key{step.op, static_cast<int>(k)};
      for (const Held& piece : weights.InGlobal(key)) input.sources.push_back(&piece);
      if (input.sources.empty()) input.sources.push_back(&weights.InDdr(key));
      continue;
    }
    if (const auto brought = staged.find(static_cast<int>(k)); brought != staged.end()) {
      for (const Staged& piece : brought->second) input.sources.push_back(&piece.held);
    }
    for (const Held* piece : PiecesOf(s, k)) {
      if (!IsStaged(k, *piece)) input.sources.push_back(piece);
    }
  }
}

Block* MemoryState::NewGlobal(int64_t elements, int s, bool spill) {
  Block* block = emitter.NewGlobal(elements);
  while (block == nullptr && weights.Evict(s, s)) block = emitter.NewGlobal(elements);
  while (block == nullptr && spill) {
    Part* part = LongestLived(live, dsa::Level::kGlobal, [&](const Part& p) { return !InUse(p, s); });
    if (part == nullptr) return nullptr;
    MoveOut(&emitter, NewName(), dsa::Level::kDdr, part);
    block = emitter.NewGlobal(elements);
  }
  return block;
}

bool MemoryState::InUse(const Part& part, int s) {
  const Step& step = steps[s];
  for (size_t k = 0; k < step.sources.size(); ++k) {
    for (const int source : step.sources[k]) {
      if (PartOf(source, graph.ops[step.op].inputs[k]) == &part) return true;
    }
  }
  return false;
}

std::vector<const Held*> MemoryState::PiecesOf(int s, size_t input) {
  const Step& step = steps[s];
  const int tensor = graph.ops[step.op].inputs[input];
  std::vector<const Held*> pieces;
  // An instance may need nothing of a tensor: a part of a concatenation, the other tensors.
  if (graph.tensors[tensor].producer == kNone) pieces.push_back(&ddr.at(tensor));
  for (const int source : step.sources[input]) {
    for (const Held& piece : PartOf(source, tensor)->pieces) pieces.push_back(&piece);
  }
  return pieces;
}

void MemoryState::Stage(int s) {
  const Step& step = steps[s];
  const Op& op = graph.ops[step.op];
  const std::vector<Region> needed = LayerOf(step.op).access.RequiredTensors(step.outputs);
  for (size_t k = 0; k < op.inputs.size(); ++k) {
    if (op.inputs[k] == kNone || IsUnread(step.op, k)) continue;
    const Region& region = needed[layers[step.op].layer->access.program().inputs[k]];
    if (static_cast<double>(region.elements() * emitter.element_bytes()) > machine.global_bytes.value / 2) continue;
    std::vector<const Held*> in_ddr;
    for (const Held* piece : PiecesOf(s, k)) {
      if (piece->block->memory.level == dsa::Level::kDdr && !IsStaged(k, *piece)) in_ddr.push_back(piece);
    }
    for (const Held* piece : in_ddr) {
      const Region wanted = Intersect(piece->box, region);
      if (!wanted.nothing) StagePiece(s, k, *piece, wanted, kStagedPieces / static_cast<int64_t>(in_ddr.size()));
    }
  }
}

bool MemoryState::IsStaged(size_t input, const Held& piece) const {
  const auto known = staged.find(static_cast<int>(input));
  return known != staged.end() && std::any_of(known->second.begin(), known->second.end(),
                                              [&](const Staged& one) { return one.of == piece.block; });
}

void MemoryState::StagePiece(int s, size_t input, const Held& piece, const Region& wanted, int64_t parts) {
  size_t along = 0;
  while (along < wanted.ranges.size() && wanted.ranges[along].length() == 1) ++along;
  std::vector<Region> boxes;
  if (along == wanted.ranges.size()) {
    boxes.push_back(wanted);
  } else {
    const Range& whole = wanted.ranges[along];
    const int64_t length = PieceLength(whole.length(), std::clamp<int64_t>(parts, 1, whole.length()));
    for (int64_t begin = whole.begin; begin < whole.end; begin += length) {
      boxes.push_back(wanted);
      boxes.back().ranges[along] = {begin, std::min(begin + length, whole.end)};
    }
  }
  std::vector<Staged> made;
  for (const Region& box : boxes) {
    Block* block = NewGlobal(box.elements(), s, false);
    if (block == nullptr) {
      for (const Staged& one : made) emitter.Free(one.held.block);
      return;
    }
    made.push_back({{block, box}, piece.block});
  }
  std::vector<Staged>& all = staged[static_cast<int>(input)];
  for (const Staged& one : made) {
    emitter.Copy(piece, one.held, one.held.box);
    all.push_back(one);
  }
}

Held MemoryState::InDdr(int s, size_t output) {
  const int tensor = graph.ops[steps[s].op].outputs[output];
  if (const auto known = ddr.find(tensor); known != ddr.end()) return known->second;
  const Region& region = steps[s].outputs[output];
  return {emitter.NewDdr(NewName(), region.elements(), false, false), region};
}

}  // namespace fusion::graph_turbo
