// Retention: what the server keeps, for how long, and whether it is still sound. Thread-safe; calls run one at a time.
#ifndef FUSION_SERVER_RETENTION_RETENTION_H_
#define FUSION_SERVER_RETENTION_RETENTION_H_

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "db/stores/store.h"
#include "runtime/log/log.h"
#include "server/artifacts/artifact_store.h"

namespace fusion {

struct RetentionOptions {
  // Final jobs and what they name (models, bundles), and binaries, are kept that long. Infinite: for ever.
  absl::Duration keep = absl::Hours(24 * 30);
  // The blobs that rows need have at most that many bytes: else the oldest final jobs go before their time, unless they
  // are pinned. 0: no limit. Jobs that run, and binaries, may need more by themselves.
  int64_t keep_bytes = 0;
  // Final tasks are kept that long, for those who look for the reason of a failure.
  absl::Duration keep_tasks = absl::Hours(24);
  // Blobs that nothing names yet are kept that long: an upload comes before its submission.
  absl::Duration grace = absl::Hours(1);
};

class Retention {
 public:
  // `store` and `artifacts` must outlive the result.
  Retention(Store* store, ArtifactStore* artifacts, RetentionOptions options, Log log)
      : store_(store), artifacts_(artifacts), options_(options), log_(std::move(log)) {}
  ~Retention();
  const RetentionOptions& options() const { return options_; }

  // Calls this, too, with the time whose jobs are kept no longer (Unix milliseconds), each time such jobs go. Before
  // Start.
  void AlsoExpire(std::function<void(int64_t before_ms)> expire) { expire_.push_back(std::move(expire)); }

  // A file of the state folder that a backup holds, too, if it is there. Before Start.
  void AlsoBackUp(std::string path) { also_backed_up_.push_back(std::move(path)); }

  // Called, with DATA_LOSS, when the check behind a start finds that the database is damaged. Before Start.
  void OnDamage(std::function<void(const absl::Status&)> on_damage) { on_damage_ = std::move(on_damage); }

  // On a thread of its own, until the object is destroyed: reads what of the database the start has left unread
  // (Store::CheckTheRest), and collects every `period` from now on.
  void Start(absl::Duration period);

  struct Collected {
    ExpiredRows rows;
    ArtifactStore::Swept blobs;
  };
  absl::StatusOr<Collected> Collect(const RetentionOptions& options);

  // Called with how many of how many blobs are done. If it returns false, the work ends with CANCELLED.
  using Progress = std::function<bool(int64_t done, int64_t total)>;

  struct Finding {
    std::string what;  // "blob 3f9a… is damaged: the bundle of job j-…, …"
    bool mended = false;
  };
  struct Checked {
    int64_t blobs = 0, bytes = 0;
    std::vector<Finding> findings;
  };
  // Reads everything. With `repair`, blobs that are damaged or missing are set aside: the next one who needs such a
  // blob makes or uploads it again. Damage in the database itself is only named.
  absl::StatusOr<Checked> Check(bool repair, const Progress& progress);

  struct BackedUp {
    int64_t blobs = 0, bytes = 0;
  };
  // Makes `folder`, an absolute path that does not exist, a state folder as of one instant, on disk when the call
  // returns; it appears under its name only then. Fails with INVALID_ARGUMENT for another path, DATA_LOSS for a damaged
  // blob.
  absl::StatusOr<BackedUp> BackUp(const std::string& folder, const Progress& progress);

  // Removes measurements and returns how many.
  absl::StatusOr<int64_t> Prune(const PruneFilter& filter);

 private:
  // The digests of the blobs that rows need.
  absl::StatusOr<std::set<std::string>> Live();
  // Removes jobs until the blobs that rows need have at most `keep_bytes`.
  absl::Status ExpireBySize(int64_t keep_bytes, std::set<std::string>* live, ExpiredRows* expired);
  // Who needs each blob, in words.
  absl::StatusOr<std::map<std::string, std::vector<std::string>>> Owners();

  Store* const store_;
  ArtifactStore* const artifacts_;
  const RetentionOptions options_;
  const Log log_;
  std::vector<std::function<void(int64_t)>> expire_;
  std::vector<std::string> also_backed_up_;
  std::function<void(const absl::Status&)> on_damage_;
  absl::Mutex running_;
  absl::Notification stop_;
  std::thread thread_;
};

}  // namespace fusion

#endif  // FUSION_SERVER_RETENTION_RETENTION_H_
