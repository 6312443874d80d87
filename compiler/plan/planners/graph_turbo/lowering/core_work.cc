#include "compiler/plan/planners/graph_turbo/lowering/core_work.h"

#include <algorithm>
#include <utility>

namespace fusion::graph_turbo {

double PanelBytes(const dsa::Machine& machine) {
  return 8 * machine.dma_startup_cycles.value * machine.ddr_bytes_per_s.value / machine.clock_hz.value;
}

bool IsInDdr(const LayerInput& input) {
  const auto in_ddr = [](const Held* piece) { return piece->block->memory.level == dsa::Level::kDdr; };
  return !input.sources.empty() && std::all_of(input.sources.begin(), input.sources.end(), in_ddr);
}

CoreWork::CoreWork(LayerWork* work, int core, std::vector<Region> outputs)
    : work_(work), core_number_(core), outputs_(std::move(outputs)) {
  core_ = work_->layer->access.RequiredTensors(outputs_);
}

CoreWork::~CoreWork() {
  if (work_->spare_tables != nullptr && !table_.empty()) work_->spare_tables->push_back(std::move(table_));
}

bool CoreWork::Resident(size_t input) const {
  const LayerInput& known = work_->inputs[input];
  if (known.table) return true;
  const Region& needed = core_[work_->layer->access.program().inputs[input]];
  if (needed.elements() == 0) return true;
  return std::any_of(known.sources.begin(), known.sources.end(), [&](const Held* piece) {
    return piece->block->memory == dsa::Memory{dsa::Level::kLocal, {0, core_number_}} && Contains(piece->box, needed);
  });
}

const Region& CoreWork::Needed(size_t tile, size_t input) const {
  return Box(tile, 0, work_->layer->access.program().inputs[input]);
}

int64_t CoreWork::LargestBox(size_t input) const {
  const te::TensorId tensor = work_->layer->access.program().inputs[input];
  if (!rings_.empty() && rings_[tensor].whole) return core_[tensor].elements();
  int64_t elements = 1;
  for (size_t tile = 0; tile < tiles_; ++tile) {
    for (size_t chunk = 0; chunk < chunks_; ++chunk) {
      elements = std::max(elements, Box(tile, chunk, tensor).elements());
    }
  }
  return elements;
}

bool CoreWork::ReserveRing(te::TensorId tensor, bool whole, bool made) {
  Ring& ring = rings_[tensor];
  ring.whole = whole;
  int64_t elements = 0;
  bool changes = false;
  const Region* last = nullptr;
  for (size_t tile = 0; tile < tiles_; ++tile) {
    for (size_t chunk = 0; chunk < (made ? 1 : chunks_); ++chunk) {
      const Region& box = Box(tile, chunk, tensor);
      elements = std::max(elements, box.elements());
      changes = changes || (last != nullptr && !(*last == box));
      last = &box;
    }
  }
  if (whole) elements = core_[tensor].elements();
  if (elements == 0) return true;
  const size_t blocks = !whole && (changes || (made && tiles_ > 1)) ? 2 : 1;
  while (ring.blocks.size() < blocks) {
    Block* block = work_->emitter->NewLocal(core_number_, elements);
    if (block == nullptr) return false;
    ring.blocks.push_back(block);
  }
  return true;
}

bool CoreWork::Reserve(const Tiling& tiling, const std::vector<OutputTarget>& targets) {
  const te::Program& program = work_->layer->access.program();
  tiling_ = tiling;
  targets_ = targets;
  rings_.assign(program.tensors.size(), {});
  made_.assign(program.tensors.size(), {});
  const std::vector<std::vector<Region>> tiles = TilesOf(outputs_, tiling);
  tiles_ = tiles.size();
  chunks_ = static_cast<size_t>(tiling.chunks);
  if (table_.empty() && work_->spare_tables != nullptr && !work_->spare_tables->empty()) {
    table_ = std::move(work_->spare_tables->back());
    work_->spare_tables->pop_back();
  }
  const size_t tensors = program.tensors.size();
  table_.resize(std::max(table_.size(), tiles_ * chunks_ * tensors));
  absl::Span<Region> left = absl::MakeSpan(table_);
  for (const std::vector<Region>& outputs : tiles) {
    for (int64_t chunk = 0; chunk < tiling.chunks; ++chunk, left.remove_prefix(tensors)) {
      work_->layer->access.RequiredTensors(outputs, ChunkPart(*work_->layer, tiling.chunks, chunk),
                                           left.subspan(0, tensors));
    }
  }
  bool fits = true;
  for (size_t k = 0; k < work_->inputs.size() && fits; ++k) {
    if (!Resident(k)) fits = ReserveRing(program.inputs[k], tiling.whole[k], false);
  }
  for (const Segment& segment : work_->layer->segments) {
    for (const te::TensorId made : segment.out) {
      const int output = work_->layer->output_of[made];
      const bool in_place = output != kNone && targets_[output].local.block != nullptr;
      if (!in_place && fits) fits = ReserveRing(made, false, true);
    }
  }
  if (!fits) Release();
  return fits;
}

void CoreWork::Release() {
  for (const Ring& ring : rings_) {
    for (Block* block : ring.blocks) work_->emitter->Free(block);
  }
  rings_.clear();
}

Held CoreWork::Turn(te::TensorId tensor, const Region& region) {
  Ring& ring = rings_[tensor];
  if (!ring.box.nothing) ring.current = (ring.current + 1) % ring.blocks.size();
  ring.box = region;
  Block* const block = ring.blocks[ring.current];
  Emitter::Recycle(block);
  return {block, region};
}

// The box of `region` and of what the tiles and chunks behind the one at hand need, as many of them as fit, where it
// holds nothing else.
Region CoreWork::PanelFrom(te::TensorId tensor, const Region& region, int64_t most_elements, size_t tile,
                           size_t chunk) const {
  Region panel = region, box = region;
  int64_t needed = region.elements();
  while (true) {
    if (++chunk >= chunks_) {
      chunk = 0;
      if (++tile >= tiles_) return panel;
    }
    const Region& next = Box(tile, chunk, tensor);
    if (Contains(box, next)) continue;
    box.Join(next);
    needed += next.elements();
    if (box.elements() > most_elements) return panel;
    if (box.elements() <= needed) panel = box;
  }
}

Held CoreWork::Streamed(size_t input, Stream* stream, const Region& region, size_t tile, size_t chunk) {
  for (const Held& slot : stream->slots) {
    if (!slot.box.nothing && Contains(slot.box, region)) return slot;
  }
  Held& slot = stream->slots[stream->next];
  stream->next = (stream->next + 1) % stream->slots.size();
  Emitter::Recycle(slot.block);
  const te::TensorId tensor = work_->layer->access.program().inputs[input];
  slot.box = rings_[tensor].whole ? region : PanelFrom(tensor, region, stream->slot_elements, tile, chunk);
  Gather(work_->emitter, work_->inputs[input].sources, slot, slot.box);
  return slot;
}

Held CoreWork::Fetch(size_t input, const Region& region, size_t tile, size_t chunk) {
  LayerInput& known = work_->inputs[input];
  const te::TensorId tensor = work_->layer->access.program().inputs[input];
  for (const Held* piece : known.sources) {
    const dsa::Memory here{dsa::Level::kLocal, {0, core_number_}};
    if (piece->block->memory == here && Contains(piece->box, core_[tensor])) return *piece;
  }
  Ring& ring = rings_[tensor];
  const Region& wanted = ring.whole ? core_[tensor] : region;
  if (!ring.box.nothing && Contains(ring.box, wanted)) return {ring.blocks[ring.current], ring.box};
  const Held to = Turn(tensor, wanted);
  const int stream = known.stream_of.empty() ? kNone : known.stream_of[core_number_];
  if (stream == kNone) {
    Gather(work_->emitter, known.sources, to, wanted);
  } else {
    work_->emitter->Copy(Streamed(input, &known.streams[stream], wanted, tile, chunk), to, wanted);
  }
  return to;
}

void CoreWork::EmitSegment(size_t tile, size_t number, size_t chunk) {
  const Layer& layer = *work_->layer;
  const Segment& segment = layer.segments[number];
  const absl::Span<const Region> tensors =
      absl::MakeConstSpan(table_).subspan((tile * chunks_ + chunk) * core_.size(), core_.size());
  // An instance may need only some outputs of a layer (a Split).
  if (std::all_of(segment.out.begin(), segment.out.end(), [&](te::TensorId out) { return tensors[out].nothing; }))
    return;
  Emitter::Computation computation;
  computation.kind = segment.unit == SegmentUnit::kMatrix   ? dsa::Kind::kMatrix
                     : segment.unit == SegmentUnit::kGather ? dsa::Kind::kLoad
                                                            : dsa::Kind::kVector;
  computation.core = core_number_;
  computation.unit = &work_->units[number];
  computation.expression = work_->expressions[number];
  computation.work = segment.Work(tensors);
  if (number == 0 && tiling_.chunks > 1) {
    computation.reduce = ChunkPart(layer, tiling_.chunks, static_cast<int64_t>(chunk)).range;
    computation.work *= static_cast<double>(computation.reduce.length()) / static_cast<double>(layer.chunk_extent);
    computation.accumulate = chunk > 0;
  }
  // Tables stand before other operands.
  for (const bool tables : {true, false}) {
    for (size_t i = 0; i < segment.in.size(); ++i) {
      const te::TensorId tensor = segment.in[i];
      const Region& region = tensors[tensor];
      if (segment.table[i] != tables || region.elements() == 0) continue;
      const int input = layer.input_of[tensor];
      computation.operands.push_back({tables           ? *work_->inputs[input].sources[0]
                                      : input != kNone ? Fetch(static_cast<size_t>(input), region, tile, chunk)
                                                       : made_[tensor],
                                      &region, static_cast<int>(i)});
    }
  }
  computation.expression_outputs = static_cast<int>(segment.out.size());
  for (size_t o = 0; o < segment.out.size(); ++o) {
    const te::TensorId tensor = segment.out[o];
    if (tensors[tensor].nothing) continue;
    const int output = layer.output_of[tensor];
    const bool in_place = output != kNone && targets_[output].local.block != nullptr;
    if (chunk == 0) made_[tensor] = in_place ? targets_[output].local : Turn(tensor, tensors[tensor]);
    computation.results.push_back({made_[tensor], &tensors[tensor], static_cast<int>(o)});
  }
  work_->emitter->Compute(computation);
  if (number == 0 && static_cast<int64_t>(chunk) + 1 < tiling_.chunks) return;
  for (const te::TensorId tensor : segment.out) {
    const int output = layer.output_of[tensor];
    if (output == kNone || tensors[tensor].nothing) continue;
    const OutputTarget& target = targets_[output];
    if (target.local.block == nullptr) work_->emitter->Copy(made_[tensor], target.away, tensors[tensor]);
  }
}

void CoreWork::EmitChunk(size_t tile, size_t chunk) {
  EmitSegment(tile, 0, chunk);
  if (chunk + 1 < chunks_) return;
  for (size_t segment = 1; segment < work_->layer->segments.size(); ++segment) EmitSegment(tile, segment, 0);
}

}  // namespace fusion::graph_turbo
