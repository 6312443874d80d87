// CanonicalGraph: a Graph under construction from canonical operators, with inference, limits and folding at each node.
#ifndef FUSION_COMPILER_ONNX_CANONICAL_GRAPH_H_
#define FUSION_COMPILER_ONNX_CANONICAL_GRAPH_H_

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"
#include "compiler/onnx/extents.h"
#include "compiler/ops/op_def.h"

namespace fusion::onnx_import {

class CanonicalGraph {
 public:
  CanonicalGraph() : extents(&graph) {}
  CanonicalGraph(const CanonicalGraph&) = delete;
  CanonicalGraph& operator=(const CanonicalGraph&) = delete;

  // A condition that each run of the model must meet (runtime/base/run_check.h).
  struct RunCheck {
    ecg::ValueId values;
    std::string message;
  };

  ecg::Graph graph;
  Extents extents;
  std::vector<RunCheck> checks;
  // May a run decide whether extents that meet are equal? Not where extents are those of inputs (bounded_dims): a
  // program that only takes its bounds is no better than one for these shapes.
  bool decides_while_running = true;
  // Scalars of bool: a run gets to what is added now only where all of them hold. Branches and iterations that may not
  // run put theirs here (ConditionScope).
  std::vector<ecg::ValueId> conditions;

  // Checks the node against the registry and the limits and appends it, or, when it is foldable and small, the
  // constants it evaluates to: shape arithmetic ends here. Where extents depend on data, appends what `dynamic` of the
  // operator or its lowering says. Returns its outputs.
  absl::StatusOr<std::vector<ecg::ValueId>> Add(const ecg::Node& node, int num_outputs,
                                                const std::vector<std::string>& output_names = {});

  // The same at the bounds: extents of inputs are not looked at, outputs have none.
  absl::StatusOr<std::vector<ecg::ValueId>> AddBounded(const ecg::Node& node, int num_outputs,
                                                       const std::vector<std::string>& output_names = {});

  // See ops::ImportContext.
  ecg::ValueId Extent(ecg::ValueId value, int dim);
  absl::StatusOr<ecg::ValueId> WithExtents(ecg::ValueId value, std::vector<ecg::ValueId> dims);

  // What is known of a value (te::Know). Where nothing is known yet, what produces it is looked at, as far back as
  // ranges depend on it: integers of large tensors, such as coordinates, are not followed before someone asks.
  std::optional<te::KnownTensor> KnownOf(ecg::ValueId value);

  // One node of the model: `normalize` of its operator (of `opset`), then Add for whatever it became.
  absl::StatusOr<std::vector<ecg::ValueId>> AddModelNode(ecg::Node node, int opset,
                                                         const std::vector<std::string>& output_names);

 private:
  // A graph of the node alone, its outputs inferred and checked.
  absl::StatusOr<ecg::Graph> Isolate(const ecg::Node& node, int num_outputs);
  // The constants that the isolated node is, or nothing.
  std::optional<std::vector<ecg::ValueId>> Fold(const ecg::Graph& alone, const std::vector<std::string>& output_names);
  // What is known of the isolated node's outputs, empty if nothing is.
  std::vector<std::optional<te::KnownTensor>> Know(const ecg::Graph& alone, const ecg::Node& node) const;
  // Of the outputs of a node of the graph, looking back at most `depth` producers.
  void LookAt(ecg::NodeId node, int depth);
  absl::StatusOr<std::vector<ecg::ValueId>> AddDynamic(ecg::Node node, int num_outputs,
                                                       const std::vector<std::string>& output_names);
  absl::Status CheckLimits(const ops::OpContext& context, const std::vector<ecg::ValueType>& types);
  int64_t activation_bytes_ = 0;
  std::set<ecg::NodeId> looked_at_;
};

// Adds a condition for as long as it lives; kNone adds nothing.
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
