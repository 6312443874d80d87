#include "compiler/schedule/nest/nest.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "compiler/te/index/reciprocals.h"
#include "compiler/te/scalar/rounded.h"

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

// `inside` predicate of a padded load, without comparisons that always hold. With a mask (limit >= 0) a comparison on
// the mask's index counts for lanes below the limit only, because the results of other lanes are thrown away.
te::Pred InsideBox(const std::vector<Index>& indices, const Shape& shape, const Index& mask_index, int64_t mask_limit) {
  te::Pred pred;
  for (size_t d = 0; d < indices.size(); ++d) {
    const te::Interval range = indices[d].Range();
    const bool masked = mask_limit >= 0 && mask_limit <= shape[d] && indices[d] == mask_index;
    if (range.lo < 0) pred.push_back({indices[d], te::Cmp::kGe, Index(0)});
    if (range.hi >= shape[d] && !masked) pred.push_back({indices[d], te::Cmp::kLt, Index(shape[d])});
  }
  return pred;
}

Index MapIndexLoads(const Index& index, const AddressOf& address_of) {
  Index result(index.constant());
  for (const Index::Part& part : index.parts()) {
    const te::Term& term = part.term;
    Index value;
    switch (term.kind) {
      case te::TermKind::kAxis:
        value = Index(term.axis);
        break;
      case te::TermKind::kFloorDiv:
        value = te::FloorDiv(MapIndexLoads(*term.inner, address_of), term.divisor);
        break;
      case te::TermKind::kMod:
        value = te::Mod(MapIndexLoads(*term.inner, address_of), term.divisor);
        break;
      case te::TermKind::kLoad: {
        std::vector<Index> inner;
        for (const Index& i : term.indices) inner.push_back(MapIndexLoads(i, address_of));
        const movement::Store place = address_of(term.tensor, inner);
        value = Index::Load(place.buffer, {place.address}, term.load_range);
        break;
      }
    }
    result = result + value * part.coefficient;
  }
  return result;
}

class Flattener {
 public:
  Flattener(const te::Program& program, const PhysicalTe& physical, const AddressOf& address_of)
      : program_(program), physical_(physical), address_of_(address_of) {}

  Scalar Rewrite(const Scalar& s) {
    auto it = memo_.find(s.get());
    if (it != memo_.end()) return it->second;
    Scalar result = Compute(s);
    memo_[s.get()] = result;
    keep_.push_back(s);
    return result;
  }

  te::Pred Rewrite(const te::Pred& pred) {
    te::Pred result = pred;
    for (te::Comparison& c : result) {
      c.lhs = MapIndexLoads(c.lhs, address_of_);
      c.rhs = MapIndexLoads(c.rhs, address_of_);
    }
    return result;
  }

 private:
  Scalar Compute(const Scalar& s) {
    switch (s->kind) {
      case te::ScalarKind::kImm:
      case te::ScalarKind::kAcc:
        return s;
      case te::ScalarKind::kFromIndex:
        return te::FromIndex(MapIndexLoads(s->index, address_of_));
      case te::ScalarKind::kCast:
        return te::CastOf(*s, Rewrite(s->args[0]));
      case te::ScalarKind::kIf:
        return te::If(Rewrite(s->pred), Rewrite(s->args[0]), Rewrite(s->args[1]));
      case te::ScalarKind::kOp: {
        std::vector<Scalar> args;
        for (const Scalar& arg : s->args) args.push_back(Rewrite(arg));
        return te::Call(s->op, std::move(args));
      }
      case te::ScalarKind::kLoad: {
        std::vector<Index> indices;
        for (const Index& index : s->indices) indices.push_back(MapIndexLoads(index, address_of_));
        const movement::Store place = address_of_(s->tensor, indices);
        Scalar load = te::Load(place.buffer, s->dtype, {place.address});
        if (s->pad == nullptr) return load;
        te::Pred inside =
            InsideBox(indices, program_.tensors[s->tensor].shape, physical_.mask_index, physical_.mask_limit);
        return inside.empty() ? load : te::If(std::move(inside), load, s->pad);
      }
    }
    return s;
  }

  const te::Program& program_;
  const PhysicalTe& physical_;
  const AddressOf& address_of_;
  std::map<const te::ScalarNode*, Scalar> memo_;
  std::vector<Scalar> keep_;
};

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

Nest Flatten(const te::Program& program, const PhysicalTe& physical, const AddressOf& address_of) {
  Nest nest;
  const te::Te& te = physical.te;
  nest.label = program.tensors[te.outputs[0]].name;
  nest.axes = te.axes;
  nest.reduction = te.reduction;
  Flattener flattener(program, physical, address_of);
  for (const Scalar& s : te::MergeReciprocals(te.body)) nest.body.push_back(flattener.Rewrite(s));
  for (const Scalar& s : te::MergeReciprocals(te.then)) nest.then.push_back(flattener.Rewrite(s));
  if (nest.reduction) {
    nest.reduction->pred = flattener.Rewrite(nest.reduction->pred);
    for (Scalar& s : nest.reduction->init) s = flattener.Rewrite(s);
  }
  for (size_t o = 0; o < te.outputs.size(); ++o) {
    nest.stores.push_back(address_of(te.outputs[o], physical.coordinates[o]));
    nest.store_types.push_back(program.tensors[te.outputs[o]].dtype);
  }
  nest.mask_index = physical.mask_index;
  nest.mask_limit = physical.mask_limit;
  return nest;
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
    if (limit && !cut_short) continue;
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

namespace {

// The first condition in the nest that cuts one of its axes.
std::optional<te::AxisCut> FindCut(const Nest& nest) {
  std::optional<te::AxisCut> found;
  for (const Scalar& s : nest.body) {
    te::Visit(s, [&](const te::ScalarNode& node) {
      if (found || node.kind != te::ScalarKind::kIf) return;
      const std::optional<te::AxisCut> cut = te::CutOf(node.pred);
      if (!cut || cut->at <= 0) return;
      for (const Axis& axis : nest.axes) {
        if (axis.id == cut->axis.id && cut->at < axis.extent) found = cut;
      }
    });
  }
  return found;
}

// The positions on the axis at which a comparison of this axis alone changes its truth.
void CollectCuts(const te::Comparison& c, const Axis& axis, std::set<int64_t>* cuts) {
  if (c.cmp != te::Cmp::kLt && c.cmp != te::Cmp::kGe) return;
  const Index d = c.lhs - c.rhs;
  if (d.parts().size() != 1 || d.parts()[0].term.kind != te::TermKind::kAxis || d.parts()[0].term.axis.id != axis.id) {
    return;
  }
  // step * x + offset < 0 holds below the cut, or from it on.
  const int64_t step = d.parts()[0].coefficient, offset = d.constant();
  const int64_t size = std::abs(step), bound = step > 0 ? -offset : offset + 1;  // size * x < bound, or >= bound
  const int64_t cut = bound <= 0 ? 0 : (bound + size - 1) / size;
  if (cut > 0 && cut < axis.extent) cuts->insert(cut);
}

// The nest over [begin, begin + extent) of an axis.
Nest PartOf(const Nest& nest, const Axis& axis, int64_t begin, int64_t extent, AxisSource* axes) {
  Nest part = nest;
  const Axis fresh = axes->New(extent);
  const Index moved = Index(fresh) + Index(begin);
  for (Axis& a : part.axes) {
    if (a.id == axis.id) a = fresh;
  }
  part.Substitute([&](const Axis& a) { return a.id == axis.id ? &moved : nullptr; });
  return part;
}

}  // namespace

std::vector<Nest> SplitRanges(Nest nest, AxisSource* axes, const std::function<bool(const Nest&)>& worth) {
  if (nest.reduction) return {std::move(nest)};
  std::vector<Nest> done, open = {nest};
  while (!open.empty()) {
    Nest next = std::move(open.back());
    open.pop_back();
    const std::optional<te::AxisCut> cut = FindCut(next);
    if (!cut) {
      done.push_back(std::move(next));
      continue;
    }
    Nest first = PartOf(next, cut->axis, 0, cut->at, axes);
    Nest second = PartOf(next, cut->axis, cut->at, cut->axis.extent - cut->at, axes);
    if (!worth(first) || !worth(second)) return {std::move(nest)};
    open.push_back(std::move(second));
    open.push_back(std::move(first));
  }
  return done;
}

std::vector<Nest> PeelInnermost(Nest nest, AxisSource* axes) {
  constexpr size_t kMostCuts = 6;
  std::set<int64_t> cuts;
  if (!nest.reduction && !nest.axes.empty() && nest.limits.empty() && nest.mask_limit < 0) {
    for (const Scalar& s : nest.body) {
      te::Visit(s, [&](const te::ScalarNode& node) {
        if (node.kind != te::ScalarKind::kIf) return;
        for (const te::Comparison& c : node.pred) CollectCuts(c, nest.axes.back(), &cuts);
      });
    }
  }
  if (cuts.empty() || cuts.size() > kMostCuts) return {std::move(nest)};
  const Axis axis = nest.axes.back();
  cuts.insert(axis.extent);
  std::vector<Nest> parts;
  int64_t begin = 0;
  for (const int64_t end : cuts) {
    parts.push_back(PartOf(nest, axis, begin, end - begin, axes));
    begin = end;
  }
  return parts;
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
