// The parts of ArtifactStore that take files away or look after them.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/status_macros.h"
#include "server/artifacts/artifact_store.h"

namespace fusion {
namespace {

constexpr int kBlobsPerStep = 256;  // while which nobody else finds or names a blob
constexpr int64_t kPieceBytes = 1 << 20;

}  // namespace

absl::Status ArtifactStore::SweepSome(absl::Span<const BlobRow> blobs, absl::Duration grace, Swept* swept) {
  absl::WriterMutexLock alone(&sweep_);
  const absl::Time since = clock_() - grace;
  std::vector<std::string> digests;
  int64_t bytes = 0;
  {
    absl::MutexLock lock(&mutex_);
    for (const BlobRow& blob : blobs) {
      const auto touched = touched_.find(blob.digest);
      if (touched != touched_.end() && touched->second > since) continue;
      digests.push_back(blob.digest);
      bytes += blob.size_bytes;
    }
  }
  if (digests.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(store_->RemoveBlobs(digests));  // a crash from here on leaves strays
  for (const std::string& digest : digests) {
    if (unlink(PathOf(digest).c_str()) != 0 && errno != ENOENT) {
      return ErrnoStatus(errno, absl::StrCat("cannot remove ", PathOf(digest)));
    }
  }
  swept->blobs += static_cast<int64_t>(digests.size());
  swept->bytes += bytes;
  return absl::OkStatus();
}

absl::Status ArtifactStore::SweepStrays(absl::Duration grace, Swept* swept) {
  std::error_code error;
  for (std::filesystem::directory_iterator folder(folder_, error), end; !error && folder != end;
       folder.increment(error)) {
    if (folder->path().filename().string().size() != 2) continue;
    absl::WriterMutexLock alone(&sweep_);
    std::vector<std::string> digests;
    for (std::filesystem::directory_iterator file(folder->path(), error), last; !error && file != last;
         file.increment(error)) {
      const std::string name = file->path().filename().string();
      if (IsDigest(name)) digests.push_back(name);
    }
    if (error) break;
    ASSIGN_OR_RETURN(const auto sizes, store_->BlobSizes(digests));
    for (size_t i = 0; i < digests.size(); ++i) {
      struct stat info;
      if (sizes[i].has_value() || stat(PathOf(digests[i]).c_str(), &info) != 0) continue;
      if (absl::Now() - absl::TimeFromTimespec(info.st_mtim) < grace) continue;
      if (unlink(PathOf(digests[i]).c_str()) == 0) ++swept->strays;
    }
  }
  return error ? ErrnoStatus(error.value(), absl::StrCat("cannot list ", folder_)) : absl::OkStatus();
}

absl::StatusOr<ArtifactStore::Swept> ArtifactStore::Sweep(const std::function<bool(const std::string&)>& is_live,
                                                          absl::Duration grace) {
  Swept swept;
  const int64_t young_ms = absl::ToUnixMillis(absl::Now() - grace);
  std::string after;
  while (true) {
    ASSIGN_OR_RETURN(const std::vector<BlobRow> blobs, store_->Blobs(after, kBlobsPerStep));
    if (blobs.empty()) break;
    after = blobs.back().digest;
    std::vector<BlobRow> unused;
    std::copy_if(blobs.begin(), blobs.end(), std::back_inserter(unused),
                 [&](const BlobRow& blob) { return !is_live(blob.digest) && blob.created_ms <= young_ms; });
    RETURN_IF_ERROR(SweepSome(unused, grace, &swept));
  }
  RETURN_IF_ERROR(SweepStrays(grace, &swept));
  absl::MutexLock lock(&mutex_);
  const absl::Time since = clock_() - grace;
  std::erase_if(touched_, [&](const auto& entry) { return entry.second <= since; });
  return swept;
}

absl::StatusOr<ArtifactStore::Condition> ArtifactStore::Examine(const std::string& digest) {
  if (const absl::Status there = SizeBytes(digest).status(); !there.ok()) {
    if (!absl::IsNotFound(there)) return there;
    struct stat info;
    return stat(PathOf(digest).c_str(), &info) == 0 ? Condition::kDamaged : Condition::kMissing;
  }
  const absl::Status read = Stream(digest, 0, kPieceBytes, [](absl::string_view) { return absl::OkStatus(); });
  if (read.ok()) return Condition::kGood;
  return absl::IsNotFound(read) ? Condition::kMissing : Condition::kDamaged;
}

absl::Status ArtifactStore::SetAside(const std::string& digest) {
  absl::WriterMutexLock alone(&sweep_);
  RETURN_IF_ERROR(store_->RemoveBlobs({digest}));
  const std::string damaged = absl::StrCat(folder_, "/damaged");
  if (mkdir(damaged.c_str(), 0700) != 0 && errno != EEXIST) {
    return ErrnoStatus(errno, absl::StrCat("cannot make ", damaged));
  }
  if (rename(PathOf(digest).c_str(), absl::StrCat(damaged, "/", digest).c_str()) != 0 && errno != ENOENT) {
    return ErrnoStatus(errno, absl::StrCat("cannot move ", PathOf(digest)));
  }
  return absl::OkStatus();
}

absl::Status ArtifactStore::CopyTo(const std::string& digest, const std::string& folder) {
  const std::string parent = absl::StrCat(folder, "/", digest.substr(0, 2));
  std::error_code error;
  std::filesystem::create_directories(parent, error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("cannot make ", parent));
  const std::string path = absl::StrCat(parent, "/", digest);
  std::ofstream copy(path, std::ios::binary);
  RETURN_IF_ERROR(Stream(digest, 0, kPieceBytes, [&](absl::string_view piece) {
    copy.write(piece.data(), static_cast<std::streamsize>(piece.size()));
    return copy ? absl::OkStatus() : ErrnoStatus(errno, absl::StrCat("cannot write ", path));
  }));
  copy.close();
  return copy ? absl::OkStatus() : ErrnoStatus(errno, absl::StrCat("cannot write ", path));
}

}  // namespace fusion
