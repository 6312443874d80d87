#include "runtime/devices/host_memory.h"

#include <sys/mman.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

// Less than this is a few small pages; so much is what numpy asks huge pages for, too.
constexpr int64_t kLeastHugeBytes = int64_t{4} << 20;

}  // namespace

absl::StatusOr<HostMemory> HostMemory::Allocate(int64_t size_bytes, const char* what) {
  HostMemory memory;
  if (size_bytes == 0) return memory;
  void* data = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrCat("no memory for ", what, " (", size_bytes, " bytes)"));
  }
#ifdef MADV_HUGEPAGE
  // Kernels that stream through megabytes meet the limits of address translation before those of the caches. The advice
  // may be declined; nothing but time depends on it.
  if (size_bytes >= kLeastHugeBytes) madvise(data, size_bytes, MADV_HUGEPAGE);
#endif
  memory.data_ = static_cast<char*>(data);
  memory.size_bytes_ = size_bytes;
  return memory;
}

HostMemory::HostMemory(HostMemory&& other) noexcept { *this = std::move(other); }

HostMemory& HostMemory::operator=(HostMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

HostMemory::~HostMemory() {
  if (data_ != nullptr) munmap(data_, size_bytes_);
}

}  // namespace fusion
