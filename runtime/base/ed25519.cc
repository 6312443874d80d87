#include "runtime/base/ed25519.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>

#include "absl/status/status.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
template <typename T>
using Owned = std::unique_ptr<T, Free>;

constexpr size_t kKeyBytes = 32, kSignatureBytes = 64;

const unsigned char* Bytes(absl::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

// A key with a passphrase is refused instead of asking for it on the terminal.
int NoPassphrase(char*, int, int, void*) { return -1; }

absl::StatusOr<Ed25519PublicKey> PublicPart(const EVP_PKEY* key) {
  unsigned char bytes[kKeyBytes];
  size_t length = sizeof bytes;
  if (EVP_PKEY_get_id(key) != EVP_PKEY_ED25519 || EVP_PKEY_get_raw_public_key(key, bytes, &length) != 1) {
    return absl::InvalidArgumentError("a key of another kind than ed25519");
  }
  return Ed25519PublicKey{std::string(reinterpret_cast<const char*>(bytes), length)};
}

}  // namespace

std::string Ed25519PublicKey::Id() const { return Sha256Hex(bytes); }

absl::StatusOr<std::vector<Ed25519PublicKey>> Ed25519PublicKeys(absl::string_view pem) {
  const Owned<BIO> text(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  std::vector<Ed25519PublicKey> keys;
  char *name = nullptr, *header = nullptr;
  unsigned char* der = nullptr;
  for (long length = 0; PEM_read_bio(text.get(), &name, &header, &der, &length) == 1;) {  // NOLINT: OpenSSL's type
    const bool is_public = absl::string_view(name) == PEM_STRING_PUBLIC;
    const unsigned char* at = der;
    const Owned<EVP_PKEY> key(is_public ? d2i_PUBKEY(nullptr, &at, length) : nullptr);
    OPENSSL_free(name);
    OPENSSL_free(header);
    OPENSSL_free(der);
    if (!is_public) continue;
    if (key == nullptr) {
      ERR_clear_error();
      return absl::InvalidArgumentError("a public key that does not parse");
    }
    ASSIGN_OR_RETURN(Ed25519PublicKey one, PublicPart(key.get()));
    keys.push_back(std::move(one));
  }
  // The end of the text is the error "no start line"; any other is a block that does not parse.
  const bool damaged = ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (damaged) return absl::InvalidArgumentError("a PEM block that does not parse");
  if (keys.empty()) {
    return absl::InvalidArgumentError(
        "no public key in PEM form; `openssl pkey -in KEY.pem -pubout` writes that of a private key");
  }
  return keys;
}

absl::StatusOr<Ed25519Signature> Ed25519Sign(absl::string_view private_pem, absl::string_view message) {
  const Owned<BIO> text(BIO_new_mem_buf(private_pem.data(), static_cast<int>(private_pem.size())));
  const Owned<EVP_PKEY> key(PEM_read_bio_PrivateKey(text.get(), nullptr, NoPassphrase, nullptr));
  ERR_clear_error();
  if (key == nullptr) {
    return absl::InvalidArgumentError(
        "no private key in PEM form without a passphrase; `openssl genpkey -algorithm ed25519` makes one");
  }
  Ed25519Signature signature;
  ASSIGN_OR_RETURN(signature.key, PublicPart(key.get()));
  const Owned<EVP_MD_CTX> context(EVP_MD_CTX_new());
  unsigned char bytes[kSignatureBytes];
  size_t length = sizeof bytes;
  if (EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) != 1 ||
      EVP_DigestSign(context.get(), bytes, &length, Bytes(message), message.size()) != 1) {
    ERR_clear_error();
    return absl::InternalError("libcrypto cannot sign with ed25519");
  }
  signature.bytes.assign(reinterpret_cast<const char*>(bytes), length);
  return signature;
}

bool Ed25519Verify(const Ed25519PublicKey& key, absl::string_view message, absl::string_view signature) {
  const Owned<EVP_PKEY> public_key(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, Bytes(key.bytes), key.bytes.size()));
  const Owned<EVP_MD_CTX> context(EVP_MD_CTX_new());
  const bool holds =
      public_key != nullptr && EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, public_key.get()) == 1 &&
      EVP_DigestVerify(context.get(), Bytes(signature), signature.size(), Bytes(message), message.size()) == 1;
  ERR_clear_error();
  return holds;
}

}  // namespace fusion
