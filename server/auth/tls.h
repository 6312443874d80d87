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
  std::string client_ca;         // empty: callers need no certificate, and one of whatever authority may connect

  bool any() const { return !certificate.empty() || !key.empty() || !client_ca.empty(); }
};

// Fails with INVALID_ARGUMENT if a file is missing, holds something else, the key is not the certificate's or other
// users may read it, or the certificate has expired. Where callers need a certificate, it comes from an authority in
// the file `client_roots`. Else any is accepted, whose key the caller must have: the guard asks who issued it, and can
// say what is wrong with it, which a failed handshake cannot.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> TlsServerCredentialsOf(const TlsFiles& files,
                                                                                const std::string& client_roots);

// The file with the authorities that callers' certificates may come from, where they need one: the operator's
// (--tls-client-ca), and that of workers.
class ClientRoots {
 public:
  // `workers`: the certificates of the authority of workers (PEM). `path`: the file to make.
  ClientRoots(std::string client_ca, std::string workers, std::string path);

  // Makes the file if the operator's has changed. While that holds no certificate, the file stays as it is. Fails with
  // INVALID_ARGUMENT in the latter case.
  absl::Status Look();

 private:
  const std::string client_ca_, workers_, path_;
  std::string seen_;  // of the operator's file
};

// Returns when the first certificate of a PEM file ends, in Unix seconds. Fails with INVALID_ARGUMENT if it holds none.
absl::StatusOr<int64_t> CertificateEnd(const std::string& path);

}  // namespace fusion

#endif  // FUSION_SERVER_AUTH_TLS_H_
