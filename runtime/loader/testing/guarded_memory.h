// A caller's memory that reveals any access of a run beside it.
#ifndef FUSION_RUNTIME_LOADER_TESTING_GUARDED_MEMORY_H_
#define FUSION_RUNTIME_LOADER_TESTING_GUARDED_MEMORY_H_

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace fusion {

// `size_bytes` bytes that end `gap_bytes` before a page whose access faults. All bytes are 0xff at first, which is a
// NaN in every float type.
class GuardedMemory {
 public:
  GuardedMemory(int64_t size_bytes, int64_t gap_bytes) : size_bytes_(size_bytes) {
    const int64_t page = sysconf(_SC_PAGESIZE);
    const int64_t usable = (size_bytes + gap_bytes + page - 1) / page * page;
    mapped_bytes_ = usable + page;
    base_ = static_cast<char*>(
        mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base_ == MAP_FAILED || mprotect(base_ + usable, page, PROT_NONE) != 0) std::abort();
    end_ = base_ + usable;
    data_ = end_ - gap_bytes - size_bytes;
    std::memset(base_, 0xff, usable);
  }
  ~GuardedMemory() { munmap(base_, mapped_bytes_); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  char* data() { return data_; }
  // Whether all bytes around the memory are unchanged.
  bool SurroundingsUntouched() const {
    const auto untouched = [](char byte) { return byte == '\xff'; };
    return std::all_of(static_cast<const char*>(base_), static_cast<const char*>(data_), untouched) &&
           std::all_of(static_cast<const char*>(data_ + size_bytes_), static_cast<const char*>(end_), untouched);
  }

 private:
  const int64_t size_bytes_;
  int64_t mapped_bytes_;
  char *base_, *data_, *end_;
};

}  // namespace fusion

#endif  // FUSION_RUNTIME_LOADER_TESTING_GUARDED_MEMORY_H_
