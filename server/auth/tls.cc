#include "server/auth/tls.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <ctime>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "server/auth/secret_file.h"

namespace fusion {
namespace {

constexpr unsigned kRefreshSeconds = 2;  // how soon a certificate that was replaced is used

template <typename T, void (*kFree)(T*)>
struct Freed {
  void operator()(T* object) const { kFree(object); }
};
using Certificate = std::unique_ptr<X509, Freed<X509, X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY, EVP_PKEY_free>>;

absl::StatusOr<Certificate> ReadCertificate(const char* flag, const std::string& path) {
  ASSIGN_OR_RETURN(const OpenedFile file, OpenFileOf(flag, path));
  Certificate certificate(PEM_read_X509(file.get(), nullptr, nullptr, nullptr));
  if (certificate == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(flag, ": '", path, "' holds no certificate in PEM form"));
  }
  return certificate;
}

int NoPassword(char*, int, int, void*) { return 0; }  // never asks at a terminal

absl::StatusOr<Key> ReadKey(const std::string& path) {
  ASSIGN_OR_RETURN(const OpenedFile file, OpenSecretFileOf("--tls-key", path));
  Key key(PEM_read_PrivateKey(file.get(), nullptr, NoPassword, nullptr));
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

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> TlsServerCredentialsOf(const TlsFiles& files) {
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
  if (!files.client_ca.empty()) RETURN_IF_ERROR(ReadCertificate("--tls-client-ca", files.client_ca).status());

  grpc::experimental::TlsServerCredentialsOptions options(
      std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(files.key, files.certificate,
                                                                           files.client_ca, kRefreshSeconds));
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  if (!files.client_ca.empty()) {
    options.watch_root_certs();
    options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  return grpc::experimental::TlsServerCredentials(options);
}

}  // namespace fusion
