// Import turns an ONNX model file into a Graph. Nothing after it depends on ONNX versions, type names or files:
// operators are canonical (compiler/ops/registry/op_def.h), shapes are static, constants are bound, and whatever
// depends on shapes alone is folded.
#ifndef FUSION_COMPILER_ONNX_IMPORT_H_
#define FUSION_COMPILER_ONNX_IMPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"
#include "compiler/onnx/import_request.h"

namespace fusion::onnx_import {

// Dimension `dim` of inputs()[input] holds as many elements as the i64 scalar inputs()[extent] says; the static extent
// is the bound. Elements past the extent may be any finite number and any valid index.
struct InputExtent {
  int input = 0, dim = 0, extent = 0;
};

struct ImportedModel {
  ecg::Graph graph;
  // Parallel to the graph's inputs: the names of the dimensions that `dims` bound, "" for others.
  std::vector<std::vector<std::string>> input_symbols;
  // One entry per dimension that is named in `bounded_dims`. The extents are the last inputs of the graph.
  std::vector<InputExtent> input_extents;
  int64_t model_nodes = 0;  // operators in the file's main graph, Constant nodes not counted
};

// Supports domain "" (ai.onnx) with opset 1 to 28, and other domains where the registry has `domain.Op`. Below opset 7
// an operator works where it has not changed since or `normalize` rewrites the old form; attributes that an operator
// has lost since are refused.
//   INVALID_ARGUMENT: no model, a cycle (naming a node on it), undefined or duplicate names, an initializer of the
//     wrong size, external data that was not given, shapes that do not fit (naming the node), unbound dimensions
//     (listing what to bind).
//   UNIMPLEMENTED: unsupported operators, all at once, each with its count and one node; non-tensor inputs.
//   RESOURCE_EXHAUSTED: above the limits of limits.h.
// Initializers are taken over from the parsed file without a copy where their alignment allows it, so that peak memory
// is about the size of the weights. Names from the file are untrusted data and are always escaped when shown.
absl::StatusOr<ImportedModel> ImportOnnx(const ImportRequest& request);

}  // namespace fusion::onnx_import

#endif  // FUSION_COMPILER_ONNX_IMPORT_H_
