#include "compiler/choose_layouts/choose_layouts.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "compiler/choose_layouts/layout_search.h"
#include "compiler/kernels/block_kernel.h"
#include "compiler/kernels/block_signature.h"
#include "compiler/movement/cost.h"
#include "compiler/movement/vector_form.h"
#include "compiler/ops/registry/op_def.h"
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

}  // namespace

absl::StatusOr<ValueLayouts> ChooseLayouts(const ecg::Graph& graph, const DeviceModel& device, int threads) {
  // Work-items that run in step want a row's neighbours beside each other, and they arrange operands as needed when
  // they load them.
  if (device.task_lanes > 1) return ValueLayouts();
  const int64_t lanes = device.vector_bytes / 4;
  const int n = static_cast<int>(graph.values().size());
  Groups groups(n);
  std::set<int> proposed, wished, refused, vetoed;
  std::vector<std::pair<ecg::ValueId, ecg::ValueId>> reduced;  // an image, and the result of a reduction over it
  for (ecg::ValueId v : graph.inputs()) vetoed.insert(v);
  for (ecg::ValueId v : graph.outputs()) vetoed.insert(v);
  for (ecg::NodeId id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    const ecg::Node& node = graph.node(id);
    bool image = false;
    for (ecg::ValueId v : node.outputs) image = image || (v != ecg::kNone && graph.value(v).type.shape.size() >= 2);
    if (!image) continue;
    std::vector<ecg::ValueId> outputs;
    for (ecg::ValueId v : node.outputs) {
      if (v != ecg::kNone) outputs.push_back(v);
    }
    ASSIGN_OR_RETURN(ops::LoweredBlock lowered, ops::LowerNodes(graph, {id}, outputs));
    const te::Program& program = lowered.program;
    // A temporary of the lowering joins the group of the values that it is connected to.
    Groups local(static_cast<int>(program.tensors.size()));
    std::vector<bool> proposes(program.tensors.size(), false), refuses(program.tensors.size(), false),
        forbids(program.tensors.size(), false), wishes(program.tensors.size(), false);
    for (const te::Te& te : program.tes) {
      if (te.routine) {  // a routine reads and writes rows
        for (te::TensorId tensor : te.routine->inputs) forbids[tensor] = true;
        for (te::TensorId tensor : te.outputs) forbids[tensor] = true;
        continue;
      }
      const te::TensorId out = te.outputs[0];
      // One expression writes all of its outputs in one layout, which is plain if one of them must be.
      const bool alike = std::all_of(te.outputs.begin(), te.outputs.end(),
                                     [&](te::TensorId tensor) { return Blockable(program.tensors[tensor]); });
      for (te::TensorId tensor : te.outputs) {
        local.Join(tensor, out);
        forbids[tensor] = forbids[tensor] || (te.outputs.size() > 1 && !alike);
      }
      if (!Blockable(program.tensors[out])) continue;
      const te::Axis channel = te.axes[kChannelAxis];
      bool constant_moves = false, spatial = false;
      std::set<te::TensorId> folded;  // tensors read along their own channels by a reduction
      bool groups_cut_blocks = false;
      for (size_t d = 2; d < te.axes.size(); ++d) spatial = spatial || te.axes[d].extent > 1;
      auto visit = [&](const te::Scalar& s) {
        te::Visit(s, [&](const te::ScalarNode& load) {
          if (load.kind != te::ScalarKind::kLoad) return;
          const te::TensorInfo& info = program.tensors[load.tensor];
          if (info.role == te::Role::kConstant) {
            for (const te::Index& index : load.indices) constant_moves = constant_moves || index.UsesAxis(channel.id);
            return;
          }
          if (!Blockable(info)) return;
          int64_t offset = 0;
          if (SameChannel(load.indices[kChannelAxis], channel, &offset)) {
            // A reduction's small result does not join its image: if the result must be plain, that must not keep the
            // image plain.
            const ecg::ValueId image_value = lowered.value_of_tensor[load.tensor],
                               result = lowered.value_of_tensor[out];
            const bool small = NumElements(program.tensors[out].shape) * kLeastShrinking <= NumElements(info.shape);
            if (!te.IsMap() && small && image_value != ecg::kNone && result != ecg::kNone) {
              reduced.push_back({image_value, result});
            } else if (offset % lanes == 0) {
              local.Join(load.tensor, out);
            } else {
              refuses[out] = true;
            }
          } else if (load.indices[kChannelAxis].UsesAxis(channel.id) && te.IsMap() && info.shape[kChannelAxis] > 1) {
            refuses[out] = true;  // channels are permuted or moved, so whole rows are copied instead
          } else if (!load.indices[kChannelAxis].IsConstant()) {
            folded.insert(load.tensor);
            groups_cut_blocks = groups_cut_blocks || te::ClassifyLanes(load.indices[kChannelAxis], channel, lanes) !=
                                                         te::LaneAccess::kInvariant;
          }
        });
      };
      for (const te::Scalar& s : te.body) visit(s);
      for (const te::Scalar& s : te.then) visit(s);
      if (te.IsMap() || !constant_moves || !spatial) continue;
      if (folded.empty()) {  // a depthwise convolution: better blocked, unless its neighbours pay for it
        if (channel.extent * 2 >= lanes) wishes[out] = true;
        continue;
      }
      folded.insert(out);
      for (te::TensorId tensor : folded) {
        if (program.tensors[tensor].shape[kChannelAxis] * 2 < lanes) continue;
        // The channels of one layout block belong to several groups of the convolution, and each group reads channels
        // of its own. Lanes along an image's row may be better.
        (groups_cut_blocks ? wishes : proposes)[tensor] = true;
        if (groups_cut_blocks) refuses[tensor] = true;
      }
    }
    // Transfers the local groups to the graph's values.
    std::map<int, int> value_of_group;
    for (te::TensorId t = 0; t < static_cast<int>(program.tensors.size()); ++t) {
      const ecg::ValueId v = lowered.value_of_tensor[t];
      if (v == ecg::kNone || !Blockable(program.tensors[t])) continue;
      auto [it, fresh] = value_of_group.emplace(local.Find(t), v);
      if (!fresh) groups.Join(v, it->second);
    }
    for (te::TensorId t = 0; t < static_cast<int>(program.tensors.size()); ++t) {
      auto it = value_of_group.find(local.Find(t));
      if (it == value_of_group.end()) continue;
      if (proposes[t]) proposed.insert(it->second);
      if (wishes[t]) wished.insert(it->second);
      if (refuses[t]) refused.insert(it->second);
      if (forbids[t]) vetoed.insert(it->second);
    }
  }
  std::set<int> good, contested, bad;
  for (int v : vetoed) bad.insert(groups.Find(v));
  for (const auto& [whole, rest] : reduced) {
    if (bad.count(groups.Find(whole)) == bad.count(groups.Find(rest))) groups.Join(whole, rest);
  }
  bad.clear();
  for (int v : proposed) good.insert(groups.Find(v));
  for (int v : refused) contested.insert(groups.Find(v));
  for (int v : wished) {
    if (good.insert(groups.Find(v)).second) contested.insert(groups.Find(v));
  }
  for (int v : vetoed) bad.insert(groups.Find(v));
  const Layout blocked{kChannelAxis, lanes}, last{kChannelAxis, Layout::kWhole};
  ValueLayouts layouts;
  std::map<int, std::vector<ecg::ValueId>> open;
  std::vector<std::vector<ecg::ValueId>> alone;  // values that may differ from their groups, each by itself
  for (int v = 0; v < n; ++v) {
    const ecg::Value& value = graph.value(v);
    const int group = groups.Find(v);
    if (value.constant || !HasLanes(value.type.dtype) || value.type.shape.size() < 2) continue;
    // A dot product of bytes wants adjacent channels, because it takes four elements and a row of taps has three or seven.
    // A copy that is made for the product alone (a border around the image) may have them even if its source does not.
    if (device.byte_dots && bad.count(group) && proposed.count(v) && !vetoed.count(v) &&
        DTypeBytes(value.type.dtype) == 1) {
      alone.push_back({v});
      continue;
    }
    if (!good.count(group) || bad.count(group)) continue;
    if (contested.count(group)) {
      open[group].push_back(v);
    } else {
      layouts[v] = blocked;
    }
  }
  if (open.empty() && alone.empty()) return layouts;
  std::vector<std::vector<ecg::ValueId>> values = std::move(alone);
  for (auto& [group, members] : open) values.push_back(std::move(members));
  std::map<std::string, double> known;  // by signature
  const auto cost = [&](ecg::NodeId id, const ValueLayouts& tried) -> absl::StatusOr<double> {
    const std::vector<ecg::ValueId> live_out = LiveOutOf(graph, {id});
    const std::string signature = SignBlock(graph, {id}, live_out, tried).text;
    auto it = known.find(signature);
    if (it == known.end()) {
      ASSIGN_OR_RETURN(const BlockKernel kernel, MakeBlockKernel(graph, {id}, live_out, tried, device));
      it = known.emplace(signature, movement::EstimateCost(kernel.kernel, device, threads).latency_ns).first;
    }
    return it->second;
  };
  return ShortestLayouts(graph, values, {blocked, last}, std::move(layouts), cost);
}

}  // namespace fusion
