#include "compiler/schedule/rewrite/copy_windows.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/schedule/targets/target_strategy.h"
#include "compiler/te/program/prefix_reduction.h"
#include "compiler/te/ranges/bounds.h"

namespace fusion {
namespace {

using te::Axis;
using te::Index;
using te::Scalar;

// Reads of each copied element below which the copy gains nothing. Windows that do not overlap read each element at
// most once, and leave some out; yet only the copy lets them use vectors, so the limit lies a little below 1.
constexpr double kLeastReads = 0.75;
// How many times larger than its tensor a copy may be. Borders of small images stay below this; a window far larger
// than the image does not.
constexpr double kMostGrowth = 8;
// Elements further apart than this share no line: the copy that brings them together reads as slowly as the window
// does.
constexpr int64_t kMostStride = 8;

struct SlidingLoad {
  const te::ScalarNode* load = nullptr;
  int64_t stride = 1;
};

// The one load of the reduction's body that moves with the lanes, if it does so along its innermost dimension alone.
SlidingLoad FindSliding(const te::Program& program, const te::Te& te, const LayoutOf& layout_of) {
  if (te.IsMap() || te.routine || te.reduction->kind == te::ReductionKind::kGeneral || !te.reduction->pred.empty() ||
      te.outputs.size() != 1 || te.axes.empty() || !layout_of(te.outputs[0]).plain()) {
    return {};
  }
  const Axis& lane = te.axes.back();
  SlidingLoad found;
  bool possible = true;
  te::Visit(te.body[0], [&](const te::ScalarNode& node) {
    possible = possible && node.kind != te::ScalarKind::kFromIndex;
    // All lanes take the same branch.
    for (const te::Comparison& comparison : node.pred) {
      possible = possible && !comparison.lhs.UsesAxis(lane.id) && !comparison.rhs.UsesAxis(lane.id);
    }
    if (node.kind != te::ScalarKind::kLoad) return;
    bool moves = false;
    for (size_t d = 0; d < node.indices.size(); ++d) {
      if (!node.indices[d].UsesAxis(lane.id)) continue;
      moves = true;
      possible = possible && d + 1 == node.indices.size();
    }
    if (!moves) return;
    possible = possible && found.load == nullptr && node.dtype == DType::kF32 &&
               !program.tensors[node.tensor].constant && node.indices.back().AffineIn(lane.id, &found.stride) &&
               found.stride >= 1;
    for (const Index& index : node.indices) possible = possible && !index.HasLoad();
    found.load = &node;
  });
  if (!possible || found.load == nullptr || found.stride > kMostStride) return {};
  return found;
}

// Changes intermediates whose innermost axis fills less than half of a vector (few channels of a transposed
// convolution): the axis along which their windows slide becomes the innermost one.
void MoveSlidingLast(te::Program* program, const LayoutOf& layout_of, int64_t lanes) {
  for (size_t t = 0; t < program->tes.size(); ++t) {
    te::Te& te = program->tes[t];
    if (te.IsMap() || te.routine || te.outputs.size() != 1 || te.axes.empty() || te.axes.back().extent * 2 >= lanes ||
        program->tensors[te.outputs[0]].role != te::Role::kIntermediate || !layout_of(te.outputs[0]).plain()) {
      continue;
    }
    size_t sliding = te.axes.size();
    te::Visit(te.body[0], [&](const te::ScalarNode& node) {
      if (node.kind != te::ScalarKind::kLoad || node.pad == nullptr || node.indices.empty()) return;
      for (size_t a = 0; a < te.axes.size(); ++a) {
        int64_t stride = 0;
        const bool moves = node.indices.back().UsesAxis(te.axes[a].id) &&
                           node.indices.back().AffineIn(te.axes[a].id, &stride) && stride == 1;
        if (moves && te.axes[a].extent >= lanes) sliding = a;
      }
    });
    if (sliding == te.axes.size()) continue;
    const te::TensorId tensor = te.outputs[0];
    const auto last = [&](auto* list) {
      const auto moved = list->begin() + static_cast<std::ptrdiff_t>(sliding);
      std::rotate(moved, moved + 1, list->end());
    };
    last(&te.axes);
    last(&program->tensors[tensor].shape);
    const auto reordered = [&](const Scalar& s) -> Scalar {
      if (s->tensor != tensor) return nullptr;
      std::vector<Index> at = s->indices;
      last(&at);
      return te::Load(tensor, s->dtype, at, s->pad);
    };
    for (size_t r = t + 1; r < program->tes.size(); ++r) {
      for (Scalar& s : program->tes[r].body) s = te::MapLoads(s, reordered);
      for (Scalar& s : program->tes[r].then) s = te::MapLoads(s, reordered);
    }
  }
}

// The divisor by which the loads of the body divide the axis; 1 where there is none.
int64_t DivisorOf(const te::Te& te, const Axis& axis) {
  int64_t divisor = 1;
  const auto visit = [&](const Index& index, const auto& self) -> void {
    for (const Index::Part& part : index.parts()) {
      if (part.term.inner == nullptr) continue;
      if (*part.term.inner == Index(axis)) divisor = std::max(divisor, part.term.divisor);
      self(*part.term.inner, self);
    }
  };
  for (const Scalar& s : te.body) {
    te::Visit(s, [&](const te::ScalarNode& node) {
      for (const Index& index : node.indices) visit(index, visit);
    });
  }
  return divisor < axis.extent ? divisor : 1;
}

// Returns whether all loads fulfil the condition, which is asked of those without padding.
bool LoadsFulfil(const te::Te& te, const std::function<bool(const te::ScalarNode& load)>& condition) {
  bool fulfilled = true;
  for (const std::vector<Scalar>* scalars : {&te.body, &te.then}) {
    for (const Scalar& s : *scalars) {
      te::Visit(s, [&](const te::ScalarNode& node) {
        if (node.kind == te::ScalarKind::kLoad && node.pad == nullptr) fulfilled = fulfilled && condition(node);
      });
    }
  }
  return fulfilled;
}

// A te whose axis i became two, i = quotient · divisor + remainder, and where each of its results lies then.
struct SplitTe {
  te::Te te;
  Shape shape;
  std::vector<Index> at;  // in the axes of before
  Axis remainder;
};

SplitTe SplitAxis(const te::Te& te, const Axis& axis, int64_t divisor, bool quotient_first, te::Program* program) {
  SplitTe split{te, {}, {}, program->NewAxis(divisor)};
  const Axis quotient = program->NewAxis((axis.extent + divisor - 1) / divisor);
  std::map<int, Index> renamed = {{axis.id, Index(quotient) * divisor + Index(split.remainder)}};
  split.te.axes.clear();
  const auto add = [&](const Axis& added, const Index& at) {
    split.te.axes.push_back(added);
    split.shape.push_back(added.extent);
    split.at.push_back(at);
  };
  for (const Axis& old : te.axes) {
    if (old.id != axis.id) {
      add(program->NewAxis(old.extent), Index(old));
      renamed[old.id] = Index(split.te.axes.back());
      continue;
    }
    if (quotient_first) add(quotient, te::FloorDiv(Index(axis), divisor));
    add(split.remainder, te::Mod(Index(axis), divisor));
    if (!quotient_first) add(quotient, te::FloorDiv(Index(axis), divisor));
  }
  for (Axis& reduced : split.te.reduction->axes) {
    const Axis fresh = program->NewAxis(reduced.extent);
    renamed[reduced.id] = Index(fresh);
    reduced = fresh;
  }
  const auto map = [&](const Axis& old) -> const Index* {
    const auto it = renamed.find(old.id);
    return it == renamed.end() ? nullptr : &it->second;
  };
  for (std::vector<Scalar>* scalars : {&split.te.body, &split.te.then}) {
    for (Scalar& s : *scalars) s = te::Substitute(s, map);
  }
  return split;
}

// Prefix reductions within parts of an axis. The parts become an axis of their own, so that one pass along a part
// computes its results.
std::optional<SplitTe> SplitPrefix(const te::Te& te, te::Program* program) {
  for (const Axis& axis : te.axes) {
    const int64_t divisor = DivisorOf(te, axis);
    if (divisor == 1) continue;
    SplitTe split = SplitAxis(te, axis, divisor, /*quotient_first=*/true, program);
    // The points past the end are computed like the others.
    const bool inside = LoadsFulfil(split.te, [&](const te::ScalarNode& load) {
      const Shape& shape = program->tensors[load.tensor].shape;
      for (size_t d = 0; d < shape.size(); ++d) {
        const te::Interval range = load.indices[d].Range();
        if (range.lo < 0 || range.hi >= shape[d]) return false;
      }
      return true;
    });
    if (!inside && axis.extent % divisor != 0) continue;
    if (te::PrefixReductionOf(*split.te.reduction, split.te.body, {split.remainder})) return split;
  }
  return std::nullopt;
}

// The phases of a transposed convolution. Where the body divides the innermost axis of the results, they are computed
// remainder by remainder, so that neighbours have equal taps.
std::optional<SplitTe> SplitPhases(const te::Te& te, te::Program* program) {
  if (te.reduction->kind != te::ReductionKind::kSum) return std::nullopt;
  const Axis lane = te.axes.back();
  const int64_t divisor = DivisorOf(te, lane);
  // The points past the end could not be computed like the others where a load without padding uses the axis.
  const auto without_lane = [&](const te::ScalarNode& load) {
    return std::none_of(load.indices.begin(), load.indices.end(),
                        [&](const Index& index) { return index.UsesAxis(lane.id); });
  };
  if (divisor == 1 || (lane.extent % divisor != 0 && !LoadsFulfil(te, without_lane))) return std::nullopt;
  return SplitAxis(te, lane, divisor, /*quotient_first=*/false, program);
}

// Computes reductions apart where parts of an axis are alike, and puts the results in order by a map behind. Returns
// false where there are none.
bool TakePartsApart(te::Program* program, const LayoutOf& layout_of) {
  bool taken = false;
  for (te::Te& te : std::exchange(program->tes, {})) {
    const bool plain = !te.IsMap() && !te.routine && !te.axes.empty() && te.outputs.size() == 1 &&
                       layout_of(te.outputs[0]).plain() && te.reduction->pred.empty();
    std::optional<SplitTe> split = plain ? SplitPrefix(te, program) : std::nullopt;
    if (plain && !split) split = SplitPhases(te, program);
    if (!split) {
      program->tes.push_back(std::move(te));
      continue;
    }
    taken = true;
    const DType dtype = program->tensors[te.outputs[0]].dtype;
    const te::TensorId apart = program->AddTensor("phases", dtype, split->shape, te::Role::kIntermediate);
    split->te.outputs = {apart};
    program->tes.push_back(std::move(split->te));
    te.reduction.reset();
    te.then.clear();
    te.body = {te::Load(apart, dtype, split->at)};
    program->tes.push_back(std::move(te));
  }
  return taken;
}

}  // namespace

std::optional<te::Program> CopyWindows(te::Program program, const LayoutOf& layout_of, const DeviceModel& device) {
  if (!StrategyOf(device).window_copies) return std::nullopt;
  const int64_t lanes = device.vector_bytes / 4;
  MoveSlidingLast(&program, layout_of, lanes);
  bool changed = TakePartsApart(&program, layout_of);
  for (te::Te& te : std::exchange(program.tes, {})) {
    const SlidingLoad sliding = FindSliding(program, te, layout_of);
    if (sliding.load == nullptr || (sliding.load->pad == nullptr && sliding.stride == 1) ||
        te.axes.back().extent * 4 < lanes) {
      program.tes.push_back(std::move(te));
      continue;
    }
    const te::ScalarNode& load = *sliding.load;
    const Shape source = program.tensors[load.tensor].shape;  // a copy: AddTensor invalidates references
    // The copy has the shape [..., stride, last // stride] if there is a stride, and begins at the first element that a
    // window reads.
    std::vector<int64_t> first;
    Shape shape;
    for (const Index& index : load.indices) {
      const te::Interval range = index.Range();
      first.push_back(range.lo);
      shape.push_back(range.hi - range.lo + 1);
    }
    const double needed = static_cast<double>(NumElements(shape));
    const int64_t stride = sliding.stride;
    if (stride > 1) {
      const int64_t last = shape.back();
      shape.back() = stride;
      shape.push_back((last + stride - 1) / stride);
    }
    double reads = 1, results = 1;
    for (const Axis& axis : te.reduction->axes) reads *= static_cast<double>(axis.extent);
    for (const Axis& axis : te.axes) results *= static_cast<double>(axis.extent);
    if (reads * results < kLeastReads * needed || needed > kMostGrowth * static_cast<double>(NumElements(source))) {
      program.tes.push_back(std::move(te));
      continue;
    }
    changed = true;
    const te::TensorId copy = program.AddTensor("window", load.dtype, shape, te::Role::kIntermediate);
    te::Te map;
    map.outputs = {copy};
    map.origins = te.origins;
    std::vector<Index> from;
    for (const int64_t extent : shape) map.axes.push_back(program.NewAxis(extent));
    for (size_t d = 0; d < source.size(); ++d) {
      const bool divided = stride > 1 && d + 1 == source.size();
      const Index at = divided ? Index(map.axes[d + 1]) * stride + Index(map.axes[d]) : Index(map.axes[d]);
      from.push_back(at + Index(first[d]));
    }
    const Scalar outside = load.pad != nullptr ? load.pad : te::Imm(load.dtype, 0);
    map.body = {te::Load(load.tensor, load.dtype, from, outside)};
    const te::TensorId read = load.tensor;
    const auto replaced = [&](const Scalar& s) -> Scalar {
      if (s->tensor != read || !(s->indices == load.indices)) return nullptr;
      std::vector<Index> at;
      for (size_t d = 0; d < s->indices.size(); ++d) at.push_back(s->indices[d] - Index(first[d]));
      if (stride > 1) {
        const Index last = at.back();
        at.back() = te::Mod(last, stride);
        at.push_back(te::FloorDiv(last, stride));
      }
      return te::Load(copy, s->dtype, at);
    };
    te.body[0] = te::MapLoads(te.body[0], replaced);
    program.tes.push_back(std::move(map));
    program.tes.push_back(std::move(te));
  }
  if (!changed) return std::nullopt;
  return program;
}

}  // namespace fusion
