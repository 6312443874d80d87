#include "runtime/bundle/validate_library_call.h"

#include <array>
#include <variant>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

template <typename... Parts>
absl::Status Bad(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("manifest: ", parts...));
}

const Buffer& BufferOf(const ManifestProgram& program, const Launch& launch, int argument) {
  return program.buffers[launch.buffers[argument]];
}

bool Holds(const Buffer& buffer, int64_t elements) { return elements <= buffer.size_bytes / DTypeBytes(buffer.dtype); }

bool IsInt32(int64_t value, int64_t least) { return value >= least && value <= INT32_MAX; }

absl::Status Validate(const ManifestProgram& program, const Launch& launch, const LibraryProduct& product) {
  const auto buffer = [&](int argument) -> const Buffer& { return BufferOf(program, launch, argument); };
  const DType operands = buffer(product.a).dtype, result = buffer(product.d).dtype;
  if ((operands != DType::kF32 && operands != DType::kF16) || buffer(product.b).dtype != operands ||
      (result != DType::kF32 && result != operands) ||
      (product.bias >= 0 && (result != DType::kF32 || buffer(product.bias).dtype != result))) {
    return Bad("a product of ", DTypeName(operands), " into ", DTypeName(result), " is none");
  }
  for (const int64_t extent : {product.m, product.n, product.depth, product.batches}) {
    if (!IsInt32(extent, 1)) return Bad("a product of ", extent, " rows or columns");
  }
  for (const int64_t step :
       {product.a_pitch, product.b_pitch, product.d_pitch, product.a_batch, product.b_batch, product.d_batch}) {
    if (!IsInt32(step, 0)) return Bad("a product whose matrices are ", step, " elements apart");
  }
  // This cannot overflow: each count is a sum of two products below 2^62 and an extent.
  if (!Holds(buffer(product.a), product.a_elements()) || !Holds(buffer(product.b), product.b_elements()) ||
      !Holds(buffer(product.d), product.d_elements()) ||
      (product.bias >= 0 && !Holds(buffer(product.bias), product.m))) {
    return Bad("a product leaves its buffers");
  }
  return absl::OkStatus();
}

// Checks that the distance from the first to the last element along each axis fits 32 bits; then the sum over all axes
// cannot overflow.
bool Spans(const std::array<int64_t, 4>& extents, const std::array<int64_t, 4>& pitch) {
  for (size_t d = 0; d < extents.size(); ++d) {
    if (!IsInt32((extents[d] - 1) * pitch[d], 0)) return false;
  }
  return true;
}

absl::Status Validate(const ManifestProgram& program, const Launch& launch, const LibraryConvolution& c) {
  const auto buffer = [&](int argument) -> const Buffer& { return BufferOf(program, launch, argument); };
  const DType type = buffer(c.x).dtype;
  if ((type != DType::kF32 && type != DType::kF16) || buffer(c.w).dtype != type || buffer(c.y).dtype != type) {
    return Bad("a convolution of ", DTypeName(type), " with ", DTypeName(buffer(c.w).dtype), " into ",
               DTypeName(buffer(c.y).dtype), " is none");
  }
  for (const int64_t extent : {c.images, c.channels, c.results, c.groups, c.in[0], c.in[1], c.taps[0], c.taps[1],
                               c.out[0], c.out[1], c.stride[0], c.stride[1], c.dilation[0], c.dilation[1]}) {
    if (!IsInt32(extent, 1)) return Bad("a convolution of ", extent, " images, channels, rows or columns");
  }
  for (const auto* pitches : {&c.x_pitch, &c.y_pitch}) {
    for (const int64_t pitch : *pitches) {
      if (!IsInt32(pitch, 1)) return Bad("a convolution whose elements are ", pitch, " apart");
    }
  }
  if (c.channels % c.groups != 0 || c.results % c.groups != 0) {
    return Bad("a convolution of ", c.channels, " channels into ", c.results, " in ", c.groups, " groups");
  }
  for (const size_t d : {0, 1}) {
    if (!IsInt32(c.pad[d], 0) || c.in[d] + 2 * c.pad[d] <= c.dilation[d] * (c.taps[d] - 1) || c.OutOf(d) != c.out[d]) {
      return Bad("a convolution of ", c.in[d], " rows or columns with ", c.taps[d], " taps into ", c.out[d]);
    }
  }
  const auto small = [](int64_t a, int64_t b) { return IsInt32(a * b, 1); };
  const bool small_filter = small(c.results, c.channels / c.groups) && small(c.taps[0], c.taps[1]) &&
                            small(c.results * (c.channels / c.groups), c.taps[0] * c.taps[1]);
  if (!small_filter || !Spans(c.x_extents(), c.x_pitch) || !Spans(c.y_extents(), c.y_pitch) ||
      !IsInt32(c.x_elements(), 1) || !IsInt32(c.y_elements(), 1) || !Holds(buffer(c.x), c.x_elements()) ||
      !Holds(buffer(c.w), c.w_elements()) || !Holds(buffer(c.y), c.y_elements())) {
    return Bad("a convolution leaves its buffers");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateLibraryCall(const ManifestProgram& program, const Launch& launch, const LibraryCall& call) {
  LibraryCall copy = call;
  for (const int* argument : ArgumentsOf(copy)) {
    if (*argument < 0 || static_cast<size_t>(*argument) >= launch.buffers.size()) {
      return Bad("a library's call has no argument ", *argument);
    }
  }
  if (BufferOf(program, launch, ResultOf(call)).kind == Buffer::Kind::kConstant) {
    return Bad("a library's call writes a constant");
  }
  return std::visit([&](const auto& one) { return Validate(program, launch, one); }, call);
}

}  // namespace fusion
