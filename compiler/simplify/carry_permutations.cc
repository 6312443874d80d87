#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler/analysis/permuted_reads.h"
#include "compiler/analysis/slices.h"
#include "compiler/ecg/rewriter.h"
#include "compiler/ops/control/loop.h"
#include "compiler/ops/shared/segments.h"
#include "compiler/simplify/passes.h"

namespace fusion::simplify {
namespace {

using ecg::Slice;
using Order = std::vector<int64_t>;  // slice k of the new value is slice order[k] of the old one

// Runs of slices that lie behind each other in their value.
std::vector<ops::Segment> RunsOf(const std::vector<Slice>& slices) {
  std::vector<ops::Segment> runs;
  for (const Slice& slice : slices) {
    if (runs.empty() || runs.back().value != slice.value || runs.back().end != slice.at) {
      runs.push_back({slice.value, slice.at, slice.at});
    }
    ++runs.back().end;
  }
  return runs;
}

std::vector<Slice> InOrder(const std::vector<Slice>& slices, const Order& order) {
  std::vector<Slice> result;
  for (int64_t k : order) result.push_back(slices[k]);
  return result;
}

Tensor Permuted(const Tensor& tensor, int dimension, const Order& order) {
  Tensor result(tensor.dtype(), tensor.shape());
  int64_t outer = 1, bytes = DTypeBytes(tensor.dtype());
  for (int d = 0; d < dimension; ++d) outer *= tensor.shape()[d];
  for (size_t d = dimension + 1; d < tensor.shape().size(); ++d) bytes *= tensor.shape()[d];
  char* to = static_cast<char*>(result.mutable_data());
  const char* from = static_cast<const char*>(tensor.data());
  const auto extent = static_cast<int64_t>(order.size());
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t k = 0; k < extent; ++k) {
      std::memcpy(to + (o * extent + k) * bytes, from + (o * extent + order[k]) * bytes, bytes);
    }
  }
  return result;
}

// A value whose slices may stand in another order for all that read it.
struct Reordered {
  int axis = 0;
  Order order;
  std::vector<Slice> slices;  // empty: the node that makes the value makes it in the new order
};

// Values that take a new order together, and the nodes that read them.
struct Group {
  std::map<ecg::ValueId, Reordered> values;
  std::set<ecg::NodeId> readers;
};

class Carrier {
 public:
  explicit Carrier(const ecg::Graph& graph) : graph_(graph), finder_(graph), rewriter_(graph) {}

  std::optional<ecg::Graph> Run() {
    for (ecg::NodeId id = 0; id < static_cast<ecg::NodeId>(graph_.nodes().size()); ++id) {
      if (!finder_.Moves(id)) continue;
      for (ecg::ValueId output : graph_.node(id).outputs) Reorder(output);
    }
    if (reordered_.empty() || HasLoops()) return std::nullopt;
    for (ecg::NodeId id = 0; id < static_cast<ecg::NodeId>(graph_.nodes().size()); ++id) Rebuild(id);
    return RemoveDead(rewriter_.Finish());  // drops what moved the slices
  }

 private:
  // Segments that an iteration reads would be put together in each iteration.
  bool HasLoops() const { return std::any_of(graph_.nodes().begin(), graph_.nodes().end(), ops::IsLoopBoundary); }

  // Sorts the slices of a moved value where that makes longer runs of them and everyone who reads them allows it.
  void Reorder(ecg::ValueId value) {
    if (!IsReadByOthers(value)) return;
    const std::optional<ecg::Slices> moved = finder_.SlicesOf(value);
    if (!moved) return;
    Order order(moved->slices.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return moved->slices[a] < moved->slices[b]; });
    std::vector<Slice> sorted = InOrder(moved->slices, order);
    if (RunsOf(sorted).size() >= RunsOf(moved->slices).size()) return;
    Group group;
    if (!AllowsReaders(value, moved->axis, order, &group)) return;
    group.values[value].slices = std::move(sorted);
    reordered_.merge(group.values);
    readers_.merge(group.readers);
  }

  bool IsReadByOthers(ecg::ValueId value) {
    const std::vector<ecg::NodeId>& readers = graph_.value(value).consumers;
    return std::any_of(readers.begin(), readers.end(), [&](ecg::NodeId reader) { return !finder_.Moves(reader); });
  }

  // May the slices of the value along `axis` be in this order for all that compute with it, and for all that read what
  // these make of it? Nodes that move slices take the first value of a group as it is. A node has one operand in a new
  // order, or several of one group.
  bool AllowsReaders(ecg::ValueId value, int axis, const Order& order, Group* group) {
    const bool first = group->values.empty();
    if (graph_.IsOutput(value) || !group->values.emplace(value, Reordered{axis, order, {}}).second) return false;
    for (ecg::NodeId reader : graph_.value(value).consumers) {
      if (finder_.Moves(reader)) {
        if (first) continue;
        return false;
      }
      const std::optional<ecg::PermutedReads> reads = ecg::PermuteReads(graph_, reader, value, axis);
      if (!reads || readers_.count(reader) > 0) return false;
      group->readers.insert(reader);
      for (size_t o = 0; o < reads->outputs.size(); ++o) {
        if (reads->outputs[o] < 0) continue;
        if (!AllowsReaders(graph_.node(reader).outputs[o], reads->outputs[o], order, group)) return false;
      }
    }
    return true;
  }

  void Rebuild(ecg::NodeId id) {
    const ecg::Node& node = graph_.node(id);
    std::vector<ecg::ValueId> inputs = rewriter_.MapInputs(node);
    for (size_t i = 0; i < inputs.size() && !finder_.Moves(id); ++i) {
      const auto found = reordered_.find(node.inputs[i]);
      if (found == reordered_.end()) continue;
      const Reordered& reordered = found->second;
      if (!reordered.slices.empty()) inputs[i] = Sorted(node.inputs[i], reordered);
      const std::optional<ecg::PermutedReads> reads = ecg::PermuteReads(graph_, id, node.inputs[i], reordered.axis);
      for (const auto& [constant, dimension] : reads->constants) {
        for (size_t j = 0; j < inputs.size(); ++j) {
          if (node.inputs[j] == constant) inputs[j] = PermutedConstant(constant, dimension, reordered.order);
        }
      }
    }
    rewriter_.CopyWith(node, std::move(inputs));
  }

  ecg::ValueId Sorted(ecg::ValueId value, const Reordered& reordered) {
    const auto known = sorted_.find({reordered.axis, reordered.slices});
    if (known != sorted_.end()) return known->second;
    std::vector<ops::Segment> runs = RunsOf(reordered.slices);
    for (ops::Segment& run : runs) run.value = rewriter_.Map(run.value);
    const ecg::ValueId made = ops::AddSegments(runs, reordered.axis, graph_.value(value).name, rewriter_.graph());
    return sorted_[{reordered.axis, reordered.slices}] = made;
  }

  ecg::ValueId PermutedConstant(ecg::ValueId constant, int dimension, const Order& order) {
    const auto known = constants_.find({constant, dimension, order});
    if (known != constants_.end()) return known->second;
    const ecg::Value& value = graph_.value(constant);
    return constants_[{constant, dimension, order}] =
               rewriter_.graph()->AddConstant(value.name, Permuted(*value.constant, dimension, order));
  }

  const ecg::Graph& graph_;
  ecg::SliceFinder finder_;
  ecg::Rewriter rewriter_;
  std::map<ecg::ValueId, Reordered> reordered_;
  std::set<ecg::NodeId> readers_;                                           // of these
  std::map<std::pair<int, std::vector<Slice>>, ecg::ValueId> sorted_;       // new values
  std::map<std::tuple<ecg::ValueId, int, Order>, ecg::ValueId> constants_;  // new values, by old ones
};

}  // namespace

std::optional<ecg::Graph> MovedPermutations(const ecg::Graph& graph) { return Carrier(graph).Run(); }

}  // namespace fusion::simplify
