#include "server/auth/tls.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <ctime>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/channel/openssl_owned.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/status_macros.h"
#include "server/auth/secret_file.h"

namespace fusion {
namespace {

constexpr unsigned kRefreshSeconds = 2;  // how soon a certificate that was replaced is used

using Certificate = openssl::Owned<X509>;
using Key = openssl::Owned<EVP_PKEY>;

absl::StatusOr<Certificate> ReadCertificate(const char* flag, const std::string& path) {
  ASSIGN_OR_RETURN(const OpenedFile file, OpenFileOf(flag, path));
  Certificate certificate(PEM_read_X509(file.get(), nullptr, nullptr, nullptr));
  if (certificate == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(flag, ": '", path, "' holds no certificate in PEM form"));
  }
  return certificate;
}

absl::StatusOr<Key> ReadKey(const std::string& path) {
  ASSIGN_OR_RETURN(const OpenedFile file, OpenSecretFileOf("--tls-key", path));
  Key key(PEM_read_PrivateKey(file.get(), nullptr, openssl::NoPassphrase, nullptr));
  if (key == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tls-key: '", path, "' holds no key in PEM form without password"));
  }
  return key;
}

}  // namespace

absl::StatusOr<int64_t> CertificateEnd(const std::string& path) {
  ASSIGN_OR_RETURN(const Certificate certificate, ReadCertificate("--tls-cert", path));
  struct tm end;
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &end) != 1) {
    return absl::InvalidArgumentError(absl::StrCat("--tls-cert: the certificate in '", path, "' has no end"));
  }
  return int64_t{timegm(&end)};
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> TlsServerCredentialsOf(const TlsFiles& files,
                                                                                const std::string& client_roots) {
  if (files.certificate.empty() || files.key.empty()) {
    return absl::InvalidArgumentError("TLS needs a certificate and its key: --tls-cert and --tls-key");
  }
  ASSIGN_OR_RETURN(const Certificate certificate, ReadCertificate("--tls-cert", files.certificate));
  ASSIGN_OR_RETURN(const Key key, ReadKey(files.key));
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tls-key: the key in '", files.key, "' is not that of '", files.certificate, "'"));
  }
  if (X509_cmp_current_time(X509_get0_notAfter(certificate.get())) <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tls-cert: the certificate in '", files.certificate, "' has expired"));
  }
  grpc::experimental::TlsServerCredentialsOptions options(
      std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
          files.key, files.certificate, files.client_ca.empty() ? "" : client_roots, kRefreshSeconds));
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_BUT_DONT_VERIFY);
  if (!files.client_ca.empty()) {
    options.watch_root_certs();
    options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  return grpc::experimental::TlsServerCredentials(options);
}

ClientRoots::ClientRoots(std::string client_ca, std::string workers, std::string path)
    : client_ca_(std::move(client_ca)), workers_(std::move(workers)), path_(std::move(path)) {}

absl::Status ClientRoots::Look() {
  std::ifstream file(client_ca_, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  if (!seen_.empty() && bytes.str() == seen_) return absl::OkStatus();
  RETURN_IF_ERROR(ReadCertificate("--tls-client-ca", client_ca_).status());
  RETURN_IF_ERROR(WriteFileAtomically(path_, absl::StrCat(bytes.str(), "\n", workers_)));
  seen_ = bytes.str();
  return absl::OkStatus();
}

}  // namespace fusion
