#include "worker/measure/cache_flush.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace fusion {

void FlushFromCaches(const void* data, int64_t size_bytes) {
  constexpr int64_t kLineBytes = 64;
  const char* begin = static_cast<const char*>(data);
  for (int64_t offset = 0; offset < size_bytes; offset += kLineBytes) {
#if defined(__x86_64__)
    _mm_clflush(begin + offset);
#elif defined(__aarch64__)
    asm volatile("dc civac, %0" : : "r"(begin + offset) : "memory");
#endif
  }
#if defined(__x86_64__)
  _mm_mfence();
#elif defined(__aarch64__)
  asm volatile("dsb sy" : : : "memory");
#endif
}

}  // namespace fusion
