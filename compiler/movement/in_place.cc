#include "compiler/movement/in_place.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace fusion::movement {
namespace {

void VisitIndexLoads(const te::Index& index, const std::function<void(int buffer)>& f) {
  for (const te::Index::Part& part : index.parts()) {
    if (part.term.inner != nullptr) VisitIndexLoads(*part.term.inner, f);
    if (part.term.kind != te::TermKind::kLoad) continue;
    f(part.term.tensor);
    for (const te::Index& inner : part.term.indices) VisitIndexLoads(inner, f);
  }
}

void VisitPredLoads(const te::Pred& pred, const std::function<void(int buffer)>& f) {
  for (const te::Comparison& c : pred) {
    VisitIndexLoads(c.lhs, f);
    VisitIndexLoads(c.rhs, f);
  }
}

struct Stride {
  int64_t stride, extent;
};

// Does each stride, in ascending order, exceed all that the smaller ones reach? Distinct points then have distinct
// sums.
bool Nested(std::vector<Stride> strides) {
  std::sort(strides.begin(), strides.end(), [](const Stride& a, const Stride& b) { return a.stride < b.stride; });
  int64_t reach = 0;
  for (const Stride& s : strides) {
    if (s.stride <= reach) return false;
    reach += s.stride * (s.extent - 1);
  }
  return true;
}

// Do distinct points of the loops have distinct addresses? Only an affine address can show that.
bool StoresOnce(const Phase& phase, const Step& step) {
  const te::Index& address = step.stores[0].address;
  std::vector<te::Axis> axes = phase.grid;
  for (const Loop& loop : step.loops) axes.push_back(loop.axis);
  if (step.turn) axes.push_back(step.turn->axis);
  std::vector<Stride> strides, tail;
  std::optional<int64_t> tail_stride;
  const Bound* const limit = StoreLimitOf(step);
  for (const te::Axis& axis : axes) {
    if (axis.extent <= 1) continue;
    int64_t c = 0, t = 0;
    if (!address.AffineIn(axis.id, &c) || c <= 0) return false;
    if (limit != nullptr && limit->index.UsesAxis(axis.id)) {
      // The axes of a row with a tail act as one axis, of which only the row's own elements are stored.
      if (!limit->index.AffineIn(axis.id, &t) || t <= 0 || c % t != 0) return false;
      if (tail_stride.value_or(c / t) != c / t) return false;
      tail_stride = c / t;
      tail.push_back({t, axis.extent});
    } else {
      strides.push_back({c, axis.extent});
    }
  }
  if (tail_stride) strides.push_back({*tail_stride, limit->limit});
  return Nested(strides) && Nested(tail);
}

}  // namespace

std::vector<InPlacePair> InPlacePairs(const Kernel& kernel) {
  if (!kernel.phase_loops.empty()) return {};
  std::map<int, std::vector<std::pair<const Phase*, const Step*>>> writers;  // by buffer
  std::map<int, std::set<const Step*>> readers;
  std::set<int> elsewhere;  // read at an address other than the store's, or before the step's result exists
  for (const Phase& phase : kernel.phases) {
    for (const Step& step : phase.steps) {
      for (const Store& store : step.stores) writers[store.buffer].push_back({&phase, &step});
      auto unordered = [&](int buffer) { elsewhere.insert(buffer); };
      for (const Step& shared_copy : SharedCopiesOf(step)) {
        for (const te::Scalar& s : shared_copy.body) {
          te::Visit(s, [&](const te::ScalarNode& node) {
            if (node.kind == te::ScalarKind::kLoad) unordered(node.tensor);
          });
        }
      }
      auto scan = [&](const te::Scalar& s, bool last) {
        te::Visit(s, [&](const te::ScalarNode& node) {
          VisitPredLoads(node.pred, unordered);
          VisitIndexLoads(node.index, unordered);
          if (node.kind != te::ScalarKind::kLoad) return;
          VisitIndexLoads(node.indices[0], unordered);
          readers[node.tensor].insert(&step);
          if (!last || !(node.indices[0] == step.stores[0].address)) elsewhere.insert(node.tensor);
        });
      };
      if (step.reduction) {
        for (const te::Scalar& s : step.reduction->init) scan(s, false);
        VisitPredLoads(step.reduction->pred, unordered);
      }
      for (const te::Scalar& s : step.body) scan(s, !step.reduction);
      for (const te::Scalar& s : step.then) scan(s, true);
      for (const Store& store : step.stores) VisitIndexLoads(store.address, unordered);
      if (step.lane_limit) VisitIndexLoads(step.lane_limit->index, unordered);
      if (const Bound* const limit = StoreLimitOf(step)) VisitIndexLoads(limit->index, unordered);
      for (const Loop& loop : step.loops) {
        if (loop.limit) VisitIndexLoads(*loop.limit, unordered);
      }
    }
  }
  std::vector<InPlacePair> pairs;
  for (const auto& [out, by] : writers) {
    const bool alternatives = by.size() == 2 && AreAlternatives(*by[0].second, *by[1].second);
    if (by.size() != 1 && !alternatives) continue;
    const Buffer& result = kernel.buffers[out];
    const bool once = std::all_of(by.begin(), by.end(), [](const auto& writer) {
      return writer.second->stores.size() == 1 && StoresOnce(*writer.first, *writer.second);
    });
    if (result.scope != Scope::kKernel || !once) continue;
    for (const auto& [in, steps] : readers) {
      const Buffer& operand = kernel.buffers[in];
      const bool apart = std::any_of(steps.begin(), steps.end(), [&, &by = by](const Step* reader) {
        return std::none_of(by.begin(), by.end(), [&](const auto& writer) { return writer.second == reader; });
      });
      if (in == out || elsewhere.count(in) || writers.count(in) || apart) continue;
      if (operand.scope != Scope::kKernel || operand.is_constant) continue;
      if (operand.dtype == result.dtype && operand.elements == result.elements) pairs.push_back({out, in});
    }
  }
  return pairs;
}

}  // namespace fusion::movement
