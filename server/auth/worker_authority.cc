#include "server/auth/worker_authority.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/channel/openssl_owned.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status_macros.h"
#include "server/auth/secret_file.h"

namespace fusion {
namespace {

using openssl::Owned;

constexpr char kWhat[] = "the authority of workers";
constexpr size_t kMostSaid = 4096;
// Certificates begin a little before they are made, so that a clock that is set back does not make them invalid.
constexpr absl::Duration kBeginsBefore = absl::Minutes(5);

absl::Status Failed(const char* what) {
  ERR_clear_error();
  return absl::InternalError(absl::StrCat("libcrypto cannot ", what));
}

bool SetTime(ASN1_TIME* field, absl::Time time) { return ASN1_TIME_set(field, absl::ToUnixSeconds(time)) != nullptr; }

bool SetSerial(X509* certificate) {
  unsigned char bytes[16];
  if (RAND_bytes(bytes, sizeof bytes) != 1) return false;
  bytes[0] &= 0x7f;  // not negative
  BIGNUM* const number = BN_bin2bn(bytes, sizeof bytes, nullptr);
  const bool set = number != nullptr && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != nullptr;
  BN_free(number);
  return set;
}

bool SetName(X509_NAME* name, const std::string& text) {
  return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(text.data()),
                                    static_cast<int>(text.size()), -1, 0) == 1;
}

bool AddExtension(X509* certificate, X509* issuer, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Owned<X509_EXTENSION> extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

// A certificate for `key` without extensions and signature; `issuer`: null where it signs itself. Null if libcrypto
// fails.
Owned<X509> Begin(const std::string& name, const X509* issuer, EVP_PKEY* key, absl::Time begins, absl::Time ends) {
  Owned<X509> made(X509_new());
  X509* const one = made.get();
  if (key == nullptr || one == nullptr || X509_set_version(one, X509_VERSION_3) != 1 || !SetSerial(one) ||
      !SetName(X509_get_subject_name(one), name) ||
      X509_set_issuer_name(one, X509_get_subject_name(issuer == nullptr ? one : issuer)) != 1 ||
      !SetTime(X509_getm_notBefore(one), begins) || !SetTime(X509_getm_notAfter(one), ends) ||
      X509_set_pubkey(one, key) != 1) {
    return nullptr;
  }
  return made;
}

absl::StatusOr<std::string> PemOf(const X509* certificate) {
  const Owned<BIO> text = openssl::Writes();
  if (PEM_write_bio_X509(text.get(), certificate) != 1) return Failed("write a certificate");
  return openssl::TextOf(text.get());
}

absl::StatusOr<absl::Time> EndOf(const X509* certificate) {
  ASSIGN_OR_RETURN(const std::string pem, PemOf(certificate));
  ASSIGN_OR_RETURN(const CertificateFacts facts, ReadCertificateFacts(pem));
  return facts.ends;
}

}  // namespace

struct WorkerAuthority::Keys {
  Owned<EVP_PKEY> key;
  std::vector<Owned<X509>> certificates;  // the present one first
};

std::string WorkerAuthorityCertificates(const std::string& state_folder) {
  return absl::StrCat(state_folder, "/worker-authority.pem");
}
std::string WorkerAuthorityKey(const std::string& state_folder) {
  return absl::StrCat(state_folder, "/worker-authority.key");
}

WorkerAuthority::WorkerAuthority(Clock clock) : clock_(std::move(clock)), keys_(std::make_unique<Keys>()) {}
WorkerAuthority::~WorkerAuthority() = default;

absl::StatusOr<std::unique_ptr<WorkerAuthority>> WorkerAuthority::Open(const std::string& state_folder, Clock clock) {
  std::unique_ptr<WorkerAuthority> authority(new WorkerAuthority(std::move(clock)));
  RETURN_IF_ERROR(authority->Read(state_folder));
  const auto& certificates = authority->keys_->certificates;
  bool usable = authority->keys_->key != nullptr && !certificates.empty() &&
                X509_check_private_key(certificates.front().get(), authority->keys_->key.get()) == 1;
  ERR_clear_error();
  if (usable) {
    ASSIGN_OR_RETURN(const absl::Time ends, EndOf(certificates.front().get()));
    usable = ends > authority->clock_() + kLastTime;
  }
  if (!usable) RETURN_IF_ERROR(authority->Make(state_folder));
  for (const auto& certificate : authority->keys_->certificates) {
    ASSIGN_OR_RETURN(const std::string pem, PemOf(certificate.get()));
    authority->certificates_ += pem;
  }
  return authority;
}

// Leaves out what is not there, and certificates that have ended.
absl::Status WorkerAuthority::Read(const std::string& state_folder) {
  const std::string pem_path = WorkerAuthorityCertificates(state_folder), key_path = WorkerAuthorityKey(state_folder);
  if (access(pem_path.c_str(), F_OK) == 0) {
    ASSIGN_OR_RETURN(const OpenedFile file, OpenFileOf(kWhat, pem_path));
    bool any = false;
    while (X509* const read = PEM_read_X509(file.get(), nullptr, openssl::NoPassphrase, nullptr)) {
      Owned<X509> certificate(read);
      any = true;
      ASSIGN_OR_RETURN(const absl::Time ends, EndOf(certificate.get()));
      if (ends > clock_()) keys_->certificates.push_back(std::move(certificate));
    }
    ERR_clear_error();
    if (!any) {
      return absl::InvalidArgumentError(absl::StrCat(kWhat, ": '", pem_path, "' holds no certificate in PEM form"));
    }
  }
  if (access(key_path.c_str(), F_OK) != 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const OpenedFile file, OpenSecretFileOf(kWhat, key_path));
  keys_->key.reset(PEM_read_PrivateKey(file.get(), nullptr, openssl::NoPassphrase, nullptr));
  ERR_clear_error();
  if (keys_->key != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(kWhat, ": '", key_path, "' holds no key in PEM form; without the file the server makes a new one"));
}

// Writes the key first: one without its certificate is replaced at the next start.
absl::Status WorkerAuthority::Make(const std::string& state_folder) {
  ASSIGN_OR_RETURN(const std::string key, NewPrivateKey());
  RETURN_IF_ERROR(WriteFileAtomically(WorkerAuthorityKey(state_folder), key, 0600));
  keys_->key.reset(PEM_read_bio_PrivateKey(openssl::Reads(key).get(), nullptr, openssl::NoPassphrase, nullptr));
  ASSIGN_OR_RETURN(const std::string request, CertificateRequest(key));
  ASSIGN_OR_RETURN(const std::string public_key, PublicKeyOfRequest(request));
  // A name of its own tells it from those of other servers and from its own earlier ones.
  const std::string name = absl::StrCat("fusion worker authority ", Sha256Hex(public_key).substr(0, 16));
  const absl::Time now = clock_();
  Owned<X509> made = Begin(name, /*issuer=*/nullptr, keys_->key.get(), now - kBeginsBefore, now + kLifetime);
  X509* const one = made.get();
  const bool whole = one != nullptr && AddExtension(one, one, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
                     AddExtension(one, one, NID_key_usage, "critical,keyCertSign") &&
                     AddExtension(one, one, NID_subject_key_identifier, "hash") &&
                     X509_sign(one, keys_->key.get(), EVP_sha256()) > 0;
  if (!whole) return Failed("make the certificate of an authority");
  keys_->certificates.insert(keys_->certificates.begin(), std::move(made));
  std::string pem;
  for (const auto& certificate : keys_->certificates) {
    ASSIGN_OR_RETURN(const std::string each, PemOf(certificate.get()));
    pem += each;
  }
  return WriteFileAtomically(WorkerAuthorityCertificates(state_folder), pem);
}

absl::StatusOr<std::string> WorkerAuthority::Issue(const std::string& id, const std::string& public_key,
                                                   absl::Time ends) const {
  const auto* der = reinterpret_cast<const unsigned char*>(public_key.data());
  const Owned<EVP_PKEY> key(d2i_PUBKEY(nullptr, &der, static_cast<long>(public_key.size())));  // NOLINT: its type
  X509* const issuer = keys_->certificates.front().get();
  ASSIGN_OR_RETURN(const absl::Time authority_ends, EndOf(issuer));
  const Owned<X509> made = Begin(id, issuer, key.get(), clock_() - kBeginsBefore, std::min(ends, authority_ends));
  X509* const one = made.get();
  const bool whole = one != nullptr && AddExtension(one, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
                     AddExtension(one, issuer, NID_key_usage, "critical,digitalSignature") &&
                     AddExtension(one, issuer, NID_ext_key_usage, "clientAuth") &&
                     AddExtension(one, issuer, NID_authority_key_identifier, "keyid:always") &&
                     X509_sign(one, keys_->key.get(), EVP_sha256()) > 0;
  if (!whole) return Failed("make a worker's certificate");
  return PemOf(one);
}

std::optional<CertificateFacts> WorkerAuthority::FactsOf(absl::string_view certificate) const {
  const std::string digest = Sha256Hex(certificate);
  {
    absl::MutexLock lock(&mutex_);
    if (const auto said = said_.find(digest); said != said_.end()) return said->second;
  }
  std::optional<CertificateFacts> facts;
  const Owned<X509> parsed(
      PEM_read_bio_X509(openssl::Reads(certificate).get(), nullptr, openssl::NoPassphrase, nullptr));
  const bool ours = parsed != nullptr &&
                    std::any_of(keys_->certificates.begin(), keys_->certificates.end(), [&](const auto& authority) {
                      return X509_verify(parsed.get(), X509_get0_pubkey(authority.get())) == 1;
                    });
  ERR_clear_error();
  if (ours && X509_check_ca(parsed.get()) == 0) {
    if (absl::StatusOr<CertificateFacts> read = ReadCertificateFacts(certificate); read.ok()) facts = *std::move(read);
  }
  absl::MutexLock lock(&mutex_);
  if (said_.size() >= kMostSaid) said_.clear();  // strangers may come with any number of certificates
  said_[digest] = facts;
  return facts;
}

}  // namespace fusion
