#include "compiler/choose_layouts/choose_layouts.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/choose_layouts/layout_search.h"
#include "compiler/kernels/fusion_kernel.h"
#include "compiler/kernels/fusion_signature.h"
#include "compiler/movement/cost.h"
#include "compiler/movement/vector_form.h"
#include "compiler/ops/control/loop.h"
#include "compiler/ops/registry/op_def.h"
#include "compiler/schedule/targets/target_strategy.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

constexpr int kChannelAxis = 1;  // in every ONNX image operator
constexpr int64_t kLeastShrinking = 8;

class Groups {
 public:
  explicit Groups(int n) : parent_(n) { std::iota(parent_.begin(), parent_.end(), 0); }
  int Find(int x) {
    while (parent_[x] != x) x = parent_[x] = parent_[parent_[x]];
    return x;
  }
  void Join(int a, int b) { parent_[Find(a)] = Find(b); }

 private:
  std::vector<int> parent_;
};

bool HasLanes(DType dtype) {
  const movement::LaneKind kind = movement::LaneKindOf(dtype);
  return kind == movement::LaneKind::kFloat || kind == movement::LaneKind::kInt;
}

bool Blockable(const te::TensorInfo& info) {
  return HasLanes(info.dtype) && info.shape.size() >= 2 && info.role != te::Role::kConstant;
}

// Does the index read dimension 1 at the reader's own channel axis, as `c + offset`?
bool SameChannel(const te::Index& index, const te::Axis& channel, int64_t* offset) {
  int64_t coefficient = 0;
  if (channel.extent == 1) return false;
  if (index.parts().size() != 1 || !index.AffineIn(channel.id, &coefficient) || coefficient != 1) return false;
  *offset = index.constant();
  return true;
}

// The votes of the tensors of one operator's lowering. A temporary of the lowering joins the group of the values that
// it is connected to.
class OperatorVotes {
 public:
  OperatorVotes(const ops::LoweredFusionBlock& lowered, int64_t lanes)
      : groups(static_cast<int>(lowered.program.tensors.size())),
        proposes(lowered.program.tensors.size(), false),
        wishes(proposes),
        refuses(proposes),
        forbids(proposes),
        lowered_(lowered),
        program_(lowered.program),
        lanes_(lanes) {
    for (const te::Te& te : program_.tes) Vote(te);
  }

  Groups groups;
  std::vector<bool> proposes, wishes, refuses, forbids;        // by tensor
  std::vector<std::pair<ecg::ValueId, ecg::ValueId>> reduced;  // an image, and the result of a reduction over it

 private:
  // How an expression reads its operands' channels.
  struct ChannelReads {
    bool constant_moves = false;          // a constant moves with the expression's channel
    std::set<te::TensorId> own_channels;  // tensors read along their own channels by a reduction
    bool groups_cut_blocks = false;
  };

  void Vote(const te::Te& te) {
    if (te.routine) {  // a routine reads and writes rows
      for (te::TensorId tensor : te.routine->inputs) forbids[tensor] = true;
      for (te::TensorId tensor : te.outputs) forbids[tensor] = true;
      return;
    }
    JoinOutputs(te);
    if (!Blockable(program_.tensors[te.outputs[0]])) return;
    ChannelReads reads;
    const auto visit = [&](const te::Scalar& s) {
      te::Visit(s, [&](const te::ScalarNode& node) {
        if (node.kind == te::ScalarKind::kLoad) AddLoad(te, node, &reads);
      });
    };
    for (const te::Scalar& s : te.body) visit(s);
    for (const te::Scalar& s : te.then) visit(s);
    bool spatial = false;
    for (size_t d = 2; d < te.axes.size(); ++d) spatial = spatial || te.axes[d].extent > 1;
    if (!te.IsMap() && reads.constant_moves && spatial) VoteAsConvolution(te, std::move(reads));
  }

  // One expression writes all of its outputs in one layout, which is plain if one of them must be.
  void JoinOutputs(const te::Te& te) {
    const bool alike = std::all_of(te.outputs.begin(), te.outputs.end(),
                                   [&](te::TensorId tensor) { return Blockable(program_.tensors[tensor]); });
    for (te::TensorId tensor : te.outputs) {
      groups.Join(tensor, te.outputs[0]);
      forbids[tensor] = forbids[tensor] || (te.outputs.size() > 1 && !alike);
    }
  }

  void AddLoad(const te::Te& te, const te::ScalarNode& load, ChannelReads* reads) {
    const te::TensorId out = te.outputs[0];
    const te::Axis channel = te.axes[kChannelAxis];
    const te::TensorInfo& info = program_.tensors[load.tensor];
    if (info.role == te::Role::kConstant) {
      for (const te::Index& index : load.indices) {
        reads->constant_moves = reads->constant_moves || index.UsesAxis(channel.id);
      }
      return;
    }
    if (!Blockable(info)) return;
    const te::Index& index = load.indices[kChannelAxis];
    int64_t offset = 0;
    if (SameChannel(index, channel, &offset)) {
      // A reduction's small result does not join its image: if the result must be plain, that must not keep the image
      // plain.
      const ecg::ValueId image = lowered_.value_of_tensor[load.tensor], result = lowered_.value_of_tensor[out];
      const bool small = NumElements(program_.tensors[out].shape) * kLeastShrinking <= NumElements(info.shape);
      if (!te.IsMap() && small && image != ecg::kNone && result != ecg::kNone) {
        reduced.push_back({image, result});
      } else if (offset % lanes_ == 0) {
        groups.Join(load.tensor, out);
      } else {
        refuses[out] = true;
      }
    } else if (index.UsesAxis(channel.id) && te.IsMap() && info.shape[kChannelAxis] > 1) {
      refuses[out] = true;  // channels are permuted or moved, so whole rows are copied instead
    } else if (!index.IsConstant()) {
      reads->own_channels.insert(load.tensor);
      reads->groups_cut_blocks =
          reads->groups_cut_blocks || te::ClassifyLanes(index, channel, lanes_) != te::LaneAccess::kInvariant;
    }
  }

  void VoteAsConvolution(const te::Te& te, ChannelReads reads) {
    const te::TensorId out = te.outputs[0];
    if (reads.own_channels.empty()) {  // a depthwise convolution: better blocked, unless its neighbours pay for it
      if (te.axes[kChannelAxis].extent * 2 >= lanes_) wishes[out] = true;
      return;
    }
    reads.own_channels.insert(out);
    for (te::TensorId tensor : reads.own_channels) {
      if (program_.tensors[tensor].shape[kChannelAxis] * 2 < lanes_) continue;
      // The channels of one layout block belong to several groups of the convolution, and each group reads channels of
      // its own. Lanes along an image's row may be better.
      (reads.groups_cut_blocks ? wishes : proposes)[tensor] = true;
      if (reads.groups_cut_blocks) refuses[tensor] = true;
    }
  }

  const ops::LoweredFusionBlock& lowered_;
  const te::Program& program_;
  const int64_t lanes_;
};

// The votes of all operators on the graph's values.
class Votes {
 public:
  explicit Votes(const ecg::Graph& graph) : groups(static_cast<int>(graph.values().size())) {
    for (ecg::ValueId v : graph.inputs()) vetoed.insert(v);
    for (ecg::ValueId v : graph.outputs()) vetoed.insert(v);
  }

  // Transfers the groups and votes of a lowering's tensors to the graph's values.
  void Add(const ops::LoweredFusionBlock& lowered, OperatorVotes votes) {
    const auto tensors = static_cast<te::TensorId>(lowered.program.tensors.size());
    std::map<int, int> value_of_group;
    for (te::TensorId t = 0; t < tensors; ++t) {
      const ecg::ValueId v = lowered.value_of_tensor[t];
      if (v == ecg::kNone || !Blockable(lowered.program.tensors[t])) continue;
      auto [it, fresh] = value_of_group.emplace(votes.groups.Find(t), v);
      if (!fresh) groups.Join(v, it->second);
    }
    for (te::TensorId t = 0; t < tensors; ++t) {
      auto it = value_of_group.find(votes.groups.Find(t));
      if (it == value_of_group.end()) continue;
      if (votes.proposes[t]) proposed.insert(it->second);
      if (votes.wishes[t]) wished.insert(it->second);
      if (votes.refuses[t]) refused.insert(it->second);
      if (votes.forbids[t]) vetoed.insert(it->second);
    }
    reduced_.insert(reduced_.end(), votes.reduced.begin(), votes.reduced.end());
  }

  // Counts the votes by group: `good` groups want the layout, those that are also `contested` need an estimate, and
  // `bad` ones stay plain. Afterwards groups are final.
  void Count() {
    for (int v : vetoed) bad.insert(groups.Find(v));
    for (const auto& [whole, rest] : reduced_) {
      if (bad.count(groups.Find(whole)) == bad.count(groups.Find(rest))) groups.Join(whole, rest);
    }
    bad.clear();
    for (int v : proposed) good.insert(groups.Find(v));
    for (int v : refused) contested.insert(groups.Find(v));
    for (int v : wished) {
      if (good.insert(groups.Find(v)).second) contested.insert(groups.Find(v));
    }
    for (int v : vetoed) bad.insert(groups.Find(v));
  }

  Groups groups;
  std::set<int> proposed, wished, refused, vetoed;  // values
  std::set<int> good, contested, bad;               // groups

 private:
  std::vector<std::pair<ecg::ValueId, ecg::ValueId>> reduced_;
};

absl::Status AddVotes(const ecg::Graph& graph, ecg::NodeId id, int64_t lanes, Votes* votes) {
  if (ops::IsLoopBoundary(graph.node(id))) {  // iterations find their slices at steps through plain memory
    for (ecg::ValueId v : graph.node(id).inputs) votes->vetoed.insert(v);
    for (ecg::ValueId v : graph.node(id).outputs) votes->vetoed.insert(v);
    return absl::OkStatus();
  }
  std::vector<ecg::ValueId> outputs;
  bool image = false;
  for (ecg::ValueId v : graph.node(id).outputs) {
    if (v == ecg::kNone) continue;
    outputs.push_back(v);
    image = image || graph.value(v).type.shape.size() >= 2;
  }
  if (!image) return absl::OkStatus();
  ASSIGN_OR_RETURN(const ops::LoweredFusionBlock lowered, ops::LowerNodes(graph, {id}, outputs));
  votes->Add(lowered, OperatorVotes(lowered, lanes));
  return absl::OkStatus();
}

// The share at which computing counts beside the time of a kernel. Where reading and writing take longer, all layouts
// of a small operator would take the same time, and the one with less to compute is the better one: its operands may
// be in a cache.
constexpr double kHiddenShare = 1e-3;

// Returns the cost of an operator as a kernel of its own. Operators that differ in nothing that matters are estimated
// once.
LayoutCost CostOfKernels(const ecg::Graph& graph, const DeviceModel& device, int threads) {
  return [&graph, &device, threads, known = std::map<std::string, double>()](
             ecg::NodeId id, const ValueLayouts& tried) mutable -> absl::StatusOr<double> {
    const std::vector<ecg::ValueId> live_out = LiveOutOf(graph, {id});
    const std::string signature = SignFusionBlock(graph, {id}, live_out, tried).text;
    auto it = known.find(signature);
    if (it == known.end()) {
      ASSIGN_OR_RETURN(const FusionKernel kernel, MakeFusionKernel(graph, {id}, live_out, tried, device));
      const movement::KernelCost cost = movement::EstimateCost(kernel.kernel, device, threads);
      it = known.emplace(signature, cost.latency_ns + kHiddenShare * cost.compute_ns).first;
    }
    return it->second;
  };
}

}  // namespace

absl::StatusOr<ValueLayouts> ChooseLayouts(const ecg::Graph& graph, const DeviceModel& device, int threads) {
  // Work-items that run in step want a row's neighbours beside each other, and they arrange operands as needed when
  // they load them.
  if (!StrategyOf(device).blocked_layouts) return ValueLayouts();
  const int64_t lanes = device.vector_bytes / 4;
  Votes votes(graph);
  for (ecg::NodeId id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    RETURN_IF_ERROR(AddVotes(graph, id, lanes, &votes));
  }
  votes.Count();
  const Layout blocked{kChannelAxis, lanes}, last{kChannelAxis, Layout::kWhole};
  ValueLayouts layouts;
  std::map<int, std::vector<ecg::ValueId>> open;
  std::vector<std::vector<ecg::ValueId>>
      estimated;  // first the values that may differ from their groups, each by itself
  for (int v = 0; v < static_cast<int>(graph.values().size()); ++v) {
    const ecg::Value& value = graph.value(v);
    const int group = votes.groups.Find(v);
    if (value.constant || !HasLanes(value.type.dtype) || value.type.shape.size() < 2) continue;
    // A dot product of bytes wants adjacent channels, because it takes four elements and a row of taps has three or
    // seven. A copy that is made for the product alone (a border around the image) may have them even if its source
    // does not.
    if (device.byte_dots && votes.bad.count(group) && votes.proposed.count(v) && !votes.vetoed.count(v) &&
        DTypeBytes(value.type.dtype) == 1) {
      estimated.push_back({v});
      continue;
    }
    if (!votes.good.count(group) || votes.bad.count(group)) continue;
    if (votes.contested.count(group)) {
      open[group].push_back(v);
    } else {
      layouts[v] = blocked;
    }
  }
  for (auto& [group, members] : open) estimated.push_back(std::move(members));
  if (estimated.empty()) return layouts;
  return ShortestLayouts(graph, estimated, {blocked, last}, std::move(layouts), CostOfKernels(graph, device, threads));
}

}  // namespace fusion
