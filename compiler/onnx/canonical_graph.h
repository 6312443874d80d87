// CanonicalGraph adds canonical operators to a graph under construction (partial_graph.h). Each node is inferred,
// checked against the limits and folded if possible.
#ifndef FUSION_COMPILER_ONNX_CANONICAL_GRAPH_H_
#define FUSION_COMPILER_ONNX_CANONICAL_GRAPH_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"
#include "compiler/onnx/partial_graph.h"
#include "compiler/ops/registry/op_def.h"

namespace fusion::onnx_import {

class CanonicalGraph : public PartialGraph {
 public:
  // Whether a run may decide if extents that meet are equal. It may not where extents are those of inputs
  // (bounded_dims), because such a program would be no better than one for exactly these shapes.
  bool decides_while_running = true;

  // Checks the node against the registry and the limits and appends it. If it is foldable and small, appends the
  // constants it evaluates to instead, which ends shape arithmetic. Where extents depend on data, appends what
  // `dynamic` of the operator, or its lowering, makes of the node. Returns its outputs.
  absl::StatusOr<std::vector<ecg::ValueId>> Add(const ecg::Node& node, int num_outputs,
                                                const std::vector<std::string>& output_names = {});

  // The same at the bounds: ignores the extents of inputs, and outputs have none.
  absl::StatusOr<std::vector<ecg::ValueId>> AddBounded(const ecg::Node& node, int num_outputs,
                                                       const std::vector<std::string>& output_names = {});

  // See ops::ImportContext.
  ecg::ValueId Extent(ecg::ValueId value, int dim);
  absl::StatusOr<ecg::ValueId> WithExtents(ecg::ValueId value, std::vector<ecg::ValueId> dims);

  // Adds one node of the model: applies `normalize` of its operator (of `opset`), then Add to each resulting node.
  absl::StatusOr<std::vector<ecg::ValueId>> AddModelNode(ecg::Node node, int opset,
                                                         const std::vector<std::string>& output_names);

 private:
  // Returns a graph of the node alone, with its outputs inferred and checked.
  absl::StatusOr<ecg::Graph> Isolate(const ecg::Node& node, int num_outputs);
  // Returns the constants that the isolated node evaluates to, or nullopt.
  std::optional<std::vector<ecg::ValueId>> Fold(const ecg::Graph& alone, const std::vector<std::string>& output_names);
  // Returns the value ranges of the isolated node's outputs; empty if nothing is known.
  std::vector<std::optional<te::TensorRanges>> InferRanges(const ecg::Graph& alone, const ecg::Node& node) const;
  absl::StatusOr<std::vector<ecg::ValueId>> AddDynamic(ecg::Node node, int num_outputs,
                                                       const std::vector<std::string>& output_names);
  absl::Status CheckLimits(const ops::OpContext& context, const std::vector<ecg::ValueType>& types);
  int64_t activation_bytes_ = 0;
};

// Adds a condition while it lives; kNone adds nothing.
class ConditionScope {
 public:
  ConditionScope(CanonicalGraph* canonical, ecg::ValueId condition)
      : canonical_(canonical), size_(canonical->conditions.size()) {
    if (condition != ecg::kNone) canonical->conditions.push_back(condition);
  }
  ~ConditionScope() { canonical_->conditions.resize(size_); }
  ConditionScope(const ConditionScope&) = delete;
  ConditionScope& operator=(const ConditionScope&) = delete;

 private:
  CanonicalGraph* const canonical_;
  const size_t size_;
};

}  // namespace fusion::onnx_import

#endif  // FUSION_COMPILER_ONNX_CANONICAL_GRAPH_H_
