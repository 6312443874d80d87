// For tests of `normalize`: a model with one node, imported as an importer does it.
#ifndef FUSION_COMPILER_OPS_REGISTRY_ONE_NODE_MODEL_H_
#define FUSION_COMPILER_OPS_REGISTRY_ONE_NODE_MODEL_H_

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ops/control/unroll_loops.h"
#include "compiler/ops/registry/infer_types.h"
#include "compiler/ops/registry/op_testing.h"
#include "compiler/te/interpreter/interpreter.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {

class OneNodeModel : public ImportContext {
 public:
  OneNodeModel(const OpCase& op_case, int opset) : case_(op_case), opset_(opset) {
    node_.op = op_case.op;
    node_.name = "n";
    for (const auto& [name, value] : op_case.attrs) node_.attrs.Set(name, value);
    for (size_t i = 0; i < op_case.inputs.size(); ++i) {
      const Tensor& tensor = op_case.inputs[i];
      if (op_case.constants.count(static_cast<int>(i)) != 0) {
        node_.inputs.push_back(graph_.AddConstant("x", tensor));
      } else {
        node_.inputs.push_back(graph_.AddInput("x", {tensor.dtype(), tensor.shape()}));
      }
      if (tensor.data() == nullptr) node_.inputs.back() = ecg::kNone;  // Absent()
    }
    node_.outputs.assign(op_case.num_outputs, ecg::kNone);
  }

  int opset() const override { return opset_; }
  ecg::Node& node() override { return node_; }
  const ecg::Value* input(int i) const override {
    if (i >= static_cast<int>(node_.inputs.size()) || node_.inputs[i] == ecg::kNone) return nullptr;
    return &handed_out_.emplace_back(graph_.value(node_.inputs[i]));
  }
  ecg::ValueId AddConstant(Tensor tensor) override { return graph_.AddConstant("", std::move(tensor)); }
  absl::StatusOr<std::vector<ecg::ValueId>> AddNode(const std::string& op, std::vector<ecg::ValueId> inputs,
                                                    ecg::Attributes attrs, int num_outputs) override {
    ecg::Node node{op, "n", std::move(inputs), {}, std::move(attrs)};
    ASSIGN_OR_RETURN(const auto types, InferTypes(MakeContext(graph_, node), num_outputs));
    return graph_.node(graph_.AddNode(node.op, node.name, node.inputs, node.attrs, types)).outputs;
  }
  void ReplaceWith(std::vector<ecg::ValueId> outputs) override { replacement_ = std::move(outputs); }
  // Nothing in this model depends on data.
  const ecg::Value& value(ecg::ValueId id) const override { return graph_.value(id); }
  const ecg::Node* producer(ecg::ValueId id) const override {
    const ecg::NodeId node = value(id).producer;
    return node == ecg::kNone ? nullptr : &graph_.node(node);
  }
  bool IsDynamic(ecg::ValueId, int) const override { return false; }
  ecg::ValueId Extent(ecg::ValueId value, int dim) override {
    return AddConstant(Tensor::From<int64_t>(DType::kI64, {}, {graph_.value(value).type.shape[dim]}));
  }
  absl::StatusOr<ecg::ValueId> WithExtents(ecg::ValueId value, std::vector<ecg::ValueId>) override { return value; }
  std::optional<std::vector<te::Interval>> Ranges(ecg::ValueId) const override { return std::nullopt; }
  bool MayNotRun() const override { return false; }
  absl::StatusOr<std::vector<ecg::ValueId>> AddBounded(const std::string& op, std::vector<ecg::ValueId> inputs,
                                                       ecg::Attributes attrs, int num_outputs) override {
    return AddNode(op, std::move(inputs), std::move(attrs), num_outputs);
  }

  // Normalises the node, runs the resulting graph and returns the tensors of the outputs.
  absl::StatusOr<std::vector<Tensor>> Run() {
    RETURN_IF_ERROR(FindOp(node_.op)->normalize(*this));
    std::vector<ecg::ValueId> outputs = replacement_;
    if (outputs.empty()) {
      ASSIGN_OR_RETURN(outputs, AddNode(node_.op, node_.inputs, node_.attrs, case_.num_outputs));
    }
    for (const ecg::ValueId output : outputs) graph_.AddOutput(output, "");
    ASSIGN_OR_RETURN(const ecg::Graph graph, ecg::UnrollLoops(graph_));
    std::vector<ecg::NodeId> all;
    for (size_t i = 0; i < graph.nodes().size(); ++i) all.push_back(static_cast<int>(i));
    ASSIGN_OR_RETURN(const LoweredFusionBlock block, LowerNodes(graph, all, graph.outputs()));
    RETURN_IF_ERROR(te::Verify(block.program));
    std::vector<Tensor> inputs;
    for (te::TensorId id : block.program.inputs) {
      if (block.program.tensors[id].constant) {
        inputs.emplace_back();
      } else {
        inputs.push_back(case_.inputs[block.value_of_tensor[id]]);  // graph inputs are the first values
      }
    }
    return te::Interpret(block.program, inputs);
  }
  size_t num_nodes() const { return graph_.nodes().size(); }

 private:
  OpCase case_;
  int opset_;
  ecg::Graph graph_;
  ecg::Node node_;
  std::vector<ecg::ValueId> replacement_;
  mutable std::deque<ecg::Value> handed_out_;
};

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_REGISTRY_ONE_NODE_MODEL_H_
