// HostMemory: zeroed pages from the operating system, given back on destruction.
#ifndef FUSION_RUNTIME_DEVICES_HOST_MEMORY_H_
#define FUSION_RUNTIME_DEVICES_HOST_MEMORY_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace fusion {

class HostMemory {
 public:
  // Returns page-aligned, zeroed memory whose pages are allocated at the first access. Fails with RESOURCE_EXHAUSTED
  // and names `what`.
  static absl::StatusOr<HostMemory> Allocate(int64_t size_bytes, const char* what);
  HostMemory() = default;
  HostMemory(HostMemory&& other) noexcept;
  HostMemory& operator=(HostMemory&& other) noexcept;
  ~HostMemory();

  char* data() const { return data_; }

 private:
  char* data_ = nullptr;
  int64_t size_bytes_ = 0;
};

}  // namespace fusion

#endif  // FUSION_RUNTIME_DEVICES_HOST_MEMORY_H_
