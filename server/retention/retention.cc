#include "server/retention/retention.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "proto/compile.pb.h"
#include "runtime/base/errno_status.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/steady_clock.h"

namespace fusion {
namespace {

constexpr int kRowsPerStep = 500;            // while which no other write is committed
constexpr int kMeasurementsPerStep = 20000;  // each step may look at all rows that stay
constexpr int kBlobsPerStep = 1000;
constexpr size_t kOwnersInWords = 3;

int64_t Before(absl::Time now, absl::Duration keep) {
  return keep == absl::InfiniteDuration() ? 0 : absl::ToUnixMillis(now - keep);
}

// Calls `on_chunk` for each chunk of the model that a serialised request names.
void ForEachChunk(const std::string& request, const std::function<void(const std::string&)>& on_chunk) {
  v1::SubmitRequest parsed;
  if (!parsed.ParseFromString(request)) return;  // of a test's row
  for (const v1::ModelFile& file : parsed.files()) {
    for (const std::string& digest : file.chunk_digests()) on_chunk(digest);
  }
}

std::string InWords(const Reference& reference) {
  switch (reference.kind) {
    case ReferenceKind::kBundle:
      return absl::StrCat("the bundle of job ", reference.owner);
    case ReferenceKind::kResult:
      return "the answer to equal submissions";
    case ReferenceKind::kBinary:
      return absl::StrCat("the binary of build ", reference.owner.substr(0, 12));
    case ReferenceKind::kModel:
      return absl::StrCat("a part of the model of job ", reference.owner);
  }
  return "";
}

std::string InWords(const std::string& digest, const char* condition, const std::vector<std::string>& owners) {
  if (owners.empty()) return absl::StrCat("blob ", digest, " is ", condition, "; nothing needs it");
  const std::vector<std::string> first(owners.begin(), owners.begin() + std::min(owners.size(), kOwnersInWords));
  const std::string more =
      owners.size() > first.size() ? absl::StrCat(" and ", owners.size() - first.size(), " more") : "";
  return absl::StrCat("blob ", digest, " is ", condition, ": ", absl::StrJoin(first, ", "), more);
}

absl::Status SyncFileSystemOf(const std::string& folder) {
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot open ", folder));
  const int failed = syncfs(fd) == 0 ? 0 : errno;
  close(fd);
  return failed == 0 ? absl::OkStatus() : ErrnoStatus(failed, absl::StrCat("cannot sync ", folder));
}

absl::StatusOr<std::vector<BlobRow>> AllBlobs(Store& store) {
  std::vector<BlobRow> blobs;
  while (true) {
    ASSIGN_OR_RETURN(const std::vector<BlobRow> some,
                     store.Blobs(blobs.empty() ? "" : blobs.back().digest, kBlobsPerStep));
    if (some.empty()) return blobs;
    blobs.insert(blobs.end(), some.begin(), some.end());
  }
}

absl::Status Cancelled() { return absl::CancelledError("the caller has gone"); }

}  // namespace

Retention::~Retention() {
  stop_.Notify();
  if (thread_.joinable()) thread_.join();
}

void Retention::Start(absl::Duration period) {
  thread_ = std::thread([this, period] {
    const absl::Time began = SteadyNow();
    const absl::Status checked = store_->CheckTheRest([this] { return stop_.HasBeenNotified(); });
    if (checked.ok()) {
      log_({LogLevel::kInfo,
            "checked the database",
            {{"seconds", absl::StrFormat("%.1f", absl::ToDoubleSeconds(SteadyNow() - began))}}});
    } else if (!stop_.HasBeenNotified()) {
      log_({LogLevel::kError, "checking the database failed", {{"error", checked.ToString()}}});
      if (absl::IsDataLoss(checked) && on_damage_) on_damage_(checked);
    }
    while (!stop_.WaitForNotificationWithTimeout(period)) {
      const absl::StatusOr<Collected> collected = Collect(options_);
      if (!collected.ok()) log_({LogLevel::kError, "collecting failed", {{"error", collected.status().ToString()}}});
    }
  });
}

absl::StatusOr<std::set<std::string>> Retention::Live() {
  std::set<std::string> live;
  RETURN_IF_ERROR(store_->ScanReferences([&](const Reference& reference) { live.insert(reference.digest); },
                                         [&](const std::string&, const std::string& request) {
                                           ForEachChunk(request,
                                                        [&](const std::string& digest) { live.insert(digest); });
                                         }));
  return live;
}

absl::Status Retention::ExpireBySize(int64_t keep_bytes, std::set<std::string>* live, ExpiredRows* expired) {
  ASSIGN_OR_RETURN(const std::vector<BlobRow> blobs, AllBlobs(*store_));
  while (!stop_.HasBeenNotified()) {
    int64_t bytes = 0;
    for (const BlobRow& blob : blobs) bytes += live->count(blob.digest) > 0 ? blob.size_bytes : 0;
    if (bytes <= keep_bytes) break;
    ASSIGN_OR_RETURN(const ExpiredRows some, store_->ExpireOldestJobs(kRowsPerStep));
    if (some.jobs == 0) {
      log_({LogLevel::kWarning,
            "jobs that are pinned or run, and binaries, need more than --keep-bytes",
            {{"bytes", absl::StrCat(bytes)}, {"keep_bytes", absl::StrCat(keep_bytes)}}});
      break;
    }
    expired->jobs += some.jobs, expired->results += some.results;
    ASSIGN_OR_RETURN(*live, Live());
  }
  return absl::OkStatus();
}

absl::StatusOr<Retention::Collected> Retention::Collect(const RetentionOptions& options) {
  absl::MutexLock lock(&running_);
  const absl::Time now = absl::Now();
  const Cutoffs before{Before(now, options.keep), Before(now, options.keep_tasks), Before(now, options.keep)};
  Collected all;
  while (!stop_.HasBeenNotified()) {
    ASSIGN_OR_RETURN(const ExpiredRows some, store_->ExpireRows(before, kRowsPerStep));
    all.rows.jobs += some.jobs, all.rows.results += some.results;
    all.rows.tasks += some.tasks, all.rows.builds += some.builds;
    if (some.jobs + some.results + some.tasks + some.builds == 0) break;
  }
  for (const auto& expire : expire_) expire(before.jobs_ms);
  ASSIGN_OR_RETURN(std::set<std::string> live, Live());
  if (options.keep_bytes > 0) RETURN_IF_ERROR(ExpireBySize(options.keep_bytes, &live, &all.rows));
  ASSIGN_OR_RETURN(
      all.blobs, artifacts_->Sweep([&](const std::string& digest) { return live.count(digest) != 0; }, options.grace));
  log_({LogLevel::kInfo,
        "collected",
        {{"jobs", absl::StrCat(all.rows.jobs)},
         {"results", absl::StrCat(all.rows.results)},
         {"tasks", absl::StrCat(all.rows.tasks)},
         {"builds", absl::StrCat(all.rows.builds)},
         {"blobs", absl::StrCat(all.blobs.blobs)},
         {"bytes", absl::StrCat(all.blobs.bytes)},
         {"strays", absl::StrCat(all.blobs.strays)}}});
  return all;
}

absl::StatusOr<std::map<std::string, std::vector<std::string>>> Retention::Owners() {
  std::map<std::string, std::vector<std::string>> owners;
  RETURN_IF_ERROR(store_->ScanReferences(
      [&](const Reference& reference) { owners[reference.digest].push_back(InWords(reference)); },
      [&](const std::string& job, const std::string& request) {
        ForEachChunk(request, [&](const std::string& digest) {
          owners[digest].push_back(InWords(Reference{ReferenceKind::kModel, digest, job}));
        });
      }));
  return owners;
}

absl::StatusOr<Retention::Checked> Retention::Check(bool repair, const Progress& progress) {
  absl::MutexLock lock(&running_);
  Checked checked;
  ASSIGN_OR_RETURN(const std::vector<std::string> faults, store_->Faults());
  for (const std::string& fault : faults) checked.findings.push_back({absl::StrCat("database: ", fault)});
  ASSIGN_OR_RETURN(auto owners, Owners());
  ASSIGN_OR_RETURN(const std::vector<BlobRow> blobs, AllBlobs(*store_));
  const int64_t total = static_cast<int64_t>(blobs.size());
  for (const BlobRow& blob : blobs) {
    if (!progress(checked.blobs, total) || stop_.HasBeenNotified()) return Cancelled();
    ASSIGN_OR_RETURN(const ArtifactStore::Condition condition, artifacts_->Examine(blob.digest));
    ++checked.blobs;
    checked.bytes += blob.size_bytes;
    std::vector<std::string> needed_by = std::move(owners[blob.digest]);
    owners.erase(blob.digest);
    if (condition == ArtifactStore::Condition::kGood) continue;
    const char* word = condition == ArtifactStore::Condition::kMissing ? "missing" : "damaged";
    if (repair) RETURN_IF_ERROR(artifacts_->SetAside(blob.digest));
    checked.findings.push_back({InWords(blob.digest, word, needed_by), repair});
    log_({LogLevel::kError, "damaged", {{"what", checked.findings.back().what}, {"mended", repair ? "yes" : "no"}}});
  }
  // A row without its blob: the blob was set aside earlier, and nobody has needed it since.
  for (const auto& [digest, needed_by] : owners) {
    if (artifacts_->SizeBytes(digest).ok()) continue;  // it came in the meantime
    checked.findings.push_back({InWords(digest, "missing", needed_by), true});
  }
  progress(total, total);
  return checked;
}

absl::StatusOr<Retention::BackedUp> Retention::BackUp(const std::string& folder, const Progress& progress) {
  absl::MutexLock lock(&running_);
  const std::filesystem::path target = std::filesystem::path(folder).lexically_normal();
  std::error_code error;
  if (!target.is_absolute() || target.filename().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", folder, "' is no absolute path of a new folder on the server's machine"));
  }
  if (std::filesystem::symlink_status(target, error).type() != std::filesystem::file_type::not_found) {
    return absl::InvalidArgumentError(absl::StrCat(folder, " exists on the server's machine; name a new folder"));
  }
  const std::string partial = absl::StrCat(target.string(), ".partial");
  std::filesystem::remove_all(partial, error);
  std::filesystem::create_directory(partial, error);
  if (error) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot make ", partial, " on the server's machine: ", error.message()));
  }
  auto cleanup = absl::MakeCleanup([&partial] {
    std::error_code ignored;
    std::filesystem::remove_all(partial, ignored);
  });
  std::filesystem::permissions(partial, std::filesystem::perms::owner_all, error);
  // Rows first: no blob of theirs goes while this call runs, and blobs that come later do no harm.
  RETURN_IF_ERROR(store_->BackUp(absl::StrCat(partial, "/fusion.db")));
  std::vector<BlobRow> blobs;
  {
    ASSIGN_OR_RETURN(const auto copied, OpenSqliteStore(absl::StrCat(partial, "/fusion.db")));
    ASSIGN_OR_RETURN(blobs, AllBlobs(*copied));
  }
  BackedUp backed_up;
  for (const BlobRow& blob : blobs) {
    if (!progress(backed_up.blobs, static_cast<int64_t>(blobs.size())) || stop_.HasBeenNotified()) return Cancelled();
    const absl::Status copy = artifacts_->CopyTo(blob.digest, absl::StrCat(partial, "/blobs"));
    if (absl::IsNotFound(copy)) continue;  // it was missing before: 'check' names it
    RETURN_IF_ERROR(copy);
    ++backed_up.blobs;
    backed_up.bytes += blob.size_bytes;
  }
  for (const std::string& file : also_backed_up_) {
    if (!std::filesystem::exists(file, error)) continue;
    std::filesystem::copy_file(file, std::filesystem::path(partial) / std::filesystem::path(file).filename(), error);
    if (error) return ErrnoStatus(error.value(), absl::StrCat("cannot copy ", file));
  }
  RETURN_IF_ERROR(SyncFileSystemOf(partial));
  std::filesystem::rename(partial, target, error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("cannot rename ", partial));
  std::move(cleanup).Cancel();
  RETURN_IF_ERROR(SyncFileSystemOf(target.parent_path().string()));
  progress(backed_up.blobs, static_cast<int64_t>(blobs.size()));
  return backed_up;
}

absl::StatusOr<int64_t> Retention::Prune(const PruneFilter& filter) {
  absl::MutexLock lock(&running_);
  int64_t removed = 0;
  while (!stop_.HasBeenNotified()) {
    ASSIGN_OR_RETURN(const int64_t some, store_->PruneMeasurements(filter, kMeasurementsPerStep));
    removed += some;
    if (some == 0) break;
  }
  return removed;
}

}  // namespace fusion
