// Import: an ONNX model file becomes a Graph. After it nothing knows of ONNX versions, names of types, or files:
// operators are canonical (compiler/ops/op_def.h), shapes static, constants bound, and whatever depends on shapes alone
// is folded.
#ifndef FUSION_COMPILER_ONNX_IMPORT_H_
#define FUSION_COMPILER_ONNX_IMPORT_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"
#include "runtime/base/tensor.h"

namespace fusion::onnx_import {

struct ImportRequest {
  std::string model_path;
  std::string model_name;  // for messages; empty: the path
  std::map<std::string, std::string>
      external;                         // location written in the model → readable file; no other path is opened
  std::map<std::string, int64_t> dims;  // symbolic dimension → extent
  // Dimensions of `dims` whose extent is a bound: inputs may have less, which the graph is told by an input of its own.
  std::set<std::string> bounded_dims;
  std::map<std::string, Shape> shapes;            // graph input → shape, instead of the model's
  std::map<std::string, Tensor> constant_inputs;  // graph input → value known at compile time; it is no input any more
};

// Dimension `dim` of inputs()[input] holds only as many elements as the i64 scalar inputs()[extent] says; the static
// extent is the bound. What lies behind may be any finite number, and any valid index.
struct InputExtent {
  int input = 0, dim = 0, extent = 0;
};

struct ImportedModel {
  ecg::Graph graph;
  // Parallel to the graph's inputs: the names of the dimensions that `dims` bound, "" for others.
  std::vector<std::vector<std::string>> input_symbols;
  // For each dimension that is named in `bounded_dims`. The extents are the last inputs of the graph.
  std::vector<InputExtent> input_extents;
  int64_t model_nodes = 0;  // operators in the file's main graph, Constant nodes not counted
};

// Domain "" (ai.onnx) with opset 1 to 28 (below 7 as far as an operator has not changed since: what it
// has lost are attributes, which are refused); other domains where the registry has `domain.Op`.
// INVALID_ARGUMENT: no model, a cycle (naming a node on it), undefined or duplicate names, an initializer of the wrong
// size,
//   external data that was not given, shapes that do not fit (naming the node), unbound dimensions (listing what to
//   bind).
// UNIMPLEMENTED: unsupported operators, all at once, each with its count and one node; non-tensor inputs.
// RESOURCE_EXHAUSTED: above the limits of limits.h.
// Initializers are taken over from the parsed file without a copy where their alignment allows it, so peak memory is
// about the size of the weights. Names from the file are data: they are only ever shown escaped.
absl::StatusOr<ImportedModel> ImportOnnx(const ImportRequest& request);

}  // namespace fusion::onnx_import

#endif  // FUSION_COMPILER_ONNX_IMPORT_H_
