// The model that a compilation reads.
#ifndef FUSION_COMPILER_API_MODEL_FILES_H_
#define FUSION_COMPILER_API_MODEL_FILES_H_

#include <map>
#include <string>

#include "runtime/base/tensor.h"

namespace fusion {

namespace ecg {
class Graph;
}

// The model's files. `external` maps a relative path written in the model to a readable file; a location missing there
// is an INVALID_ARGUMENT that names it. The compiler opens no other path.
struct ModelFiles {
  std::string model_path;
  std::string model_name;  // for messages and the manifest
  std::map<std::string, std::string> external;
  std::map<std::string, Tensor> constant_inputs;  // values of graph inputs that are known now; these stop being inputs
  const ecg::Graph* graph = nullptr;              // an imported graph, instead of files; must outlive the compilation
};

}  // namespace fusion

#endif  // FUSION_COMPILER_API_MODEL_FILES_H_
