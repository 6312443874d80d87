// ConstantPool: equal constants of the specialisations of a model become one.
#ifndef FUSION_COMPILER_PIPELINE_CONSTANT_POOL_H_
#define FUSION_COMPILER_PIPELINE_CONSTANT_POOL_H_

#include <map>
#include <string>

#include "compiler/ecg/graph.h"

namespace fusion {

class ConstantPool {
 public:
  // The same graph; constants that equal one of an earlier graph share its bytes, so that weights are in memory, and in
  // the bundle, once.
  ecg::Graph Share(const ecg::Graph& graph);

 private:
  std::map<std::string, Tensor> tensors_;  // by digest, type and shape
};

}  // namespace fusion

#endif  // FUSION_COMPILER_PIPELINE_CONSTANT_POOL_H_
