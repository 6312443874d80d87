// CertificateRenewal: when a worker's certificate is replaced by a new one, which ends later. The key stays, so that
// certificate and key fit together at any moment.
#ifndef FUSION_WORKER_LEASE_CERTIFICATE_RENEWAL_H_
#define FUSION_WORKER_LEASE_CERTIFICATE_RENEWAL_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/channel/worker_certificate.h"
#include "runtime/log/log.h"

namespace fusion {

// One thread at a time.
class CertificateRenewal {
 public:
  using Ask = std::function<absl::StatusOr<std::string>()>;  // the server, for a certificate (PEM)
  using Clock = std::function<absl::Time()>;                 // dates, since certificates end at dates

  CertificateRenewal(std::string certificate_file, std::string key_file, Clock clock, Log log);

  // From two thirds of the certificate's life on: asks for a new one and keeps it in the file. Returns whether the file
  // has another one than before: connections should then be made anew, since those that exist keep theirs. A failure is
  // said in the log, and the server is asked again after a thousandth of the life.
  bool RenewIfDue(const Ask& ask);

 private:
  absl::Status Read();
  absl::Status Renew(const Ask& ask);

  const std::string certificate_file_, key_file_;
  const Clock clock_;
  const Log log_;
  CertificateFacts facts_;
  absl::Time due_ = absl::InfinitePast();
};

}  // namespace fusion

#endif  // FUSION_WORKER_LEASE_CERTIFICATE_RENEWAL_H_
