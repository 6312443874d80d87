// Signatures of a bundle, in a file beside it (FORMAT.md, "Signatures"). The bundle itself does not change by them, so
// that it stays reproducible and can be signed again with another key.
#ifndef FUSION_RUNTIME_BUNDLE_BUNDLE_SIGNATURE_H_
#define FUSION_RUNTIME_BUNDLE_BUNDLE_SIGNATURE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/ed25519.h"
#include "runtime/bundle/bundle_reader.h"

namespace fusion {

std::string SignaturesPath(const std::string& bundle_path);  // "model.fusion.sig"

// Returns the text of `signatures` ("": none yet) with a signature by `private_pem`, in place of an earlier one by that
// key. Fails with INVALID_ARGUMENT if the key or `signatures` does not parse.
absl::StatusOr<std::string> AddSignature(const BundleReader& bundle, absl::string_view private_pem,
                                         absl::string_view signatures);

// Returns the ids of those of `keys` that have signed the bundle, at least one. Fails with PERMISSION_DENIED if none
// has, and with INVALID_ARGUMENT if `signatures` does not parse.
absl::StatusOr<std::vector<std::string>> CheckSignatures(const BundleReader& bundle, absl::string_view signatures,
                                                         absl::Span<const Ed25519PublicKey> keys);

// The same with files: the signatures beside `bundle_path`, and the public keys in `keys_path` (PEM).
absl::StatusOr<std::vector<std::string>> CheckSignatureFiles(const BundleReader& bundle, const std::string& bundle_path,
                                                             const std::string& keys_path);

}  // namespace fusion

#endif  // FUSION_RUNTIME_BUNDLE_BUNDLE_SIGNATURE_H_
