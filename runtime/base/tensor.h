// Tensor: a dense row-major array on the host. Shape: its extents in elements; rank 0 is a scalar.
#ifndef FUSION_RUNTIME_BASE_TENSOR_H_
#define FUSION_RUNTIME_BASE_TENSOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/dtype.h"

namespace fusion {

using Shape = std::vector<int64_t>;

// Returns the product of the extents; 1 for a scalar. The caller has checked the product against overflow
// (CheckedSizeBytes).
int64_t NumElements(const Shape& shape);

// Returns the product of the extents times the element size. Fails with INVALID_ARGUMENT if an extent is negative or
// the size exceeds 2^40 bytes.
absl::StatusOr<int64_t> CheckedSizeBytes(const Shape& shape, DType dtype);

std::string ShapeToString(const Shape& shape);  // "[1, 3, 224, 224]"

// A value type. Copies share the bytes, which are immutable once they are shared. The bytes may be borrowed from a
// mapping that `owner` keeps alive.
class Tensor {
 public:
  Tensor() = default;
  // Zero-filled.
  Tensor(DType dtype, Shape shape);
  // Borrows `data`; `owner` keeps it alive (shared because tensors are handed between passes and the bundle writer).
  Tensor(DType dtype, Shape shape, const void* data, std::shared_ptr<const void> owner);

  template <typename T>
  static Tensor From(DType dtype, Shape shape, const std::vector<T>& values);

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t num_elements() const { return NumElements(shape_); }
  int64_t size_bytes() const { return num_elements() * DTypeBytes(dtype_); }
  const void* data() const { return data_; }
  // Call it only on a tensor that was made by the zero-filling constructor and is not yet shared.
  void* mutable_data() { return const_cast<void*>(data_); }
  template <typename T>
  const T* as() const {
    return static_cast<const T*>(data_);
  }
  template <typename T>
  T* mutable_as() {
    return static_cast<T*>(mutable_data());
  }

  // Element `i` in row-major order, converted: floats of every width through double, integers through int64 (u64
  // wraps), bool as 0 or 1. The setters round and wrap to the element type.
  double GetDouble(int64_t i) const;
  int64_t GetInt(int64_t i) const;
  void SetDouble(int64_t i, double value);
  void SetInt(int64_t i, int64_t value);

  // Returns the same bytes under another shape with the same number of elements.
  Tensor Reshaped(Shape shape) const;

 private:
  DType dtype_ = DType::kF32;
  Shape shape_ = {0};
  const void* data_ = nullptr;
  std::shared_ptr<const void> owner_;
};

template <typename T>
Tensor Tensor::From(DType dtype, Shape shape, const std::vector<T>& values) {
  Tensor tensor(dtype, std::move(shape));
  for (size_t i = 0; i < values.size(); ++i) {
    if (IsFloat(dtype)) {
      tensor.SetDouble(static_cast<int64_t>(i), static_cast<double>(values[i]));
    } else {
      tensor.SetInt(static_cast<int64_t>(i), static_cast<int64_t>(values[i]));
    }
  }
  return tensor;
}

}  // namespace fusion

#endif  // FUSION_RUNTIME_BASE_TENSOR_H_
