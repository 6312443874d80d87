#include "proto/channel/worker_certificate.h"

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <ctime>

#include "proto/channel/openssl_owned.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

using openssl::Owned;

constexpr char kCurve[] = "P-256", kCurveInLibcrypto[] = "prime256v1";
constexpr size_t kMostRequestBytes = 16 << 10;

Owned<EVP_PKEY> ReadKey(absl::string_view pem) {
  Owned<EVP_PKEY> key(PEM_read_bio_PrivateKey(openssl::Reads(pem).get(), nullptr, openssl::NoPassphrase, nullptr));
  ERR_clear_error();
  return key;
}

Owned<X509> ReadCertificate(absl::string_view pem) {
  Owned<X509> certificate(PEM_read_bio_X509(openssl::Reads(pem).get(), nullptr, openssl::NoPassphrase, nullptr));
  ERR_clear_error();
  return certificate;
}

std::string DerOf(EVP_PKEY* key) {
  unsigned char* bytes = nullptr;
  const int size = i2d_PUBKEY(key, &bytes);
  if (size <= 0) return "";
  std::string der(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
  OPENSSL_free(bytes);
  return der;
}

bool IsOnOurCurve(EVP_PKEY* key) {
  char curve[64];
  return EVP_PKEY_get_id(key) == EVP_PKEY_EC && EVP_PKEY_get_group_name(key, curve, sizeof curve, nullptr) == 1 &&
         absl::string_view(curve) == kCurveInLibcrypto;
}

absl::StatusOr<absl::Time> TimeOf(const ASN1_TIME* time) {
  struct tm parts;
  if (ASN1_TIME_to_tm(time, &parts) != 1) return absl::InvalidArgumentError("a certificate without a life time");
  return absl::FromUnixSeconds(int64_t{timegm(&parts)});
}

}  // namespace

absl::StatusOr<std::string> NewPrivateKey() {
  const Owned<EVP_PKEY> key(EVP_EC_gen(kCurve));
  const Owned<BIO> text = openssl::Writes();
  if (key == nullptr || PEM_write_bio_PrivateKey(text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    ERR_clear_error();
    return absl::InternalError("libcrypto makes no key of the curve P-256");
  }
  return openssl::TextOf(text.get());
}

absl::StatusOr<std::string> CertificateRequest(absl::string_view key) {
  const Owned<EVP_PKEY> parsed = ReadKey(key);
  if (parsed == nullptr) return absl::InvalidArgumentError("no private key in PEM form without a passphrase");
  const Owned<X509_REQ> request(X509_REQ_new());
  const Owned<BIO> text = openssl::Writes();
  const bool made = request != nullptr && X509_REQ_set_version(request.get(), X509_REQ_VERSION_1) == 1 &&
                    X509_REQ_set_pubkey(request.get(), parsed.get()) == 1 &&
                    X509_REQ_sign(request.get(), parsed.get(), EVP_sha256()) > 0 &&
                    PEM_write_bio_X509_REQ(text.get(), request.get()) == 1;
  ERR_clear_error();
  if (!made) return absl::InternalError("libcrypto makes no certificate request of this key");
  return openssl::TextOf(text.get());
}

absl::StatusOr<std::string> PublicKeyOfRequest(absl::string_view request) {
  if (request.size() > kMostRequestBytes) return absl::InvalidArgumentError("a certificate request of over 16 KiB");
  const Owned<X509_REQ> parsed(
      PEM_read_bio_X509_REQ(openssl::Reads(request).get(), nullptr, openssl::NoPassphrase, nullptr));
  EVP_PKEY* const key = parsed == nullptr ? nullptr : X509_REQ_get0_pubkey(parsed.get());
  const bool on_our_curve = key != nullptr && IsOnOurCurve(key);
  const bool is_signed = on_our_curve && X509_REQ_verify(parsed.get(), key) == 1;
  ERR_clear_error();
  if (key == nullptr) return absl::InvalidArgumentError("no certificate request in PEM form");
  if (!on_our_curve) return absl::InvalidArgumentError("a certificate request for another key than one of P-256");
  if (!is_signed) return absl::InvalidArgumentError("a certificate request that its own key has not signed");
  return DerOf(key);
}

absl::StatusOr<CertificateFacts> ReadCertificateFacts(absl::string_view pem) {
  const Owned<X509> certificate = ReadCertificate(pem);
  EVP_PKEY* const key = certificate == nullptr ? nullptr : X509_get0_pubkey(certificate.get());
  if (key == nullptr) {
    ERR_clear_error();
    return absl::InvalidArgumentError("no certificate in PEM form");
  }
  CertificateFacts facts;
  facts.public_key = DerOf(key);
  ASSIGN_OR_RETURN(facts.begins, TimeOf(X509_get0_notBefore(certificate.get())));
  ASSIGN_OR_RETURN(facts.ends, TimeOf(X509_get0_notAfter(certificate.get())));
  const X509_NAME* subject = X509_get_subject_name(certificate.get());
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at >= 0) {
    const ASN1_STRING* name = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at));
    facts.name.assign(reinterpret_cast<const char*>(ASN1_STRING_get0_data(name)),
                      static_cast<size_t>(ASN1_STRING_length(name)));
  }
  return facts;
}

bool IsCertificateOfKey(absl::string_view certificate, absl::string_view key) {
  const Owned<X509> parsed = ReadCertificate(certificate);
  const Owned<EVP_PKEY> private_key = ReadKey(key);
  const bool is =
      parsed != nullptr && private_key != nullptr && X509_check_private_key(parsed.get(), private_key.get()) == 1;
  ERR_clear_error();
  return is;
}

}  // namespace fusion
