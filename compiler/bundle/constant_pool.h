// ConstantPool: the programs of one bundle share their equal constants.
#ifndef FUSION_COMPILER_BUNDLE_CONSTANT_POOL_H_
#define FUSION_COMPILER_BUNDLE_CONSTANT_POOL_H_

#include <map>
#include <string>

#include "compiler/ecg/graph.h"

namespace fusion {

class ConstantPool {
 public:
  // Returns the same graph, in which a constant that equals one of an earlier graph shares its bytes. So weights exist
  // once, in memory and in the bundle.
  ecg::Graph Share(const ecg::Graph& graph);

 private:
  std::map<std::string, Tensor> tensors_;  // by digest, type and shape
};

}  // namespace fusion

#endif  // FUSION_COMPILER_BUNDLE_CONSTANT_POOL_H_
