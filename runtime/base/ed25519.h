// Ed25519 signatures (RFC 8032) by libcrypto. Keys come as PEM text, as `openssl genpkey -algorithm ed25519` and
// `openssl pkey -pubout` write them.
#ifndef FUSION_RUNTIME_BASE_ED25519_H_
#define FUSION_RUNTIME_BASE_ED25519_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fusion {

struct Ed25519PublicKey {
  std::string bytes;       // 32
  std::string Id() const;  // SHA-256 of the bytes, in hex
};

struct Ed25519Signature {
  Ed25519PublicKey key;
  std::string bytes;  // 64
};

// Returns the public keys of `pem`, at least one. Fails with INVALID_ARGUMENT if there is none, or one of another kind.
absl::StatusOr<std::vector<Ed25519PublicKey>> Ed25519PublicKeys(absl::string_view pem);

// Fails with INVALID_ARGUMENT unless `private_pem` begins with a private key of this kind that has no passphrase.
absl::StatusOr<Ed25519Signature> Ed25519Sign(absl::string_view private_pem, absl::string_view message);

bool Ed25519Verify(const Ed25519PublicKey& key, absl::string_view message, absl::string_view signature);

}  // namespace fusion

#endif  // FUSION_RUNTIME_BASE_ED25519_H_
