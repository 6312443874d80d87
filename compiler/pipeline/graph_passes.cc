#include "compiler/pipeline/graph_passes.h"

#include <algorithm>
#include <map>
#include <utility>

#include "compiler/analysis/derived.h"
#include "compiler/api/modes.h"
#include "compiler/onnx/import.h"
#include "compiler/ops/control/loop.h"
#include "compiler/ops/control/unroll_loops.h"
#include "compiler/pipeline/precision_pass.h"
#include "compiler/pipeline/verify.h"
#include "compiler/rewrite/rewrite.h"
#include "compiler/rewrite/round_products.h"
#include "compiler/simplify/passes.h"
#include "runtime/base/status_macros.h"
#include "runtime/bundle/manifest.h"

namespace fusion::passes {
namespace {

// Sums the bytes of constants that are an operand or a result. Constants in the same memory count once.
int64_t ConstantBytes(const ecg::Graph& graph) {
  std::map<const void*, int64_t> bytes;
  for (ecg::ValueId v = 0; v < static_cast<int>(graph.values().size()); ++v) {
    const ecg::Value& value = graph.value(v);
    if (!value.constant || (value.consumers.empty() && !graph.IsOutput(v))) continue;
    int64_t& most = bytes[value.constant->data()];
    most = std::max(most, value.constant->size_bytes());
  }
  int64_t sum = 0;
  for (const auto& one : bytes) sum += one.second;
  return sum;
}

// Fails with INTERNAL, and with the part's name, where a part makes a wrong graph.
absl::StatusOr<ecg::Graph> Simplified(const ecg::Graph& graph, const Compilation& compilation,
                                      simplify::Widening widening) {
  const CompileOptions& options = compilation.options;
  // Without fusion a reordering would be a kernel of its own, which copies the constant in every run. Work-groups and
  // libraries read the constant in the new order at a cost that nobody has measured.
  const bool reads_any_order = compilation.context.device->kind == "cpu" && options.planner != "none";
  const bool once = options.size == "small" || reads_any_order;
  return simplify::SimplifyInParts(graph, widening,
                                   once ? simplify::Reordering::kHoldOnce : simplify::Reordering::kFold,
                                   [](const char* part, const ecg::Graph& made) {
                                     const absl::Status verified = ecg::Verify(made);
                                     return verified.ok() ? verified : MadeWrong(part, "graph", verified);
                                   });
}

}  // namespace

absl::Status Import(Compilation* compilation) {
  const ModelFiles& files = compilation->files;
  const CompileOptions& options = compilation->options;
  Planned& planned = *compilation->planned;
  if (files.graph != nullptr) {
    planned.graph = *files.graph;
    compilation->account->nodes_model = static_cast<int64_t>(planned.graph.nodes().size());
  } else {
    onnx_import::ImportRequest request;
    request.model_path = files.model_path;
    request.model_name = files.model_name;
    request.external = files.external;
    request.dims = options.dims;
    request.bounded_dims = options.bounded_dims;
    request.constant_inputs = files.constant_inputs;
    for (const auto& [name, shape] : options.shapes) request.shapes[name] = shape;
    ASSIGN_OR_RETURN(onnx_import::ImportedModel imported, onnx_import::ImportOnnx(request));
    compilation->account->nodes_model = imported.model_nodes;
    planned.graph = std::move(imported.graph);
    planned.input_symbols = std::move(imported.input_symbols);
    planned.input_extents = std::move(imported.input_extents);
  }
  compilation->account->weights.model_bytes = ConstantBytes(planned.graph);
  return absl::OkStatus();
}

absl::Status SimplifyNarrow(Compilation* compilation) {
  ecg::Graph& graph = compilation->planned->graph;
  ASSIGN_OR_RETURN(graph, Simplified(graph, *compilation, simplify::Widening::kKeep));
  compilation->account->nodes_simplified = static_cast<int64_t>(graph.nodes().size());
  return absl::OkStatus();
}

absl::Status Rewrite(Compilation* compilation) {
  rewrite::Options options;
  ASSIGN_OR_RETURN(options.math, MathLevelOf(compilation->options.math));
  options.disabled = compilation->options.disabled_rules;
  ASSIGN_OR_RETURN(rewrite::Result rewritten, rewrite::Rewrite(compilation->planned->graph, options));
  compilation->planned->graph = std::move(rewritten.graph);
  for (rewrite::Firing& firing : rewritten.firings) {
    compilation->account->rewrites.push_back({"", std::move(firing.rule), std::move(firing.where), firing.flops_saved,
                                              firing.bytes_saved, firing.nodes_saved});
  }
  return absl::OkStatus();
}

absl::Status Simplify(Compilation* compilation) {
  ecg::Graph& graph = compilation->planned->graph;
  ASSIGN_OR_RETURN(graph, Simplified(graph, *compilation, simplify::Widening::kFold));
  return absl::OkStatus();
}

absl::Status StoreHalves(Compilation* compilation) {
  ecg::Graph& graph = compilation->planned->graph;
  ASSIGN_OR_RETURN(graph, Simplified(StoreAsHalves(graph), *compilation, simplify::Widening::kFold));
  return absl::OkStatus();
}

absl::Status ShareConstants(Compilation* compilation) {
  ecg::Graph& graph = compilation->planned->graph;
  graph = compilation->constants->Share(graph);
  return absl::OkStatus();
}

bool HasUnalignedLoops(const Compilation& compilation) {
  if (compilation.context.device->SharesHostMemory()) return false;  // its kernels read vectors anywhere
  const ecg::Graph& graph = compilation.planned->graph;
  const int64_t narrower = compilation.options.precision == "fp16" ? 2 : 1;
  for (const ecg::Node& node : graph.nodes()) {
    if (!ops::IsLoopBoundary(node)) continue;
    // An iteration sees the results of the beginning and the operands of the end, of which the first is a token.
    const bool begins = node.op == ops::kLoopBegin;
    const std::vector<ecg::ValueId>& values = begins ? node.outputs : node.inputs;
    for (size_t i = begins ? 0 : 1; i < values.size(); ++i) {
      if (values[i] == ecg::kNone) continue;
      if (ecg::ValueBytes(graph.value(values[i])) % (narrower * kBufferAlignBytes) != 0) return true;
    }
  }
  return false;
}

absl::Status UnrollLoops(Compilation* compilation) {
  ecg::Graph& graph = compilation->planned->graph;
  ASSIGN_OR_RETURN(graph, ecg::UnrollLoops(graph));
  return absl::OkStatus();
}

absl::Status SeparateLoopValues(Compilation* compilation) {
  ecg::Graph& graph = compilation->planned->graph;
  ASSIGN_OR_RETURN(graph, simplify::SeparateLoopValues(graph));
  return absl::OkStatus();
}

bool RoundsLikeOperators(const Compilation& compilation) { return compilation.options.math != "relaxed"; }

absl::Status RoundProducts(Compilation* compilation) {
  ecg::Graph& graph = compilation->planned->graph;
  graph = rewrite::RoundProducts(graph);
  return absl::OkStatus();
}

absl::Status MergeSlices(Compilation* compilation) {
  ecg::Graph& graph = compilation->planned->graph;
  graph = simplify::MergeSlices(graph);
  return absl::OkStatus();
}

absl::Status OpenIndices(Compilation* compilation) {
  ecg::Graph& graph = compilation->planned->graph;
  graph = simplify::OpenIndices(graph);
  return absl::OkStatus();
}

bool PlannerWantsOpened(const Compilation& compilation) {
  const Planner* planner = FindPlanner(compilation.options.planner);
  return planner != nullptr && planner->WantsOpened();
}

absl::Status OpenForPlanner(Compilation* compilation) {
  ecg::Graph& graph = compilation->planned->graph;
  graph = simplify::OpenComposites(graph);
  return absl::OkStatus();
}

}  // namespace fusion::passes
