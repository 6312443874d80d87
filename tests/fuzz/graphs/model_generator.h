// ModelGenerator: draws one ONNX model node by node. Every value is computed as soon as it is drawn, so that later
// nodes fit the actual extents. Private to random_model.
#ifndef FUSION_TESTS_FUZZ_GRAPHS_MODEL_GENERATOR_H_
#define FUSION_TESTS_FUZZ_GRAPHS_MODEL_GENERATOR_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ops/registry/op_def.h"
#include "onnx/onnx_pb.h"
#include "tests/fuzz/graphs/drawing.h"
#include "tests/fuzz/graphs/eager_values.h"
#include "tests/fuzz/graphs/fitting.h"
#include "tests/fuzz/graphs/limits.h"
#include "tests/fuzz/graphs/random_model.h"

namespace fusion::fuzz {

class ModelGenerator {
 public:
  ModelGenerator(uint64_t seed, const GraphLimits& limits);
  DrawnModel Make();

 private:
  using Names = std::vector<std::string>;  // names that a node may read, in the order of creation

  std::string NewName(const std::string& kind);
  const Tensor& Of(const std::string& name) const { return values_.tensors.at(name); }

  // ---- operands
  std::string AddInput(DType dtype, Shape shape, const std::string& suffix, Names* visible);
  std::string AddConstant(const Tensor& tensor);
  std::string Fresh(DType dtype, Shape shape, Names* visible);
  std::string Existing(const Names& visible);
  std::string DataOperand(const std::string& first, Names* visible);
  std::string FittingOperand(const FittingSpec& spec, Names* visible);
  // Draws the operands and attributes of one proposal and adds them to `node`.
  void Operands(const ops::OpDef& def, Names* visible, onnx::NodeProto* node);

  // ---- nodes
  // Computes the node's results and stores them. Returns false if they are too large or the node does not fit.
  bool Run(const onnx::NodeProto& node);
  // Returns a node with an operator of the registry that runs.
  std::optional<onnx::NodeProto> Operator(Names* visible);
  bool AddTo(onnx::GraphProto* graph, Names* visible, int depth);
  bool AddTopNode(Names* visible);
  // Makes all values that nothing reads outputs, and a few others.
  void SetOutputs();
  std::string AddSimple(const std::string& op, const std::vector<std::string>& inputs, onnx::GraphProto* graph,
                        const ecg::Attributes& attrs = {});

  // ---- control flow (random_control_flow.cc)
  std::optional<onnx::NodeProto> ControlFlow(Names* visible, int depth);
  void Fill(onnx::GraphProto* graph, Names* inside, int depth, int most);
  static void Return(const std::string& name, DType dtype, onnx::GraphProto* graph);
  // Returns a value that the subgraph computes, with this type and rank, if there is one; otherwise a copy of a
  // constant.
  std::string Made(const onnx::GraphProto& graph, DType dtype, const Shape& shape, bool same_shape);
  std::string Condition(const Names& visible);
  std::optional<onnx::NodeProto> Branches(Names* visible, int depth);
  std::string TripCount();
  // Returns the state after an iteration, with the same type and, unless it may grow, the same shape.
  std::string NextState(const std::string& state, bool may_grow, onnx::GraphProto* body);
  std::string LoopCondition(const Names& body_inputs, onnx::GraphProto* body);
  std::optional<onnx::NodeProto> Repetition(Names* visible, int depth);
  std::optional<onnx::NodeProto> Scanning(Names* visible, int depth);

  // ---- sequences and optionals (random_lists.cc)
  std::optional<onnx::NodeProto> ListNode(Names* visible);
  onnx::NodeProto NewList(Names* visible);
  onnx::NodeProto ReadOrChangeList(const std::string& list, Names* visible);
  std::string Position(int64_t length, bool may_be_unknown);

  Drawing draw_;
  const GraphLimits limits_;
  std::vector<const ops::OpDef*> ops_;
  onnx::ModelProto model_;
  EagerValues values_;  // of every name; for names in bodies, those of one iteration
  Names lists_;         // names of sequences and optionals of the main graph
  int count_ = 0;
  std::map<std::string, int> left_out_;
};

// Sets attribute `name` of `node`.
void AddAttribute(const std::string& name, const ecg::Attribute& value, onnx::NodeProto* node);

}  // namespace fusion::fuzz

#endif  // FUSION_TESTS_FUZZ_GRAPHS_MODEL_GENERATOR_H_
