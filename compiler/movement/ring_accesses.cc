#include "compiler/movement/ring_accesses.h"

#include <set>
#include <utility>

namespace fusion::movement {
namespace {

class Collector {
 public:
  Collector(const Kernel& kernel, MaskedLanes masked) : kernel_(kernel), masked_(masked) {}

  void Add(const Step& step) {
    for (const Step& shared_copy : SharedCopiesOf(step)) Add(shared_copy);
    const bool all_lanes =
        masked_ == MaskedLanes::kComputed && !step.Is<ScalarLoops>() && !step.Is<RowReduction>();
    te::Pred stored;
    for (const Loop& loop : step.loops) {
      if (loop.limit) stored.push_back({te::Index(loop.axis), te::Cmp::kLt, *loop.limit});
    }
    te::Pred reduced = stored;
    if (const Bound* const limit = StoreLimitOf(step)) {
      stored.push_back({limit->index, te::Cmp::kLt, limit->limit});
      if (!all_lanes) reduced.push_back(stored.back());
    }
    te::Pred finished = stored;
    if (step.lane_limit && !all_lanes) {
      const te::Comparison unmasked{step.lane_limit->index, te::Cmp::kLt, step.lane_limit->limit};
      reduced.push_back(unmasked);
      finished.push_back(unmasked);
    }
    if (step.reduction) {
      AddLoads(step.reduction->init, reduced);
      reduced.insert(reduced.end(), step.reduction->pred.begin(), step.reduction->pred.end());
    }
    AddLoads(step.body, reduced);
    AddLoads(step.then, finished);
    for (const Store& store : step.stores) {
      if (IsRing(store.buffer)) found.push_back({store.buffer, true, store.address, stored});
    }
  }

  std::vector<RingAccess> found;

 private:
  bool IsRing(int buffer) const { return kernel_.buffers[buffer].ring.has_value(); }

  using Seen = std::set<const te::ScalarNode*>;  // under the same conditions

  void AddLoads(const std::vector<te::Scalar>& scalars, const te::Pred& conditions) {
    Seen seen;
    for (const te::Scalar& s : scalars) AddLoads(s, conditions, &seen);
  }

  void AddLoads(const te::Scalar& s, const te::Pred& conditions, Seen* seen) {
    if (!seen->insert(s.get()).second) return;
    if (s->kind == te::ScalarKind::kLoad && IsRing(s->tensor)) {
      found.push_back({s->tensor, false, s->indices[0], conditions});
    }
    for (size_t a = 0; a < s->args.size(); ++a) {
      if (s->kind != te::ScalarKind::kIf || a != 0) {
        AddLoads(s->args[a], conditions, seen);
        continue;
      }
      te::Pred on_path = conditions;
      on_path.insert(on_path.end(), s->pred.begin(), s->pred.end());
      Seen on_path_alone;
      AddLoads(s->args[a], on_path, &on_path_alone);
    }
  }

  const Kernel& kernel_;
  const MaskedLanes masked_;
};

}  // namespace

std::vector<RingAccess> RingAccessesOf(const Kernel& kernel, const Step& step, MaskedLanes masked) {
  Collector collector(kernel, masked);
  collector.Add(step);
  return std::move(collector.found);
}

}  // namespace fusion::movement
