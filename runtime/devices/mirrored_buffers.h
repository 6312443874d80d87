// MirroredBuffers: a program's buffers on a device with memory of its own: the arena, then inputs and outputs, in one
// piece, and in the same places on the host, since callers may ask for their memory. Constants lie in the weights.
#ifndef FUSION_RUNTIME_DEVICES_MIRRORED_BUFFERS_H_
#define FUSION_RUNTIME_DEVICES_MIRRORED_BUFFERS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/bundle/bundle_reader.h"
#include "runtime/devices/host_memory.h"

namespace fusion {

class MirroredBuffers {
 public:
  using Upload = std::function<absl::Status(int buffer, const void* from)>;
  using Download = std::function<absl::Status(int buffer, int64_t size_bytes, void* to)>;

  MirroredBuffers() = default;
  // Both must outlive it. RESOURCE_EXHAUSTED when the host has no room.
  static absl::StatusOr<MirroredBuffers> Create(const BundleReader& bundle, const Program& program);

  // Of the piece, slack included.
  int64_t size_bytes() const { return size_bytes_; }
  char* host() const { return host_.data(); }
  bool IsConstant(int buffer) const;
  // In the piece, or of a constant in the weights.
  int64_t Offset(int buffer) const { return offsets_[buffer]; }
  char* HostOf(int buffer) const;
  // HostOf each.
  std::vector<char*> Bases() const;

  // The caller's inputs and the host's extents.
  absl::Status UploadInputs(absl::Span<const void* const> inputs, const Upload& upload) const;
  // Outputs to the caller, their extents to the host.
  absl::Status DownloadOutputs(absl::Span<void* const> outputs, const Download& download) const;

 private:
  const BundleReader* bundle_ = nullptr;
  const Program* program_ = nullptr;
  HostMemory host_;
  int64_t size_bytes_ = 0;
  std::vector<int64_t> offsets_;  // parallel to Program::buffers
};

}  // namespace fusion

#endif  // FUSION_RUNTIME_DEVICES_MIRRORED_BUFFERS_H_
