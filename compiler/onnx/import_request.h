// ImportRequest: the model to import, and what its caller knows of the model's inputs.
#ifndef FUSION_COMPILER_ONNX_IMPORT_REQUEST_H_
#define FUSION_COMPILER_ONNX_IMPORT_REQUEST_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "runtime/base/tensor.h"

namespace fusion::onnx_import {

struct ImportRequest {
  std::string model_path;
  std::string model_name;  // for messages; if empty, the path is shown
  std::map<std::string, std::string>
      external;                         // location written in the model → readable file; no other path is opened
  std::map<std::string, int64_t> dims;  // symbolic dimension → extent
  // Dimensions of `dims` whose extent is a bound: inputs may be shorter, and an additional graph input gives the
  // extent.
  std::set<std::string> bounded_dims;
  std::map<std::string, Shape> shapes;            // graph input → shape, instead of the model's
  std::map<std::string, Tensor> constant_inputs;  // graph input → value known at compile time; it is then no input
};

}  // namespace fusion::onnx_import

#endif  // FUSION_COMPILER_ONNX_IMPORT_REQUEST_H_
