// Compose writes, as expressions, the graph of canonical operators that replaces an operator which only combines
// others. It keeps the first error and skips everything after it.
#ifndef FUSION_COMPILER_OPS_CONTRIB_COMPOSE_H_
#define FUSION_COMPILER_OPS_CONTRIB_COMPOSE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "compiler/ops/registry/op_def.h"

namespace fusion::ops {

class Compose {  // operands of every call are values of the graph under construction
 public:
  explicit Compose(ImportContext& import) : import_(import) {}
  using ValueId = ecg::ValueId;
  using Attrs = std::vector<std::pair<std::string, ecg::Attribute>>;

  // Accessors of the node that is replaced.
  bool Has(int input) const { return import_.input(input) != nullptr; }
  ValueId In(int input) const { return Has(input) ? import_.node().inputs[input] : ecg::kNone; }
  const ecg::ValueType& Type(int input) const { return import_.input(input)->type; }
  const Shape& ShapeOf(int input) const { return Type(input).shape; }
  int Outputs() const { return static_cast<int>(import_.node().outputs.size()); }
  const ecg::Attributes& Attributes() const { return import_.node().attrs; }
  // INVALID_ARGUMENT and UNIMPLEMENTED errors that name the node.
  absl::Status Error(const std::string& message) const;
  absl::Status Unsupported(const std::string& message) const;
  // Refuses the node unless input `input` is present and has `shape`; -1 stands for any extent.
  absl::Status Expect(int input, const char* name, const Shape& shape) const;
  // UNIMPLEMENTED where an extent of input `input`, if it is present, depends on data along one of `axes`: negative
  // ones count from the end. For what enters the composition as a number, such as the number of heads.
  absl::Status ExpectStatic(int input, const char* name, const std::vector<int>& axes) const;

  // Each adds canonical operators and returns their outputs.
  std::vector<ValueId> Nodes(const std::string& op, std::vector<ValueId> inputs, const Attrs& attrs, int outputs);
  ValueId Node(const std::string& op, std::vector<ValueId> inputs, const Attrs& attrs = {}) {
    return Nodes(op, std::move(inputs), attrs, 1)[0];
  }
  ValueId Ints(const std::vector<int64_t>& values);  // i64 [n]
  ValueId Number(DType dtype, double value);         // a scalar
  ValueId Constant(Tensor tensor) { return import_.AddConstant(std::move(tensor)); }
  ValueId Add(ValueId a, ValueId b) { return Node("Add", {a, b}); }
  ValueId Sub(ValueId a, ValueId b) { return Node("Sub", {a, b}); }
  ValueId Mul(ValueId a, ValueId b) { return Node("Mul", {a, b}); }
  ValueId Cast(ValueId x, DType dtype);
  ValueId Reshape(ValueId x, const Shape& shape) { return Node("Reshape", {x, Ints(shape)}); }
  ValueId Transpose(ValueId x, const std::vector<int64_t>& perm) { return Node("Transpose", {x}, {{"perm", perm}}); }
  ValueId Concat(std::vector<ValueId> parts, int64_t axis) {
    return Node("Concat", std::move(parts), {{"axis", axis}});
  }
  // The number of elements along an axis, as an i64 scalar: a constant unless it depends on data.
  ValueId Extent(ValueId x, int axis) { return status_.ok() ? import_.Extent(x, axis) : ecg::kNone; }
  bool IsDynamic(ValueId x, int axis) const { return status_.ok() && import_.IsDynamic(x, axis); }
  // Returns x with the extent of `like` along `axis`.
  ValueId WithExtentOf(ValueId x, int axis, ValueId like);
  // Returns 0, 1, … for the elements along an axis: i64 [n].
  ValueId Positions(ValueId x, int axis);
  // Returns elements [begin, end) of an axis.
  ValueId Slice(ValueId x, int64_t axis, int64_t begin, int64_t end, int64_t step = 1) {
    return Node("Slice", {x, Ints({begin}), Ints({end}), Ints({axis}), Ints({step})});
  }

  // Replaces the node by these values, or returns the first error.
  absl::Status Finish(std::vector<ValueId> outputs);

 private:
  ImportContext& import_;
  absl::Status status_;
};

// Defines an operator that exists only until import replaces it.
OpDef DefineComposite(std::string name, int min_inputs, int max_inputs, int num_outputs, std::vector<AttrSpec> attrs,
                      absl::Status (*compose)(Compose&));

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_CONTRIB_COMPOSE_H_
