// Connection: fusiond's services as plain calls. It is the only header through which the client speaks gRPC.
#ifndef FUSION_CLIENT_API_CONNECTION_H_
#define FUSION_CLIENT_API_CONNECTION_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/admin.pb.h"
#include "proto/auth.pb.h"
#include "proto/blob.pb.h"
#include "proto/channel/endpoint.h"
#include "proto/compile.pb.h"
#include "proto/profile.pb.h"
#include "proto/worker.pb.h"

namespace fusion {

inline constexpr int kAllRows = std::numeric_limits<int>::max();  // limit of a list
// The limit that an option names; 0: all.
inline int RowsOf(int64_t limit) { return limit <= 0 || limit > kAllRows ? kAllRows : static_cast<int>(limit); }

struct BlobSource {
  std::string digest;
  absl::string_view bytes;
};

// Thread-safe. Errors keep the server's code and message; UNAVAILABLE names the address.
class Connection {
 public:
  static std::unique_ptr<Connection> Open(const Endpoint& endpoint);  // does not connect yet
  virtual ~Connection() = default;

  virtual const std::string& address() const = 0;

  virtual absl::StatusOr<v1::Capabilities> GetCapabilities(absl::Duration timeout = absl::Seconds(10)) = 0;
  // Whether the server takes new work, as gRPC's health service says.
  virtual absl::StatusOr<bool> IsServing() = 0;
  virtual absl::StatusOr<v1::SubmitResponse> Submit(const v1::SubmitRequest& request) = 0;
  virtual absl::StatusOr<v1::PlanResponse> Plan(const v1::SubmitRequest& request) = 0;
  // Calls `event` for each event after `resume_seq` until the job ends, `event` returns false, or an error occurs.
  virtual absl::Status Watch(const std::string& job_id, int64_t resume_seq,
                             const std::function<bool(const v1::JobEvent&)>& event) = 0;
  virtual absl::StatusOr<v1::Job> GetJob(const std::string& job_id) = 0;
  // Lists ask for as many pages as they need: at most `limit` rows.
  virtual absl::StatusOr<v1::ListJobsResponse> ListJobs(int limit) = 0;
  virtual absl::StatusOr<v1::JobLogsResponse> JobLogs(const v1::JobLogsRequest& request) = 0;
  virtual absl::StatusOr<v1::Job> CancelJob(const std::string& job_id) = 0;
  virtual absl::StatusOr<v1::Job> PinJob(const std::string& job_id, bool pinned) = 0;

  // The signatures of a job's bundle, or of its early one, by the server's keys, as BUNDLE.sig has them; "": it has
  // none.
  virtual absl::StatusOr<std::string> Sign(const std::string& job_id, bool early) = 0;

  virtual absl::StatusOr<std::vector<std::string>> FindMissing(const std::vector<std::string>& digests) = 0;
  virtual absl::Status WriteBlobs(const std::vector<BlobSource>& blobs,
                                  const std::function<void(int64_t bytes)>& sent) = 0;
  // The bytes from `offset` on.
  virtual absl::Status ReadBlob(const std::string& digest, int64_t offset,
                                const std::function<absl::Status(absl::string_view)>& bytes) = 0;

  virtual absl::StatusOr<v1::CreateTokenResponse> CreateToken(const v1::CreateTokenRequest& request) = 0;
  virtual absl::StatusOr<v1::TokenInfo> RevokeToken(const std::string& id, bool with_joined) = 0;
  virtual absl::StatusOr<v1::ListTokensResponse> ListTokens(int limit = kAllRows) = 0;
  virtual absl::StatusOr<v1::ListWorkersResponse> ListWorkers(int limit = kAllRows) = 0;
  virtual absl::StatusOr<v1::DrainedWorker> DrainWorker(const v1::DrainWorkerRequest& request) = 0;
  virtual absl::StatusOr<v1::DrainedWorker> QuarantineWorker(const v1::QuarantineWorkerRequest& request) = 0;
  virtual absl::StatusOr<v1::DrainedWorker> ReleaseWorker(const v1::ReleaseWorkerRequest& request) = 0;
  virtual absl::StatusOr<v1::ProfileStats> ProfileStats() = 0;
  virtual absl::StatusOr<v1::ProfileQueryResponse> ProfileQuery(const v1::ProfileQueryRequest& request) = 0;
  // Takes records in the order of ProfileExport: devices, then measurements, newest first.
  virtual absl::StatusOr<v1::ProfileImportResponse> ProfileImport(const std::vector<v1::ProfileRecord>& records) = 0;
  virtual absl::Status ProfileExport(const v1::ProfileExportRequest& request,
                                     const std::function<absl::Status(const v1::ProfileRecord&)>& record) = 0;
  virtual absl::StatusOr<v1::PruneProfileResponse> PruneProfile(const v1::PruneProfileRequest& request) = 0;

  virtual absl::StatusOr<v1::CollectResponse> Collect(const v1::CollectRequest& request) = 0;
  // Calls `progress` with how many of how many files are done.
  using FileProgress = std::function<void(int64_t done, int64_t total)>;
  virtual absl::StatusOr<v1::CheckResult> Check(bool repair, const FileProgress& progress) = 0;
  virtual absl::StatusOr<v1::BackUpResult> BackUp(const std::string& folder, const FileProgress& progress) = 0;
};

// A Watch that survives restarts of the server: it attaches again after the last event seen, with growing pauses, until
// the job ends or the server has been away for `patience`. Calls `lost` with a message for people each time the server
// went away.
absl::Status WatchToEnd(Connection& connection, const std::string& job_id, int64_t resume_seq, absl::Duration patience,
                        const std::function<bool(const v1::JobEvent&)>& event,
                        const std::function<void(const std::string&)>& lost);

bool IsFinal(v1::JobState state);

}  // namespace fusion

#endif  // FUSION_CLIENT_API_CONNECTION_H_
