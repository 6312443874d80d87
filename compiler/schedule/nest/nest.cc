#include "compiler/schedule/nest/nest.h"

#include <algorithm>
#include <map>

namespace fusion {
namespace {

using te::Axis;
using te::Index;
using te::Scalar;

void ForEachIndexIn(const Scalar& s, const std::function<void(const Index&)>& f) {
  te::Visit(s, [&](const te::ScalarNode& node) {
    for (const Index& index : node.indices) f(index);
    if (node.kind == te::ScalarKind::kFromIndex) f(node.index);
    for (const te::Comparison& c : node.pred) {
      f(c.lhs);
      f(c.rhs);
    }
  });
}

// Does the index divide anything that uses the axis, or take its remainder?
bool Divides(const Index& index, int axis_id) {
  for (const Index::Part& part : index.parts()) {
    const te::Term& term = part.term;
    if (term.inner != nullptr && (term.inner->UsesAxis(axis_id) || Divides(*term.inner, axis_id))) return true;
    if (term.kind == te::TermKind::kLoad) {
      for (const Index& inner : term.indices) {
        if (Divides(inner, axis_id)) return true;
      }
    }
  }
  return false;
}

// Tries to replace adjacent axes x (outer) and y by one; true if no address needs a division afterwards.
bool TryFuse(Nest* nest, std::vector<Axis>* list, size_t at, AxisSource* axes) {
  const Axis x = (*list)[at], y = (*list)[at + 1];
  if (x.extent < 1 || y.extent < 1 || nest->limits.count(x.id) || nest->limits.count(y.id)) return false;
  // Refuses cheaply first: every affine use must have coef_x == coef_y * extent_y.
  bool possible = true;
  nest->ForEachIndex([&](const Index& index) {
    if (!possible) return;
    int64_t cx = 0, cy = 0;
    if (index.AffineIn(x.id, &cx) && index.AffineIn(y.id, &cy) && cx != cy * y.extent) possible = false;
  });
  if (!possible) return false;
  const Axis fused = axes->New(x.extent * y.extent);
  const Index new_x = te::FloorDiv(Index(fused), y.extent), new_y = te::Mod(Index(fused), y.extent);
  auto map = [&](const Axis& axis) -> const Index* {
    return axis.id == x.id ? &new_x : axis.id == y.id ? &new_y : nullptr;
  };
  nest->ForEachIndex([&](const Index& index) {
    if (possible && (index.UsesAxis(x.id) || index.UsesAxis(y.id))) {
      possible = !Divides(te::Substitute(index, map), fused.id);
    }
  });
  if (!possible) return false;
  (*list)[at] = fused;
  list->erase(list->begin() + at + 1);
  nest->Substitute(map);
  return true;
}

void FindDivisors(const Index& index, const Axis& axis, int64_t* divisor) {
  for (const Index::Part& part : index.parts()) {
    const te::Term& term = part.term;
    if (term.inner == nullptr) continue;
    int64_t coefficient = 0;
    if (term.inner->AffineIn(axis.id, &coefficient) && coefficient == 1) *divisor = std::max(*divisor, term.divisor);
    FindDivisors(*term.inner, axis, divisor);
  }
}

void SubstituteIn(te::Te* te, const std::function<const Index*(const Axis&)>& map) {
  for (Scalar& s : te->body) s = te::Substitute(s, map);
  for (Scalar& s : te->then) s = te::Substitute(s, map);
  if (!te->reduction) return;
  for (te::Comparison& c : te->reduction->pred) {
    c.lhs = te::Substitute(c.lhs, map);
    c.rhs = te::Substitute(c.rhs, map);
  }
  for (Scalar& s : te->reduction->init) s = te::Substitute(s, map);
}

}  // namespace

void Nest::Substitute(const std::function<const Index*(const Axis&)>& map) {
  for (Scalar& s : body) s = te::Substitute(s, map);
  for (Scalar& s : then) s = te::Substitute(s, map);
  for (movement::Store& store : stores) store.address = te::Substitute(store.address, map);
  if (reduction) {
    for (te::Comparison& c : reduction->pred) {
      c.lhs = te::Substitute(c.lhs, map);
      c.rhs = te::Substitute(c.rhs, map);
    }
    for (Scalar& s : reduction->init) s = te::Substitute(s, map);
  }
  mask_index = te::Substitute(mask_index, map);
  for (te::Comparison& c : padding) c.lhs = te::Substitute(c.lhs, map);
  for (auto& [axis, limit] : limits) limit = te::Substitute(limit, map);
}

bool Nest::LimitsUse(const Axis& axis) const {
  return std::any_of(limits.begin(), limits.end(), [&](const auto& cut) { return cut.second.UsesAxis(axis.id); });
}

void Nest::ForEachIndex(const std::function<void(const Index&)>& f) const {
  for (const Scalar& s : body) ForEachIndexIn(s, f);
  for (const Scalar& s : then) ForEachIndexIn(s, f);
  for (const movement::Store& store : stores) f(store.address);
  if (reduction) {
    for (const te::Comparison& c : reduction->pred) {
      f(c.lhs);
      f(c.rhs);
    }
    for (const Scalar& s : reduction->init) ForEachIndexIn(s, f);
  }
  if (mask_limit >= 0) f(mask_index);
}

absl::StatusOr<PhysicalTe> MakePhysical(const te::Te& te, const LayoutOf& layout_of, AxisSource* axes) {
  PhysicalTe physical;
  physical.te = te;
  const Layout layout = layout_of(te.outputs[0]);
  for (te::TensorId out : te.outputs) {
    if (!(layout_of(out) == layout)) return absl::FailedPreconditionError("outputs of one expression differ in layout");
  }
  std::vector<Index> coordinate;
  if (layout.plain() || layout.axis_last()) {
    for (const Axis& axis : te.axes) coordinate.push_back(Index(axis));
    if (layout.axis_last()) physical.te.axes = layout.MoveLast(te.axes);
  } else {
    const Axis channel = te.axes[layout.axis];
    const Axis outer = axes->New((channel.extent + layout.block - 1) / layout.block);
    const Axis inner = axes->New(layout.block);
    const Index split = Index(outer) * layout.block + Index(inner);
    physical.te.axes[layout.axis] = outer;
    physical.te.axes.push_back(inner);
    auto map = [&](const Axis& axis) -> const Index* { return axis.id == channel.id ? &split : nullptr; };
    SubstituteIn(&physical.te, map);
    for (size_t d = 0; d < te.axes.size(); ++d) {
      coordinate.push_back(static_cast<int>(d) == layout.axis ? split : Index(te.axes[d]));
    }
    if (channel.extent % layout.block != 0) {
      physical.mask_index = split;
      physical.mask_limit = channel.extent;
    }
  }
  physical.coordinates.assign(te.outputs.size(), coordinate);
  return physical;
}

void SplitDividedAxes(PhysicalTe* physical, AxisSource* axes, int64_t min_divisor) {
  std::vector<Axis>& own = physical->te.axes;
  for (size_t a = 0; a < own.size(); ++a) {
    const Axis axis = own[a];
    int64_t divisor = 1;
    for (const Scalar& s : physical->te.body) {
      ForEachIndexIn(s, [&](const Index& index) { FindDivisors(index, axis, &divisor); });
    }
    if (divisor < min_divisor || divisor >= axis.extent || axis.extent % divisor != 0) continue;
    const Axis outer = axes->New(axis.extent / divisor), inner = axes->New(divisor);
    const Index split = Index(outer) * divisor + Index(inner);
    own[a] = outer;
    own.insert(own.begin() + static_cast<int64_t>(a) + 1, inner);
    const auto map = [&](const Axis& x) -> const Index* { return x.id == axis.id ? &split : nullptr; };
    SubstituteIn(&physical->te, map);
    for (std::vector<Index>& coordinates : physical->coordinates) {
      for (Index& coordinate : coordinates) coordinate = te::Substitute(coordinate, map);
    }
    physical->mask_index = te::Substitute(physical->mask_index, map);
    --a;  // the remaining axes may be divided again
  }
}

movement::Loop LoopOf(const Nest& nest, const Axis& axis) {
  const auto limit = nest.limits.find(axis.id);
  return {axis, limit == nest.limits.end() ? std::nullopt : std::optional<Index>(limit->second)};
}

std::optional<movement::Bound> LaneLimitOf(const Nest& nest) {
  if (nest.mask_limit < 0) return std::nullopt;
  return movement::Bound{nest.mask_index, nest.mask_limit};
}

void DropUnitAxes(Nest* nest) {
  const Index zero(0);
  auto map = [&](const Axis& axis) -> const Index* { return axis.extent == 1 ? &zero : nullptr; };
  auto unit = [](const Axis& axis) { return axis.extent == 1; };
  bool any = std::any_of(nest->axes.begin(), nest->axes.end(), unit);
  std::erase_if(nest->axes, unit);
  if (nest->reduction) {
    any = any || std::any_of(nest->reduction->axes.begin(), nest->reduction->axes.end(), unit);
    std::erase_if(nest->reduction->axes, unit);
  }
  // The map replaces every axis of extent 1, those of the grid too, which does no harm.
  if (any) nest->Substitute(map);
}

void FuseAxes(Nest* nest, AxisSource* axes) {
  for (size_t at = nest->axes.size(); at-- > 1;) {
    if (at < nest->axes.size()) TryFuse(nest, &nest->axes, at - 1, axes);
  }
  if (!nest->reduction || nest->reduction->kind == te::ReductionKind::kGeneral) return;
  for (size_t at = nest->reduction->axes.size(); at-- > 1;) {
    if (at < nest->reduction->axes.size()) TryFuse(nest, &nest->reduction->axes, at - 1, axes);
  }
}

void SplitSpatialAxes(Nest* nest, AxisSource* axes, int64_t min_divisor, bool cut_short) {
  for (size_t a = 0; a < nest->axes.size(); ++a) {
    const Axis axis = nest->axes[a];
    int64_t divisor = 1;
    std::optional<Index> limit;
    if (const auto it = nest->limits.find(axis.id); it != nest->limits.end()) limit = it->second;
    if ((limit && !cut_short) || nest->unsplit.count(axis.id) > 0) continue;
    nest->ForEachIndex([&](const Index& index) { FindDivisors(index, axis, &divisor); });
    if (divisor < min_divisor || divisor >= axis.extent) continue;
    if (axis.extent % divisor != 0) {
      // A limit on one index cannot say that both the extent and the axis's own limit end the loop: results past the
      // extent would be stored over the next row's.
      if (!cut_short || limit) continue;
      limit = Index(axis.extent);
    }
    const Axis outer = axes->New((axis.extent + divisor - 1) / divisor);
    const Axis inner = axes->New(divisor);
    const Index split = Index(outer) * divisor + Index(inner);
    nest->axes[a] = outer;
    nest->axes.insert(nest->axes.begin() + static_cast<int64_t>(a) + 1, inner);
    nest->limits.erase(axis.id);
    if (limit) nest->limits[inner.id] = *limit - Index(outer) * divisor;
    nest->Substitute([&](const Axis& x) -> const Index* { return x.id == axis.id ? &split : nullptr; });
    --a;  // the remaining axes may be divided again
  }
}

bool SplitReductionAxes(Nest* nest, AxisSource* axes, const std::function<PastEnd(const Axis&)>& past_end) {
  if (!nest->reduction || nest->reduction->kind == te::ReductionKind::kGeneral) return false;
  std::vector<Axis> inner_axes;
  te::Pred inside;  // of the axes that were rounded up: the products that count
  bool rounded = false;
  for (size_t f = 0; f < nest->reduction->axes.size(); ++f) {
    const Axis axis = nest->reduction->axes[f];
    if (nest->unsplit.count(axis.id) > 0) continue;
    int64_t divisor = 1;
    nest->ForEachIndex([&](const Index& index) { FindDivisors(index, axis, &divisor); });
    if (divisor <= 1) continue;
    const PastEnd past = axis.extent % divisor == 0 ? PastEnd::kNotRounded : past_end(axis);
    if (axis.extent % divisor != 0 && past == PastEnd::kNotRounded) continue;
    const Axis outer = axes->New((axis.extent + divisor - 1) / divisor);
    const Axis inner = axes->New(divisor);
    const Index split = Index(outer) * divisor + Index(inner);
    nest->reduction->axes[f] = outer;
    inner_axes.push_back(inner);
    nest->Substitute([&](const Axis& a) -> const Index* { return a.id == axis.id ? &split : nullptr; });
    rounded = rounded || past != PastEnd::kNotRounded;
    const te::Comparison in_extent{split, te::Cmp::kLt, Index(axis.extent)};
    if (past == PastEnd::kZero) nest->padding.push_back(in_extent);
    if (past == PastEnd::kSkipped) inside.push_back(in_extent);
  }
  for (const Axis& inner : inner_axes) nest->reduction->axes.push_back(inner);
  if (!inside.empty()) nest->body[0] = te::If(inside, nest->body[0], te::Imm(nest->body[0]->dtype, 0));
  DropUnitAxes(nest);
  return rounded;
}

bool PredUses(const Nest& nest, int axis_id) {
  bool uses = false;
  te::Visit(nest.body[0], [&](const te::ScalarNode& node) {
    for (const te::Comparison& c : node.pred) uses = uses || c.lhs.UsesAxis(axis_id) || c.rhs.UsesAxis(axis_id);
    if (node.kind == te::ScalarKind::kFromIndex) uses = uses || node.index.UsesAxis(axis_id);
  });
  return uses;
}

te::Scalar ReplaceLoad(const te::Scalar& body, const te::ScalarNode* from, const te::Scalar& to) {
  return te::MapLoads(body, [&](const te::Scalar& load) -> te::Scalar {
    return load->tensor == from->tensor && load->indices == from->indices ? to : nullptr;
  });
}

}  // namespace fusion
