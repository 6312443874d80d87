// Keys, requests and certificates of workers, as PEM text. A worker makes its key, which never leaves it, and asks
// fusiond for a certificate with a request that the key has signed.
#ifndef FUSION_PROTO_CHANNEL_WORKER_CERTIFICATE_H_
#define FUSION_PROTO_CHANNEL_WORKER_CERTIFICATE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace fusion {

// A new private key, of the curve P-256, without a passphrase. INTERNAL if libcrypto makes none.
absl::StatusOr<std::string> NewPrivateKey();

// A request (PKCS #10) for a certificate of this key, signed with it. INVALID_ARGUMENT if `key` is no private key.
absl::StatusOr<std::string> CertificateRequest(absl::string_view key);

// The public key of a request, as DER (SubjectPublicKeyInfo). Fails with INVALID_ARGUMENT unless the request is signed
// by that key, of the curve P-256: whoever sends it has the private key.
absl::StatusOr<std::string> PublicKeyOfRequest(absl::string_view request);

// The facts that a certificate states. Nothing says that they are true: see server/auth/worker_authority.h.
struct CertificateFacts {
  std::string name;        // the common name of its subject: the id of a worker
  std::string public_key;  // as DER
  absl::Time begins, ends;
};
// Reads the first certificate of `pem`. INVALID_ARGUMENT if there is none.
absl::StatusOr<CertificateFacts> ReadCertificateFacts(absl::string_view pem);

// Whether the certificate is for this private key. False if either does not parse.
bool IsCertificateOfKey(absl::string_view certificate, absl::string_view key);

}  // namespace fusion

#endif  // FUSION_PROTO_CHANNEL_WORKER_CERTIFICATE_H_
