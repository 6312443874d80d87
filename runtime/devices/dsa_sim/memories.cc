#include "runtime/devices/dsa_sim/memories.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace fusion::dsa {
namespace {

std::tuple<int, int, int> Key(const Buffer& buffer) {
  return {static_cast<int>(buffer.memory.level), buffer.memory.place.cluster, buffer.memory.place.core};
}

// Calls `visit(first, row)` for rows of the slice, in the order of its indices. Strides that continue each other are
// one, so that rows are long.
template <typename Visit>
void VisitRows(const Slice& slice, const Visit& visit) {
  std::vector<Stride> strides;
  for (const Stride& stride : slice.strides) {
    if (stride.count == 1) continue;
    if (!strides.empty() && strides.back().stride == stride.count * stride.stride) {
      strides.back() = {strides.back().count * stride.count, stride.stride};
    } else {
      strides.push_back(stride);
    }
  }
  Stride row;
  if (!strides.empty()) {
    row = strides.back();
    strides.pop_back();
  }
  std::vector<int64_t> at(strides.size(), 0);
  int64_t first = slice.first;
  while (true) {
    visit(first, row);
    size_t k = strides.size();
    while (k-- > 0) {
      first += strides[k].stride;
      if (++at[k] < strides[k].count) break;
      first -= strides[k].count * strides[k].stride;
      at[k] = 0;
    }
    if (k == static_cast<size_t>(-1)) return;
  }
}

// The buffer's element as a float, and back.
template <DType kType>
float Load(const uint8_t* at) {
  if constexpr (kType == DType::kF32) {
    float value;
    std::memcpy(&value, at, sizeof(value));
    return value;
  } else {
    uint16_t bits;
    std::memcpy(&bits, at, sizeof(bits));
    return kType == DType::kF16 ? HalfToFloat(bits) : BFloat16ToFloat(bits);
  }
}

template <DType kType>
void Store(float value, uint8_t* at) {
  if constexpr (kType == DType::kF32) {
    std::memcpy(at, &value, sizeof(value));
  } else {
    const uint16_t bits = kType == DType::kF16 ? FloatToHalf(value) : FloatToBFloat16(value);
    std::memcpy(at, &bits, sizeof(bits));
  }
}

template <DType kType>
constexpr int64_t kWidth = kType == DType::kF32 ? 4 : 2;

template <DType kType>
void ReadRows(const Slice& slice, const uint8_t* base, float* to) {
  VisitRows(slice, [&](int64_t first, const Stride& row) {
    if (row.count == 0) return;
    const uint8_t* from = base + first * kWidth<kType>;
    if (kType == DType::kF32 && row.stride == 1) {
      std::memcpy(to, from, static_cast<size_t>(row.count) * sizeof(float));
      to += row.count;
      return;
    }
    for (int64_t i = 0; i < row.count; ++i, from += row.stride * kWidth<kType>) *to++ = Load<kType>(from);
  });
}

template <DType kType>
void WriteRows(const Slice& slice, const float* from, uint8_t* base) {
  VisitRows(slice, [&](int64_t first, const Stride& row) {
    if (row.count == 0) return;
    uint8_t* to = base + first * kWidth<kType>;
    if (kType == DType::kF32 && row.stride == 1) {
      std::memcpy(to, from, static_cast<size_t>(row.count) * sizeof(float));
      from += row.count;
      return;
    }
    for (int64_t i = 0; i < row.count; ++i, to += row.stride * kWidth<kType>) Store<kType>(*from++, to);
  });
}

}  // namespace

Memories::Memories(const Program& program) : program_(program) {
  for (const Buffer& buffer : program.buffers) {
    std::vector<uint8_t>& bytes = bytes_[Key(buffer)];
    bytes.resize(std::max<size_t>(bytes.size(), buffer.offset_bytes + buffer.size_bytes()));
  }
  for (const Buffer& buffer : program.buffers) base_.push_back(bytes_[Key(buffer)].data() + buffer.offset_bytes);
}

float Memories::Get(int buffer, int64_t element) const {
  switch (program_.buffers[buffer].dtype) {
    case DType::kF16:
      return Load<DType::kF16>(base_[buffer] + 2 * element);
    case DType::kBF16:
      return Load<DType::kBF16>(base_[buffer] + 2 * element);
    default:
      return Load<DType::kF32>(base_[buffer] + 4 * element);
  }
}

void Memories::Set(int buffer, int64_t element, float value) {
  switch (program_.buffers[buffer].dtype) {
    case DType::kF16:
      return Store<DType::kF16>(value, base_[buffer] + 2 * element);
    case DType::kBF16:
      return Store<DType::kBF16>(value, base_[buffer] + 2 * element);
    default:
      return Store<DType::kF32>(value, base_[buffer] + 4 * element);
  }
}

void Memories::Read(const Slice& slice, std::vector<float>* values) const {
  values->resize(static_cast<size_t>(slice.elements()));
  switch (program_.buffers[slice.buffer].dtype) {
    case DType::kF16:
      return ReadRows<DType::kF16>(slice, base_[slice.buffer], values->data());
    case DType::kBF16:
      return ReadRows<DType::kBF16>(slice, base_[slice.buffer], values->data());
    default:
      return ReadRows<DType::kF32>(slice, base_[slice.buffer], values->data());
  }
}

void Memories::Write(const Slice& slice, const std::vector<float>& values) {
  switch (program_.buffers[slice.buffer].dtype) {
    case DType::kF16:
      return WriteRows<DType::kF16>(slice, values.data(), base_[slice.buffer]);
    case DType::kBF16:
      return WriteRows<DType::kBF16>(slice, values.data(), base_[slice.buffer]);
    default:
      return WriteRows<DType::kF32>(slice, values.data(), base_[slice.buffer]);
  }
}

}  // namespace fusion::dsa
