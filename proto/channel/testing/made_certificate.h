// Certificates for tests, of whatever name, authority and time. (tests/e2e has its own, made with the program openssl.)
#ifndef FUSION_PROTO_CHANNEL_TESTING_MADE_CERTIFICATE_H_
#define FUSION_PROTO_CHANNEL_TESTING_MADE_CERTIFICATE_H_

#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace fusion::testing {

struct MadeCertificate {
  std::string certificate, key;  // PEM
};

struct CertificateWish {
  std::string name;                         // the common name of its subject
  const MadeCertificate* issuer = nullptr;  // null: it signs itself
  std::string hosts = {};                   // "DNS:localhost"
  bool authority = false;                   // it may issue others
  std::string key = {};                     // PEM; "": a new one
  absl::Time begins = absl::Now() - absl::Hours(1), ends = absl::Now() + absl::Hours(24);
};

// Throws std::runtime_error if libcrypto fails.
MadeCertificate Make(const CertificateWish& wish);

// A private key (PEM) that claims the public key of `certificate` and has the secret of `key`.
std::string KeyThatClaims(const std::string& certificate, const std::string& key);

}  // namespace fusion::testing

#endif  // FUSION_PROTO_CHANNEL_TESTING_MADE_CERTIFICATE_H_
