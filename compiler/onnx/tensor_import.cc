#include "compiler/onnx/tensor_import.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler/onnx/limits.h"
#include "compiler/ops/registry/onnx_dtype.h"
#include "onnx/onnx_pb.h"
#include "runtime/base/narrow_float.h"
#include "runtime/base/status_macros.h"

namespace fusion::onnx_import {
namespace {

absl::Status SizeMismatch(const std::string& what, DType dtype, const Shape& shape, int64_t needed, int64_t stored,
                          const char* unit) {
  return absl::InvalidArgumentError(absl::StrCat(what, ": ", DTypeName(dtype), ShapeToString(shape), " needs ", needed,
                                                 " ", unit, ", the model stores ", stored));
}

// Returns the bytes that elements occupy in a model, where elements of fewer bits than a byte are packed.
int64_t PackedBytes(int64_t elements, DType dtype) {
  const int bits = DTypeBits(dtype);
  return bits >= 8 ? elements * DTypeBytes(dtype) : (elements * bits + 7) / 8;
}

// Unpacks elements of fewer than 8 bits, of which the first lies in the lowest bits of `packed`, to one per byte.
Tensor Unpacked(DType dtype, Shape shape, const uint8_t* packed) {
  Tensor tensor(dtype, std::move(shape));
  const int bits = DTypeBits(dtype);
  const int64_t count = tensor.num_elements(), bytes = PackedBytes(count, dtype);
  auto* out = tensor.mutable_as<uint8_t>();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t byte = i * bits / 8;
    const unsigned next = byte + 1 < bytes ? packed[byte + 1] : 0;
    const unsigned code = ((packed[byte] | next << 8) >> (i * bits % 8)) & ((1u << bits) - 1);
    out[i] = static_cast<uint8_t>(IsFloat(dtype) ? code : WrapNarrowInt(dtype, code));
  }
  return tensor;
}

template <typename T, typename Field>
Tensor Narrowed(DType dtype, Shape shape, const Field& field) {
  Tensor tensor(dtype, std::move(shape));
  T* out = tensor.mutable_as<T>();
  for (int i = 0; i < field.size(); ++i) out[i] = static_cast<T>(field.Get(i));
  return tensor;
}

absl::StatusOr<Tensor> FromTypedFields(const onnx::TensorProto& proto, DType dtype, Shape shape,
                                       const std::string& what) {
  // Elements of four and of two bits are packed into the bytes of this field, too; those of six bits are not.
  const bool packed = DTypeBits(dtype) < 6;
  const int64_t needed = packed ? PackedBytes(NumElements(shape), dtype) : NumElements(shape);
  auto stored = [&]() -> int64_t {
    switch (dtype) {
      case DType::kF32:
        return proto.float_data_size();
      case DType::kF64:
        return proto.double_data_size();
      case DType::kI64:
        return proto.int64_data_size();
      case DType::kU32:
      case DType::kU64:
        return proto.uint64_data_size();
      default:
        return proto.int32_data_size();
    }
  }();
  if (stored != needed) return SizeMismatch(what, dtype, shape, needed, stored, packed ? "bytes" : "elements");
  if (packed) {
    const std::string bytes(proto.int32_data().begin(), proto.int32_data().end());
    return Unpacked(dtype, std::move(shape), reinterpret_cast<const uint8_t*>(bytes.data()));
  }
  switch (dtype) {
    case DType::kF32:
      return Narrowed<float>(dtype, std::move(shape), proto.float_data());
    case DType::kF64:
      return Narrowed<double>(dtype, std::move(shape), proto.double_data());
    case DType::kI64:
      return Narrowed<int64_t>(dtype, std::move(shape), proto.int64_data());
    case DType::kU32:
      return Narrowed<uint32_t>(dtype, std::move(shape), proto.uint64_data());
    case DType::kU64:
      return Narrowed<uint64_t>(dtype, std::move(shape), proto.uint64_data());
    case DType::kI32:
      return Narrowed<int32_t>(dtype, std::move(shape), proto.int32_data());
    case DType::kBool:
      return Narrowed<bool>(dtype, std::move(shape), proto.int32_data());
    case DType::kI8:
    case DType::kU8:
      return Narrowed<uint8_t>(dtype, std::move(shape), proto.int32_data());
    case DType::kI16:
    case DType::kU16:
    case DType::kF16:
    case DType::kBF16:
      return Narrowed<uint16_t>(dtype, std::move(shape), proto.int32_data());
    default:
      break;
  }
  if (IsByteFloat(dtype)) return Narrowed<uint8_t>(dtype, std::move(shape), proto.int32_data());
  return absl::InternalError("no such element type");
}

// Returns bytes as a tensor: borrowed when aligned for the element type, else copied. Booleans become 0 or 1, as a
// Tensor requires; elements smaller than a byte are unpacked.
Tensor FromBytes(DType dtype, Shape shape, const char* data, std::shared_ptr<const void> owner) {
  if (DTypeBits(dtype) < 8) return Unpacked(dtype, std::move(shape), reinterpret_cast<const uint8_t*>(data));
  const auto alignment = static_cast<uintptr_t>(DTypeBytes(dtype));
  const bool aligned = reinterpret_cast<uintptr_t>(data) % alignment == 0;
  if (aligned && dtype != DType::kBool) return Tensor(dtype, std::move(shape), data, std::move(owner));
  Tensor tensor(dtype, std::move(shape));
  const int64_t bytes = tensor.size_bytes();
  if (bytes > 0) std::memcpy(tensor.mutable_data(), data, static_cast<size_t>(bytes));
  if (dtype == DType::kBool) {
    for (int64_t i = 0; i < bytes; ++i) tensor.mutable_as<uint8_t>()[i] = tensor.as<uint8_t>()[i] != 0;
  }
  return tensor;
}

absl::StatusOr<Tensor> FromExternal(const onnx::TensorProto& proto, DType dtype, Shape shape, int64_t bytes,
                                    const std::string& what, ExternalFiles* files) {
  std::string location;
  int64_t offset = 0, length = -1;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") location = entry.value();
    int64_t* number = entry.key() == "offset" ? &offset : entry.key() == "length" ? &length : nullptr;
    if (number != nullptr && (!absl::SimpleAtoi(entry.value(), number) || *number < 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": external data with ", entry.key(), " ", Quoted(entry.value())));
    }
  }
  if (files == nullptr) return absl::InvalidArgumentError(absl::StrCat(what, ": external data is not possible here"));
  auto mapping = files->Open(location);
  if (!mapping.ok()) return Annotate(mapping.status(), what);
  if (length >= 0 && length != bytes) return SizeMismatch(what, dtype, shape, bytes, length, "bytes");
  if (offset > mapping->size_bytes || bytes > mapping->size_bytes - offset) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": ", bytes, " bytes from offset ", offset,
                                                   " of external file ", Quoted(location), " are needed, the file has ",
                                                   mapping->size_bytes));
  }
  return FromBytes(dtype, std::move(shape), mapping->data + offset, mapping->owner);
}

}  // namespace

absl::StatusOr<DType> DTypeFromOnnx(int data_type) {
  if (data_type == onnx::TensorProto::UNDEFINED) return absl::InvalidArgumentError("element type is missing");
  if (const std::optional<DType> dtype = ops::DTypeFromOnnx(data_type)) return *dtype;
  const std::string& name = onnx::TensorProto::DataType_Name(static_cast<onnx::TensorProto::DataType>(data_type));
  return absl::UnimplementedError(
      absl::StrCat("element type ", name.empty() ? absl::StrCat("number ", data_type) : name, " is not supported"));
}

std::string Quoted(const std::string& name) { return absl::StrCat("\"", absl::Utf8SafeCHexEscape(name), "\""); }

absl::StatusOr<ExternalFiles::Mapping> ExternalFiles::Open(const std::string& location) {
  if (auto it = open_.find(location); it != open_.end()) return it->second;
  auto path = paths_->find(location);
  if (path == paths_->end()) {
    return absl::InvalidArgumentError(absl::StrCat("external data file ", Quoted(location),
                                                   " was not given; it must lie beneath the model's folder"));
  }
  const int fd = open(path->second.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info {};
  if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    if (fd >= 0) close(fd);
    return absl::InvalidArgumentError(absl::StrCat("external data file ", Quoted(location), " cannot be read"));
  }
  Mapping mapping;
  mapping.size_bytes = info.st_size;
  if (info.st_size > 0) {
    const auto size = static_cast<size_t>(info.st_size);
    void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
      close(fd);
      return absl::ResourceExhaustedError(absl::StrCat("external data file ", Quoted(location), " cannot be mapped"));
    }
    mapping.data = static_cast<const char*>(data);
    mapping.owner = std::shared_ptr<const void>(data, [size](const void* p) { munmap(const_cast<void*>(p), size); });
  }
  close(fd);
  return open_[location] = mapping;
}

absl::StatusOr<Tensor> TakeTensor(onnx::TensorProto* proto, const std::string& what, ExternalFiles* files) {
  auto dtype = DTypeFromOnnx(proto->data_type());
  if (!dtype.ok()) return Annotate(dtype.status(), what);
  if (proto->dims_size() > kMaxRank) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": rank ", proto->dims_size(), " exceeds ", kMaxRank));
  }
  Shape shape(proto->dims().begin(), proto->dims().end());
  auto kept = CheckedSizeBytes(shape, *dtype);
  if (!kept.ok()) return Annotate(kept.status(), what);
  const int64_t bytes = PackedBytes(*kept / DTypeBytes(*dtype), *dtype);
  if (proto->data_location() == onnx::TensorProto::EXTERNAL) {
    return FromExternal(*proto, *dtype, std::move(shape), bytes, what, files);
  }
  if (!proto->has_raw_data() || (proto->raw_data().empty() && bytes > 0)) {
    ASSIGN_OR_RETURN(Tensor tensor, FromTypedFields(*proto, *dtype, std::move(shape), what));
    proto->Clear();
    return tensor;
  }
  if (static_cast<int64_t>(proto->raw_data().size()) != bytes) {
    return SizeMismatch(what, *dtype, shape, bytes, static_cast<int64_t>(proto->raw_data().size()), "bytes");
  }
  // Shared, because a constant passes between passes and the bundle writer. The string itself is the owner.
  std::shared_ptr<const std::string> raw(proto->release_raw_data());
  return FromBytes(*dtype, std::move(shape), raw->data(), raw);
}

}  // namespace fusion::onnx_import
