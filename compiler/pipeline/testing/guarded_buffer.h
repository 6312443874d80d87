// Memory that exposes every access of a kernel outside its own buffers. Needs only libc, because the emulated host of
// kernels (kernel_host.cc) is built from this header and nothing else.
#ifndef FUSION_COMPILER_PIPELINE_TESTING_GUARDED_BUFFER_H_
#define FUSION_COMPILER_PIPELINE_TESTING_GUARDED_BUFFER_H_

#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/devices/cpu/kernel_abi.h"

namespace fusion::testing {

inline constexpr int64_t kSlackBytes = 64;  // readable after every buffer, never written (kernel_abi.h)

// [bytes][slack], ending at a page that faults. The bytes start at a multiple of 64 and are NaN until written.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(int64_t bytes) : bytes_(bytes) {
    const int64_t page = sysconf(_SC_PAGESIZE);
    const int64_t used = (bytes + 63) / 64 * 64 + kSlackBytes;
    mapped_ = (used + page - 1) / page * page + page;
    base_ = static_cast<char*>(mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base_ == MAP_FAILED) abort();
    data_ = base_ + mapped_ - page - used;
    mprotect(base_ + mapped_ - page, page, PROT_NONE);
    Poison();
  }
  ~GuardedBuffer() { munmap(base_, mapped_); }
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  // All bits set: a NaN of every float type.
  void Poison() { memset(data_, 0xff, bytes_ + kSlackBytes); }
  bool SlackUntouched() const {
    for (int64_t i = bytes_; i < bytes_ + kSlackBytes; ++i) {
      if (static_cast<uint8_t>(data_[i]) != 0xff) return false;
    }
    return true;
  }
  char* data() { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_, mapped_;
  char *base_, *data_;
};

inline sigjmp_buf fault_jump;

// Returns false if the call touched memory outside its buffers.
inline bool CallGuarded(fusion_kernel_phase phase, void* const* args, void* scratch, int64_t begin, int64_t end) {
  struct sigaction action = {}, before_segv, before_bus;
  action.sa_handler = [](int) { siglongjmp(fault_jump, 1); };
  sigaction(SIGSEGV, &action, &before_segv);
  sigaction(SIGBUS, &action, &before_bus);
  const bool ok = sigsetjmp(fault_jump, 1) == 0;
  if (ok) phase(args, scratch, begin, end);
  sigaction(SIGSEGV, &before_segv, nullptr);
  sigaction(SIGBUS, &before_bus, nullptr);
  return ok;
}

}  // namespace fusion::testing

#endif  // FUSION_COMPILER_PIPELINE_TESTING_GUARDED_BUFFER_H_
