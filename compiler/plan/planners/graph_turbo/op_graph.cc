#include "compiler/plan/planners/graph_turbo/op_graph.h"

#include <algorithm>
#include <map>
#include <utility>

#include "compiler/ops/registry/op_def.h"
#include "compiler/plan/plan.h"
#include "compiler/plan/planners/tvm_like/tvm_like.h"
#include "compiler/te/program/split_prefixes.h"
#include "runtime/base/status_macros.h"

namespace fusion::graph_turbo {
namespace {

// Accepts every fusion block, so that a planner of fixed patterns makes its groups.
class EveryBlockFits : public FusionOracle {
 public:
  absl::StatusOr<FusionBlockAccount> Fit(const ecg::Graph&, const FusionBlock&) override {
    return FusionBlockAccount();
  }
  absl::StatusOr<FusionAnswers> Compare(const ecg::Graph&, const std::vector<FusionComparison>&,
                                        const std::vector<FusionComparison>&) override {
    return absl::UnimplementedError("fixed patterns compare nothing");
  }
  double EstimateNs(const ecg::Graph&, const std::vector<ecg::NodeId>&) override { return 0; }
};

class Maker {
 public:
  Maker(const ecg::Graph& graph, const OpGraphOptions& options) : graph_(graph), options_(options) {
    tensor_of_.assign(graph.values().size(), kNone);
  }

  absl::Status Add(const std::vector<ecg::NodeId>& nodes) {
    const FusionBlock block(nodes);
    const std::vector<ecg::ValueId> live_out = LiveOut(graph_, block);
    if (live_out.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(ops::LoweredFusionBlock lowered, ops::LowerNodes(graph_, nodes, live_out));
    if (std::optional<te::Program> split = te::SplitPrefixes(lowered.program)) lowered.program = *std::move(split);
    lowered.value_of_tensor.resize(lowered.program.tensors.size(), ecg::kNone);
    Op op{graph_.node(nodes.back()).op, AccessMap(std::move(lowered.program)), {}, {}, {}, 0};
    const int number = static_cast<int>(made_.ops.size());
    for (const te::TensorId input : op.access.program().inputs) {
      const ecg::ValueId value = lowered.value_of_tensor[input];
      const bool weight = value == ecg::kNone || graph_.value(value).constant.has_value();
      op.inputs.push_back(weight ? kNone : TensorOf(value));
      op.values.push_back(value);
      if (weight) continue;
      std::vector<int>& consumers = made_.tensors[op.inputs.back()].consumers;
      if (consumers.empty() || consumers.back() != number) consumers.push_back(number);
    }
    std::vector<Region> whole;
    for (const te::TensorId output : op.access.program().outputs) {
      op.outputs.push_back(TensorOf(lowered.value_of_tensor[output]));
      made_.tensors[op.outputs.back()].producer = number;
      whole.push_back(WholeRegion(made_.tensors[op.outputs.back()].shape));
    }
    op.work = op.access.Required(whole).work;
    made_.ops.push_back(std::move(op));
    return absl::OkStatus();
  }

  OpGraph Take() && { return std::move(made_); }

 private:
  int TensorOf(ecg::ValueId id) {
    if (tensor_of_[id] == kNone) {
      tensor_of_[id] = static_cast<int>(made_.tensors.size());
      const ecg::Value& value = graph_.value(id);
      Tensor& tensor = made_.tensors.emplace_back();
      tensor.name = value.name;
      tensor.value = id;
      tensor.shape = value.type.shape;
      tensor.element_bytes = value.type.dtype == DType::kF32 ? options_.float_bytes : DTypeBytes(value.type.dtype);
      tensor.model_output = graph_.IsOutput(id);
    }
    return tensor_of_[id];
  }

  const ecg::Graph& graph_;
  const OpGraphOptions options_;
  std::vector<int> tensor_of_;  // by value
  OpGraph made_;
};

}  // namespace

absl::StatusOr<OpGraph> MakeOpGraph(const ecg::Graph& graph, const std::vector<std::vector<ecg::NodeId>>& layers,
                                    const OpGraphOptions& options) {
  Maker maker(graph, options);
  for (const std::vector<ecg::NodeId>& nodes : layers) {
    RETURN_IF_ERROR(Annotate(maker.Add(nodes), graph.node(nodes.back()).op));
  }
  return std::move(maker).Take();
}

absl::StatusOr<std::vector<std::vector<ecg::NodeId>>> LayersOf(const ecg::Graph& graph) {
  EveryBlockFits oracle;
  ASSIGN_OR_RETURN(const FusionPlan plan, TvmLikePlanner()->Plan(graph, DeviceModel(), oracle, PlanOptions()));
  std::vector<std::vector<ecg::NodeId>> layers;
  for (const FusionBlock& block : plan.fusion_blocks) layers.push_back(block.Members());
  return layers;
}

}  // namespace fusion::graph_turbo
