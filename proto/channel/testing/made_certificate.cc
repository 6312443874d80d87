#include "proto/channel/testing/made_certificate.h"

#include <openssl/core_names.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>

#include <stdexcept>

#include "proto/channel/openssl_owned.h"
#include "proto/channel/worker_certificate.h"

namespace fusion::testing {
namespace {

using openssl::Owned;

void Need(bool done, const char* what) {
  if (!done) throw std::runtime_error(what);
}

Owned<EVP_PKEY> KeyOf(const std::string& pem) {
  Owned<EVP_PKEY> key(PEM_read_bio_PrivateKey(openssl::Reads(pem).get(), nullptr, openssl::NoPassphrase, nullptr));
  Need(key != nullptr, "no key");
  return key;
}

Owned<X509> CertificateOf(const std::string& pem) {
  Owned<X509> certificate(PEM_read_bio_X509(openssl::Reads(pem).get(), nullptr, openssl::NoPassphrase, nullptr));
  Need(certificate != nullptr, "no certificate");
  return certificate;
}

void Extend(X509* one, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, one, one, nullptr, nullptr, 0);
  const Owned<X509_EXTENSION> extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  Need(extension != nullptr && X509_add_ext(one, extension.get(), -1) == 1, "no extension");
}

}  // namespace

MadeCertificate Make(const CertificateWish& wish) {
  MadeCertificate made;
  made.key = wish.key.empty() ? NewPrivateKey().value() : wish.key;
  const Owned<EVP_PKEY> key = KeyOf(made.key);
  const Owned<X509> holder(X509_new());
  X509* const one = holder.get();
  Need(X509_set_version(one, X509_VERSION_3) == 1, "version");
  Need(ASN1_INTEGER_set(X509_get_serialNumber(one), 1 + static_cast<int>(absl::ToUnixSeconds(wish.ends) % 100000)) == 1,
       "serial");
  Need(X509_NAME_add_entry_by_txt(X509_get_subject_name(one), "CN", MBSTRING_UTF8,
                                  reinterpret_cast<const unsigned char*>(wish.name.data()),
                                  static_cast<int>(wish.name.size()), -1, 0) == 1,
       "name");
  ASN1_TIME_set(X509_getm_notBefore(one), absl::ToUnixSeconds(wish.begins));
  ASN1_TIME_set(X509_getm_notAfter(one), absl::ToUnixSeconds(wish.ends));
  X509_set_pubkey(one, key.get());
  if (wish.authority) Extend(one, NID_basic_constraints, "critical,CA:TRUE");
  if (!wish.hosts.empty()) Extend(one, NID_subject_alt_name, wish.hosts);
  if (wish.issuer == nullptr) {
    Need(X509_set_issuer_name(one, X509_get_subject_name(one)) == 1 && X509_sign(one, key.get(), EVP_sha256()) > 0,
         "signature");
  } else {
    const Owned<X509> issuer = CertificateOf(wish.issuer->certificate);
    const Owned<EVP_PKEY> signing = KeyOf(wish.issuer->key);
    Need(X509_set_issuer_name(one, X509_get_subject_name(issuer.get())) == 1 &&
             X509_sign(one, signing.get(), EVP_sha256()) > 0,
         "signature");
  }
  const Owned<BIO> text = openssl::Writes();
  Need(PEM_write_bio_X509(text.get(), one) == 1, "text");
  made.certificate = openssl::TextOf(text.get());
  return made;
}

std::string KeyThatClaims(const std::string& certificate, const std::string& key) {
  const Owned<X509> claimed = CertificateOf(certificate);
  const Owned<EVP_PKEY> mine = KeyOf(key);
  unsigned char* public_point = nullptr;
  const size_t size = EVP_PKEY_get1_encoded_public_key(X509_get0_pubkey(claimed.get()), &public_point);
  BIGNUM* secret = nullptr;
  Need(size > 0 && EVP_PKEY_get_bn_param(mine.get(), OSSL_PKEY_PARAM_PRIV_KEY, &secret) == 1, "parts of keys");
  OSSL_PARAM_BLD* const builder = OSSL_PARAM_BLD_new();
  OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0);
  OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, public_point, size);
  OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_PRIV_KEY, secret);
  OSSL_PARAM* const parameters = OSSL_PARAM_BLD_to_param(builder);
  EVP_PKEY_CTX* const context = EVP_PKEY_CTX_new_from_name(nullptr, "EC", nullptr);
  EVP_PKEY* forged = nullptr;
  const bool made =
      EVP_PKEY_fromdata_init(context) == 1 && EVP_PKEY_fromdata(context, &forged, EVP_PKEY_KEYPAIR, parameters) == 1;
  const Owned<EVP_PKEY> holder(forged);
  EVP_PKEY_CTX_free(context);
  OSSL_PARAM_free(parameters);
  OSSL_PARAM_BLD_free(builder);
  OPENSSL_free(public_point);
  BN_free(secret);
  Need(made, "a forged key");
  const Owned<BIO> text = openssl::Writes();
  Need(PEM_write_bio_PrivateKey(text.get(), forged, nullptr, nullptr, 0, nullptr, nullptr) == 1, "text");
  return openssl::TextOf(text.get());
}

}  // namespace fusion::testing
