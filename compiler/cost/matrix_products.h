// The fragment products that a device has for operands of a type.
#ifndef FUSION_COMPILER_COST_MATRIX_PRODUCTS_H_
#define FUSION_COMPILER_COST_MATRIX_PRODUCTS_H_

#include "compiler/cost/device_model.h"
#include "runtime/base/dtype.h"

namespace fusion {

// Returns the product whose operands lie in registers, or in memory with `from_memory`. Returns null where the device
// has none. For f32 operands it has one only where AllowTf32 made it.
inline const MatrixProduct* FindMatrixProduct(const DeviceModel& device, DType operands, bool from_memory = false) {
  for (const MatrixProduct& product : device.matrix_products) {
    if (product.operands == DTypeName(operands) && product.from_memory == from_memory) return &product;
  }
  return nullptr;
}

// The device as a compilation sees it whose user allows products of f32 to round their operands to tf32, which loses
// bits: fragments of tf32 are fragments of f32. Its fingerprint differs, and so do the keys of measurements.
inline DeviceModel AllowTf32(DeviceModel device) {
  for (MatrixProduct& product : device.matrix_products) {
    if (product.operands == "tf32") product.operands = DTypeName(DType::kF32);
  }
  return device;
}

}  // namespace fusion

#endif  // FUSION_COMPILER_COST_MATRIX_PRODUCTS_H_
