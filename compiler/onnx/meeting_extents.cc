#include "compiler/onnx/meeting_extents.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ops/registry/infer_types.h"
#include "compiler/ops/shared/extents.h"
#include "runtime/base/status_macros.h"

namespace fusion::onnx_import {
namespace {

using ecg::kNone;
using ecg::ValueId;

// A dimension of an input that meets dimensions of others and does not have the static extent 1.
struct Side {
  size_t input = 0;
  int dim = 0;
  ValueId extent = kNone;  // kNone: the extent is static and equals the bound
  int64_t bound = 0;
};

class Meeting {
 public:
  Meeting(ops::ImportContext& context, PartialGraph* partial, ecg::Node* node)
      : context_(context), partial_(partial), node_(node) {}

  absl::Status Run() {
    size_t rank = 0;
    for (ValueId id : node_->inputs) {
      if (id != kNone) rank = std::max(rank, ShapeOf(id).size());
    }
    std::vector<std::vector<Side>> meetings;  // one entry per dimension of the result
    for (size_t d = 0; d < rank; ++d) meetings.push_back(SidesOf(static_cast<int>(rank - d)));
    if (std::none_of(meetings.begin(), meetings.end(), Unequal) || !Broadcasts(meetings)) return absl::OkStatus();
    for (size_t d = 0; d < rank; ++d) {
      if (Unequal(meetings[d])) RETURN_IF_ERROR(Meet(meetings[d], d));
    }
    return absl::OkStatus();
  }

 private:
  const Shape& ShapeOf(ValueId id) const { return partial_->graph.value(id).type.shape; }

  // Returns the inputs' sides of the dimension that is `from_end` from the end, counted from 1.
  std::vector<Side> SidesOf(int from_end) const {
    std::vector<Side> sides;
    for (size_t i = 0; i < node_->inputs.size(); ++i) {
      const ValueId id = node_->inputs[i];
      if (id == kNone) continue;
      const int dim = static_cast<int>(ShapeOf(id).size()) - from_end;
      if (dim < 0) continue;
      const ValueId extent = partial_->extents.Of(id, dim);
      const int64_t bound = ShapeOf(id)[dim];
      if (extent != kNone || bound != 1) sides.push_back({i, dim, extent, bound});
    }
    return sides;
  }

  // Returns whether two sides may differ, one of which depends on data. Inference refuses static extents that differ.
  static bool Unequal(const std::vector<Side>& sides) {
    bool differ = false, dynamic = false;
    for (const Side& side : sides) {
      dynamic = dynamic || side.extent != kNone;
      differ = differ || side.extent != sides[0].extent;
      if (side.extent == kNone && side.bound == 0) return false;
      for (const Side& other : sides) {
        if (side.extent == kNone && other.extent == kNone && side.bound != other.bound) return false;
      }
    }
    return differ && dynamic;
  }

  static int64_t BoundOf(const std::vector<Side>& sides) {
    int64_t bound = 0;
    for (const Side& side : sides) {
      if (side.extent == kNone) return side.bound;
      bound = std::max(bound, side.bound);
    }
    return bound;
  }

  // Returns whether the operator works element by element. The question is asked at shapes in which dimensions that
  // meet have one bound: inference must give the broadcast shape, and no input may be reordered or reduced over.
  bool Broadcasts(const std::vector<std::vector<Side>>& meetings) const {
    const ops::OpDef* op = ops::FindOp(node_->op);
    if (op == nullptr || !op->mapping) return false;
    std::vector<ecg::Value> values;
    for (ValueId id : node_->inputs) values.push_back(id == kNone ? ecg::Value() : partial_->graph.value(id));
    for (const std::vector<Side>& sides : meetings) {
      if (!Unequal(sides)) continue;
      for (const Side& side : sides) values[side.input].type.shape[side.dim] = BoundOf(sides);
    }
    Shape broadcast(meetings.size(), 1);
    std::vector<const ecg::Value*> inputs;
    for (size_t i = 0; i < values.size(); ++i) {
      inputs.push_back(node_->inputs[i] == kNone ? nullptr : &values[i]);
      if (inputs.back() == nullptr) continue;
      const Shape& shape = values[i].type.shape;
      if (values[i].constant && values[i].constant->shape() != shape) values[i].constant.reset();
      for (size_t d = 0; d < shape.size(); ++d) {
        int64_t& extent = broadcast[broadcast.size() - shape.size() + d];
        if (shape[d] != 1) extent = shape[d];
      }
    }
    const ops::OpContext context(node_->op, node_->name, node_->attrs, inputs);
    const auto gives_broadcast = [&] {
      const auto types = ops::InferTypes(context, 1);
      return types.ok() && types->size() == 1 && types->front().shape == broadcast;
    };
    if (!gives_broadcast()) return false;
    // Each side may also be 1 without changing the result. This excludes a Gather, whose data and indices do not meet.
    for (const std::vector<Side>& sides : meetings) {
      if (!Unequal(sides)) continue;
      for (const Side& side : sides) {
        if (values[side.input].constant) continue;
        int64_t& extent = values[side.input].type.shape[side.dim];
        const int64_t bound = std::exchange(extent, 1);
        const bool broadcasts = gives_broadcast();
        extent = bound;
        if (!broadcasts) return false;
      }
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == nullptr) continue;
      if (i < op->roles.size() && op->roles[i] != ops::InputRole::kData) return false;
      const ops::MappingType mapping = op->mapping(context, static_cast<int>(i));
      if (mapping != ops::MappingType::kOneToOne && mapping != ops::MappingType::kOneToMany) return false;
    }
    return true;
  }

  absl::StatusOr<ValueId> One(const std::string& op, std::vector<ValueId> inputs, ecg::Attributes attrs = {}) {
    ASSIGN_OR_RETURN(const std::vector<ValueId> outputs, context_.AddNode(op, std::move(inputs), std::move(attrs)));
    return outputs[0];
  }

  bool MayBe(ValueId extent, double number) const {
    const auto known = partial_->RangesOf(extent);
    return !known || ((*known)[0].lo <= number && number <= (*known)[0].hi);
  }

  absl::Status Meet(const std::vector<Side>& sides, size_t dim) {
    std::vector<ValueId> extents;  // each extent once
    ValueId result = kNone;
    const bool is_static =
        std::any_of(sides.begin(), sides.end(), [](const Side& side) { return side.extent == kNone; });
    if (is_static) result = ops::IntScalar(context_, BoundOf(sides));
    for (const Side& side : sides) {
      if (side.extent == kNone || std::count(extents.begin(), extents.end(), side.extent) > 0) continue;
      extents.push_back(side.extent);
      if (result == kNone) {
        result = side.extent;
      } else if (!is_static && MayBe(result, 1)) {
        ASSIGN_OR_RETURN(const ValueId is_one, One("Equal", {result, ops::IntScalar(context_, 1)}));
        ASSIGN_OR_RETURN(result, One("Where", {is_one, side.extent, result}));
      }
    }
    RETURN_IF_ERROR(Check(extents, result, is_static, dim));
    for (const Side& side : sides) {
      if (side.extent == kNone) continue;
      ASSIGN_OR_RETURN(node_->inputs[side.input], Stretched(side, result, BoundOf(sides), is_static));
    }
    return absl::OkStatus();
  }

  absl::Status Check(const std::vector<ValueId>& extents, ValueId result, bool is_static, size_t dim) {
    ValueId holds = kNone;
    for (ValueId extent : extents) {
      ASSIGN_OR_RETURN(const ValueId equal, One("Equal", {extent, result}));
      ASSIGN_OR_RETURN(const ValueId is_one, One("Equal", {extent, ops::IntScalar(context_, 1)}));
      ASSIGN_OR_RETURN(const ValueId fits, One("Or", {equal, is_one}));
      if (holds == kNone) {
        holds = fits;
      } else {
        ASSIGN_OR_RETURN(holds, One("And", {holds, fits}));
      }
    }
    for (ValueId condition : partial_->conditions) {
      ASSIGN_OR_RETURN(const ValueId elsewhere, One("Not", {condition}));
      ASSIGN_OR_RETURN(holds, One("Or", {holds, elsewhere}));
    }
    ecg::Attributes to;
    to.Set("to", int64_t{7});  // i64
    ASSIGN_OR_RETURN(const ValueId number, One("Cast", {holds}, std::move(to)));
    std::vector<ValueId> values{number};
    std::vector<std::string> numbers;
    for (ValueId extent : extents) {
      values.push_back(extent);
      numbers.push_back(absl::StrCat("{", numbers.size() + 1, "}"));
    }
    if (is_static) {
      values.push_back(result);
      numbers.push_back(absl::StrCat("{", numbers.size() + 1, "}"));
    }
    ASSIGN_OR_RETURN(const ValueId vector, ops::Stack(context_, values));
    partial_->checks.push_back(
        {vector, absl::StrCat(node_->op, " '", node_->name, "': its operands have the extents ",
                              absl::StrJoin(numbers, " and "), " in dimension ", dim,
                              " of the result, which depend on the inputs and do not broadcast")});
    return absl::OkStatus();
  }

  // Returns the side's input with the bound and the extent of the result. A dimension of extent 1 repeats its element.
  absl::StatusOr<ValueId> Stretched(const Side& side, ValueId result, int64_t bound, bool is_static) {
    const ValueId input = node_->inputs[side.input];
    std::vector<ValueId> dims = partial_->extents.Of(input);
    if (!is_static && dims[side.dim] == result && side.bound == bound && !MayBe(side.extent, 1)) return input;
    dims[side.dim] = is_static ? kNone : result;
    ValueId stretched = kNone;
    if (MayBe(side.extent, 1) || side.bound != bound) {
      Tensor positions(DType::kI64, {bound});
      for (int64_t i = 0; i < bound; ++i) {
        positions.SetDouble(i, static_cast<double>(std::min(i, std::max<int64_t>(0, side.bound - 1))));
      }
      ValueId indices = context_.AddConstant(std::move(positions));
      if (MayBe(side.extent, 1)) {
        ASSIGN_OR_RETURN(const ValueId is_one, One("Equal", {side.extent, ops::IntScalar(context_, 1)}));
        ASSIGN_OR_RETURN(indices, One("Where", {is_one, ops::IntScalar(context_, 0), indices}));
      }
      ASSIGN_OR_RETURN(stretched, ops::Take(context_, input, side.dim, indices));
    } else {
      const ecg::ValueType type = partial_->graph.value(input).type;
      stretched = partial_->graph.node(partial_->graph.AddNode("Identity", "", {input}, {}, {type})).outputs[0];
    }
    return context_.WithExtents(stretched, std::move(dims));
  }

  ops::ImportContext& context_;
  PartialGraph* const partial_;
  ecg::Node* const node_;
};

}  // namespace

absl::Status MeetExtents(ops::ImportContext& context, PartialGraph* partial, ecg::Node* node) {
  return Meeting(context, partial, node).Run();
}

}  // namespace fusion::onnx_import
