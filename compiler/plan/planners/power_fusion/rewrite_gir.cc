#include "compiler/plan/planners/power_fusion/rewrite_gir.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "compiler/plan/planners/power_fusion/templates.h"

namespace fusion::power_fusion {
namespace {

class Rewriter {
 public:
  Rewriter(const std::vector<BasicOperator>& operators, const Units& units, Gir* gir)
      : basic_(operators), units_(units), gir_(*gir) {
    const std::set<ecg::ValueId> results(gir_.results.begin(), gir_.results.end());
    for (const GOperator& op : gir_.operators) {
      if (IsStore(op) && results.count(gir_.slices[op.writes].value) > 0) kept_.insert(op.writes);
    }
    Sort();
  }

  // Algorithm 1.
  RewriteCounts Run() {
    for (bool merged = true; merged;) {
      InsertSyncs();
      SwapAll();
      merged = MergeWrittenAndRead();
      merged |= MergeReads();
    }
    return counts_;
  }

 private:
  bool InDram(int slice) const { return gir_.slices[slice].memory == Scope::kDevice; }
  bool IsStore(const GOperator& op) const { return op.kind == GKind::kMove && InDram(op.writes); }
  // A move that reads nothing but DRAM.
  bool IsLoad(int o) const {
    if (o < 0 || gir_.operators[o].kind != GKind::kMove || InDram(gir_.operators[o].writes)) return false;
    const std::vector<int>& reads = gir_.operators[o].reads;
    return std::all_of(reads.begin(), reads.end(), [&](int slice) { return InDram(slice); });
  }
  const std::vector<int>& Users(int slice) const { return users_[slice]; }

  // Brings the gOperators that the kept stores need into an order in which they can run, and drops the others.
  void Sort() {
    const std::vector<int> makers = MakersOf(gir_);
    std::vector<int> state(gir_.operators.size(), 0);  // 1: its operands wait, 2: done
    std::vector<GOperator> sorted;
    std::vector<int> stack;
    for (size_t o = 0; o < gir_.operators.size(); ++o) {
      if (kept_.count(gir_.operators[o].writes) > 0) stack.push_back(static_cast<int>(o));
    }
    std::reverse(stack.begin(), stack.end());
    while (!stack.empty()) {
      const int o = stack.back();
      if (state[o] == 2) {
        stack.pop_back();
        continue;
      }
      if (state[o] == 1) {
        state[o] = 2;
        sorted.push_back(gir_.operators[o]);
        stack.pop_back();
        continue;
      }
      state[o] = 1;
      const std::vector<int>& reads = gir_.operators[o].reads;
      for (auto slice = reads.rbegin(); slice != reads.rend(); ++slice) {
        const int maker = makers[*slice];
        if (maker >= 0 && state[maker] == 0) stack.push_back(maker);
      }
    }
    gir_.operators = std::move(sorted);
    Index();
  }

  void Index() {
    makers_ = MakersOf(gir_);
    users_.assign(gir_.slices.size(), {});
    for (size_t o = 0; o < gir_.operators.size(); ++o) {
      for (const int slice : gir_.operators[o].reads) users_[slice].push_back(static_cast<int>(o));
    }
  }

  // Has a unit room for its part of the tensor?
  bool Holds(const Slice& slice) const {
    double part = slice.bytes / static_cast<double>(std::max<int64_t>(1, NumElements(slice.shape)));
    for (const te::Span& span : slice.pattern.box) part *= static_cast<double>(span.length);
    return units_.memory_bytes <= 0 || part <= units_.memory_bytes;
  }

  // Synchronisation insertion: memory comes as near as the units that exchange elements allow. Registers and a block's
  // memory do not outlive a phase.
  void InsertSyncs() {
    std::vector<int> nearer;
    for (size_t o = 0; o < gir_.operators.size(); ++o) {
      GOperator& sync = gir_.operators[o];
      if (sync.kind != GKind::kSync || sync.scope != Scope::kDevice) continue;
      const Slice &written = gir_.slices[sync.reads[0]], &read = gir_.slices[sync.writes];
      if (written.value == ecg::kNone || written.value != read.value) continue;
      const Scope scope = SyncScope(written.pattern, read.pattern, read.shape, gir_.units, units_.per_block);
      if (scope == Scope::kDevice || !Holds(written) || !Holds(read)) continue;
      sync.scope = scope;
      nearer.push_back(static_cast<int>(o));
    }
    const std::vector<int> phases = PhasesOf(gir_);
    for (const int o : nearer) {
      GOperator& sync = gir_.operators[o];
      const int load = Users(sync.writes).front();
      bool same = true;
      for (const int user : Users(gir_.operators[load].writes)) same &= phases[user] == phases[makers_[sync.reads[0]]];
      if (same) {
        ++counts_.inserted;
      } else {
        sync.scope = Scope::kDevice;
      }
    }
  }

  // The load behind the synchronisation; -1 if the synchronisation is not between a store and a load.
  int LoadBehind(const GOperator& sync) const {
    if (sync.kind != GKind::kSync || makers_[sync.reads[0]] < 0 || !IsStore(gir_.operators[makers_[sync.reads[0]]])) {
      return -1;
    }
    return Users(sync.writes).size() == 1 ? Users(sync.writes).front() : -1;
  }

  // Swapping: an elementwise gOperator whose operands come from DRAM is computed behind the synchronisation instead of
  // in front of it, so that the movements around the synchronisation become neighbours.
  void SwapAll() {
    for (size_t o = 0; o < gir_.operators.size(); ++o) {
      const bool swapped =
          gir_.operators[o].scope == Scope::kDevice && LoadBehind(gir_.operators[o]) >= 0 && Swap(static_cast<int>(o));
      if (!swapped) continue;
      ++counts_.swapped;
      Sort();
      o = 0;
    }
  }

  // Does the synchronisation stand behind a tensor that was only moved?
  bool Moves(int sync) const {
    const int store = makers_[gir_.operators[sync].reads[0]];
    return store >= 0 && IsLoad(makers_[gir_.operators[store].reads[0]]);
  }

  // The load of each operand of the elementwise gOperator; empty where one is no load.
  std::vector<int> LoadsOf(const GOperator& elementwise) const {
    std::vector<int> loads;
    for (const int slice : elementwise.reads) {
      int maker = makers_[slice];
      if (maker >= 0 && gir_.operators[maker].kind == GKind::kBroadcast) {
        maker = makers_[gir_.operators[maker].reads[0]];
      }
      if (!IsLoad(maker) || gir_.operators[maker].reads.size() != 1) return {};
      const int sync = makers_[gir_.operators[maker].reads[0]];
      if (sync >= 0 && gir_.operators[sync].scope != Scope::kDevice && !Moves(sync)) return {};
      loads.push_back(maker);
    }
    return loads;
  }

  // Are fewer bytes moved, or as many, if the operands are moved instead of the result?
  bool Pays(const std::vector<int>& loads, int written, int behind, int store) const {
    double operands = 0;
    for (const int load : loads) operands += gir_.slices[gir_.operators[load].reads[0]].bytes;
    const bool only = Users(written).size() == 1 && kept_.count(written) == 0;
    if (operands <= gir_.slices[written].bytes * (only ? 2 : 1)) return true;
    // Within one phase the operands are read once.
    const std::vector<int> phases = PhasesOf(gir_);
    for (const int user : Users(gir_.operators[behind].writes)) {
      for (const int slice : gir_.operators[user].reads) {
        const int maker = makers_[slice];
        if (maker >= 0 && maker != behind && phases[maker] > phases[store]) return false;
      }
    }
    return true;
  }

  bool Swap(int o) {
    const GOperator sync = gir_.operators[o];
    const int store = makers_[sync.reads[0]], behind = LoadBehind(sync);
    const int made = gir_.operators[store].reads[0], computes = makers_[made];
    if (computes < 0 || gir_.operators[computes].kind != GKind::kElementwise) return false;
    if (gir_.operators[behind].rereads) return false;  // it would be computed again and again
    GOperator elementwise = gir_.operators[computes];
    const std::vector<int> loads = LoadsOf(elementwise);
    if (loads.empty() || !Pays(loads, sync.reads[0], behind, store)) return false;
    const BasicOperator& op = basic_[elementwise.op];
    const Pattern read = gir_.slices[sync.writes].pattern;
    for (size_t i = 0; i < loads.size(); ++i) {
      const GOperator load = gir_.operators[loads[i]];
      const Operand& operand = op.operands[i];
      Slice slice = gir_.slices[load.reads[0]];
      if (slice.value != operand.value) {  // it is moved on its way
        const Shape& shape = op.program.tensors[operand.tensor].shape;
        slice.bytes *= static_cast<double>(NumElements(shape)) /
                       static_cast<double>(std::max<int64_t>(1, NumElements(slice.shape)));
        slice.shape = shape;
        slice.value = operand.value;
        slice.pattern = gir_.slices[load.writes].pattern;
      }
      const auto add = [&](GKind kind, int from, Scope memory) {
        GOperator next = load;
        next.kind = kind;
        next.scope = Scope::kDevice;
        next.op = elementwise.op;
        next.through.assign(1, {});
        next.reads = {from};
        slice.memory = memory;
        const int to = next.writes = gir_.Add(slice);
        gir_.operators.push_back(std::move(next));
        return to;
      };
      const int written = add(GKind::kMove, load.writes, Scope::kDevice);
      slice.pattern = PatternOf(OperandBox(op, operand, read.box), op.program.tensors[operand.tensor].shape,
                                operand.in_order && read.in_order);
      int ready = add(GKind::kMove, add(GKind::kSync, written, Scope::kDevice), Scope::kLane);
      if (makers_[elementwise.reads[i]] != loads[i]) ready = add(GKind::kBroadcast, ready, Scope::kLane);
      elementwise.reads[i] = ready;
    }
    elementwise.writes = gir_.operators[behind].writes;
    gir_.operators[behind] = std::move(elementwise);  // the synchronisation has no reader left
    return true;
  }

  static const std::vector<int>& ThroughOf(const GOperator& load, int slice) {
    return load.through[std::find(load.reads.begin(), load.reads.end(), slice) - load.reads.begin()];
  }

  // Merging, read after write.
  bool MergeWrittenAndRead() {
    bool merged = false;
    for (size_t o = 0, n = gir_.operators.size(); o < n; ++o) {
      const int load = LoadBehind(gir_.operators[o]);
      if (load < 0) continue;
      const Scope scope = gir_.operators[o].scope;
      // A tensor that is only moved is read where it was, which needs no synchronisation at all.
      const bool only_reads =
          scope == Scope::kLane && ThroughOf(gir_.operators[load], gir_.operators[o].writes).empty();
      if (only_reads || !MoveDirectly(static_cast<int>(o), load)) {
        if (scope == Scope::kDevice) continue;
        KeepNear(static_cast<int>(o), load, scope == Scope::kLane);
      }
      merged = true;
      ++counts_.merged;
    }
    if (merged) Sort();
    return merged;
  }

  // Whoever reads one slice reads the other instead.
  void Replace(int slice, int by) {
    for (const int user : users_[slice]) {
      std::replace(gir_.operators[user].reads.begin(), gir_.operators[user].reads.end(), slice, by);
    }
    users_[by].insert(users_[by].end(), users_[slice].begin(), users_[slice].end());
    users_[slice].clear();
  }
  int Add(Slice slice, int maker) {
    makers_.push_back(maker);
    users_.emplace_back();
    return gir_.Add(std::move(slice));
  }

  // A store and the load behind it become one move through nearer memory, or none where the patterns are the same.
  void KeepNear(int o, int load, bool same) {
    const int made = gir_.operators[makers_[gir_.operators[o].reads[0]]].reads[0];
    if (same) {
      Replace(gir_.operators[load].writes, made);
      users_[gir_.operators[o].writes].clear();
    } else {
      GOperator& sync = gir_.operators[o];
      sync.reads[0] = made;
      users_[made].push_back(o);
      gir_.slices[sync.writes].memory = sync.scope;
    }
  }

  // The part of `source` that is needed for this part of `value`, which it becomes through these operators.
  std::optional<Pattern> Composed(const std::vector<int>& through, const Slice& source, ecg::ValueId value,
                                  Pattern pattern) const {
    for (auto node = through.rbegin(); node != through.rend(); ++node) {
      const BasicOperator& op = basic_[*node];
      if (std::find(op.results.begin(), op.results.end(), value) == op.results.end()) return std::nullopt;
      const bool last = std::next(node) == through.rend();
      const auto operand = std::find_if(op.operands.begin(), op.operands.end(), [&](const Operand& one) {
        if (last) return one.value == source.value;
        const std::vector<ecg::ValueId>& made = basic_[*std::next(node)].results;
        return std::find(made.begin(), made.end(), one.value) != made.end();
      });
      if (operand == op.operands.end()) return std::nullopt;
      pattern = PatternOf(OperandBox(op, *operand, pattern.box), op.program.tensors[operand->tensor].shape,
                          operand->in_order && pattern.in_order);
      value = operand->value;
    }
    return value == source.value ? std::optional(std::move(pattern)) : std::nullopt;
  }

  // A load that is stored at once and then loaded elsewhere: the second load reads what the first one read, through
  // both index maps.
  bool MoveDirectly(int o, int behind) {
    const GOperator sync = gir_.operators[o];
    const GOperator store = gir_.operators[makers_[sync.reads[0]]];
    const int first = makers_[store.reads[0]];
    if (!IsLoad(first)) return false;
    const Slice written = gir_.slices[sync.reads[0]], read = gir_.slices[sync.writes];
    const GOperator load = gir_.operators[first];
    GOperator direct = gir_.operators[behind];
    const auto place = std::find(direct.reads.begin(), direct.reads.end(), sync.writes) - direct.reads.begin();
    const std::vector<int> onward = direct.through[place];
    direct.reads.erase(direct.reads.begin() + place);
    direct.through.erase(direct.through.begin() + place);
    for (size_t i = 0; i < load.reads.size(); ++i) {
      Slice slice = gir_.slices[load.reads[i]];
      std::optional<Pattern> composed = Composed(load.through[i], slice, written.value, read.pattern);
      if (!composed) return false;
      slice.pattern = *std::move(composed);
      const bool behind_sync = makers_[load.reads[i]] >= 0;
      const int moved = Add(std::move(slice), behind_sync ? static_cast<int>(gir_.operators.size()) : -1);
      users_[moved].push_back(behind);
      direct.reads.insert(direct.reads.begin() + place + static_cast<std::ptrdiff_t>(i), moved);
      std::vector<int> through = load.through[i];
      through.insert(through.end(), onward.begin(), onward.end());
      direct.through.insert(direct.through.begin() + place + static_cast<std::ptrdiff_t>(i), std::move(through));
      if (!behind_sync) continue;
      GOperator again = gir_.operators[makers_[load.reads[i]]];  // the synchronisation in front of the first load
      again.scope = Scope::kDevice;
      again.writes = moved;
      users_[again.reads[0]].push_back(static_cast<int>(gir_.operators.size()));
      gir_.operators.push_back(std::move(again));
    }
    users_[sync.writes].clear();
    direct.looked_up_bytes += load.looked_up_bytes;
    direct.rereads |= load.rereads;
    gir_.operators[behind] = std::move(direct);
    return true;
  }

  // Merging, read after read: loads of one phase that read the same slice of what no gOperator of the graph writes, or
  // of what was written before the same synchronisation.
  bool MergeReads() {
    const std::vector<int> phases = PhasesOf(gir_);
    const auto source = [&](int slice) { return makers_[slice] < 0 ? -1 : gir_.operators[makers_[slice]].reads[0]; };
    bool merged = false;
    std::map<std::pair<ecg::ValueId, int>, std::vector<int>> loads;  // by value and phase
    for (size_t o = 0; o < gir_.operators.size(); ++o) {
      const GOperator& load = gir_.operators[o];
      if (!IsLoad(static_cast<int>(o)) || load.reads.size() != 1) continue;
      const Slice& slice = gir_.slices[load.reads[0]];
      std::vector<int>& known = loads[{slice.value, phases[o]}];
      const auto equal = std::find_if(known.begin(), known.end(), [&](int other) {
        const int read = gir_.operators[other].reads[0];
        return source(read) == source(load.reads[0]) && gir_.operators[other].through == load.through &&
               slice.pattern.in_order == gir_.slices[read].pattern.in_order &&
               SameBox(gir_.slices[read].pattern.box, slice.pattern.box);
      });
      if (equal == known.end()) {
        known.push_back(static_cast<int>(o));
        continue;
      }
      Replace(load.writes, gir_.operators[*equal].writes);
      gir_.operators[*equal].rereads |= load.rereads;
      merged = true;
      ++counts_.merged;
    }
    if (merged) Sort();
    return merged;
  }

  const std::vector<BasicOperator>& basic_;
  const Units units_;
  Gir& gir_;
  std::set<int> kept_;  // slices of results in DRAM
  std::vector<int> makers_;
  std::vector<std::vector<int>> users_;
  RewriteCounts counts_;
};

}  // namespace

RewriteCounts RewriteGir(const std::vector<BasicOperator>& operators, const Units& units, Gir* gir) {
  return Rewriter(operators, units, gir).Run();
}

}  // namespace fusion::power_fusion
