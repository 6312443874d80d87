#include "compiler/onnx/import.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ecg/rewriter.h"
#include "compiler/ecg/run_checks.h"
#include "compiler/onnx/bind_inputs.h"
#include "compiler/onnx/graph_importer.h"
#include "compiler/onnx/limits.h"
#include "compiler/onnx/model_file.h"
#include "compiler/onnx/tensor_import.h"
#include "runtime/base/status_macros.h"

namespace fusion::onnx_import {
namespace {

// Adds a graph input. Its tensors become inputs of the graph, or constants where the request gives their value.
ImportedValue AddInput(const BoundInput& input, const ImportRequest& request, ecg::Graph* graph,
                       std::vector<std::vector<std::string>>* symbols) {
  if (input.kind == ImportedValue::Kind::kTensor) {
    auto constant = request.constant_inputs.find(input.name);
    if (constant != request.constant_inputs.end()) {
      return ImportedValue::Tensor(graph->AddConstant(input.name, constant->second));
    }
    symbols->push_back(input.symbols);
    return ImportedValue::Tensor(graph->AddInput(input.name, input.type));
  }
  ImportedValue value{input.kind, ecg::kNone, {}};
  for (const BoundInput& element : input.elements) value.elements.push_back(AddInput(element, request, graph, symbols));
  return value;
}

// Adds the extents of bounded dimensions as inputs. A bound of 1 is taken as exact, because the axis would count as one
// that broadcasts.
void AddInputExtents(const std::set<std::string>& bounded, CanonicalGraph* canonical, ImportedModel* result) {
  std::map<std::string, int> places;  // position of each extent among the graph's inputs
  ecg::Graph& graph = canonical->graph;
  for (size_t i = 0; i < result->input_symbols.size(); ++i) {
    const std::vector<std::string> symbols = result->input_symbols[i];
    const ecg::ValueId value = graph.inputs()[i];
    std::vector<ecg::ValueId> extents(symbols.size(), ecg::kNone);
    for (size_t d = 0; d < symbols.size(); ++d) {
      if (bounded.count(symbols[d]) == 0 || graph.value(value).type.shape[d] < 2) continue;
      auto [place, fresh] = places.emplace(symbols[d], static_cast<int>(graph.inputs().size()));
      if (fresh) {
        const ecg::ValueId extent = graph.AddInput(absl::StrCat("extent of ", symbols[d]), {DType::kI64, {}});
        te::ValueRange range;
        range.lo = 1;
        range.hi = static_cast<double>(graph.value(value).type.shape[d]);
        canonical->extents.SetRanges(extent, {range});
        result->input_symbols.emplace_back();
      }
      extents[d] = graph.inputs()[place->second];
      result->input_extents.push_back({static_cast<int>(i), static_cast<int>(d), place->second});
    }
    canonical->extents.Set(value, std::move(extents));
  }
}

// Adds a sequence's elements as outputs `name[0]`, `name[1]` …, and an optional as `name`, or nothing where it is
// absent. Appends each output's value to `values`.
absl::Status AddOutput(const ImportedValue& value, const std::string& name, ecg::Graph* graph,
                       std::vector<ecg::ValueId>* values) {
  if (value.kind == ImportedValue::Kind::kTensor) {
    if (ecg::IsRunCheck(name)) {
      return absl::InvalidArgumentError(absl::StrCat("graph output ", Quoted(name), ": names that begin with '",
                                                     ecg::kRunCheckPrefix, "' are taken"));
    }
    if (value.tensor == ecg::kNone) {
      return absl::InvalidArgumentError(absl::StrCat("graph output ", Quoted(name), " has no value"));
    }
    ecg::AddOwnOutput(graph, value.tensor, name);
    values->push_back(value.tensor);
    return absl::OkStatus();
  }
  for (size_t i = 0; i < value.elements.size(); ++i) {
    const bool sequence = value.kind == ImportedValue::Kind::kSequence;
    RETURN_IF_ERROR(AddOutput(value.elements[i], sequence ? ElementName(name, i) : name, graph, values));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ImportedModel> ImportOnnx(const ImportRequest& request) {
  ASSIGN_OR_RETURN(std::unique_ptr<onnx::ModelProto> model,
                   ReadModel(request.model_path, request.model_name.empty() ? request.model_path : request.model_name));
  onnx::GraphProto* graph = model->mutable_graph();
  if (graph->node_size() > kMaxNodes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the model has ", graph->node_size(), " nodes, at most ", kMaxNodes));
  }
  ImportedModel result;
  for (const auto& node : graph->node()) result.model_nodes += node.op_type() != "Constant";
  ASSIGN_OR_RETURN(auto opsets, OpsetVersions(*model));
  ASSIGN_OR_RETURN(const std::vector<BoundInput> inputs, BindInputs(*graph, request));
  ExternalFiles files(&request.external);
  GraphImporter importer(model.get(), std::move(opsets), &files);
  GraphImporter::Bindings bound;
  for (const BoundInput& input : inputs) {
    bound.emplace_back(input.name, AddInput(input, request, &importer.canonical().graph, &result.input_symbols));
  }
  importer.canonical().decides_while_running = request.bounded_dims.empty();
  AddInputExtents(request.bounded_dims, &importer.canonical(), &result);
  ASSIGN_OR_RETURN(const std::vector<ImportedValue> outputs, importer.Inline(graph, bound, /*label=*/""));
  if (outputs.empty()) return absl::InvalidArgumentError("the model has no outputs");
  CanonicalGraph& canonical = importer.canonical();
  std::vector<ecg::ValueId> values;
  for (int i = 0; i < graph->output_size(); ++i) {
    RETURN_IF_ERROR(AddOutput(outputs[i], graph->output(i).name(), &canonical.graph, &values));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    canonical.extents.AddToOutput(values[i], static_cast<int>(i), &canonical.graph);
  }
  for (const CanonicalGraph::RunCheck& check : canonical.checks) {
    const std::optional<Tensor>& range = canonical.graph.value(check.values).constant;
    if (!range || range->GetInt(0) == 0) ecg::AddRunCheck(&canonical.graph, check.values, check.message);
  }
  result.graph = std::move(canonical.graph);
  result.graph.name = graph->name();
  return result;
}

}  // namespace fusion::onnx_import
