// Decides which pointers that a caller passes to a run the kernels may use directly, so that nothing is copied.
#ifndef FUSION_RUNTIME_DEVICES_CPU_CALLER_MEMORY_H_
#define FUSION_RUNTIME_DEVICES_CPU_CALLER_MEMORY_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace fusion {

// An input or output of one run. Ranges are in bytes and half-open.
struct CallerPiece {
  const char* caller = nullptr;  // where the caller's data lies, or shall be written
  const char* own = nullptr;     // the executable's own memory for it
  int64_t size_bytes = 0;
  int64_t element_bytes = 1;
  bool can_bind = true;  // kernels know it as a buffer of exactly this size, and no earlier piece is that buffer
};

struct UsesCaller {
  std::vector<bool> inputs, outputs;  // true: kernels get `caller`, else `own`
};

// The kernels use a caller's memory if
// - it begins at a multiple of its element's size, which is all that loads and stores require;
// - kBufferSlackBytes behind its end lie in the same page as its last byte, since kernels may read them;
// - it does not overlap the executable's own memory [own_begin, own_end);
// - no other output overlaps it. Inputs may overlap each other, because they are only read. If an input overlaps an
//   output, the input is copied; if that input lies in the executable's own memory, the output is copied instead.
UsesCaller DecideUses(absl::Span<const CallerPiece> inputs, absl::Span<const CallerPiece> outputs,
                      const char* own_begin, const char* own_end);

}  // namespace fusion

#endif  // FUSION_RUNTIME_DEVICES_CPU_CALLER_MEMORY_H_
