#include "compiler/movement/row_nest.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

namespace fusion::movement {
namespace {

using te::Index;

absl::Span<const Step> StepsOf(const Phase& phase, const RowNest& nest) {
  return absl::MakeConstSpan(phase.steps).subspan(nest.first, nest.count);
}

// Visits the address of every load of the buffer, and of every store to it. Returns false where the buffer is also read
// inside an index or a condition.
template <typename F>
bool VisitAddresses(const Step& step, int buffer, const F& f) {
  int visited = 0, all = 0;
  const auto visit = [&](const Index& address) {
    ++visited;
    f(address);
  };
  const auto scan = [&](const te::Scalar& s) {
    te::Visit(s, [&](const te::ScalarNode& node) {
      if (node.kind == te::ScalarKind::kLoad && node.tensor == buffer) visit(node.indices[0]);
    });
  };
  for (const te::Scalar& s : step.body) scan(s);
  for (const te::Scalar& s : step.then) scan(s);
  if (step.reduction) {
    for (const te::Scalar& s : step.reduction->init) scan(s);
  }
  for (const Store& store : step.stores) {
    if (store.buffer == buffer) visit(store.address);
  }
  VisitBuffers(step, [&](int b) { all += b == buffer ? 1 : 0; });
  return all == visited;
}

// The address at row 0 of task 0, where `keep` names the only axes that stay.
template <typename Keep>
Index Part(const Index& address, const Keep& keep) {
  static const Index kZero;
  return te::Substitute(address, [&](const te::Axis& axis) { return keep(axis.id) ? nullptr : &kZero; });
}

// Is the buffer scratch for one row, which each row fills before it reads it?
bool IsScratchOfOneRow(const Kernel& kernel, const Phase& phase, const RowNest& nest, int buffer) {
  if (kernel.buffers[buffer].scope != Scope::kBlock) return false;
  bool filled = false, alone = true;
  for (int s = 0; s < static_cast<int>(phase.steps.size()); ++s) {
    const Step& step = phase.steps[s];
    const bool inside = nest.first <= s && s < nest.first + nest.count;
    const auto use = [&](int b) { alone = alone && (b != buffer || inside); };
    for (const Step& copy : SharedCopiesOf(step)) VisitBuffers(copy, use);
    VisitBuffers(step, use);
    if (!inside) continue;
    int stores = 0, reached = 0;
    for (const Store& store : step.stores) stores += store.buffer == buffer ? 1 : 0;
    VisitBuffers(step, [&](int b) { reached += b == buffer ? 1 : 0; });
    const auto note = [&](const Index& address) {
      for (int l = 0; l < nest.loops; ++l) alone = alone && !address.UsesAxis(step.loops[l].axis.id);
    };
    if (!VisitAddresses(step, buffer, note)) return false;
    if (!filled && reached > stores) return false;
    filled = filled || stores > 0;
  }
  return alone && filled;
}

// Does each stride exceed all that the smaller ones and the rest of a row reach?
bool RowsAreApart(const RowAccess& access, const std::vector<Loop>& rows) {
  std::vector<std::pair<int64_t, int64_t>> strides;  // with its extent
  for (size_t l = 0; l < access.strides.size(); ++l) {
    if (rows[l].axis.extent > 1) strides.emplace_back(access.strides[l], rows[l].axis.extent);
  }
  std::sort(strides.begin(), strides.end());
  int64_t reach = access.last;
  for (const auto& [stride, extent] : strides) {
    if (stride <= reach) return false;
    reach += stride * (extent - 1);
  }
  return true;
}

}  // namespace

std::optional<RowAccess> RowAccessOf(const Phase& phase, const RowNest& nest, int buffer) {
  const std::vector<Loop>& first = phase.steps[nest.first].loops;
  const std::vector<Loop> rows(first.begin(), first.begin() + nest.loops);
  const auto is_row = [&](int id) {
    return std::any_of(rows.begin(), rows.end(), [id](const Loop& row) { return row.axis.id == id; });
  };
  const auto is_task = [&](int id) {
    return std::any_of(phase.grid.begin(), phase.grid.end(), [id](const te::Axis& axis) { return axis.id == id; });
  };
  std::optional<RowAccess> access;
  std::optional<Index> element;
  bool apart = true, one_element = true;
  const auto note = [&](const Index& address) {
    RowAccess one;
    Index of_rows;
    for (const Loop& row : rows) {
      int64_t stride = 0;
      if (!address.AffineIn(row.axis.id, &stride)) apart = false;
      one.strides.push_back(stride);
      of_rows = of_rows + Index(row.axis) * stride;
    }
    const Index rest = Part(address, [&](int id) { return !is_row(id) && !is_task(id); });
    one.task = Part(address, is_task) - Index(Part(address, [](int) { return false; }).constant());
    apart = apart && address == of_rows + one.task + rest;
    const te::Interval range = rest.Range();
    one.last = range.hi;
    apart = apart && range.lo >= 0;
    one_element = one_element && rest.IsConstant() && (!element || *element == rest);
    element = rest;
    if (!access) {
      access = std::move(one);
      return;
    }
    apart = apart && access->strides == one.strides && access->task == one.task;
    access->last = std::max(access->last, one.last);
  };
  for (const Step& step : StepsOf(phase, nest)) apart = VisitAddresses(step, buffer, note) && apart;
  if (!access || !apart || !RowsAreApart(*access, rows)) return std::nullopt;
  access->one_element = one_element;
  return access;
}

absl::Status CheckRowNest(const Kernel& kernel, const Phase& phase, const RowNest& nest) {
  const absl::Span<const Step> steps = StepsOf(phase, nest);
  const std::vector<Loop>& rows = steps.front().loops;
  std::map<int, int> users;  // by buffer: how many steps reach it
  std::set<int> written;
  for (const Step& step : steps) {
    if (!step.Is<ScalarLoops>() && !step.Is<VectorMap>() && !step.Is<RowReduction>()) {
      return absl::FailedPreconditionError(
          absl::StrCat("'", step.label, "' is a ", StrategyName(step), ", which does not run row by row"));
    }
    if (nest.team > 1 && step.reduction &&
        (step.reduction->kind == te::ReductionKind::kGeneral || step.reduction->axes.empty())) {
      return absl::FailedPreconditionError(
          absl::StrCat("'", step.label, "' has a reduction that no team of work-items shares"));
    }
    if (step.lane_limit) {
      return absl::FailedPreconditionError(absl::StrCat("'", step.label, "' fills layout blocks with zeros"));
    }
    const bool same = step.loops.size() >= static_cast<size_t>(nest.loops) &&
                      std::equal(rows.begin(), rows.begin() + nest.loops, step.loops.begin(),
                                 [](const Loop& a, const Loop& b) {
                                   return a.axis.id == b.axis.id && a.axis.extent == b.axis.extent &&
                                          a.limit == b.limit;
                                 });
    if (!same) return absl::FailedPreconditionError(absl::StrCat("'", step.label, "' has other rows"));
    const int lanes = step.reduction ? -1 : VectorAxisOf(step);
    for (int l = 0; l < nest.loops; ++l) {
      if (step.loops[l].axis.id != lanes) continue;
      return absl::FailedPreconditionError(absl::StrCat("the lanes of '", step.label, "' are rows"));
    }
    std::set<int> reached;
    VisitBuffers(step, [&](int buffer) { reached.insert(buffer); });
    for (const int buffer : reached) ++users[buffer];
    for (const Store& store : step.stores) written.insert(store.buffer);
  }
  for (const auto& [buffer, steps_of_it] : users) {
    if (kernel.buffers[buffer].scope != Scope::kWarp) continue;
    bool at_0 = true;
    for (const Step& step : steps) {
      const auto note = [&](const Index& address) { at_0 = at_0 && address == Index(0); };
      if (!VisitAddresses(step, buffer, note)) at_0 = false;
    }
    if (!at_0) return absl::FailedPreconditionError(absl::StrCat("b", buffer, " is in registers and has an address"));
  }
  for (const int buffer : written) {
    if (kernel.buffers[buffer].scope == Scope::kWarp) continue;
    if (users[buffer] < 2 || nest.loops == 0 || RowAccessOf(phase, nest, buffer)) continue;
    if (nest.team == 1 && IsScratchOfOneRow(kernel, phase, nest, buffer)) continue;
    return absl::FailedPreconditionError(absl::StrCat("rows meet in b", buffer));
  }
  return absl::OkStatus();
}

}  // namespace fusion::movement
