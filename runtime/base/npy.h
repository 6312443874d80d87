// NumPy's .npy files, versions 1 and 2: little-endian, row-major, one array. bf16, which NumPy lacks, is stored as two
// raw bytes (`<V2`), as the ml_dtypes package does. Types narrower than a byte, and floats of a byte, are stored as the
// bytes that tensors keep (`|i1`, `|u1`) and read as i8 or u8; so are the files that ml_dtypes writes of them.
#ifndef FUSION_RUNTIME_BASE_NPY_H_
#define FUSION_RUNTIME_BASE_NPY_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/base/tensor.h"

namespace fusion {

// INVALID_ARGUMENT for anything else than exactly one such array: column-major, big-endian, other types, missing or
// surplus bytes, a bool that is neither 0 nor 1.
absl::StatusOr<Tensor> ParseNpy(absl::string_view bytes);
std::string SerializeNpy(const Tensor& tensor);

absl::StatusOr<Tensor> ReadNpyFile(const std::string& path);
absl::Status WriteNpyFile(const std::string& path, const Tensor& tensor);

}  // namespace fusion

#endif  // FUSION_RUNTIME_BASE_NPY_H_
