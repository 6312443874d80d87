// Which of the pointers that a caller brings to a run the kernels may use themselves, so that nothing is copied.
#ifndef FUSION_RUNTIME_DEVICES_CPU_CALLER_MEMORY_H_
#define FUSION_RUNTIME_DEVICES_CPU_CALLER_MEMORY_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace fusion {

// An input or output of one run. Ranges are in bytes and half-open.
struct CallerPiece {
  const char* caller = nullptr;  // where the caller has it, or wants it
  const char* own = nullptr;     // where the executable has room for it
  int64_t size_bytes = 0;
  int64_t element_bytes = 1;
  bool can_bind = true;  // kernels know it as a buffer of exactly this size, and no earlier piece is that buffer
};

struct UsesCaller {
  std::vector<bool> inputs, outputs;  // true: kernels get `caller`, else `own`
};

// A caller's memory is used where
// - it begins at a multiple of its element, which is all that loads and stores ask for;
// - kBufferSlackBytes behind its end lie in the same page as its last byte, since kernels may read them;
// - it has nothing to do with the executable's own memory [own_begin, own_end);
// - no other output overlaps it. Inputs may overlap each other: they are only read. An input that overlaps an output is
//   copied, unless it is the executable's own memory: then the output is.
UsesCaller DecideUses(absl::Span<const CallerPiece> inputs, absl::Span<const CallerPiece> outputs,
                      const char* own_begin, const char* own_end);

}  // namespace fusion

#endif  // FUSION_RUNTIME_DEVICES_CPU_CALLER_MEMORY_H_
