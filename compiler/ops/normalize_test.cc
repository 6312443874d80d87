// Older opsets brought to canonical form; losses, which are decomposed on entry.
#include <cmath>
#include <deque>

#include "compiler/ops/op_testing.h"
#include "compiler/te/interpreter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

// A model of one node, imported as an importer would.
class OneNodeModel : public ImportContext {
 public:
  OneNodeModel(const OpCase& op_case, int opset) : case_(op_case), opset_(opset) {
    node_.op = op_case.op;
    node_.name = "n";
    for (const auto& [name, value] : op_case.attrs) node_.attrs.Set(name, value);
    for (const Tensor& tensor : op_case.inputs) {
      node_.inputs.push_back(graph_.AddInput("x", {tensor.dtype(), tensor.shape()}));
    }
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
  // Nothing depends on data here.
  const ecg::Value& value(ecg::ValueId id) const override { return graph_.value(id); }
  bool IsDynamic(ecg::ValueId, int) const override { return false; }
  ecg::ValueId Extent(ecg::ValueId value, int dim) override {
    return AddConstant(Tensor::From<int64_t>(DType::kI64, {}, {graph_.value(value).type.shape[dim]}));
  }
  absl::StatusOr<ecg::ValueId> WithExtents(ecg::ValueId value, std::vector<ecg::ValueId>) override { return value; }
  std::optional<std::vector<te::Interval>> Ranges(ecg::ValueId) const override { return std::nullopt; }
  absl::StatusOr<std::vector<ecg::ValueId>> AddBounded(const std::string& op, std::vector<ecg::ValueId> inputs,
                                                       ecg::Attributes attrs, int num_outputs) override {
    return AddNode(op, std::move(inputs), std::move(attrs), num_outputs);
  }

  // The outputs' tensors.
  absl::StatusOr<std::vector<Tensor>> Run() {
    RETURN_IF_ERROR(FindOp(node_.op)->normalize(*this));
    std::vector<ecg::ValueId> outputs = replacement_;
    if (outputs.empty()) {
      ASSIGN_OR_RETURN(outputs, AddNode(node_.op, node_.inputs, node_.attrs, case_.num_outputs));
    }
    std::vector<ecg::NodeId> all;
    for (size_t i = 0; i < graph_.nodes().size(); ++i) all.push_back(static_cast<int>(i));
    ASSIGN_OR_RETURN(const LoweredBlock block, LowerNodes(graph_, all, outputs));
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

std::vector<double> Import(const OpCase& op_case, int opset, int output = 0) {
  return Values(OneNodeModel(op_case, opset).Run(), output);
}

TEST(Normalize, SoftmaxBeforeOpset13FlattensAtTheAxis) {
  const Tensor x = F32({1, 2, 2}, {0, 0, 0, 0});
  EXPECT_THAT(Import({"Softmax", {x}}, 12), ElementsAre(0.25, 0.25, 0.25, 0.25));
  EXPECT_THAT(Import({"Softmax", {x}}, 13), ElementsAre(0.5, 0.5, 0.5, 0.5));
  OneNodeModel last({"Softmax", {x}, {{"axis", int64_t{2}}}}, 12);
  EXPECT_THAT(Values(last.Run()), ElementsAre(0.5, 0.5, 0.5, 0.5));
  EXPECT_EQ(last.num_nodes(), 1);  // nothing to flatten
}

TEST(Normalize, ReduceAxesBecomeAnInput) {
  const OpCase reduce{"ReduceSum", {F32({2, 2}, {1, 2, 3, 4})}, {{"axes", std::vector<int64_t>{0}}}};
  EXPECT_THAT(Import(reduce, 11), ElementsAre(4, 6));
  OpCase max = reduce;
  max.op = "ReduceMax";
  EXPECT_THAT(Import(max, 17), ElementsAre(3, 4));
}

TEST(Normalize, ClipLimitsBecomeInputs) {
  const Tensor x = F32({3}, {-5, 1, 9});
  EXPECT_THAT(Import({"Clip", {x}, {{"min", 0.0}, {"max", 6.0}}}, 10), ElementsAre(0, 1, 6));
  EXPECT_THAT(Import({"Clip", {x}, {{"max", 6.0}}}, 7), ElementsAre(-5, 1, 6));
}

TEST(Loss, NegativeLogLikelihood) {
  const Tensor x = F32({2, 3}, {-1, -2, -3, -4, -5, -6}), target = I64({2}, {2, 0}), weight = F32({3}, {1, 1, 3});
  const auto run = [&](std::vector<std::pair<std::string, ecg::Attribute>> attrs) {
    return Values(RunOp({"NegativeLogLikelihoodLoss", {x, target, weight}, std::move(attrs)}));
  };
  EXPECT_THAT(run({{"reduction", std::string("none")}}), ElementsAre(9, 4));
  EXPECT_THAT(run({{"reduction", std::string("sum")}}), ElementsAre(13));
  EXPECT_THAT(run({}), ElementsAre(3.25));
  EXPECT_THAT(run({{"ignore_index", int64_t{0}}}), ElementsAre(3));
  EXPECT_THAT(Values(RunOp({"NegativeLogLikelihoodLoss", {x, I64({2}, {2, -100})}, {{"ignore_index", int64_t{-100}}}})),
              ElementsAre(3));
}

TEST(Loss, CrossEntropyIsLogSoftmaxAndLikelihood) {
  const OpCase loss{"SoftmaxCrossEntropyLoss", {F32({1, 2}, {0, std::log(3.0)}), I64({1}, {1})}};
  EXPECT_THAT(Import(loss, 13), Pointwise(FloatNear(1e-6), {std::log(4.0 / 3)}));
  EXPECT_THAT(Import(loss, 13, 1), Pointwise(FloatNear(1e-6), {std::log(0.25), std::log(0.75)}));
}

}  // namespace
}  // namespace fusion::ops
