// BundleSigner: the keys with which this server signs the bundles that it returns (decision 0069). A signature says
// that the server has made the bundle for a job; it lies beside the bundle, which stays as it is.
#ifndef FUSION_SERVER_BUNDLE_SIGNER_H_
#define FUSION_SERVER_BUNDLE_SIGNER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace fusion {

// Immutable, so any thread may use it.
class BundleSigner {
 public:
  // `key_files` hold private Ed25519 keys in PEM form. Fails with INVALID_ARGUMENT, naming --sign-with, for a file that
  // cannot be read, that other users may open, or that holds no such key.
  static absl::StatusOr<std::unique_ptr<BundleSigner>> Open(std::vector<std::string> key_files);

  // The signatures of the bundle in that file by all keys, as BUNDLE.sig has them. Reads the whole file and checks it:
  // nothing damaged is signed. The keys are read again, so that one that was replaced is used from then on.
  absl::StatusOr<std::string> Sign(const std::string& bundle_path) const;

 private:
  explicit BundleSigner(std::vector<std::string> key_files) : key_files_(std::move(key_files)) {}
  const std::vector<std::string> key_files_;
};

}  // namespace fusion

#endif  // FUSION_SERVER_BUNDLE_SIGNER_H_
