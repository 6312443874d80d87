// The weights entry: a safetensors file whose data begins, and whose tensors begin, at multiples of 64 bytes.
#ifndef FUSION_RUNTIME_BUNDLE_SAFETENSORS_H_
#define FUSION_RUNTIME_BUNDLE_SAFETENSORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/bundle/weight_info.h"

namespace fusion {

struct SafetensorsLayout {
  std::string header;            // 8-byte length and padded JSON; a multiple of 64 bytes
  std::vector<int64_t> offsets;  // offset of each tensor from the end of the header
  std::vector<int64_t> sizes_bytes;
  int64_t data_bytes = 0;  // up to the end of the last tensor

  // Pads the header so that the data begins at a multiple of 512 bytes of the file, and so of the memory into which the
  // file is mapped. The header begins at `file_offset`, a multiple of 64.
  void AlignData(int64_t file_offset);
};

// Tensors of 4 KiB and more begin at multiples of 512 bytes of the data, because on some processors kernels that stream
// through weights are up to a fifth slower otherwise. Fails with INTERNAL for a repeated name, INVALID_ARGUMENT for an
// oversized shape.
absl::StatusOr<SafetensorsLayout> LayOutSafetensors(absl::Span<const WeightInfo> weights);

// Returns the data part of a safetensors file. Fails with DATA_LOSS if the header does not fit or leaves the data
// unaligned.
absl::StatusOr<absl::string_view> SafetensorsData(absl::string_view file);

}  // namespace fusion

#endif  // FUSION_RUNTIME_BUNDLE_SAFETENSORS_H_
