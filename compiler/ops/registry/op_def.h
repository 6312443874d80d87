// The operator registry. An OpDef declares everything about an operator: name, attributes, opset differences, types,
// mapping type, mathematical properties, FLOPs, extents that depend on data, and the lowering. The lowering to tensor
// expressions *is* the semantics. Each operator family has a file, and nothing outside this folder switches on an
// operator's name.
//
// A canonical operator has its ONNX name and the semantics of the newest supported opset, 28 in the default domain (for
// example axes as an input). `normalize` rewrites older versions on import and replaces operators that only combine
// others, so that nothing after import knows of opsets. At the end stand helpers over graphs and the lowering of a
// fusion block.
#ifndef FUSION_COMPILER_OPS_REGISTRY_OP_DEF_H_
#define FUSION_COMPILER_OPS_REGISTRY_OP_DEF_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"
#include "compiler/te/program/program.h"

namespace fusion::ops {

// Mapping types of DNNFusion §3.1, Table 2, in increasing order of complexity (its footnote 1).
enum class MappingType : uint8_t { kOneToOne, kReorganize, kShuffle, kOneToMany, kManyToMany };
const char* MappingTypeName(MappingType type);  // "One-to-One"

// The part of a node that inference and lowering may see.
class OpContext {
 public:
  OpContext(const std::string& op, const std::string& node_name, const ecg::Attributes& attrs,
            std::vector<const ecg::Value*> inputs)
      : op(op), node_name(node_name), attrs(attrs), inputs(std::move(inputs)) {}
  const std::string& op;
  const std::string& node_name;
  const ecg::Attributes& attrs;
  std::vector<const ecg::Value*> inputs;  // nullptr where absent; Has and Constant accept indices beyond the end

  bool Has(int i) const { return i < static_cast<int>(inputs.size()) && inputs[i] != nullptr; }
  const ecg::ValueType& Type(int i) const { return inputs[i]->type; }
  const Shape& ShapeOf(int i) const { return inputs[i]->type.shape; }
  int Rank(int i) const { return static_cast<int>(ShapeOf(i).size()); }
  // Returns the input's value when it is known (Reshape's shape, Slice's starts …), else nullptr.
  const Tensor* Constant(int i) const {
    return Has(i) && inputs[i]->constant.has_value() && !inputs[i]->opaque ? &*inputs[i]->constant : nullptr;
  }
  // Returns a constant integer input as a vector; UNIMPLEMENTED naming node and input when its value is not known at
  // compile time.
  absl::StatusOr<std::vector<int64_t>> ConstantInts(int i, const char* input_name) const;
  // Returns INVALID_ARGUMENT `Op 'node': message`.
  absl::Status Error(const std::string& message) const;
  absl::Status Unsupported(const std::string& message) const;  // UNIMPLEMENTED in the same form
};

// The context of a lowering, which defines every output as a tensor of `builder`'s program.
struct LowerContext : OpContext {
  using OpContext::OpContext;
  te::Builder* builder = nullptr;
  std::vector<te::TensorId> in;  // parallel to inputs; -1 where absent. Constants have tensors too
  std::vector<ecg::ValueType> output_types;
  std::vector<te::TensorId> out;  // filled by the lowering, parallel to output_types
};

// An ONNX node during import. `normalize` may change attributes and inputs, add constants, and replace the node by
// others (decomposition of composite operators). Nodes added through AddNode come before it.
class ImportContext {
 public:
  virtual ~ImportContext() = default;
  virtual int opset() const = 0;                     // of the node's domain in the model
  virtual ecg::Node& node() = 0;                     // its outputs are kNone, one for each output of the model's node
  virtual const ecg::Value* input(int i) const = 0;  // nullptr where absent
  virtual ecg::ValueId AddConstant(Tensor tensor) = 0;
  // Adds a canonical node, whose output types the registry infers. Returns its outputs.
  virtual absl::StatusOr<std::vector<ecg::ValueId>> AddNode(const std::string& op, std::vector<ecg::ValueId> inputs,
                                                            ecg::Attributes attrs, int num_outputs = 1) = 0;
  // Makes these values the outputs of the node, which itself disappears.
  virtual void ReplaceWith(std::vector<ecg::ValueId> outputs) = 0;

  // Shapes that depend on data (docs/decisions/0008-bounded-extents.md): the static extent of such a dimension is a
  // bound, and the number of its elements is an i64 scalar of the graph. Elements past that number are undefined.
  virtual const ecg::Value& value(ecg::ValueId id) const = 0;  // valid until the next node or constant is added
  // Returns the canonical node that computes a value, or nullptr for inputs and constants. Valid until the next node is
  // added.
  virtual const ecg::Node* producer(ecg::ValueId id) const = 0;
  virtual bool IsDynamic(ecg::ValueId value, int dim) const = 0;
  bool IsDynamic(ecg::ValueId id) const {
    for (int d = 0; id != ecg::kNone && d < static_cast<int>(value(id).type.shape.size()); ++d) {
      if (IsDynamic(id, d)) return true;
    }
    return false;
  }
  // Returns the extent as an i64 scalar, a constant where the dimension is static.
  virtual ecg::ValueId Extent(ecg::ValueId value, int dim) = 0;
  // Returns `value` with one extent per dimension, each an i64 scalar or kNone. A constant extent cuts the value there.
  virtual absl::StatusOr<ecg::ValueId> WithExtents(ecg::ValueId value, std::vector<ecg::ValueId> extents) = 0;
  // Returns the closed value ranges of an integer value: one per element of a small value, one for all elements of a
  // larger one, nullopt where a range is unknown.
  virtual std::optional<std::vector<te::Interval>> Ranges(ecg::ValueId value) const = 0;
  // Returns whether the node takes effect in some runs only: in a branch, or in an iteration past a loop's end. Its
  // operands may then be out of bounds, and are no error of the model.
  virtual bool MayNotRun() const = 0;
  // Like AddNode, but takes the inputs at their bounds, and the outputs have no extents.
  virtual absl::StatusOr<std::vector<ecg::ValueId>> AddBounded(const std::string& op, std::vector<ecg::ValueId> inputs,
                                                               ecg::Attributes attrs, int num_outputs = 1) = 0;
};

enum class AttrKind : uint8_t { kInt, kFloat, kString, kInts, kFloats, kStrings, kTensor };
struct AttrSpec {
  const char* name;
  AttrKind kind;
  bool required = false;
  std::vector<std::string> choices = {};   // for a string: any other value is INVALID_ARGUMENT
  std::vector<std::string> examples = {};  // of a string with a grammar, for random graphs
};

// The meaning of an input's value where it is more than data. Most such inputs must be constants. Random graphs
// (tests/fuzz/graphs) draw the values by their role and leave the other checks to `infer`.
enum class InputRole : uint8_t {
  kData,
  kAxes,       // distinct axes of input 0 or of the result
  kExtents,    // a shape: the result's, or one that it broadcasts with
  kCounts,     // numbers of repetitions, one per axis
  kPads,       // elements added before each axis, followed by those added behind each
  kPositions,  // positions along axes, counted from either end
  kSteps,      // steps between positions, not 0
  kParts,      // extents that add up to one of input 0's
  kScales,     // factors, one per axis
  kScalar,     // one element
  kIndices,    // indices of elements of input 0, known or computed at run time
};

// Mathematical properties that graph rewriting relies on (DNNFusion §4.2). An operator with none of the three
// partitions the graph.
struct MathProperties {
  bool associative = false, commutative = false, distributive = false;
};

struct OpDef {
  std::string name;
  int min_inputs = 1, max_inputs = 1;  // max_inputs -1: variadic
  int num_outputs = 1;                 // the maximum; -1: variadic (Split)
  std::vector<AttrSpec> attrs;         // any other attribute of a node is INVALID_ARGUMENT
  std::vector<InputRole> roles;        // by input; kData behind the end
  MathProperties math;
  // Whether it computes with element types of less than a byte or floats of a byte. Other operators only move these, at
  // no FLOPs.
  bool narrow_types = false;
  // Only passes of the compiler make it: no model may name it, and AllOps leaves it out.
  bool internal = false;

  // Returns the types of all outputs, or INVALID_ARGUMENT naming the node and the shapes.
  std::function<absl::StatusOr<std::vector<ecg::ValueType>>(const OpContext&, int num_outputs)> infer;
  // Returns the mapping type from one input to the output. The node's type is the most complex over its inputs.
  std::function<MappingType(const OpContext&, int input)> mapping;
  // Returns the floating-point operations of one execution (a multiply-add counts 2).
  std::function<double(const OpContext&, const std::vector<ecg::ValueType>& outputs)> flops;
  std::function<absl::Status(LowerContext&)> lower;
  // Optional. Rewrites an older or composite form; see ImportContext.
  std::function<absl::Status(ImportContext&)> normalize;
  // Optional. Expresses the operator, where shapes depend on data, as other nodes with extents. Import calls it for
  // every node of this operator, also for nodes that others decompose into. A node that it leaves alone is taken as it
  // is if its inputs are static; otherwise its lowering decides (compiler/onnx/propagate_extents.h).
  std::function<absl::Status(ImportContext&)> dynamic;
};

// Returns nullptr for an unknown operator.
const OpDef* FindOp(const std::string& name);
// The operators that models may name, sorted by name.
std::vector<const OpDef*> AllOps();

// The registry's answers for a node of a graph.
OpContext MakeContext(const ecg::Graph& graph, const ecg::Node& node);
MappingType NodeMapping(const ecg::Graph& graph, const ecg::Node& node);
double NodeFlops(const ecg::Graph& graph, const ecg::Node& node);

// Lowers nodes of `graph` (ids in topological order) into one program. Values from outside become its inputs (constants
// with role kConstant), and each value in `live_out` becomes an output. `value_of_tensor[t]` is the graph value of
// tensor t, or kNone for a temporary. An expression's origin is the position in `nodes` of the node that it comes from.
struct LoweredFusionBlock {
  te::Program program;
  std::vector<ecg::ValueId> value_of_tensor;
};
absl::StatusOr<LoweredFusionBlock> LowerNodes(const ecg::Graph& graph, const std::vector<ecg::NodeId>& nodes,
                                              const std::vector<ecg::ValueId>& live_out);

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_REGISTRY_OP_DEF_H_
