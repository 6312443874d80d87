#include "compiler/te/interpreter/lane_numbers.h"

#include <cstddef>
#include <iterator>
#include <utility>

#include "compiler/te/interpreter/each_lane.h"
#include "compiler/te/scalar/op_table.h"
#include "runtime/base/narrow_float.h"

namespace fusion::te::lanes {
namespace {

// Returns the kernel of an operation on T (op_values.h), or null.
template <typename T, size_t kOp>
constexpr LaneKernel KernelOn() {
  constexpr const ValueFn<T>& fn = op_table::kRows[kOp].value.template On<T>();
  if constexpr (fn.unary != nullptr) {
    return EachLane<fn.unary>;
  } else if constexpr (fn.binary != nullptr) {
    return EachLane<fn.binary>;
  } else if constexpr (fn.shift != nullptr) {
    return EachLane<fn.shift>;
  } else if constexpr (fn.test != nullptr) {
    return EachLane<fn.test>;
  } else if constexpr (fn.compare != nullptr) {
    return EachLane<fn.compare>;
  } else {
    return nullptr;
  }
}

template <typename T, size_t... kOps>
LaneKernel Find(Op op, std::index_sequence<kOps...>) {
  static constexpr LaneKernel kKernels[] = {KernelOn<T, kOps>()...};
  return kKernels[static_cast<size_t>(op)];
}

template <typename T>
LaneKernel KernelOf(Op op) {
  return Find<T>(op, std::make_index_sequence<std::size(op_table::kRows)>());
}

}  // namespace

LaneKernel OpKernel(Op op, DType dtype) {
  if (IsFloat(dtype)) return KernelOf<double>(op);
  return IsSigned(dtype) ? KernelOf<int64_t>(op) : KernelOf<uint64_t>(op);
}

namespace {

template <DType kType>
LaneKernel RoundToByte() {
  return EachLane<[](double a) {
    return static_cast<double>(NarrowToFloat(kType, FloatToNarrow(kType, static_cast<float>(a))));
  }>;
}

}  // namespace

LaneKernel RoundKernel(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return EachLane<[](double a) { return static_cast<double>(static_cast<float>(a)); }>;
    case DType::kF16:
      return EachLane<[](double a) { return static_cast<double>(HalfToFloat(FloatToHalf(static_cast<float>(a)))); }>;
    case DType::kBF16:
      return EachLane<[](double a) {
        return static_cast<double>(BFloat16ToFloat(FloatToBFloat16(static_cast<float>(a))));
      }>;
    case DType::kF8E4M3FN:
      return RoundToByte<DType::kF8E4M3FN>();
    case DType::kF8E4M3FNUZ:
      return RoundToByte<DType::kF8E4M3FNUZ>();
    case DType::kF8E5M2:
      return RoundToByte<DType::kF8E5M2>();
    case DType::kF8E5M2FNUZ:
      return RoundToByte<DType::kF8E5M2FNUZ>();
    case DType::kF8E8M0:
      return RoundToByte<DType::kF8E8M0>();
    case DType::kF6E2M3:
      return RoundToByte<DType::kF6E2M3>();
    case DType::kF6E3M2:
      return RoundToByte<DType::kF6E3M2>();
    case DType::kF4E2M1:
      return RoundToByte<DType::kF4E2M1>();
    default:
      return nullptr;
  }
}

LaneKernel WrapKernel(DType dtype) {
  switch (dtype) {
    case DType::kI8:
      return EachLane<[](int64_t a) { return static_cast<int64_t>(static_cast<int8_t>(a)); }>;
    case DType::kI16:
      return EachLane<[](int64_t a) { return static_cast<int64_t>(static_cast<int16_t>(a)); }>;
    case DType::kI32:
      return EachLane<[](int64_t a) { return static_cast<int64_t>(static_cast<int32_t>(a)); }>;
    case DType::kU8:
      return EachLane<[](int64_t a) { return a & 0xff; }>;
    case DType::kU16:
      return EachLane<[](int64_t a) { return a & 0xffff; }>;
    case DType::kU32:
      return EachLane<[](int64_t a) { return a & 0xffffffff; }>;
    case DType::kBool:
      return EachLane<[](int64_t a) { return static_cast<int64_t>(a != 0); }>;
    case DType::kI4:
      return EachLane<[](int64_t a) { return WrapNarrowInt(DType::kI4, a); }>;
    case DType::kU4:
      return EachLane<[](int64_t a) { return a & 15; }>;
    case DType::kI2:
      return EachLane<[](int64_t a) { return WrapNarrowInt(DType::kI2, a); }>;
    case DType::kU2:
      return EachLane<[](int64_t a) { return a & 3; }>;
    default:
      return nullptr;
  }
}

LaneKernel DoubleToIntKernel(DType dtype) {
  if (dtype == DType::kBool) return EachLane<[](double a) { return static_cast<int64_t>(a != 0); }>;
  return dtype == DType::kU64 ? EachLane<SaturateToInt<true>> : EachLane<SaturateToInt<false>>;
}

LaneKernel IntToFloatKernel(DType from, DType to) {
  if (to == DType::kF64) {
    if (from == DType::kU64) return EachLane<[](int64_t a) { return static_cast<double>(Unsigned(a)); }>;
    return EachLane<[](int64_t a) { return static_cast<double>(a); }>;
  }
  if (from == DType::kU64) {
    return EachLane<[](int64_t a) { return static_cast<double>(static_cast<float>(Unsigned(a))); }>;
  }
  return EachLane<[](int64_t a) { return static_cast<double>(static_cast<float>(a)); }>;
}

}  // namespace fusion::te::lanes
