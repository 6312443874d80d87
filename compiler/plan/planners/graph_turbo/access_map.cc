#include "compiler/plan/planners/graph_turbo/access_map.h"

#include <algorithm>
#include <utility>

#include "compiler/te/program/transform.h"

namespace fusion::graph_turbo {

using te::Index;
using te::Interval;

void Region::Join(const Region& other) {
  if (other.nothing) return;
  if (nothing) {
    *this = other;
    return;
  }
  for (size_t d = 0; d < ranges.size(); ++d) {
    ranges[d].begin = std::min(ranges[d].begin, other.ranges[d].begin);
    ranges[d].end = std::max(ranges[d].end, other.ranges[d].end);
  }
}

Region WholeRegion(const Shape& shape) {
  Region region;
  region.nothing = false;
  for (const int64_t extent : shape) region.ranges.push_back({0, extent});
  return region;
}

namespace {

// The values of axes, with their ids. An expression has few.
using AxisRanges = absl::InlinedVector<std::pair<int, Interval>, 8>;

int64_t FloorDiv(int64_t x, int64_t divisor) { return x / divisor - (x % divisor < 0 ? 1 : 0); }

// The values that `x` takes. Terms are taken as independent, which can only widen the interval.
Interval ValuesOf(const Index& x, const AxisRanges& axes) {
  Interval sum{x.constant(), x.constant()};
  for (const Index::Part& part : x.parts()) {
    Interval term;
    switch (part.term.kind) {
      case te::TermKind::kAxis: {
        const auto it =
            std::find_if(axes.begin(), axes.end(), [&](const auto& known) { return known.first == part.term.axis.id; });
        term = it != axes.end() ? it->second : Interval{0, part.term.axis.extent - 1};
        break;
      }
      case te::TermKind::kFloorDiv: {
        const Interval inner = ValuesOf(*part.term.inner, axes);
        term = {FloorDiv(inner.lo, part.term.divisor), FloorDiv(inner.hi, part.term.divisor)};
        break;
      }
      case te::TermKind::kMod: {
        const Interval inner = ValuesOf(*part.term.inner, axes);
        const int64_t divisor = part.term.divisor, wraps = FloorDiv(inner.lo, divisor);
        term = wraps == FloorDiv(inner.hi, divisor) ? Interval{inner.lo - wraps * divisor, inner.hi - wraps * divisor}
                                                    : Interval{0, divisor - 1};
        break;
      }
      case te::TermKind::kLoad:
        term = part.term.load_range;
        break;
    }
    const int64_t a = part.coefficient * term.lo, b = part.coefficient * term.hi;
    sum.lo += std::min(a, b);
    sum.hi += std::max(a, b);
  }
  return sum;
}

// Does the comparison hold for no values in these ranges?
bool Never(const te::Comparison& comparison, const AxisRanges& axes) {
  const Interval values = ValuesOf(comparison.lhs - comparison.rhs, axes);
  switch (comparison.cmp) {
    case te::Cmp::kLt:
      return values.lo >= 0;
    case te::Cmp::kGe:
      return values.hi < 0;
    case te::Cmp::kEq:
      return values.lo > 0 || values.hi < 0;
    case te::Cmp::kNe:
      return values.lo == 0 && values.hi == 0;
  }
  return false;
}

}  // namespace

struct AccessMap::Linear {
  bool linear = false;  // otherwise ValuesOf has to look
  int64_t constant = 0;
  std::vector<std::pair<size_t, int64_t>> terms;  // the place of an axis in AxisRanges, its coefficient

  Interval Values(const AxisRanges& axes) const {
    Interval sum{constant, constant};
    for (const auto& [place, coefficient] : terms) {
      const Interval& axis = axes[place].second;
      const int64_t a = coefficient * axis.lo, b = coefficient * axis.hi;
      sum.lo += std::min(a, b);
      sum.hi += std::max(a, b);
    }
    return sum;
  }
};

struct AccessMap::Load {
  te::TensorId tensor = -1;
  std::vector<Index> indices;
  te::Pred path;                    // conditions that all hold where the load happens
  bool address = false;             // the element is an index
  std::vector<Linear> linear = {};  // parallel to indices
};

struct AccessMap::Step {
  std::vector<te::TensorId> outputs;
  std::vector<te::Axis> axes, reduction_axes;
  AxisRanges whole_axes;  // of the axes, then of the reduction's
  std::vector<Load> loads;
  bool routine = false;
  std::vector<te::TensorId> whole;  // operands of a routine
  double work_per_point = 0;        // of the spatial domain; of a routine: all of it
};

namespace {

// Finds the loads of an expression, with the conditions of the branches around them.
template <typename Load>
class LoadCollector {
 public:
  explicit LoadCollector(std::vector<Load>* loads) : loads_(loads) {}

  void Add(const te::Scalar& scalar) {
    if (scalar->kind == te::ScalarKind::kLoad) AddLoad(scalar->tensor, scalar->indices);
    for (const Index& index : scalar->indices) AddIndex(index);
    if (scalar->kind == te::ScalarKind::kFromIndex) AddIndex(scalar->index);
    if (scalar->kind == te::ScalarKind::kIf) {
      AddPred(scalar->pred);
      const te::Pred path = path_;
      path_.insert(path_.end(), scalar->pred.begin(), scalar->pred.end());
      Add(scalar->args[0]);
      path_ = path;
      // One comparison that fails is a condition of its own; of several only their conjunction fails.
      if (scalar->pred.size() == 1) path_.push_back(Negated(scalar->pred[0]));
      Add(scalar->args[1]);
      path_ = path;
      return;
    }
    for (const te::Scalar& arg : scalar->args) Add(arg);
  }
  void AddPred(const te::Pred& pred) {
    for (const te::Comparison& comparison : pred) {
      AddIndex(comparison.lhs);
      AddIndex(comparison.rhs);
    }
  }

 private:
  static te::Comparison Negated(te::Comparison comparison) {
    switch (comparison.cmp) {
      case te::Cmp::kLt:
        comparison.cmp = te::Cmp::kGe;
        break;
      case te::Cmp::kGe:
        comparison.cmp = te::Cmp::kLt;
        break;
      case te::Cmp::kEq:
        comparison.cmp = te::Cmp::kNe;
        break;
      case te::Cmp::kNe:
        comparison.cmp = te::Cmp::kEq;
        break;
    }
    return comparison;
  }
  void AddIndex(const Index& index) {
    for (const Index::Part& part : index.parts()) {
      if (part.term.inner) AddIndex(*part.term.inner);
      if (part.term.kind != te::TermKind::kLoad) continue;
      AddLoad(part.term.tensor, part.term.indices, /*address=*/true);
      for (const Index& inner : part.term.indices) AddIndex(inner);
    }
  }
  void AddLoad(te::TensorId tensor, const std::vector<Index>& indices, bool address = false) {
    loads_->push_back({tensor, indices, path_, address});
  }

  std::vector<Load>* loads_;
  te::Pred path_;
};

}  // namespace

AccessMap::Linear AccessMap::LinearOf(const Index& index, const Step& step) {
  Linear made;
  made.constant = index.constant();
  for (const Index::Part& part : index.parts()) {
    if (part.term.kind != te::TermKind::kAxis) return made;
    size_t place = 0;
    const auto is = [&](const te::Axis& axis) { return axis.id == part.term.axis.id; };
    const auto spatial = std::find_if(step.axes.begin(), step.axes.end(), is);
    const auto reduced = std::find_if(step.reduction_axes.begin(), step.reduction_axes.end(), is);
    if (spatial != step.axes.end()) {
      place = spatial - step.axes.begin();
    } else if (reduced != step.reduction_axes.end()) {
      place = step.axes.size() + (reduced - step.reduction_axes.begin());
    } else {
      return made;
    }
    made.terms.emplace_back(place, part.coefficient);
  }
  made.linear = true;
  return made;
}

AccessMap::AccessMap(te::Program program) {
  auto steps = std::make_shared<std::vector<Step>>();
  for (const te::Te& te : program.tes) {
    Step& step = steps->emplace_back();
    step.outputs = te.outputs;
    if (te.routine) {
      step.routine = true;
      step.whole = te.routine->inputs;
      for (const te::TensorId output : te.outputs) {
        step.work_per_point += static_cast<double>(NumElements(program.tensors[output].shape));
      }
      continue;
    }
    step.axes = te.axes;
    LoadCollector<Load> collector(&step.loads);
    if (te.reduction) {
      step.reduction_axes = te.reduction->axes;
      collector.AddPred(te.reduction->pred);
      for (const te::Scalar& scalar : te.reduction->init) collector.Add(scalar);
    }
    for (const te::Scalar& scalar : te.body) collector.Add(scalar);
    for (const te::Scalar& scalar : te.then) collector.Add(scalar);
    for (const std::vector<te::Axis>* axes : {&step.axes, &step.reduction_axes}) {
      for (const te::Axis& axis : *axes) {
        step.whole_axes.emplace_back(axis.id, Interval{0, std::max<int64_t>(axis.extent, 1) - 1});
      }
    }
    double points = 1;
    for (const te::Axis& axis : te.axes) points *= static_cast<double>(axis.extent);
    for (Load& load : step.loads) {
      for (const Index& index : load.indices) load.linear.push_back(LinearOf(index, step));
    }
    const te::WorkCount work = te::CountWork(te);
    if (points > 0) step.work_per_point = (work.fma + work.special + (te.reduction ? work.elements : 0)) / points;
  }
  steps_ = std::move(steps);
  program_ = std::make_shared<te::Program>(std::move(program));
}

bool AccessMap::IsTable(te::TensorId tensor) const {
  bool loaded = false;
  for (const Step& step : *steps_) {
    for (const Load& load : step.loads) {
      if (load.tensor != tensor) continue;
      const auto depends = [](const Index& index) { return index.HasLoad(); };
      if (std::none_of(load.indices.begin(), load.indices.end(), depends)) return false;
      loaded = true;
    }
    if (std::find(step.whole.begin(), step.whole.end(), tensor) != step.whole.end()) return false;
  }
  return loaded;
}

double AccessMap::Infer(const ReductionPart& part, absl::Span<Region> needed) const {
  double work = 0;
  AxisRanges axes;
  for (auto step = steps_->rbegin(); step != steps_->rend(); ++step) {
    Region box;
    bool computed = false;
    for (const te::TensorId output : step->outputs) {
      computed = computed || !needed[output].nothing;
      if (!step->routine) box.Join(needed[output]);
    }
    if (!computed) continue;
    if (step->routine) {
      for (const te::TensorId tensor : step->whole) needed[tensor].Join(WholeRegion(program_->tensors[tensor].shape));
      work += step->work_per_point;
      continue;
    }
    axes = step->whole_axes;
    for (size_t a = 0; a < step->axes.size(); ++a) axes[a].second = {box.ranges[a].begin, box.ranges[a].end - 1};
    for (size_t a = step->axes.size(); a < axes.size() && part.axis >= 0; ++a) {
      if (axes[a].first == part.axis) axes[a].second = {part.range.begin, part.range.end - 1};
    }
    work += step->work_per_point * static_cast<double>(box.elements());
    for (const Load& load : step->loads) {
      const auto never = [&](const te::Comparison& comparison) { return Never(comparison, axes); };
      if (std::any_of(load.path.begin(), load.path.end(), never)) continue;
      const Shape& shape = program_->tensors[load.tensor].shape;
      if (load.address && program_->DefiningTe(load.tensor) >= 0) {
        needed[load.tensor].Join(WholeRegion(shape));
        continue;
      }
      Region read;
      read.nothing = false;
      for (size_t d = 0; d < shape.size(); ++d) {
        const Interval values = load.linear[d].linear ? load.linear[d].Values(axes) : ValuesOf(load.indices[d], axes);
        // A padded load reads nothing outside its tensor.
        const Range range{std::max<int64_t>(values.lo, 0), std::min<int64_t>(values.hi + 1, shape[d])};
        read.nothing = read.nothing || range.begin >= range.end;
        read.ranges.push_back(range);
      }
      needed[load.tensor].Join(read);
    }
  }
  return work;
}

std::vector<Region> AccessMap::RequiredTensors(const std::vector<Region>& outputs, const ReductionPart& part) const {
  std::vector<Region> needed(program_->tensors.size());
  RequiredTensors(outputs, part, absl::MakeSpan(needed));
  return needed;
}

void AccessMap::RequiredTensors(const std::vector<Region>& outputs, const ReductionPart& part,
                                absl::Span<Region> needed) const {
  for (Region& region : needed) {
    region.nothing = true;
    region.ranges.clear();
  }
  for (size_t o = 0; o < outputs.size(); ++o) needed[program_->outputs[o]].Join(outputs[o]);
  Infer(part, needed);
}

AccessMap::Needs AccessMap::Required(const std::vector<Region>& outputs, const ReductionPart& part) const {
  Needs needs;
  needs.tensors.resize(program_->tensors.size());
  for (size_t o = 0; o < outputs.size(); ++o) needs.tensors[program_->outputs[o]].Join(outputs[o]);
  needs.work = Infer(part, absl::MakeSpan(needs.tensors));
  for (const te::TensorId input : program_->inputs) needs.inputs.push_back(needs.tensors[input]);
  return needs;
}

}  // namespace fusion::graph_turbo
