#include "worker/lease/certificate_renewal.h"

#include <utility>

#include "proto/channel/endpoint.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

std::string Day(absl::Time time) { return absl::FormatTime("%Y-%m-%d %H:%M UTC", time, absl::UTCTimeZone()); }

absl::Duration Life(const CertificateFacts& facts) { return facts.ends - facts.begins; }

}  // namespace

CertificateRenewal::CertificateRenewal(std::string certificate_file, std::string key_file, Clock clock, Log log)
    : certificate_file_(std::move(certificate_file)),
      key_file_(std::move(key_file)),
      clock_(std::move(clock)),
      log_(std::move(log)) {
  if (const absl::Status read = Read(); !read.ok()) {
    log_({LogLevel::kError, "this worker's certificate cannot be renewed", {{"error", read.ToString()}}});
    due_ = absl::InfiniteFuture();
  }
}

absl::Status CertificateRenewal::Read() {
  ASSIGN_OR_RETURN(const std::string pem, ReadSecretFile(certificate_file_));
  ASSIGN_OR_RETURN(facts_, ReadCertificateFacts(pem));
  due_ = facts_.begins + Life(facts_) * 2 / 3;
  return absl::OkStatus();
}

absl::Status CertificateRenewal::Renew(const Ask& ask) {
  ASSIGN_OR_RETURN(const std::string pem, ask());
  ASSIGN_OR_RETURN(const CertificateFacts renewed, ReadCertificateFacts(pem));
  ASSIGN_OR_RETURN(const std::string key, ReadSecretFile(key_file_));
  if (!IsCertificateOfKey(pem, key)) return absl::InternalError("the server's answer is for another key");
  if (renewed.ends <= facts_.ends) return absl::InternalError("the server's answer ends no later");
  RETURN_IF_ERROR(WriteFileAtomically(certificate_file_, pem, 0600));
  return Read();
}

bool CertificateRenewal::RenewIfDue(const Ask& ask) {
  const absl::Time now = clock_();
  if (now < due_) return false;
  if (const absl::Status renewed = Renew(ask); !renewed.ok()) {
    due_ = now + Life(facts_) / 1000;
    log_({LogLevel::kWarning,
          "this worker's certificate is not renewed yet",
          {{"until", Day(facts_.ends)}, {"error", std::string(renewed.message())}}});
    return false;
  }
  log_({LogLevel::kInfo, "this worker has a new certificate", {{"until", Day(facts_.ends)}}});
  return true;
}

}  // namespace fusion
