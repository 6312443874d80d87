#include "runtime/bundle/safetensors.h"

#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/narrow_float.h"
#include "runtime/base/status_macros.h"
#include "runtime/bundle/manifest.h"

namespace fusion {
namespace {

using Json = nlohmann::ordered_json;

// Tensors of at least kLeastStreamBytes, which kernels stream through, begin at multiples of kStreamAlignBytes.
constexpr int64_t kStreamAlignBytes = 512, kLeastStreamBytes = 4096;

int64_t RoundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

Json Entry(absl::string_view dtype, const Shape& shape, int64_t begin, int64_t end) {
  return {{"dtype", std::string(dtype)}, {"shape", shape}, {"data_offsets", {begin, end}}};
}

// Pads the JSON with spaces to `bytes` in all and writes its length in front.
void PadHeader(int64_t bytes, std::string* header) {
  header->resize(bytes, ' ');
  const uint64_t length = bytes - 8;
  std::memcpy(header->data(), &length, 8);
}

}  // namespace

void SafetensorsLayout::AlignData(int64_t file_offset) {
  PadHeader(RoundUp(file_offset + static_cast<int64_t>(header.size()), kStreamAlignBytes) - file_offset, &header);
}

absl::StatusOr<SafetensorsLayout> LayOutSafetensors(absl::Span<const WeightInfo> weights) {
  SafetensorsLayout layout;
  std::set<std::string> names;
  Json json = Json::object();
  // All names are known before the first gap gets one.
  for (const WeightInfo& weight : weights) {
    if (!names.insert(weight.name).second || weight.name == "__metadata__") {
      return absl::InternalError(absl::StrCat("two weights named '", weight.name, "'"));
    }
  }
  int gaps = 0;
  for (const WeightInfo& weight : weights) {
    ASSIGN_OR_RETURN(const int64_t size_bytes, CheckedSizeBytes(weight.shape, weight.dtype));
    // The format forbids bytes that belong to no tensor, so each alignment gap becomes a tensor.
    const int64_t begin =
        RoundUp(layout.data_bytes, size_bytes < kLeastStreamBytes ? kBufferAlignBytes : kStreamAlignBytes);
    if (begin != layout.data_bytes) {
      std::string gap;
      do {
        gap = absl::StrCat("~gap", gaps++);
      } while (!names.insert(gap).second);
      json[gap] = Entry("U8", {begin - layout.data_bytes}, layout.data_bytes, begin);
    }
    // Few other readers know the narrow types. Those readers see the bytes; the manifest has the real type.
    const bool narrow = IsNarrowInt(weight.dtype) || IsByteFloat(weight.dtype);
    const std::string dtype = narrow ? "U8" : absl::AsciiStrToUpper(DTypeName(weight.dtype));
    json[weight.name] = Entry(dtype, weight.shape, begin, begin + size_bytes);
    layout.offsets.push_back(begin);
    layout.sizes_bytes.push_back(size_bytes);
    layout.data_bytes = begin + size_bytes;
  }
  layout.header = std::string(8, '\0') + json.dump(-1, ' ', false, Json::error_handler_t::replace);
  PadHeader(RoundUp(static_cast<int64_t>(layout.header.size()), kBufferAlignBytes), &layout.header);
  return layout;
}

absl::StatusOr<absl::string_view> SafetensorsData(absl::string_view file) {
  uint64_t length = 0;
  if (file.size() < 8) return absl::DataLossError("weights.safetensors is cut off");
  std::memcpy(&length, file.data(), 8);
  if (length > file.size() - 8 || (length + 8) % kBufferAlignBytes != 0) {
    return absl::DataLossError("weights.safetensors has a bad header length");
  }
  return file.substr(8 + length);
}

}  // namespace fusion
