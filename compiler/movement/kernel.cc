#include "compiler/movement/kernel.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace fusion::movement {

const char* StrategyName(const Step& step) {
  // A routine is "scalar" with its call behind, as in the texts of which stored keys are the hashes.
  static const char* const kNames[] = {"scalar",           "map",     "transpose", "row_reduction", "prefix", "tile",
                                       "threadgroup_tile", "library", "scalar"};
  static_assert(std::size(kNames) == std::variant_size_v<Strategy>);
  return kNames[step.strategy.index()];
}

bool AreAlternatives(const Step& a, const Step& b) {
  return a.runs_if && b.runs_if && a.runs_if->buffer == b.runs_if->buffer && a.runs_if->finite != b.runs_if->finite;
}

int VectorAxisOf(const Step& step) {
  if (const auto* map = step.As<VectorMap>()) return map->axis;
  if (const auto* transpose = step.As<BlockedTranspose>()) return transpose->axis;
  if (const auto* row = step.As<RowReduction>()) return row->axis;
  const auto* prefix = step.As<PrefixPass>();
  return prefix != nullptr ? prefix->vector_axis : -1;
}

bool HasStreamingStores(const Step& step) {
  const auto* map = step.As<VectorMap>();
  const auto* transpose = step.As<BlockedTranspose>();
  return (map != nullptr && map->streaming_stores) || (transpose != nullptr && transpose->streaming_stores);
}

const std::vector<Step>& SharedCopiesOf(const Step& step) {
  static const std::vector<Step>* const kNone = new std::vector<Step>();
  const auto* threadgroup = step.As<ThreadgroupTile>();
  return threadgroup != nullptr ? threadgroup->shared_copies : *kNone;
}

const Bound* StoreLimitOf(const Step& step) {
  const auto* tile = step.As<RegisterTile>();
  const auto* threadgroup = step.As<ThreadgroupTile>();
  const std::optional<Bound>* limit = tile != nullptr          ? &tile->store_limit
                                      : threadgroup != nullptr ? &threadgroup->store_limit
                                                               : nullptr;
  return limit != nullptr && *limit ? &**limit : nullptr;
}

void VisitSteps(const Phase& phase, const std::function<void(const Step&)>& f) {
  for (const Step& step : phase.steps) {
    for (const Step& shared_copy : SharedCopiesOf(step)) f(shared_copy);
    f(step);
  }
}

void VisitSteps(Phase* phase, const std::function<void(Step*)>& f) {
  for (Step& step : phase->steps) {
    if (auto* threadgroup = step.As<ThreadgroupTile>()) {
      for (Step& shared_copy : threadgroup->shared_copies) f(&shared_copy);
    }
    f(&step);
  }
}

void VisitBuffers(const Step& step, const std::function<void(int)>& f) {
  const std::function<void(const te::Index&)> in_index = [&](const te::Index& index) {
    for (const te::Index::Part& part : index.parts()) {
      if (part.term.kind == te::TermKind::kLoad) f(part.term.tensor);
      for (const te::Index& inner : part.term.indices) in_index(inner);
      if (part.term.inner != nullptr) in_index(*part.term.inner);
    }
  };
  const auto in_pred = [&](const te::Pred& pred) {
    for (const te::Comparison& c : pred) in_index(c.lhs), in_index(c.rhs);
  };
  const auto in_scalar = [&](const te::Scalar& s) {
    te::Visit(s, [&](const te::ScalarNode& node) {
      if (node.kind == te::ScalarKind::kLoad) f(node.tensor);
      for (const te::Index& index : node.indices) in_index(index);
      if (node.kind == te::ScalarKind::kFromIndex) in_index(node.index);
      in_pred(node.pred);
    });
  };
  for (const te::Scalar& s : step.body) in_scalar(s);
  for (const te::Scalar& s : step.then) in_scalar(s);
  if (step.reduction) {
    for (const te::Scalar& s : step.reduction->init) in_scalar(s);
    in_pred(step.reduction->pred);
  }
  if (const auto* routine = step.As<RoutineCall>()) {
    for (int buffer : routine->inputs) f(buffer);
  }
  for (const Loop& loop : step.loops) {
    if (loop.limit) in_index(*loop.limit);
  }
  for (const Store& store : step.stores) {
    in_index(store.address);
    f(store.buffer);
  }
  if (step.lane_limit) in_index(step.lane_limit->index);
  if (const Bound* const limit = StoreLimitOf(step)) in_index(limit->index);
  if (step.look) f(step.look->buffer);
  if (step.runs_if) f(step.runs_if->buffer);
}

const RowNest* RowNestOf(const Phase& phase, int step) {
  for (const RowNest& nest : phase.row_nests) {
    if (nest.first <= step && step < nest.first + nest.count) return &nest;
  }
  return nullptr;
}

const RowNest* RowNestAt(const Phase& phase, int first) {
  const RowNest* nest = RowNestOf(phase, first);
  return nest != nullptr && nest->first == first ? nest : nullptr;
}

const TaskLoop* TaskLoopOf(const Phase& phase, int step) {
  for (const TaskLoop& loop : phase.task_loops) {
    if (loop.first <= step && step < loop.first + loop.count) return &loop;
  }
  return nullptr;
}

int64_t TurnsOf(const Step& step) { return step.turn ? step.turn->axis.extent : 1; }

void SubstituteAxes(Step* step, const std::function<const te::Index*(const te::Axis&)>& map) {
  for (te::Scalar& s : step->body) s = te::Substitute(s, map);
  for (te::Scalar& s : step->then) s = te::Substitute(s, map);
  for (Store& store : step->stores) store.address = te::Substitute(store.address, map);
  if (step->reduction) {
    step->reduction->pred = te::Substitute(step->reduction->pred, map);
    for (te::Scalar& s : step->reduction->init) s = te::Substitute(s, map);
  }
  for (Loop& loop : step->loops) {
    if (loop.limit) loop.limit = te::Substitute(*loop.limit, map);
  }
  if (step->lane_limit) step->lane_limit->index = te::Substitute(step->lane_limit->index, map);
}

const LibraryCall* LibraryCallOf(const Phase& phase) {
  return phase.steps.size() == 1 ? phase.steps[0].As<LibraryCall>() : nullptr;
}

int64_t Phase::tasks() const {
  int64_t count = 1;
  for (const te::Axis& axis : grid) count *= axis.extent;
  return count;
}

std::vector<PhaseRange> Kernel::BetweenBarriers() const {
  std::vector<PhaseRange> ranges;
  for (size_t p = 0; p < phases.size(); ++p) {
    if (p == 0 || !phases[p].beside) ranges.push_back({p, p});
    ranges.back().end = p + 1;
  }
  return ranges;
}

int64_t Kernel::TripsOf(size_t phase) const {
  for (const PhaseLoop& loop : phase_loops) {
    if (loop.first <= phase && phase < loop.end) return loop.trips;
  }
  return 1;
}

int Kernel::num_args() const {
  int count = 0;
  for (const Buffer& buffer : buffers) count += IsArgument(buffer);
  return count;
}

namespace {

constexpr int64_t kAlignBytes = 64;

// The first and the last step or row nest, counted through all phases, that touch a buffer.
struct Lifetime {
  int first = std::numeric_limits<int>::max(), last = -1;
};

// Rings, and what is written before the loop and read by any of its iterations, live until the loop, whose steps have
// the numbers from `begin` to `end`, is through. Any other buffer is written anew by each iteration that reads it.
void LiveThroughLoop(const Kernel& kernel, int begin, int end, std::vector<Lifetime>* lifetimes) {
  for (size_t b = 0; b < lifetimes->size(); ++b) {
    Lifetime& lifetime = (*lifetimes)[b];
    if (lifetime.first > end || lifetime.last < begin) continue;
    if (kernel.buffers[b].ring) lifetime.first = std::min(lifetime.first, begin);
    if (kernel.buffers[b].ring || lifetime.first < begin) lifetime.last = std::max(lifetime.last, end);
  }
}

std::vector<Lifetime> Lifetimes(const Kernel& kernel) {
  std::vector<Lifetime> lifetimes(kernel.buffers.size());
  int number = 0;
  const auto touch = [&](int buffer) {
    lifetimes[buffer].first = std::min(lifetimes[buffer].first, number);
    lifetimes[buffer].last = number;
  };
  for (const Phase& phase : kernel.phases) {
    std::vector<int> number_of(phase.steps.size());
    for (size_t s = 0; s < phase.steps.size(); ++s) {
      number_of[s] = number;
      const Step& step = phase.steps[s];
      // The shared-memory copies of a step run repeatedly while the step runs, so they have the step's number. The
      // steps of a row nest, which take turns, have one number together.
      for (const Step& shared_copy : SharedCopiesOf(step)) VisitBuffers(shared_copy, touch);
      VisitBuffers(step, touch);
      const RowNest* nest = RowNestOf(phase, static_cast<int>(s));
      if (nest == nullptr || static_cast<int>(s) == nest->first + nest->count - 1) ++number;
    }
    for (const TaskLoop& loop : phase.task_loops) {
      if (loop.count < 1) continue;  // Verify refuses it
      LiveThroughLoop(kernel, number_of[loop.first], number_of[loop.first + loop.count - 1], &lifetimes);
    }
  }
  return lifetimes;
}

// Adds one line of slack: whole-vector reads may pass the end, and pitches should be no multiple of 4096 bytes.
int64_t ScratchBytes(const Buffer& buffer) {
  return (SizeBytes(buffer) + kAlignBytes - 1) / kAlignBytes * kAlignBytes + kAlignBytes;
}

}  // namespace

std::vector<int64_t> Kernel::scratch_offset_bytes() const {
  const std::vector<Lifetime> lifetimes = Lifetimes(*this);
  std::vector<int64_t> offsets(buffers.size(), -1);
  std::vector<size_t> largest_first;
  for (size_t b = 0; b < buffers.size(); ++b) {
    if (buffers[b].scope == Scope::kBlock) largest_first.push_back(b);
  }
  std::stable_sort(largest_first.begin(), largest_first.end(),
                   [&](size_t x, size_t y) { return ScratchBytes(buffers[x]) > ScratchBytes(buffers[y]); });
  for (const size_t b : largest_first) {
    // First fit among the buffers that are alive at the same time; a buffer that no step names is always alive.
    const auto meet = [&](const Lifetime& x, const Lifetime& y) {
      return x.last < 0 || y.last < 0 || (x.first <= y.last && y.first <= x.last);
    };
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (const size_t other : largest_first) {
      if (offsets[other] >= 0 && meet(lifetimes[b], lifetimes[other])) {
        taken.emplace_back(offsets[other], offsets[other] + ScratchBytes(buffers[other]));
      }
    }
    std::sort(taken.begin(), taken.end());
    int64_t at = 0;
    for (const auto& [begin, end] : taken) {
      if (begin - at >= ScratchBytes(buffers[b])) break;
      at = std::max(at, end);
    }
    offsets[b] = at;
  }
  return offsets;
}

int64_t Kernel::PlannedScratchBytes() const {
  int64_t bytes = 0;
  const std::vector<int64_t> offsets = scratch_offset_bytes();
  for (size_t b = 0; b < offsets.size(); ++b) {
    if (offsets[b] >= 0) bytes = std::max(bytes, offsets[b] + ScratchBytes(buffers[b]));
  }
  return bytes;
}

}  // namespace fusion::movement
