// How far apart buffers of one block of memory begin.
#ifndef FUSION_RUNTIME_BUNDLE_BUFFER_FOOTPRINT_H_
#define FUSION_RUNTIME_BUNDLE_BUFFER_FOOTPRINT_H_

#include <cstdint>

#include "runtime/bundle/manifest.h"

namespace fusion {

// Processors compare the low 12 bits of addresses to find out whether a load needs a store that is still under way. A
// kernel that reads one buffer and writes another waits for its own stores in vain where the second begins just behind
// the first within a page, and tensors are often whole pages: 4 MiB from cache to cache took 1.5 to 1.8 times as long.
inline constexpr int64_t kStoreMatchBytes = 4096;
// Large buffers that follow each other begin so far apart within that distance. Each of eight in a row begins at least
// 512 bytes behind and 192 bytes ahead of every earlier one.
inline constexpr int64_t kStaggerBytes = 1600;
// Smaller buffers are not worth up to kStoreMatchBytes of padding.
inline constexpr int64_t kLeastStaggeredBytes = 64 << 10;

// Bytes from the beginning of a buffer of `size_bytes` to where the next one may begin: its slack is included. A
// multiple of kBufferAlignBytes.
inline int64_t BufferFootprint(int64_t size_bytes) {
  const auto round_up = [](int64_t bytes, int64_t to) { return (bytes + to - 1) / to * to; };
  const int64_t bytes = size_bytes + kBufferSlackBytes;
  if (size_bytes < kLeastStaggeredBytes) return round_up(bytes, kBufferAlignBytes);
  return round_up(bytes - kStaggerBytes, kStoreMatchBytes) + kStaggerBytes;
}

}  // namespace fusion

#endif  // FUSION_RUNTIME_BUNDLE_BUFFER_FOOTPRINT_H_
