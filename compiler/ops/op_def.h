// The operator registry. One file per operator family declares everything about its operators (name, attributes, opset
// differences, shapes, mapping type, mathematical properties, FLOPs, lowering), and nothing anywhere else switches on
// an operator's name. The lowering to tensor expressions *is* the semantics.
//
// Canonical operators have the ONNX name and the newest semantics of the default domain up to opset 18 (for example
// axes as an input). `normalize` rewrites older versions on entry, so that nothing after import knows of opsets.
#ifndef FUSION_COMPILER_OPS_OP_DEF_H_
#define FUSION_COMPILER_OPS_OP_DEF_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"
#include "compiler/te/program.h"

namespace fusion::ops {

// DNNFusion §3.1, Table 2, in increasing order of complexity (its footnote 1).
enum class MappingType : uint8_t { kOneToOne, kReorganize, kShuffle, kOneToMany, kManyToMany };
const char* MappingTypeName(MappingType type);  // "One-to-One"

// What inference and lowering may see of a node.
class OpContext {
 public:
  OpContext(const std::string& op, const std::string& node_name, const ecg::Attributes& attrs,
            std::vector<const ecg::Value*> inputs)
      : op(op), node_name(node_name), attrs(attrs), inputs(std::move(inputs)) {}
  const std::string& op;
  const std::string& node_name;
  const ecg::Attributes& attrs;
  std::vector<const ecg::Value*> inputs;  // nullptr where absent (also beyond the end through the accessors)

  bool Has(int i) const { return i < static_cast<int>(inputs.size()) && inputs[i] != nullptr; }
  const ecg::ValueType& Type(int i) const { return inputs[i]->type; }
  const Shape& ShapeOf(int i) const { return inputs[i]->type.shape; }
  int Rank(int i) const { return static_cast<int>(ShapeOf(i).size()); }
  // The input's value when it is known (Reshape's shape, Slice's starts …), else nullptr.
  const Tensor* Constant(int i) const {
    return Has(i) && inputs[i]->constant.has_value() && !inputs[i]->opaque ? &*inputs[i]->constant : nullptr;
  }
  // A constant integer input as a vector; UNIMPLEMENTED naming node and input when its value is not known at compile
  // time.
  absl::StatusOr<std::vector<int64_t>> ConstantInts(int i, const char* input_name) const;
  // INVALID_ARGUMENT `Op 'node': message`.
  absl::Status Error(const std::string& message) const;
  absl::Status Unsupported(const std::string& message) const;  // UNIMPLEMENTED, same form
};

// Lowering: defines every output as a tensor of `builder`'s program.
struct LowerContext : OpContext {
  using OpContext::OpContext;
  te::Builder* builder = nullptr;
  std::vector<te::TensorId> in;  // parallel to inputs; -1 where absent. Constants are bound as tensors too
  std::vector<ecg::ValueType> output_types;
  std::vector<te::TensorId> out;  // to be filled, parallel to output_types
};

// An ONNX node on its way in. `normalize` may change attributes and inputs, add constants, and replace the node by
// others (decomposition of composite operators): nodes added through AddNode come before it.
class ImportContext {
 public:
  virtual ~ImportContext() = default;
  virtual int opset() const = 0;                     // of the node's domain in the model
  virtual ecg::Node& node() = 0;                     // outputs: kNone for each output of the model's node
  virtual const ecg::Value* input(int i) const = 0;  // nullptr where absent
  virtual ecg::ValueId AddConstant(Tensor tensor) = 0;
  // Canonical node; outputs' types inferred by the registry. Returns its outputs.
  virtual absl::StatusOr<std::vector<ecg::ValueId>> AddNode(const std::string& op, std::vector<ecg::ValueId> inputs,
                                                            ecg::Attributes attrs, int num_outputs = 1) = 0;
  // The node's outputs are these values; the node itself disappears.
  virtual void ReplaceWith(std::vector<ecg::ValueId> outputs) = 0;

  // Shapes that depend on data (docs/decisions/0008-bounded-extents.md): a dimension's static extent is then a bound,
  // and how many of its elements there are is a value of the graph, an i64 scalar. What lies past it is undefined.
  virtual const ecg::Value& value(ecg::ValueId id) const = 0;  // until the next node or constant is added
  // The canonical node that computes a value, until the next one is added; nullptr for inputs and constants.
  virtual const ecg::Node* producer(ecg::ValueId id) const = 0;
  virtual bool IsDynamic(ecg::ValueId value, int dim) const = 0;
  bool IsDynamic(ecg::ValueId id) const {
    for (int d = 0; id != ecg::kNone && d < static_cast<int>(value(id).type.shape.size()); ++d) {
      if (IsDynamic(id, d)) return true;
    }
    return false;
  }
  // An i64 scalar: a constant where the dimension is static.
  virtual ecg::ValueId Extent(ecg::ValueId value, int dim) = 0;
  // `value` with these extents, i64 scalars or kNone, one a dimension. A constant one cuts the value there.
  virtual absl::StatusOr<ecg::ValueId> WithExtents(ecg::ValueId value, std::vector<ecg::ValueId> extents) = 0;
  // Closed ranges of a small integer value's elements, of a larger one a range for all; nothing where one is unknown.
  virtual std::optional<std::vector<te::Interval>> Ranges(ecg::ValueId value) const = 0;
  // As AddNode, but the inputs are taken at their bounds, and the outputs have no extents.
  virtual absl::StatusOr<std::vector<ecg::ValueId>> AddBounded(const std::string& op, std::vector<ecg::ValueId> inputs,
                                                               ecg::Attributes attrs, int num_outputs = 1) = 0;
};

enum class AttrKind : uint8_t { kInt, kFloat, kString, kInts, kFloats, kStrings, kTensor };
struct AttrSpec {
  const char* name;
  AttrKind kind;
  bool required = false;
  std::vector<std::string> choices = {};   // of a string: any other is INVALID_ARGUMENT
  std::vector<std::string> examples = {};  // of a string with a grammar, for random graphs
};

// What the value of an input means where it is more than data. Most of these must be constants; random graphs
// (tests/fuzz/graphs) draw them by their role and leave the rest to `infer`.
enum class InputRole : uint8_t {
  kData,
  kAxes,       // distinct axes of input 0 or of the result
  kExtents,    // a shape: the result's, or what it broadcasts with
  kCounts,     // how often, one an axis
  kPads,       // elements added before each axis, then behind each
  kPositions,  // along axes, from either end
  kSteps,      // between positions, not 0
  kParts,      // extents that add up to one of input 0's
  kScales,     // factors, one an axis
  kScalar,     // one element
  kIndices,    // elements of input 0, computed while running or known
};

// Mathematical properties that graph rewriting rests on (DNNFusion §4.2): an operator with none of the three partitions
// the graph.
struct MathProperties {
  bool associative = false, commutative = false, distributive = false;
};

struct OpDef {
  std::string name;
  int min_inputs = 1, max_inputs = 1;  // max -1: variadic
  int num_outputs = 1;                 // maximum; -1: variadic (Split)
  std::vector<AttrSpec> attrs;         // anything else on a node is INVALID_ARGUMENT
  std::vector<InputRole> roles;        // by input; kData behind the end
  MathProperties math;
  // Computes with element types of less than a byte or floats of a byte. Others only move them, at no FLOPs.
  bool narrow_types = false;

  // Types of all outputs, or INVALID_ARGUMENT naming the node and the shapes.
  std::function<absl::StatusOr<std::vector<ecg::ValueType>>(const OpContext&, int num_outputs)> infer;
  // Mapping type of one input→output pair; the node's is the most complex of its pairs.
  std::function<MappingType(const OpContext&, int input)> mapping;
  // Floating-point operations of one execution (multiply-add = 2).
  std::function<double(const OpContext&, const std::vector<ecg::ValueType>& outputs)> flops;
  std::function<absl::Status(LowerContext&)> lower;
  // Optional: see ImportContext.
  std::function<absl::Status(ImportContext&)> normalize;
  // Optional: what the operator is where shapes depend on data, as other nodes with extents. Called for every node of
  // it on its way in, also those that others decompose into. A node that it leaves alone is taken as it is if its
  // inputs are static, and otherwise by what its lowering says (compiler/onnx/propagate_extents.h).
  std::function<absl::Status(ImportContext&)> dynamic;
};

// nullptr when unknown.
const OpDef* FindOp(const std::string& name);
std::vector<const OpDef*> AllOps();  // sorted by name

// Helpers over graphs.
OpContext MakeContext(const ecg::Graph& graph, const ecg::Node& node);
MappingType NodeMapping(const ecg::Graph& graph, const ecg::Node& node);
double NodeFlops(const ecg::Graph& graph, const ecg::Node& node);
// Checks inputs count and attributes against the schema, then infers.
absl::StatusOr<std::vector<ecg::ValueType>> InferTypes(const OpContext& context, int num_outputs);

// Lowers nodes (ids in topological order) of `graph` into one program: values that come from outside become inputs
// (constants: role kConstant), and each value in `live_out` an output. `value_of_tensor[t]` gives the graph value of
// tensor t (or kNone for temporaries).
struct LoweredBlock {
  te::Program program;
  std::vector<ecg::ValueId> value_of_tensor;
};
absl::StatusOr<LoweredBlock> LowerNodes(const ecg::Graph& graph, const std::vector<ecg::NodeId>& nodes,
                                        const std::vector<ecg::ValueId>& live_out);

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_OP_DEF_H_
