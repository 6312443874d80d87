// WeightInfo: what a bundle's weights entry says of one tensor.
#ifndef FUSION_RUNTIME_BUNDLE_WEIGHT_INFO_H_
#define FUSION_RUNTIME_BUNDLE_WEIGHT_INFO_H_

#include <string>

#include "runtime/base/dtype.h"
#include "runtime/base/tensor.h"

namespace fusion {

struct WeightInfo {
  std::string name;  // unique
  DType dtype = DType::kF32;
  Shape shape;  // the tensor has shape x dtype bytes
};

}  // namespace fusion

#endif  // FUSION_RUNTIME_BUNDLE_WEIGHT_INFO_H_
