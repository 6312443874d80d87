// The weights entry: a safetensors file whose data begins, and whose tensors begin, at multiples of 64 bytes.
#ifndef FUSION_RUNTIME_BUNDLE_SAFETENSORS_H_
#define FUSION_RUNTIME_BUNDLE_SAFETENSORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/bundle/bundle_writer.h"

namespace fusion {

struct SafetensorsLayout {
  std::string header;            // 8-byte length and padded JSON; a multiple of 64 bytes
  std::vector<int64_t> offsets;  // of each tensor, from the end of the header
  std::vector<int64_t> sizes_bytes;
  int64_t data_bytes = 0;  // ends with the last tensor

  // Pads the header so that the data begins at a multiple of 512 bytes of a file in which the header begins at
  // `file_offset`, a multiple of 64; and so in memory, where that file is mapped.
  void AlignData(int64_t file_offset);
};

// Tensors of some size begin at multiples of 512 bytes of the data: kernels that stream through weights are up to a
// fifth slower where these begin elsewhere, on some processors. INTERNAL for a repeated name, INVALID_ARGUMENT for an
// oversized shape.
absl::StatusOr<SafetensorsLayout> LayOutSafetensors(absl::Span<const WeightInfo> weights);

// The data part of a safetensors file; DATA_LOSS if its header does not fit or leaves the data unaligned.
absl::StatusOr<absl::string_view> SafetensorsData(absl::string_view file);

}  // namespace fusion

#endif  // FUSION_RUNTIME_BUNDLE_SAFETENSORS_H_
