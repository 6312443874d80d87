#include "runtime/base/tensor.h"

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/narrow_float.h"

namespace fusion {
namespace {

constexpr int64_t kMaxTensorBytes = int64_t{1} << 40;
constexpr size_t kAlignBytes = 64;

// Out-of-range conversions saturate instead of being undefined; NaN becomes 0.
int64_t DoubleToInt(double value) {
  if (std::isnan(value)) return 0;
  if (value >= 9223372036854775807.0) return INT64_MAX;
  if (value <= -9223372036854775808.0) return INT64_MIN;
  return static_cast<int64_t>(value);
}

}  // namespace

int64_t NumElements(const Shape& shape) {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

absl::StatusOr<int64_t> CheckedSizeBytes(const Shape& shape, DType dtype) {
  int64_t bytes = DTypeBytes(dtype);
  bool empty = false;
  for (int64_t extent : shape) {
    if (extent < 0) return absl::InvalidArgumentError(absl::StrCat("negative extent in shape ", ShapeToString(shape)));
    empty = empty || extent == 0;
  }
  if (empty) return 0;
  for (int64_t extent : shape) {
    if (extent > kMaxTensorBytes / bytes) {
      return absl::InvalidArgumentError(absl::StrCat("a tensor of shape ", ShapeToString(shape), " and type ",
                                                     DTypeName(dtype), " exceeds the limit of 1 TiB"));
    }
    bytes *= extent;
  }
  return bytes;
}

std::string ShapeToString(const Shape& shape) { return absl::StrCat("[", absl::StrJoin(shape, ", "), "]"); }

Tensor::Tensor(DType dtype, Shape shape) : dtype_(dtype), shape_(std::move(shape)) {
  const size_t bytes = static_cast<size_t>(size_bytes());
  const size_t rounded = (bytes + kAlignBytes - 1) / kAlignBytes * kAlignBytes;
  void* data = std::aligned_alloc(kAlignBytes, rounded == 0 ? kAlignBytes : rounded);
  if (data != nullptr) std::memset(data, 0, rounded);
  data_ = data;
  owner_ = std::shared_ptr<const void>(data, [](const void* p) { std::free(const_cast<void*>(p)); });
}

Tensor::Tensor(DType dtype, Shape shape, const void* data, std::shared_ptr<const void> owner)
    : dtype_(dtype), shape_(std::move(shape)), data_(data), owner_(std::move(owner)) {}

double Tensor::GetDouble(int64_t i) const {
  switch (dtype_) {
    case DType::kF32:
      return as<float>()[i];
    case DType::kF64:
      return as<double>()[i];
    case DType::kF16:
      return HalfToFloat(as<uint16_t>()[i]);
    case DType::kBF16:
      return BFloat16ToFloat(as<uint16_t>()[i]);
    case DType::kU64:
      return static_cast<double>(as<uint64_t>()[i]);
    default:
      if (IsByteFloat(dtype_)) return NarrowToFloat(dtype_, as<uint8_t>()[i]);
      return static_cast<double>(GetInt(i));
  }
}

int64_t Tensor::GetInt(int64_t i) const {
  switch (dtype_) {
    case DType::kI8:
    case DType::kI4:
    case DType::kI2:
      return as<int8_t>()[i];
    case DType::kI16:
      return as<int16_t>()[i];
    case DType::kI32:
      return as<int32_t>()[i];
    case DType::kI64:
      return as<int64_t>()[i];
    case DType::kU8:
    case DType::kU4:
    case DType::kU2:
      return as<uint8_t>()[i];
    case DType::kU16:
      return as<uint16_t>()[i];
    case DType::kU32:
      return as<uint32_t>()[i];
    case DType::kU64:
      return static_cast<int64_t>(as<uint64_t>()[i]);
    case DType::kBool:
      return as<uint8_t>()[i] != 0;
    default:
      return DoubleToInt(GetDouble(i));
  }
}

void Tensor::SetDouble(int64_t i, double value) {
  switch (dtype_) {
    case DType::kF32:
      mutable_as<float>()[i] = static_cast<float>(value);
      return;
    case DType::kF64:
      mutable_as<double>()[i] = value;
      return;
    case DType::kF16:
      mutable_as<uint16_t>()[i] = FloatToHalf(static_cast<float>(value));
      return;
    case DType::kBF16:
      mutable_as<uint16_t>()[i] = FloatToBFloat16(static_cast<float>(value));
      return;
    case DType::kBool:
      mutable_as<uint8_t>()[i] = value != 0;
      return;
    default:
      if (IsByteFloat(dtype_)) {
        mutable_as<uint8_t>()[i] = FloatToNarrow(dtype_, static_cast<float>(value));
      } else {
        SetInt(i, DoubleToInt(value));
      }
      return;
  }
}

void Tensor::SetInt(int64_t i, int64_t value) {
  switch (dtype_) {
    case DType::kI8:
    case DType::kU8:
      mutable_as<uint8_t>()[i] = static_cast<uint8_t>(value);
      return;
    case DType::kI16:
    case DType::kU16:
      mutable_as<uint16_t>()[i] = static_cast<uint16_t>(value);
      return;
    case DType::kI32:
    case DType::kU32:
      mutable_as<uint32_t>()[i] = static_cast<uint32_t>(value);
      return;
    case DType::kI64:
    case DType::kU64:
      mutable_as<uint64_t>()[i] = static_cast<uint64_t>(value);
      return;
    case DType::kBool:
      mutable_as<uint8_t>()[i] = value != 0;
      return;
    case DType::kI4:
    case DType::kU4:
    case DType::kI2:
    case DType::kU2:
      mutable_as<uint8_t>()[i] = static_cast<uint8_t>(WrapNarrowInt(dtype_, value));
      return;
    default:
      SetDouble(i, static_cast<double>(value));
      return;
  }
}

Tensor Tensor::Reshaped(Shape shape) const {
  Tensor result = *this;
  result.shape_ = std::move(shape);
  return result;
}

}  // namespace fusion
