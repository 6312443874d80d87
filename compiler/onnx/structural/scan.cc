// Scan is a loop over the slices of its inputs, or is unrolled where it cannot be one (repeat.h).
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/node_order.h"
#include "compiler/onnx/structural/repeat.h"
#include "compiler/onnx/structural/structural_op.h"
#include "compiler/onnx/tensor_import.h"
#include "compiler/ops/control/loop.h"
#include "runtime/base/status_macros.h"

namespace fusion::onnx_import {
namespace {

using Values = std::vector<ecg::ValueId>;

// Axes and directions of scan inputs or scan outputs, one entry each.
struct ScanAxes {
  std::vector<int64_t> axes;
  std::vector<int64_t> directions;  // 1: from the end
};

struct ScanForm {
  onnx::GraphProto* body = nullptr;
  size_t num_states = 0, num_inputs = 0, num_outputs = 0;
  ScanAxes inputs, outputs;  // output axes may be negative until the slices' rank is known
};

absl::StatusOr<ScanAxes> AxesFrom(const StructuralNode& node, const std::string& axes, const std::string& directions,
                                  size_t count) {
  ScanAxes result{node.Ints(axes), node.Ints(directions)};
  if (result.axes.empty()) result.axes.assign(count, 0);
  if (result.directions.empty()) result.directions.assign(count, 0);
  if (result.axes.size() != count || result.directions.size() != count) {
    return node.Error(absl::StrCat(axes, " and ", directions, " must have ", count, " entries"));
  }
  return result;
}

absl::StatusOr<int64_t> CountedAxis(const StructuralNode& node, int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) {
    return node.Error(absl::StrCat("scan axis ", axis, " is out of range for rank ", rank));
  }
  return axis < 0 ? axis + rank : axis;
}

absl::StatusOr<ScanForm> ReadForm(const StructuralNode& node, size_t given_inputs) {
  ScanForm form;
  ASSIGN_OR_RETURN(form.body, node.Graph("body"));
  const int64_t scanned = node.Int("num_scan_inputs", 0);
  if (scanned < 1 || scanned > static_cast<int64_t>(given_inputs)) {
    return node.Error(absl::StrCat("num_scan_inputs=", scanned, " of ", given_inputs, " inputs"));
  }
  form.num_inputs = static_cast<size_t>(scanned);
  form.num_states = given_inputs - form.num_inputs;
  if (form.body->input_size() != static_cast<int>(given_inputs) ||
      form.body->output_size() < static_cast<int>(form.num_states)) {
    return node.Error(absl::StrCat("has ", given_inputs, " inputs and ", form.num_states, " states, its body ",
                                   form.body->input_size(), " inputs and ", form.body->output_size(), " outputs"));
  }
  form.num_outputs = static_cast<size_t>(form.body->output_size()) - form.num_states;
  return form;
}

// Returns the states, then the scan outputs. `inputs` are states and scanned tensors.
absl::StatusOr<Values> Unroll(StructuralContext& importer, const StructuralNode& node, const ScanForm& form,
                              const Values& inputs, const std::string& label) {
  const ecg::Graph& graph = importer.canonical().graph;
  Values state(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(form.num_states));
  std::vector<Values> slices, scanned(form.num_outputs);
  int64_t steps = -1;
  for (size_t k = 0; k < form.num_inputs; ++k) {
    const ecg::ValueId input = inputs[form.num_states + k];
    const Shape shape = graph.value(input).type.shape;
    ASSIGN_OR_RETURN(const int64_t axis, CountedAxis(node, form.inputs.axes[k], static_cast<int64_t>(shape.size())));
    if (steps >= 0 && shape[axis] != steps) {
      return node.Error(absl::StrCat("scan inputs have ", steps, " and ", shape[axis], " slices"));
    }
    steps = shape[axis];
    if (steps == 0) return node.Unsupported("scans an empty tensor");
    RETURN_IF_ERROR(importer.Charge(steps));
    ASSIGN_OR_RETURN(slices.emplace_back(), Unstack(importer, input, axis));
    if (form.inputs.directions[k] != 0) std::reverse(slices.back().begin(), slices.back().end());
  }
  for (int64_t step = 0; step < steps; ++step) {
    StructuralContext::Bindings bound;
    for (size_t k = 0; k < form.num_states + form.num_inputs; ++k) {
      const ecg::ValueId value = k < form.num_states ? state[k] : slices[k - form.num_states][step];
      bound.emplace_back(form.body->input(static_cast<int>(k)).name(), ImportedValue::Tensor(value));
    }
    auto outputs = importer.Inline(form.body, bound, absl::StrCat(NodeName(*node.proto), label, "[", step, "]/"));
    if (!outputs.ok()) return Annotate(outputs.status(), node.title);
    for (size_t k = 0; k < outputs->size(); ++k) {
      const ImportedValue& output = (*outputs)[k];
      if (output.kind != ImportedValue::Kind::kTensor || StructuralNode::IsAbsent(output)) {
        return node.Error("its body's outputs must be tensors");
      }
      if (k < form.num_states) {
        state[k] = output.tensor;
      } else {
        scanned[k - form.num_states].push_back(output.tensor);
      }
    }
  }
  for (size_t k = 0; k < form.num_outputs; ++k) {
    const auto rank = static_cast<int64_t>(graph.value(scanned[k][0]).type.shape.size());
    ASSIGN_OR_RETURN(const int64_t axis, CountedAxis(node, form.outputs.axes[k], rank + 1));
    if (form.outputs.directions[k] != 0) std::reverse(scanned[k].begin(), scanned[k].end());
    ASSIGN_OR_RETURN(state.emplace_back(), Stack(importer, scanned[k], axis));
  }
  return state;
}

// Returns `tensor` with its axis `from` at position `to`.
absl::StatusOr<ecg::ValueId> MoveAxis(StructuralContext& importer, ecg::ValueId tensor, int64_t from, int64_t to) {
  if (from == to) return tensor;
  std::vector<int64_t> perm;
  for (int64_t d = 0; d < static_cast<int64_t>(importer.canonical().graph.value(tensor).type.shape.size()); ++d) {
    if (d != from) perm.push_back(d);
  }
  perm.insert(perm.begin() + to, from);
  ecg::Attributes attrs;
  attrs.Set("perm", std::move(perm));
  return importer.AddNode("Transpose", {tensor}, std::move(attrs));
}

// Returns the states, then the scan outputs, of a loop; nullopt where Scan must be unrolled.
absl::StatusOr<std::optional<Values>> Repeat(StructuralContext& importer, const StructuralNode& node,
                                             const ScanForm& form, const Values& inputs) {
  const ecg::Graph& graph = importer.canonical().graph;
  Repetition loop;
  loop.states.assign(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(form.num_states));
  for (size_t k = 0; k < form.num_inputs; ++k) {
    const ecg::ValueId input = inputs[form.num_states + k];
    const Shape shape = graph.value(input).type.shape;
    ASSIGN_OR_RETURN(const int64_t axis, CountedAxis(node, form.inputs.axes[k], static_cast<int64_t>(shape.size())));
    if (importer.canonical().extents.IsDynamic(input) || (k > 0 && shape[axis] != loop.trips)) return std::nullopt;
    loop.trips = shape[axis];
    if (loop.trips < ops::kLeastTrips || loop.trips > ops::kMostKeptTrips) return std::nullopt;
    ASSIGN_OR_RETURN(loop.scanned.emplace_back(), MoveAxis(importer, input, axis, 0));
    loop.reversed_in.push_back(form.inputs.directions[k] != 0 ? 1 : 0);
  }
  for (const int64_t direction : form.outputs.directions) loop.reversed_out.push_back(direction != 0 ? 1 : 0);
  loop.body = [&](const Values& states, const Values& slices) -> std::optional<Values> {
    StructuralContext::Bindings bound;
    for (size_t k = 0; k < form.num_states + form.num_inputs; ++k) {
      const ecg::ValueId value = k < form.num_states ? states[k] : slices[k - form.num_states];
      bound.emplace_back(form.body->input(static_cast<int>(k)).name(), ImportedValue::Tensor(value));
    }
    return TensorsOf(importer.Inline(form.body, bound, absl::StrCat(NodeName(*node.proto), "/")));
  };
  std::optional<Values> results = AddRepetition(importer, loop);
  for (size_t k = 0; results && k < form.num_outputs; ++k) {
    ecg::ValueId& stack = (*results)[form.num_states + k];
    const auto rank = static_cast<int64_t>(graph.value(stack).type.shape.size());
    ASSIGN_OR_RETURN(const int64_t axis, CountedAxis(node, form.outputs.axes[k], rank));
    ASSIGN_OR_RETURN(stack, MoveAxis(importer, stack, 0, axis));
  }
  return results;
}

// Scan-8 has an optional first input with sequence lengths, a batch axis before all others, and a fixed scan axis
// behind it.
absl::StatusOr<Values> UnrollBatch(StructuralContext& importer, const StructuralNode& node, const ScanForm& form,
                                   const Values& inputs) {
  if (node.Has(0)) return node.Unsupported("sequence lengths (input 0) are not supported");
  std::vector<Values> by_input;
  for (ecg::ValueId input : inputs) {
    const Shape shape = importer.canonical().graph.value(input).type.shape;
    if (shape.empty() || shape[0] == 0) return node.Error("its inputs must have a batch axis");
    RETURN_IF_ERROR(importer.Charge(shape[0]));
    ASSIGN_OR_RETURN(by_input.emplace_back(), Unstack(importer, input, 0));
    if (by_input.back().size() != by_input[0].size()) return node.Error("its inputs differ in batch size");
  }
  std::vector<Values> by_output(form.num_states + form.num_outputs);
  for (size_t b = 0; b < by_input[0].size(); ++b) {
    Values of_batch;
    for (const Values& values : by_input) of_batch.push_back(values[b]);
    ASSIGN_OR_RETURN(const Values outputs, Unroll(importer, node, form, of_batch, absl::StrCat("[", b, "]")));
    for (size_t k = 0; k < outputs.size(); ++k) by_output[k].push_back(outputs[k]);
  }
  Values stacked;
  for (const Values& values : by_output) {
    ASSIGN_OR_RETURN(stacked.emplace_back(), Stack(importer, values, 0));
  }
  return stacked;
}

absl::StatusOr<std::vector<ImportedValue>> ImportScan(StructuralContext& importer, const StructuralNode& node) {
  const bool batched = node.opset < 9;
  Values inputs;
  for (size_t i = batched ? 1 : 0; i < node.inputs.size(); ++i) {
    ASSIGN_OR_RETURN(inputs.emplace_back(), node.TensorInput(i));
  }
  ASSIGN_OR_RETURN(ScanForm form, ReadForm(node, inputs.size()));
  const std::string in = batched ? "" : "scan_input_axes", out = batched ? "" : "scan_output_axes";
  ASSIGN_OR_RETURN(form.inputs, AxesFrom(node, in, batched ? "directions" : "scan_input_directions", form.num_inputs));
  ASSIGN_OR_RETURN(form.outputs, AxesFrom(node, out, batched ? "" : "scan_output_directions", form.num_outputs));
  std::optional<Values> repeated;
  if (!batched) {
    ASSIGN_OR_RETURN(repeated, Repeat(importer, node, form, inputs));
  }
  Values outputs;
  if (repeated) {
    outputs = *std::move(repeated);
  } else {
    ASSIGN_OR_RETURN(outputs,
                     batched ? UnrollBatch(importer, node, form, inputs) : Unroll(importer, node, form, inputs, ""));
  }
  std::vector<ImportedValue> values;
  for (ecg::ValueId id : outputs) values.push_back(ImportedValue::Tensor(id));
  return values;
}

}  // namespace

std::vector<StructuralOp> ScanOps() { return {{"Scan", ImportScan}}; }

}  // namespace fusion::onnx_import
