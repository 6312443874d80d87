// MirroredBuffers: a program's buffers on a device with memory of its own. The arena, then inputs and outputs lie in
// one piece of device memory. The host has a piece with the same offsets, since callers may ask for the memory of
// inputs and outputs. Constants lie in the weights.
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
  // `bundle` and `program` must outlive the result. Fails with RESOURCE_EXHAUSTED if the host lacks memory.
  static absl::StatusOr<MirroredBuffers> Create(const BundleReader& bundle, const ManifestProgram& program);

  // Size of the piece, slack included.
  int64_t size_bytes() const { return size_bytes_; }
  char* host() const { return host_.data(); }
  bool IsConstant(int buffer) const;
  // Offset in the piece; for a constant, in the weights.
  int64_t Offset(int buffer) const { return offsets_[buffer]; }
  char* HostOf(int buffer) const;
  // Returns HostOf for each buffer.
  std::vector<char*> Bases() const;

  // Uploads the caller's inputs, and the extents that the host has set.
  absl::Status UploadInputs(absl::Span<const void* const> inputs, const Upload& upload) const;
  // Downloads outputs to the caller, and to the host the buffers of their extents and of the run's checks.
  absl::Status DownloadOutputs(absl::Span<void* const> outputs, const Download& download) const;

 private:
  const BundleReader* bundle_ = nullptr;
  const ManifestProgram* program_ = nullptr;
  HostMemory host_;
  int64_t size_bytes_ = 0;
  std::vector<int64_t> offsets_;  // parallel to Program::buffers
};

}  // namespace fusion

#endif  // FUSION_RUNTIME_DEVICES_MIRRORED_BUFFERS_H_
