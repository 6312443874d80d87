// MappedFile: the bytes of a file, mapped read-only, or a page-aligned private copy of bytes from elsewhere.
#ifndef FUSION_RUNTIME_BASE_MAPPED_FILE_H_
#define FUSION_RUNTIME_BASE_MAPPED_FILE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fusion {

// Immutable, so any thread may read it. It is shared because tensors, sessions and devices point into it. If someone
// truncates a file while it is mapped, the next access raises SIGBUS; writers therefore replace files by rename and
// never shorten them.
class MappedFile {
 public:
  // Fails with NOT_FOUND, PERMISSION_DENIED or INVALID_ARGUMENT (a folder, a device, an empty file) and names the path.
  static absl::StatusOr<std::shared_ptr<const MappedFile>> Open(const std::string& path);
  static absl::StatusOr<std::shared_ptr<const MappedFile>> FromBytes(absl::string_view bytes);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  absl::string_view bytes() const { return absl::string_view(static_cast<const char*>(data_), size_bytes_); }

 private:
  MappedFile(const void* data, size_t size_bytes) : data_(data), size_bytes_(size_bytes) {}
  const void* data_;
  size_t size_bytes_;
};

}  // namespace fusion

#endif  // FUSION_RUNTIME_BASE_MAPPED_FILE_H_
