// Owned: objects of libcrypto that are freed with their scope.
#ifndef FUSION_PROTO_CHANNEL_OPENSSL_OWNED_H_
#define FUSION_PROTO_CHANNEL_OPENSSL_OWNED_H_

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

#include "absl/strings/string_view.h"

namespace fusion::openssl {

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(X509_REQ* request) const { X509_REQ_free(request); }
  void operator()(X509_EXTENSION* extension) const { X509_EXTENSION_free(extension); }
};
template <typename T>
using Owned = std::unique_ptr<T, Free>;

// A source of these bytes, which must outlive it.
inline Owned<BIO> Reads(absl::string_view bytes) {
  return Owned<BIO>(BIO_new_mem_buf(bytes.data(), static_cast<int>(bytes.size())));
}
// A sink that TextOf reads.
inline Owned<BIO> Writes() { return Owned<BIO>(BIO_new(BIO_s_mem())); }
inline std::string TextOf(BIO* sink) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(sink, &bytes);  // NOLINT: libcrypto's type
  return size <= 0 ? std::string() : std::string(bytes, static_cast<size_t>(size));
}

// A key with a passphrase is refused instead of asking for it on the terminal.
inline int NoPassphrase(char*, int, int, void*) { return -1; }

}  // namespace fusion::openssl

#endif  // FUSION_PROTO_CHANNEL_OPENSSL_OWNED_H_
