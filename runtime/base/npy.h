// NumPy's .npy files, versions 1 and 2: little-endian, row-major, one array. NumPy has no bf16; it is stored as two raw
// bytes (`<V2`), as the ml_dtypes package does. Types narrower than a byte and one-byte floats are stored as the bytes
// that tensors keep (`|i1`, `|u1`) and are read back as i8 or u8, as are the files that ml_dtypes writes for these
// types.
#ifndef FUSION_RUNTIME_BASE_NPY_H_
#define FUSION_RUNTIME_BASE_NPY_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/base/tensor.h"

namespace fusion {

// Fails with INVALID_ARGUMENT for anything but exactly one such array: column-major or big-endian data, other types,
// missing or surplus bytes, or a bool that is neither 0 nor 1.
absl::StatusOr<Tensor> ParseNpy(absl::string_view bytes);
std::string SerializeNpy(const Tensor& tensor);

absl::StatusOr<Tensor> ReadNpyFile(const std::string& path);
absl::Status WriteNpyFile(const std::string& path, const Tensor& tensor);

}  // namespace fusion

#endif  // FUSION_RUNTIME_BASE_NPY_H_
