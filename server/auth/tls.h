// The credentials that fusiond listens with: TLS by files that are read again when they change, or none.
#ifndef FUSION_SERVER_AUTH_TLS_H_
#define FUSION_SERVER_AUTH_TLS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace grpc {
class ServerCredentials;
}

namespace fusion {

// PEM files. To replace certificate and key, replace their folder or a link to it by renaming: while they do not belong
// to each other, connections go on with the pair before.
struct TlsFiles {
  std::string certificate, key;  // of the server: the certificate with its chain
  std::string client_ca;         // empty: callers need no certificate

  bool any() const { return !certificate.empty() || !key.empty() || !client_ca.empty(); }
};

// Fails with INVALID_ARGUMENT if a file is missing, holds something else, the key is not the certificate's or other
// users may read it, or the certificate has expired.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> TlsServerCredentialsOf(const TlsFiles& files);

// Returns when the first certificate of a PEM file ends, in Unix seconds. Fails with INVALID_ARGUMENT if it holds none.
absl::StatusOr<int64_t> CertificateEnd(const std::string& path);

}  // namespace fusion

#endif  // FUSION_SERVER_AUTH_TLS_H_
