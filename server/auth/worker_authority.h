// WorkerAuthority: the authority that makes certificates for workers which join by TLS. Its key lies in the state
// folder and is made at the first start. A certificate says which id calls, and the book of tokens says what that id
// may do: it also has the digest of the worker's key, so that whoever steals the authority's key is nobody yet.
#ifndef FUSION_SERVER_AUTH_WORKER_AUTHORITY_H_
#define FUSION_SERVER_AUTH_WORKER_AUTHORITY_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/channel/worker_certificate.h"

namespace fusion {

// The files of a state folder. The first holds no secret: the certificates of the authority, the present one first and
// then those of its earlier keys, by which workers are still known. The second has mode 0600.
std::string WorkerAuthorityCertificates(const std::string& state_folder);
std::string WorkerAuthorityKey(const std::string& state_folder);

// Thread-safe.
class WorkerAuthority {
 public:
  using Clock = std::function<absl::Time()>;

  static constexpr absl::Duration kLifetime = absl::Hours(24 * 3650);
  // An authority that ends within that time makes way for a new key at a start.
  static constexpr absl::Duration kLastTime = absl::Hours(24 * 365);

  // Reads key and certificates, or makes them: also where the key is missing, as in a backup, or is about to end. Fails
  // with INVALID_ARGUMENT if a file does not parse, or others may read the key.
  static absl::StatusOr<std::unique_ptr<WorkerAuthority>> Open(const std::string& state_folder, Clock clock);
  ~WorkerAuthority();

  // A certificate (PEM) for the worker with that id and public key (DER). Ends with the authority's at the latest.
  absl::StatusOr<std::string> Issue(const std::string& id, const std::string& public_key, absl::Time ends) const;

  // The facts of a certificate that this authority has made: its signature is of one of the authority's keys, whatever
  // names it states. Nothing for any other certificate. Says nothing about its age.
  std::optional<CertificateFacts> FactsOf(absl::string_view certificate) const;

  const std::string& certificates() const { return certificates_; }  // PEM

 private:
  struct Keys;
  explicit WorkerAuthority(Clock clock);
  absl::Status Read(const std::string& state_folder);
  absl::Status Make(const std::string& state_folder);

  const Clock clock_;
  std::unique_ptr<Keys> keys_;
  std::string certificates_;
  mutable absl::Mutex mutex_;
  // The answers of FactsOf, by the digest of the certificate: workers come with the same one again and again.
  mutable std::map<std::string, std::optional<CertificateFacts>> said_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusion

#endif  // FUSION_SERVER_AUTH_WORKER_AUTHORITY_H_
