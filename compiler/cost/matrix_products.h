// Which products of fragments a device has for operands of a type.
#ifndef FUSION_COMPILER_COST_MATRIX_PRODUCTS_H_
#define FUSION_COMPILER_COST_MATRIX_PRODUCTS_H_

#include "compiler/cost/device_model.h"
#include "runtime/base/dtype.h"

namespace fusion {

// Of operands in registers, or `from_memory`. Null where there is none, or where f32 would lose bits that nobody gave
// up.
inline const MatrixProduct* FindMatrixProduct(const DeviceModel& device, DType operands, bool from_memory = false) {
  if (operands != DType::kF16 && !(operands == DType::kF32 && device.tf32)) return nullptr;
  for (const MatrixProduct& product : device.matrix_products) {
    const bool type = product.operands == (operands == DType::kF16 ? "f16" : "tf32");
    if (type && product.from_memory == from_memory) return &product;
  }
  return nullptr;
}

}  // namespace fusion

#endif  // FUSION_COMPILER_COST_MATRIX_PRODUCTS_H_
