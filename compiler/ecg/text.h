// Declarations that the printer and the parser of the graph's text form share.
#ifndef FUSION_COMPILER_ECG_TEXT_H_
#define FUSION_COMPILER_ECG_TEXT_H_

#include <cstdint>

#include "absl/strings/ascii.h"
#include "runtime/base/tensor.h"

namespace fusion::ecg {

inline constexpr int64_t kMaxPrintedElements = 16;

inline bool IsIdentifierChar(char c) { return absl::ascii_isalnum(c) || c == '_' || c == '.'; }

// The number in `const #…`: the 8 bytes that fill the tensor, else a digest of its bytes (graph.h, Print).
uint64_t ConstantDigest(const Tensor& tensor);

}  // namespace fusion::ecg

#endif  // FUSION_COMPILER_ECG_TEXT_H_
