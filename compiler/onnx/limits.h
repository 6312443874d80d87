// Limits of what import accepts, so that a hostile file costs no more than its own bytes.
#ifndef FUSION_COMPILER_ONNX_LIMITS_H_
#define FUSION_COMPILER_ONNX_LIMITS_H_

#include <cstdint>

namespace fusion::onnx_import {

inline constexpr int64_t kMaxNodes = 200'000;
inline constexpr int64_t kMaxInlineSteps = 1'000'000;  // nodes of subgraphs and functions, for each inlining
inline constexpr int kMaxInlineDepth = 64;             // nesting of functions and subgraphs
// Memory of the copies of functions that calls make, beyond that of the functions themselves. A call copies its
// attributes to wherever the function refers to them, so that nested calls can double them again and again.
inline constexpr int64_t kMaxFunctionBytes = int64_t{256} << 20;
inline constexpr int kMaxRank = 32;
inline constexpr int64_t kMaxActivationBytes = int64_t{1} << 38;       // all node outputs of a graph together
inline constexpr int64_t kMaxModelFileBytes = (int64_t{1} << 31) - 1;  // the limit of protobuf itself
inline constexpr int kMinOpset = 1, kMaxOpset = 28;

}  // namespace fusion::onnx_import

#endif  // FUSION_COMPILER_ONNX_LIMITS_H_
