// Finds the fragment product that a device has for operands of a type.
#ifndef FUSION_COMPILER_COST_MATRIX_PRODUCTS_H_
#define FUSION_COMPILER_COST_MATRIX_PRODUCTS_H_

#include "compiler/cost/device_model.h"
#include "runtime/base/dtype.h"

namespace fusion {

// Returns the product whose operands lie in registers, or in memory with `from_memory`. Returns null where the device
// has none, and for f32 operands unless the user allows tf32, which loses bits.
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
