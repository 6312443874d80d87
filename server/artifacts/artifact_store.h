// ArtifactStore: content-addressed files in one folder, at `ab/abcd…` for their SHA-256. A file appears by rename after
// its bytes and its folder are on disk, and gets its row only then, so a file with a row is complete. Only Sweep and
// SetAside take files away. The payloads of tasks (payload_files.h) can be read by their digests, too. Thread-safe.
#ifndef FUSION_SERVER_ARTIFACTS_ARTIFACT_STORE_H_
#define FUSION_SERVER_ARTIFACTS_ARTIFACT_STORE_H_

#include <cstdint>
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
#include "absl/types/span.h"
#include "db/stores/store.h"
#include "runtime/base/errno_status.h"
#include "runtime/base/sha256.h"
#include "runtime/base/steady_clock.h"
#include "server/artifacts/payload_files.h"

namespace fusion {

// Whether `text` is 64 lower-case hex digits.
bool IsDigest(const std::string& text);

struct Artifact {
  std::string digest;
  int64_t size_bytes = 0;
};

class ArtifactStore {
 public:
  // Creates `folder` if needed and empties its `tmp`. `store` must outlive the result.
  static absl::StatusOr<std::unique_ptr<ArtifactStore>> Open(const std::string& folder, Store* store,
                                                             SteadyClock clock = SteadyNow);

  // Calls this, before anybody is answered, when a sync of a blob or of its folder has failed, unless the disk was
  // full. It should end the process, because a second sync may succeed although nothing was written. Before the first
  // call of another method.
  void OnFailedSync(std::function<void(const absl::Status&)> on_failed_sync) {
    on_failed_sync_ = std::move(on_failed_sync);
  }

  // Calls this when a blob or a payload cannot be written. Before the first call of another method.
  void OnFailedWrite(std::function<void(const absl::Status&)> on_failed) {
    payloads_->OnFailedWrite(on_failed);
    on_failed_write_ = std::move(on_failed);
  }
  // Writes a file that nobody wants where blobs and payloads are written, and removes it.
  absl::Status TryToWrite() const;

  absl::StatusOr<Artifact> Put(absl::string_view bytes);
  // The same for several, which share the syncs of their folders and one commit. The result is parallel to `blobs`.
  absl::StatusOr<std::vector<Artifact>> PutAll(const std::vector<absl::string_view>& blobs);
  // Takes over a finished file on the same file system by renaming it, for this tenant.
  absl::StatusOr<Artifact> Adopt(const std::string& path, const std::string& tenant = "");
  // Fails with NOT_FOUND and names the digest.
  absl::StatusOr<std::string> Get(const std::string& digest);

  // A file that stays where it is and can be read by its digest, but is not kept: until the object is destroyed,
  // `Stream` and `Get` find it.
  class Lent {
   public:
    ~Lent();
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;
    const Artifact& artifact() const { return artifact_; }

   private:
    friend class ArtifactStore;
    Lent(ArtifactStore* store, Artifact artifact, std::string path)
        : store_(store), artifact_(std::move(artifact)), path_(std::move(path)) {}
    ArtifactStore* store_;
    const Artifact artifact_;
    const std::string path_;
  };
  // The file must not change while it is lent. For bundles that a worker needs for one task.
  absl::StatusOr<std::unique_ptr<Lent>> Lend(const std::string& path);
  PayloadFiles& payloads() { return *payloads_; }

  // Calls `sink` with pieces of at most `piece_bytes`, beginning at `offset`. Stops at the first error of `sink` and
  // returns it. A kept blob or a payload that is read from its beginning is held to its digest: DATA_LOSS after the
  // last piece names it.
  absl::Status Stream(const std::string& digest, int64_t offset, int64_t piece_bytes,
                      const std::function<absl::Status(absl::string_view)>& sink);
  // Those that are not there for the tenant, whoever else may have them.
  absl::StatusOr<std::vector<std::string>> Missing(absl::Span<const std::string> digests,
                                                   const std::string& tenant = "");
  // Returns the size, or NOT_FOUND.
  absl::StatusOr<int64_t> SizeBytes(const std::string& digest);
  // The file of a blob, to be read at once: it may leave when no row needs it any more. NOT_FOUND.
  absl::StatusOr<std::string> FileOf(const std::string& digest);
  int64_t FreeBytes() const;  // of the file system; -1 if it does not report that

  struct Swept {
    int64_t blobs = 0, bytes = 0;
    int64_t strays = 0;  // files without a row: a crash came between the two
  };
  // Removes blobs that `is_live` does not name, their rows first. Whoever has just put a blob, or has just been told
  // that it is there, is about to refer to it: what was put, read or asked for within the last `grace` stays, and so
  // does a blob that is no older. Other calls wait for a few hundred files at most.
  absl::StatusOr<Swept> Sweep(const std::function<bool(const std::string& digest)>& is_live, absl::Duration grace);

  // The state of a blob's bytes.
  enum class Condition { kGood, kMissing, kDamaged };
  absl::StatusOr<Condition> Examine(const std::string& digest);
  // Takes away a blob's row, so that it counts as missing and is made or uploaded again, and moves what is left of its
  // file to `damaged/`.
  absl::Status SetAside(const std::string& digest);
  // Copies a blob's file to its place below another folder of the same layout, and holds it to its digest (DATA_LOSS).
  // The copy is not synced.
  absl::Status CopyTo(const std::string& digest, const std::string& folder);

  // A file that is being written. Destroying it unfinished leaves nothing behind.
  class Upload {
   public:
    ~Upload();
    Upload(const Upload&) = delete;
    Upload& operator=(const Upload&) = delete;
    absl::Status Append(absl::string_view bytes);
    int64_t size_bytes() const { return size_bytes_; }
    // Ends the bytes. Fails with DATA_LOSS if the digest differs from `expected`. "" accepts any digest.
    absl::Status Seal(const std::string& expected);

   private:
    friend class ArtifactStore;
    Upload(ArtifactStore* store, std::string path, int fd) : store_(store), path_(std::move(path)), fd_(fd) {}
    ArtifactStore* store_;
    std::string path_;
    int fd_;
    int64_t size_bytes_ = 0;
    Sha256 hash_;
    std::string digest_;  // once sealed
  };
  absl::StatusOr<std::unique_ptr<Upload>> Begin();
  // Makes sealed uploads durable and gives them their names and rows. If this fails, some may have names, but none has
  // a row. Several uploads together share the syncs of their folders and the commit of their rows.
  // They are the tenant's from then on, too.
  absl::Status Install(absl::Span<const std::unique_ptr<Upload>> uploads, const std::string& tenant = "");

 private:
  ArtifactStore(std::string folder, Store* store, SteadyClock clock, std::unique_ptr<PayloadFiles> payloads)
      : folder_(std::move(folder)), store_(store), clock_(std::move(clock)), payloads_(std::move(payloads)) {}
  std::string PathOf(const std::string& digest) const;
  absl::Status Sync(int fd, const std::string& path) const;
  // Reports a write that failed. Returns its status.
  absl::Status Told(absl::Status written) const;
  struct Place {
    std::string path;
    int64_t size_bytes = 0;
    bool lent = false;
  };
  // Returns where a blob's bytes are now: lent, a payload, or kept.
  absl::StatusOr<Place> Find(const std::string& digest);
  struct Finished {
    std::string path;
    Artifact artifact;
  };
  // Gives complete and synced files their names, makes the names durable, and then adds all rows.
  absl::Status Name(absl::Span<const Finished> files, const std::string& tenant);
  bool IsThere(const std::string& digest, std::optional<int64_t> size_bytes) const;
  void Touch(const std::string& digest);
  // Removes those of a few blobs that may go, under the exclusive lock.
  absl::Status SweepSome(absl::Span<const BlobRow> blobs, absl::Duration grace, Swept* swept);
  absl::Status SweepStrays(absl::Duration grace, Swept* swept);

  const std::string folder_;
  Store* const store_;
  const SteadyClock clock_;
  const std::unique_ptr<PayloadFiles> payloads_;
  std::function<void(const absl::Status&)> on_failed_sync_, on_failed_write_;  // may be empty
  // A sweep holds it alone while it removes blobs; whoever finds or names a blob shares it, from the look at the row
  // to the note in `touched_`, or from the name to the row.
  absl::Mutex sweep_;
  absl::Mutex mutex_;
  std::map<std::string, absl::Time> touched_ ABSL_GUARDED_BY(mutex_);  // since the last sweep
  std::multimap<std::string, Place> lent_ ABSL_GUARDED_BY(mutex_);     // by digest: equal files may be lent twice
};

}  // namespace fusion

#endif  // FUSION_SERVER_ARTIFACTS_ARTIFACT_STORE_H_
