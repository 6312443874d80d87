// Many CPUs take a hundred cycles and more each time they read or produce a subnormal number. Such numbers appear where
// nobody intends them: in the exponentials of masked scores, in states that decay.
#ifndef FUSION_RUNTIME_DEVICES_CPU_SUBNORMALS_H_
#define FUSION_RUNTIME_DEVICES_CPU_SUBNORMALS_H_

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace fusion {

enum class Subnormals : uint8_t { kKept, kZero };

// While it lives, subnormal operands and results of this thread count as zero, if the caller asks for it and the CPU
// can do it. Its destructor restores the previous mode.
class ScopedSubnormals {
 public:
  explicit ScopedSubnormals(Subnormals mode) : zero_(mode == Subnormals::kZero) {
    if (!zero_) return;
#if defined(__x86_64__)
    before_ = _mm_getcsr();
    _mm_setcsr(static_cast<unsigned>(before_) | 0x8040);  // flush to zero, denormals are zero
#elif defined(__aarch64__)
    asm volatile("mrs %0, fpcr" : "=r"(before_));
    asm volatile("msr fpcr, %0" : : "r"(before_ | uint64_t{1} << 24));  // FZ
#endif
  }
  ~ScopedSubnormals() {
    if (!zero_) return;
#if defined(__x86_64__)
    _mm_setcsr(static_cast<unsigned>(before_));
#elif defined(__aarch64__)
    asm volatile("msr fpcr, %0" : : "r"(before_));
#endif
  }
  ScopedSubnormals(const ScopedSubnormals&) = delete;
  ScopedSubnormals& operator=(const ScopedSubnormals&) = delete;

 private:
  const bool zero_;
  uint64_t before_ = 0;
};

}  // namespace fusion

#endif  // FUSION_RUNTIME_DEVICES_CPU_SUBNORMALS_H_
