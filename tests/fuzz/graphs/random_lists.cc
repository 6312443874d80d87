// Draws sequences and optionals: lists of values that the model has computed, in its main graph.
#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/onnx_dtype.h"
#include "tests/fuzz/graphs/model_generator.h"
#include "tests/fuzz/graphs/values.h"

namespace fusion::fuzz {
namespace {

constexpr size_t kLongest = 12;

onnx::NodeProto Node(const std::string& op, const std::vector<std::string>& operands) {
  onnx::NodeProto node;
  node.set_op_type(op);
  for (const std::string& name : operands) node.add_input(name);
  return node;
}

}  // namespace

// Returns nothing if the node does not fit, because its list is empty or its operands have other types.
std::optional<onnx::NodeProto> ModelGenerator::ListNode(Names* visible) {
  const bool makes = lists_.empty() || draw_.Chance(0.2);
  onnx::NodeProto node = makes ? NewList(visible) : ReadOrChangeList(draw_.OneOf(lists_), visible);
  const std::string name = NewName("l");
  node.add_output(name);
  if (!Run(node)) return std::nullopt;
  const auto sequence = values_.sequences.find(name);
  if (sequence != values_.sequences.end() && sequence->second.size() > kLongest) return std::nullopt;
  if (values_.tensors.count(name) == 0) lists_.push_back(name);
  return node;
}

onnx::NodeProto ModelGenerator::NewList(Names* visible) {
  const std::string first = DataOperand("", visible);
  const Tensor& value = Of(first);
  switch (draw_.Below(6)) {
    case 0: {
      onnx::NodeProto node = Node("SequenceEmpty", {});
      AddAttribute("dtype", ops::OnnxNumber(value.dtype()), &node);
      return node;
    }
    case 1:
      return Node("Optional", {first});
    case 2:
    case 3: {
      onnx::NodeProto node = Node("SplitToSequence", {first});
      const auto rank = static_cast<int64_t>(value.shape().size());
      const int64_t axis = rank == 0 ? 0 : draw_.Between(-rank, rank - 1);
      AddAttribute("axis", axis, &node);
      if (draw_.Chance(0.5)) {
        const int64_t each = draw_.Between(1, 3);
        node.add_input(AddConstant(Tensor::From<int64_t>(DType::kI64, {}, {each})));
      } else if (draw_.Chance(0.5)) {
        AddAttribute("keepdims", int64_t{0}, &node);
      }
      return node;
    }
    default: {
      Names elements = {first};
      for (const std::string& name : *visible) {
        if (Of(name).dtype() == value.dtype() && elements.size() < 4 && draw_.Chance(0.4)) elements.push_back(name);
      }
      return Node("SequenceConstruct", elements);
    }
  }
}

// Returns a constant, or an input that is known only when the model runs.
std::string ModelGenerator::Position(int64_t length, bool may_be_unknown) {
  if (may_be_unknown && draw_.Chance(0.4)) return AddInput(DType::kI64, {}, absl::StrCat("_below", length), nullptr);
  return AddConstant(Tensor::From<int64_t>(DType::kI64, {}, {draw_.Between(-length, length - 1)}));
}

onnx::NodeProto ModelGenerator::ReadOrChangeList(const std::string& list, Names* visible) {
  const auto found = values_.sequences.find(list);
  if (found == values_.sequences.end()) return Node(draw_.Chance(0.5) ? "OptionalHasElement" : "OptionalGetElement", {list});
  const std::vector<Tensor>& elements = found->second;
  const auto length = static_cast<int64_t>(elements.size());
  switch (length == 0 ? 4 + draw_.Below(2) : draw_.Below(7)) {
    case 0:
    case 1:
      return Node("SequenceAt", {list, Position(length, true)});
    case 2: {
      onnx::NodeProto node = Node("ConcatFromSequence", {list});
      const auto rank = static_cast<int64_t>(elements[0].shape().size());
      const bool new_axis = rank == 0 || draw_.Chance(0.5);
      if (new_axis) AddAttribute("new_axis", int64_t{1}, &node);
      AddAttribute("axis", int64_t{draw_.Between(-rank, new_axis ? rank : rank - 1)}, &node);
      return node;
    }
    case 3:
      return draw_.Chance(0.5) ? Node("SequenceErase", {list})
                               : Node("SequenceErase", {list, Position(length, false)});
    case 4:
      return Node("SequenceLength", {list});
    default: {
      const std::string element = DataOperand("", visible);
      if (draw_.Chance(0.5)) return Node("SequenceInsert", {list, element});
      return Node("SequenceInsert", {list, element, Position(length + 1, false)});
    }
  }
}

}  // namespace fusion::fuzz
