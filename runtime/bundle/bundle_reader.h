// BundleReader: a bundle file, mapped and checked (FORMAT.md).
#ifndef FUSION_RUNTIME_BUNDLE_BUNDLE_READER_H_
#define FUSION_RUNTIME_BUNDLE_BUNDLE_READER_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/base/mapped_file.h"
#include "runtime/bundle/manifest.h"

namespace fusion {

// Immutable, so any thread may use it. It is shared by the sessions and devices whose constants lie in its mapping.
class BundleReader {
 public:
  // Checks the container, the manifest and the digest of every entry before it returns. Fails with INVALID_ARGUMENT for
  // a file that is no bundle, DATA_LOSS for a damaged one, FAILED_PRECONDITION for a newer format, NOT_FOUND for a file
  // that does not exist.
  // A digest shows damage, not malice: a bundle holds machine code, so trust it only as you would trust a program.
  static absl::StatusOr<std::shared_ptr<const BundleReader>> Open(const std::string& path);
  // Does the same for bytes that came over a wire; copies them.
  static absl::StatusOr<std::shared_ptr<const BundleReader>> FromBytes(absl::string_view bytes);

  const Manifest& manifest() const { return manifest_; }
  const std::string& manifest_json() const { return manifest_json_; }
  std::map<std::string, int64_t> EntrySizes() const;                       // bytes by name
  absl::StatusOr<absl::string_view> Entry(const std::string& name) const;  // points into the mapping; NOT_FOUND
  // The data of weights.safetensors: 64-byte aligned, with kBufferSlackBytes readable bytes behind it. Empty without
  // weights.
  absl::string_view weights() const { return weights_; }

 private:
  BundleReader() = default;
  static absl::StatusOr<std::shared_ptr<const BundleReader>> Check(std::shared_ptr<const MappedFile> file);

  std::shared_ptr<const MappedFile> file_;
  std::map<std::string, absl::string_view> entries_;
  std::string manifest_json_;
  Manifest manifest_;
  absl::string_view weights_;
};

}  // namespace fusion

#endif  // FUSION_RUNTIME_BUNDLE_BUNDLE_READER_H_
