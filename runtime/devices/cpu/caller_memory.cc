#include "runtime/devices/cpu/caller_memory.h"

#include <unistd.h>

#include "runtime/bundle/manifest.h"

namespace fusion {
namespace {

uintptr_t Address(const char* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

bool Overlap(const CallerPiece& a, const CallerPiece& b) {
  return a.size_bytes > 0 && b.size_bytes > 0 && Address(a.caller) < Address(b.caller) + b.size_bytes &&
         Address(b.caller) < Address(a.caller) + a.size_bytes;
}

}  // namespace

UsesCaller DecideUses(absl::Span<const CallerPiece> inputs, absl::Span<const CallerPiece> outputs,
                      const char* own_begin, const char* own_end) {
  static const auto page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto fits = [&](const CallerPiece& piece) {
    if (!piece.can_bind || piece.size_bytes == 0 || piece.caller == piece.own) return false;
    const uintptr_t begin = Address(piece.caller), end = begin + piece.size_bytes;
    if (begin % piece.element_bytes != 0) return false;
    if ((end - 1) / page_bytes != (end - 1 + kBufferSlackBytes) / page_bytes) return false;
    return end <= Address(own_begin) || begin >= Address(own_end);
  };
  UsesCaller uses;
  for (const CallerPiece& input : inputs) uses.inputs.push_back(fits(input));
  for (const CallerPiece& output : outputs) uses.outputs.push_back(fits(output));
  for (size_t o = 0; o < outputs.size(); ++o) {
    for (size_t other = 0; other < outputs.size(); ++other) {
      if (other != o && Overlap(outputs[o], outputs[other])) uses.outputs[o] = false;
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!Overlap(inputs[i], outputs[o])) continue;
      if (inputs[i].caller == inputs[i].own) {
        uses.outputs[o] = false;
      } else {
        uses.inputs[i] = false;
      }
    }
  }
  return uses;
}

}  // namespace fusion
