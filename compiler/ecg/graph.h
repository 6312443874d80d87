// The Extended Computational Graph (DNNFusion §3.1): operators over tensors, static shapes, nodes in topological order.
// A pass takes a Graph and returns a Graph. Ids name nodes and values; they are dense and stable within one Graph.
// Facts that can be derived (mapping types, FLOPs, bytes, removable: compiler/analysis/derived.h) are never stored.
#ifndef FUSION_COMPILER_ECG_GRAPH_H_
#define FUSION_COMPILER_ECG_GRAPH_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/tensor.h"

namespace fusion::ecg {

using ValueId = int;
using NodeId = int;
inline constexpr int kNone = -1;  // an absent optional input; a value without producer

using Attribute = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                               std::vector<std::string>, Tensor>;

class Attributes {
 public:
  bool Has(const std::string& name) const { return map_.count(name) != 0; }
  // Returns the value, or the default when it is absent or of another kind (the operator's schema checks kinds on
  // entry).
  int64_t Int(const std::string& name, int64_t otherwise = 0) const;
  double Float(const std::string& name, double otherwise = 0) const;
  std::string String(const std::string& name, const std::string& otherwise = "") const;
  std::vector<int64_t> Ints(const std::string& name, const std::vector<int64_t>& otherwise = {}) const;
  std::vector<double> Floats(const std::string& name, const std::vector<double>& otherwise = {}) const;
  const Tensor* GetTensor(const std::string& name) const;
  void Set(const std::string& name, Attribute value) { map_[name] = std::move(value); }
  void Erase(const std::string& name) { map_.erase(name); }
  const std::map<std::string, Attribute>& all() const { return map_; }

 private:
  std::map<std::string, Attribute> map_;
};

struct ValueType {
  DType dtype = DType::kF32;
  Shape shape;
  bool operator==(const ValueType& other) const { return dtype == other.dtype && shape == other.shape; }
};

struct Value {
  std::string name;  // the model's name, for people only: never enters keys or generated text
  ValueType type;
  NodeId producer = kNone;         // kNone: graph input or constant
  std::vector<NodeId> consumers;   // one entry per use, in node order
  std::optional<Tensor> constant;  // present: a constant; its bytes are shared
  bool opaque = false;  // constants only: kernels load it, whatever its elements are (OpContext::Constant is null)
};

struct Node {
  std::string op;                // canonical operator name, a key of the operator registry
  std::string name;              // the model's name, for people only
  std::vector<ValueId> inputs;   // kNone where an optional input is absent
  std::vector<ValueId> outputs;  // at least one
  Attributes attrs;
};

// After a run, dimension `dim` of outputs()[output] holds only as many elements as the i64 scalar outputs()[extent]
// says; the static extent is an upper bound. The elements beyond are undefined.
struct OutputExtent {
  int output = 0, dim = 0, extent = 0;
  bool operator==(const OutputExtent&) const = default;
};

// Every node's inputs are defined before it. Values are single-assignment.
class Graph {
 public:
  ValueId AddInput(std::string name, ValueType type);
  ValueId AddConstant(std::string name, Tensor tensor);
  ValueId AddOpaqueConstant(std::string name, Tensor tensor);
  // Appends a node. The caller provides the output types (the registry's inference). Returns the node's id; its outputs
  // are nodes()[id].outputs.
  NodeId AddNode(std::string op, std::string name, std::vector<ValueId> inputs, Attributes attrs,
                 std::vector<ValueType> output_types, std::vector<std::string> output_names = {});
  void AddOutput(ValueId value, std::string name);
  // Makes `extent`, the extent of a dimension of outputs()[output], an output of its own unless it is one already. An
  // output that was added only for this has the name "". Call it after all outputs of the model are added.
  void AddOutputExtent(int output, int dim, ValueId extent);

  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Value>& values() const { return values_; }
  const Node& node(NodeId id) const { return nodes_[id]; }
  const Value& value(ValueId id) const { return values_[id]; }
  const std::vector<ValueId>& inputs() const { return inputs_; }    // graph inputs, in the model's order
  const std::vector<ValueId>& outputs() const { return outputs_; }  // graph outputs, in the model's order
  const std::vector<std::string>& output_names() const { return output_names_; }
  const std::vector<OutputExtent>& output_extents() const { return output_extents_; }
  // Is it an output whose shape depends on data? Passes leave such a value computed: a constant could not be packed in
  // place.
  bool IsOutputWithExtents(ValueId id) const;
  // For a pass that has copied all outputs in order.
  void SetOutputExtents(std::vector<OutputExtent> extents) { output_extents_ = std::move(extents); }
  bool IsOutput(ValueId id) const;
  std::string name;

 private:
  std::vector<Node> nodes_;
  std::vector<Value> values_;
  std::vector<ValueId> inputs_;
  std::vector<ValueId> outputs_;
  std::vector<std::string> output_names_;
  std::vector<OutputExtent> output_extents_;
};

// Checks the structure: ids are in range, nodes are in topological order, producers and consumers agree, constants fit
// their type, operators are known, and types equal those that the registry infers. Fails with INTERNAL naming the node,
// because a pass must have broken it. Defined in library fusion_ecg_derived, above the operator registry.
absl::Status Verify(const Graph& graph);

// Prints the text form. It is deterministic, and Parse(Print(g)) prints the same again.
// - Constants of up to 16 elements are printed in full. A larger one prints as `const #<digest>`, the first 8 bytes of
//   its SHA-256 (bool: masked to 0 and 1). The digest parses to a tensor filled with those 8 bytes, and such a tensor
//   prints its filling. So goldens stay small, distinct constants stay distinct, and zeros are `#0000000000000000`.
// - Values print under their names where those are identifiers, else as %v<id>. An absent input is `_`. Node names are
//   not printed.
//   graph g(%x: f32[1, 8]) {
//     %w: f32[8, 4] = const #86d3f3a95c324c94
//     %y: f32[1, 4] = MatMul(%x, %w) {alpha = 1.0}
//     return %y as "the model's name"
//   }
// An output's extents follow its name: `return %i[_, %n] as "i"`. An output that is only an extent is not printed.
std::string Print(const Graph& graph);
std::string Print(const Attributes& attributes);  // "alpha = 1.0, axis = 2"
absl::StatusOr<Graph> Parse(const std::string& text);

}  // namespace fusion::ecg

#endif  // FUSION_COMPILER_ECG_GRAPH_H_
