#include "compiler/movement/rereads.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>

#include "compiler/cost/caches.h"
#include "compiler/movement/traffic.h"

namespace fusion::movement {
namespace {

using te::Axis;
using te::Index;

// A loop of the text: an axis, or some of its iterations where a tile cuts it.
struct Level {
  int axis = -1;
  double trips = 1;
};

// The loops around a step's innermost point, outermost first. The first `grid` of them are the grid's.
struct Nest {
  std::vector<Level> levels;
  size_t grid = 0;
};

double Ceil(double extent, double tile) { return std::max(1.0, std::ceil(extent / tile)); }

Nest NestOf(const Phase& phase, const Step& step, double lanes) {
  Nest nest;
  const auto add = [&](int axis, double trips) {
    if (trips > 1) nest.levels.push_back({axis, trips});
  };
  for (const Axis& axis : phase.grid) add(axis.id, static_cast<double>(axis.extent));
  nest.grid = nest.levels.size();
  if (step.turn) add(step.turn->axis.id, static_cast<double>(step.turn->axis.extent));
  const auto* const tile = step.As<RegisterTile>();
  double rows = 1, vectors = 1, vector_lanes = 1;
  for (const Loop& loop : step.loops) {
    const double trips = MeanTrips(loop);
    if (tile != nullptr && loop.axis.id == tile->row_axis) {
      rows = trips;
    } else if (tile != nullptr && loop.axis.id == tile->outer_axis) {
      vectors = trips;
    } else if (tile != nullptr && loop.axis.id == tile->lane_axis) {
      vector_lanes = trips;
    } else {
      add(loop.axis.id, trips);
    }
  }
  if (tile != nullptr) {
    add(tile->lane_axis, Ceil(vector_lanes, lanes));
    add(tile->row_axis, Ceil(rows, tile->row_count));
  }
  if (step.reduction && !step.Is<PrefixPass>()) {  // its pass is a loop
    for (const Axis& axis : step.reduction->axes) add(axis.id, static_cast<double>(axis.extent));
  }
  if (tile != nullptr) {
    add(tile->row_axis, std::min<double>(rows, tile->row_count));
    add(tile->outer_axis, vectors);
    add(tile->lane_axis, std::min(vector_lanes, lanes));
  }
  return nest;
}

double SumOf(const std::map<int, double>& touched) {
  double sum = 0;
  for (const auto& [buffer, bytes] : touched) sum += bytes;
  return sum;
}

// A term of an address: how far it moves with each of how many values.
struct Stride {
  double step = 0, values = 1;
};

// The largest difference of an address's values while some axes move.
double SpanOf(const Index& address, const std::function<double(int axis)>& trips);

double SpanOf(const te::Term& term, const std::function<double(int axis)>& trips) {
  switch (term.kind) {
    case te::TermKind::kAxis:
      return std::max(0.0, trips(term.axis.id) - 1);
    case te::TermKind::kFloorDiv:
      return std::floor(SpanOf(*term.inner, trips) / static_cast<double>(term.divisor));
    case te::TermKind::kMod:
      return std::min(SpanOf(*term.inner, trips), static_cast<double>(term.divisor - 1));
    case te::TermKind::kLoad: {
      double values = 1;
      std::vector<Axis> axes;
      for (const Index& index : term.indices) te::CollectAxes(index, &axes);
      for (const Axis& axis : axes) values *= std::max(1.0, trips(axis.id));
      const auto range = static_cast<double>(term.load_range.hi - term.load_range.lo);
      return std::min(values - 1, std::max(0.0, range));
    }
  }
  return 0;
}

double SpanOf(const Index& address, const std::function<double(int axis)>& trips) {
  double span = 0;
  for (const Index::Part& part : address.parts()) {
    span += static_cast<double>(std::abs(part.coefficient)) * SpanOf(part.term, trips);
  }
  return span;
}

// The bytes of the distinct lines that an address reaches while each axis makes so many trips. Gaps between lines do
// not count.
double Reached(const Index& address, DType dtype, int line_bytes, const std::function<double(int axis)>& trips) {
  std::vector<Stride> strides;
  for (const Index::Part& part : address.parts()) {
    const double values = SpanOf(part.term, trips) + 1;
    if (values > 1) strides.push_back({static_cast<double>(std::abs(part.coefficient)), values});
  }
  std::sort(strides.begin(), strides.end(), [](const Stride& a, const Stride& b) { return a.step < b.step; });
  // From the smallest stride on: a stride within what the smaller ones span widens it, one beyond it repeats it.
  double elements = 1, span = 1, run = 1;
  for (const Stride& stride : strides) {
    const double wider = span + stride.step * (stride.values - 1);
    if (stride.step > span) {
      elements *= stride.values;
    } else {
      elements = std::min(elements * stride.values, elements * wider / span);
      if (run == span) run = wider;
    }
    span = wider;
  }
  const auto bytes = static_cast<double>(DTypeBytes(dtype));
  const double lines = std::max(1.0, run * bytes / line_bytes);
  const double apart = std::max(1.0, elements / run);  // runs, each in lines of its own
  return std::min(apart * lines * line_bytes, std::max(span * bytes, static_cast<double>(line_bytes)));
}

// Footprints: what a step's loads and stores reach while the levels from a number on run.
class Footprints {
 public:
  Footprints(const Kernel& kernel, const Phase& phase, const Step& step, const DeviceModel& device)
      : kernel_(kernel),
        nest_(NestOf(phase, step, device.vector_bytes / 4.0)),
        line_bytes_(device.line_bytes),
        of_step_(nest_.levels.size() + 1) {
    if (IsRare(step)) return;
    for (const te::Scalar& s : step.body) {
      te::Visit(s, [&](const te::ScalarNode& node) {
        if (node.kind == te::ScalarKind::kLoad) loads_.push_back(&node);
      });
    }
    for (const Store& store : step.stores) stores_.push_back(&store);
  }

  const Nest& nest() const { return nest_; }
  const std::vector<const te::ScalarNode*>& loads() const { return loads_; }

  // The bytes of distinct lines of one load or store.
  double Of(const Index& address, int buffer, size_t first) const {
    const auto trips = [&](int axis) {
      double product = 1;
      for (size_t l = first; l < nest_.levels.size(); ++l) {
        if (nest_.levels[l].axis == axis) product *= nest_.levels[l].trips;
      }
      return product;
    };
    const Buffer& of = kernel_.buffers[buffer];
    return std::min(static_cast<double>(SizeBytes(of)), Reached(address, of.dtype, line_bytes_, trips));
  }

  // By buffer, the bytes that the step touches.
  void AddTo(std::map<int, double>* touched, size_t first) const {
    const auto note = [&](const Index& address, int buffer) {
      double& bytes = (*touched)[buffer];
      bytes = std::max(bytes, Of(address, buffer, first));
    };
    for (const te::ScalarNode* load : loads_) note(load->indices[0], load->tensor);
    for (const Store* store : stores_) note(store->address, store->buffer);
  }

  // The bytes that the step touches.
  double OfStep(size_t first) {
    if (!of_step_[first]) {
      std::map<int, double> touched;
      AddTo(&touched, first);
      of_step_[first] = SumOf(touched);
    }
    return *of_step_[first];
  }

 private:
  const Kernel& kernel_;
  const Nest nest_;
  const int line_bytes_;
  std::vector<const te::ScalarNode*> loads_;
  std::vector<const Store*> stores_;
  std::vector<std::optional<double>> of_step_;  // by first level
};

// The loads that an address depends on.
struct Picks {
  double kinds = 1;      // values that it can have together
  bool of_task = false;  // comes from a task's scratch
};

Picks PicksOf(const Index& address, const Kernel& kernel) {
  Picks picks;
  for (const Index::Part& part : address.parts()) {
    if (part.term.kind != te::TermKind::kLoad) continue;
    picks.kinds *= static_cast<double>(part.term.load_range.hi - part.term.load_range.lo + 1);
    picks.of_task = picks.of_task || !IsArgument(kernel.buffers[part.term.tensor]);
  }
  return picks;
}

// Does the axis move the address, but only by what is loaded for it?
bool IsPick(const Index& address, int axis) {
  bool picks = false;
  for (const Index::Part& part : address.parts()) {
    if (!Index::FromParts(0, {part}).UsesAxis(axis)) continue;
    if (part.term.kind != te::TermKind::kLoad) return false;
    picks = true;
  }
  return picks;
}

bool IsPrefetched(const Step& step, int buffer) {
  const auto* const tile = step.As<RegisterTile>();
  return tile != nullptr && std::any_of(tile->prefetch.begin(), tile->prefetch.end(),
                                        [&](const Prefetch& prefetch) { return prefetch.buffer == buffer; });
}

class Rereads {
 public:
  Rereads(const Kernel& kernel, const Phase& phase, const DeviceModel& device)
      : kernel_(kernel), phase_(phase), device_(device) {
    for (const Step& step : phase.steps) steps_.emplace_back(kernel, phase, step, device);
    of_tasks_.resize(phase.grid.size() + 1);
  }

  std::vector<Reread> Find() {
    for (size_t s = 0; s < steps_.size(); ++s) {
      for (const te::ScalarNode* load : steps_[s].loads()) {
        if (!IsArgument(kernel_.buffers[load->tensor])) continue;
        load->indices[0].HasLoad() ? NotePicked(*load, s) : Note(*load, s);
      }
    }
    return std::move(found_);
  }

 private:
  void Note(const te::ScalarNode& load, size_t number) {
    Footprints* const step = &steps_[number];
    const std::vector<Level>& levels = step->nest().levels;
    const Index& address = load.indices[0];
    const auto moves = [&](size_t level) { return address.UsesAxis(levels[level].axis); };
    bool moved_by_grid = false;
    for (size_t l = 0; l < step->nest().grid; ++l) moved_by_grid = moved_by_grid || moves(l);
    for (size_t l = levels.size(); l-- > 0;) {
      const bool of_grid = l < step->nest().grid;
      if (moves(l) || (of_grid && !moved_by_grid)) continue;
      const double between = of_grid ? OfTasks(l + 1) : step->OfStep(l + 1);
      if (!LeavesPrivateCache(between, device_)) continue;
      double around = levels[l].trips - 1;
      for (size_t outer = 0; outer < l; ++outer) around *= levels[outer].trips;
      found_.push_back({number, load.tensor, around * step->Of(address, load.tensor, l + 1), between,
                        IsPrefetched(phase_.steps[number], load.tensor)});
    }
  }

  // A loop that moves an address only by what it loads picks among places, and reads each of them several times. Between
  // two reads of one lie, on average, as many iterations as there are places. A load from a task's own scratch is another
  // pick in each task.
  void NotePicked(const te::ScalarNode& load, size_t number) {
    Footprints* const step = &steps_[number];
    const std::vector<Level>& levels = step->nest().levels;
    const Index& address = load.indices[0];
    const Picks picks = PicksOf(address, kernel_);
    double found = 1;  // picks that inner loops find
    for (size_t l = levels.size(); l-- > 0;) {
      const bool of_grid = l < step->nest().grid;
      const bool picked = IsPick(address, levels[l].axis) ||
                          (of_grid && picks.of_task && !address.UsesAxis(levels[l].axis));
      if (!picked) continue;
      const double trips = levels[l].trips, different = std::min(trips, picks.kinds / found);
      found = std::min(picks.kinds, found * trips);
      const double each = step->Of(address, load.tensor, l + 1);
      const double between = different * (of_grid ? OfTasks(l + 1) : step->OfStep(l + 1));
      if (different >= trips || !LeavesPrivateCache(between, device_)) continue;
      double around = trips - different;
      for (size_t outer = 0; outer < l; ++outer) around *= levels[outer].trips;
      found_.push_back({number, load.tensor, around * each, between, IsPrefetched(phase_.steps[number], load.tensor)});
    }
  }

  // The bytes that all steps of a task, or of the tasks of some axes of the grid, touch.
  double OfTasks(size_t first) {
    if (!of_tasks_[first]) {
      std::map<int, double> touched;
      for (const Footprints& step : steps_) step.AddTo(&touched, first);
      of_tasks_[first] = SumOf(touched);
    }
    return *of_tasks_[first];
  }

  const Kernel& kernel_;
  const Phase& phase_;
  const DeviceModel& device_;
  std::vector<Footprints> steps_;
  std::vector<std::optional<double>> of_tasks_;  // by first level
  std::vector<Reread> found_;
};

}  // namespace

std::vector<Reread> RereadsOf(const Kernel& kernel, const Phase& phase, const DeviceModel& device) {
  if (!device.CachesScratch()) return {};
  double all = 0;
  for (const Buffer& buffer : kernel.buffers) all += static_cast<double>(SizeBytes(buffer));
  if (!LeavesPrivateCache(all, device)) return {};
  return Rereads(kernel, phase, device).Find();
}

}  // namespace fusion::movement
