#include "server/artifacts/artifact_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/status_macros.h"

namespace fusion {

namespace {

// Reads the open file from its present offset to its end.
absl::StatusOr<Artifact> DigestOf(int fd, const std::string& path) {
  Sha256 hash;
  int64_t size_bytes = 0;
  struct stat info;
  if (fstat(fd, &info) != 0) return ErrnoStatus(errno, absl::StrCat("cannot look at ", path));
  // Most files are small.
  std::string buffer(std::clamp<size_t>(static_cast<size_t>(info.st_size), 1, 1 << 20), '\0');
  while (true) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, absl::StrCat("cannot read ", path));
    if (got == 0) break;
    hash.Update(absl::string_view(buffer.data(), static_cast<size_t>(got)));
    size_bytes += got;
  }
  return Artifact{hash.FinishHex(), size_bytes};
}

}  // namespace

bool IsDigest(const std::string& text) {
  return text.size() == 64 &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

absl::StatusOr<std::unique_ptr<ArtifactStore>> ArtifactStore::Open(const std::string& folder, Store* store,
                                                                   SteadyClock clock) {
  std::error_code error;
  std::filesystem::remove_all(absl::StrCat(folder, "/tmp"), error);
  std::filesystem::create_directories(absl::StrCat(folder, "/tmp"), error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("cannot make ", folder, "/tmp"));
  ASSIGN_OR_RETURN(std::unique_ptr<PayloadFiles> payloads, PayloadFiles::Open(absl::StrCat(folder, "/payloads")));
  return std::unique_ptr<ArtifactStore>(new ArtifactStore(folder, store, std::move(clock), std::move(payloads)));
}

std::string ArtifactStore::PathOf(const std::string& digest) const {
  return absl::StrCat(folder_, "/", digest.substr(0, 2), "/", digest);
}

absl::StatusOr<std::unique_ptr<ArtifactStore::Upload>> ArtifactStore::Begin() {
  std::string path = absl::StrCat(folder_, "/tmp/upload-XXXXXX");
  const int fd = mkostemp(path.data(), O_CLOEXEC);
  if (fd < 0) return Told(ErrnoStatus(errno, absl::StrCat("cannot create ", path)));
  return std::unique_ptr<Upload>(new Upload(this, path, fd));
}

ArtifactStore::Upload::~Upload() {
  if (fd_ >= 0) close(fd_);
  if (!path_.empty()) unlink(path_.c_str());
}

absl::Status ArtifactStore::Upload::Append(absl::string_view bytes) {
  hash_.Update(bytes);
  size_bytes_ += static_cast<int64_t>(bytes.size());
  while (!bytes.empty()) {
    const ssize_t written = write(fd_, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return store_->Told(ErrnoStatus(errno, "cannot write to the artifact store"));
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status ArtifactStore::Upload::Seal(const std::string& expected) {
  digest_ = hash_.FinishHex();
  if (expected.empty() || digest_ == expected) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("the bytes have digest ", digest_, ", declared was ", expected));
}

absl::Status ArtifactStore::Told(absl::Status written) const {
  if (!written.ok() && on_failed_write_) on_failed_write_(written);
  return written;
}

absl::Status ArtifactStore::TryToWrite() const {
  RETURN_IF_ERROR(TryToWriteBelow(absl::StrCat(folder_, "/tmp")));
  return payloads_->TryToWrite();
}

absl::Status ArtifactStore::Sync(int fd, const std::string& path) const {
  if (fsync(fd) == 0) return absl::OkStatus();
  const int error = errno;
  absl::Status failed = ErrnoStatus(error, absl::StrCat("cannot sync ", path));
  if (on_failed_sync_ && error != ENOSPC && error != EDQUOT) on_failed_sync_(failed);
  return failed;
}

absl::Status ArtifactStore::Install(absl::Span<const std::unique_ptr<Upload>> uploads, const std::string& tenant) {
  // The disk writes all of them while the first is waited for.
  for (const std::unique_ptr<Upload>& upload : uploads) sync_file_range(upload->fd_, 0, 0, SYNC_FILE_RANGE_WRITE);
  std::vector<Finished> files;
  for (const std::unique_ptr<Upload>& upload : uploads) {
    if (absl::Status synced = Sync(upload->fd_, upload->path_); !synced.ok()) return Told(std::move(synced));
    files.push_back({upload->path_, {upload->digest_, upload->size_bytes_}});
  }
  RETURN_IF_ERROR(Told(Name(files, tenant)));
  for (const std::unique_ptr<Upload>& upload : uploads) upload->path_.clear();
  return absl::OkStatus();
}

absl::Status ArtifactStore::Name(absl::Span<const Finished> files, const std::string& tenant) {
  absl::ReaderMutexLock no_sweep(&sweep_);
  for (const Finished& file : files) Touch(file.artifact.digest);
  std::set<std::string> folders;
  std::vector<BlobRow> rows;
  for (const Finished& file : files) {
    const std::string target = PathOf(file.artifact.digest);
    const std::string parent = target.substr(0, target.rfind('/'));
    if (mkdir(parent.c_str(), 0755) != 0 && errno != EEXIST) {
      return ErrnoStatus(errno, absl::StrCat("cannot make ", parent));
    }
    if (rename(file.path.c_str(), target.c_str()) != 0) {
      return ErrnoStatus(errno, absl::StrCat("cannot rename to ", target));
    }
    folders.insert(parent);
    rows.push_back({file.artifact.digest, file.artifact.size_bytes, absl::ToUnixMillis(absl::Now())});
  }
  folders.insert(folder_);
  for (const std::string& folder : folders) {
    const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot open ", folder));
    const absl::Status synced = Sync(fd, folder);
    close(fd);
    RETURN_IF_ERROR(synced);
  }
  return store_->PutBlobs(rows, tenant);
}

absl::StatusOr<Artifact> ArtifactStore::Put(absl::string_view bytes) {
  ASSIGN_OR_RETURN(std::vector<Artifact> artifacts, PutAll({bytes}));
  return std::move(artifacts.front());
}

absl::StatusOr<std::vector<Artifact>> ArtifactStore::PutAll(const std::vector<absl::string_view>& blobs) {
  std::vector<Artifact> artifacts;
  std::vector<std::unique_ptr<Upload>> uploads;
  for (const absl::string_view bytes : blobs) {
    artifacts.push_back({Sha256Hex(bytes), static_cast<int64_t>(bytes.size())});
    if (SizeBytes(artifacts.back().digest).ok()) continue;
    ASSIGN_OR_RETURN(std::unique_ptr<Upload> upload, Begin());
    RETURN_IF_ERROR(upload->Append(bytes));
    RETURN_IF_ERROR(upload->Seal(artifacts.back().digest));
    uploads.push_back(std::move(upload));
  }
  if (!uploads.empty()) RETURN_IF_ERROR(Install(uploads));
  return artifacts;
}

absl::StatusOr<Artifact> ArtifactStore::Adopt(const std::string& path, const std::string& tenant) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
  auto closer = absl::MakeCleanup([fd] { close(fd); });
  ASSIGN_OR_RETURN(const Artifact artifact, DigestOf(fd, path));
  if (absl::Status synced = Sync(fd, path); !synced.ok()) return Told(std::move(synced));
  RETURN_IF_ERROR(Told(Name({{path, artifact}}, tenant)));
  return artifact;
}

absl::StatusOr<std::unique_ptr<ArtifactStore::Lent>> ArtifactStore::Lend(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
  auto closer = absl::MakeCleanup([fd] { close(fd); });
  ASSIGN_OR_RETURN(Artifact artifact, DigestOf(fd, path));
  absl::MutexLock lock(&mutex_);
  lent_.emplace(artifact.digest, Place{path, artifact.size_bytes, true});
  return std::unique_ptr<Lent>(new Lent(this, std::move(artifact), path));
}

ArtifactStore::Lent::~Lent() {
  absl::MutexLock lock(&store_->mutex_);
  auto [first, last] = store_->lent_.equal_range(artifact_.digest);
  const auto own = std::find_if(first, last, [&](const auto& entry) { return entry.second.path == path_; });
  if (own != last) store_->lent_.erase(own);
}

absl::StatusOr<ArtifactStore::Place> ArtifactStore::Find(const std::string& digest) {
  {
    absl::MutexLock lock(&mutex_);
    if (const auto lent = lent_.find(digest); lent != lent_.end()) return lent->second;
  }
  if (auto payload = payloads_->Find(digest); payload.has_value()) {
    return Place{std::move(payload->path), payload->size_bytes};
  }
  ASSIGN_OR_RETURN(const int64_t size_bytes, SizeBytes(digest));
  return Place{PathOf(digest), size_bytes};
}

bool ArtifactStore::IsThere(const std::string& digest, std::optional<int64_t> size_bytes) const {
  struct stat info;
  return size_bytes.has_value() && stat(PathOf(digest).c_str(), &info) == 0 && info.st_size == *size_bytes;
}

void ArtifactStore::Touch(const std::string& digest) {
  absl::MutexLock lock(&mutex_);
  touched_[digest] = clock_();
}

absl::StatusOr<int64_t> ArtifactStore::SizeBytes(const std::string& digest) {
  absl::ReaderMutexLock no_sweep(&sweep_);
  ASSIGN_OR_RETURN(auto sizes, store_->BlobSizes({digest}));
  if (!IsThere(digest, sizes[0])) return absl::NotFoundError(absl::StrCat("no blob ", digest));
  Touch(digest);
  return *sizes[0];
}

absl::StatusOr<std::string> ArtifactStore::FileOf(const std::string& digest) {
  RETURN_IF_ERROR(SizeBytes(digest).status());
  return PathOf(digest);
}

int64_t ArtifactStore::FreeBytes() const {
  struct statvfs info;
  return statvfs(folder_.c_str(), &info) == 0 ? static_cast<int64_t>(info.f_bavail) * info.f_frsize : -1;
}

absl::StatusOr<std::vector<std::string>> ArtifactStore::Missing(absl::Span<const std::string> digests,
                                                                const std::string& tenant) {
  absl::ReaderMutexLock no_sweep(&sweep_);
  ASSIGN_OR_RETURN(auto sizes, store_->BlobSizes(digests));
  ASSIGN_OR_RETURN(const std::vector<bool> of_tenant, store_->AreOfTenant(tenant, digests));
  std::vector<std::string> missing;
  for (size_t i = 0; i < digests.size(); ++i) {
    if (of_tenant[i] && IsThere(digests[i], sizes[i])) {
      Touch(digests[i]);
    } else {
      missing.push_back(digests[i]);
    }
  }
  return missing;
}

absl::Status ArtifactStore::Stream(const std::string& digest, int64_t offset, int64_t piece_bytes,
                                   const std::function<absl::Status(absl::string_view)>& sink) {
  ASSIGN_OR_RETURN(const Place place, Find(digest));
  const int64_t size_bytes = place.size_bytes;
  if (offset < 0 || offset > size_bytes) {
    return absl::OutOfRangeError(absl::StrCat("offset ", offset, " in blob ", digest, " of ", size_bytes, " bytes"));
  }
  const int fd = open(place.path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot open blob ", digest));
  auto closer = absl::MakeCleanup([fd] { close(fd); });
  std::string buffer(static_cast<size_t>(std::min(piece_bytes, std::max<int64_t>(size_bytes - offset, 1))), '\0');
  std::optional<Sha256> hash;
  if (offset == 0 && !place.lent) hash.emplace();
  while (offset < size_bytes) {
    const ssize_t got = pread(fd, buffer.data(), buffer.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return ErrnoStatus(got < 0 ? errno : EIO, absl::StrCat("cannot read blob ", digest));
    const absl::string_view piece(buffer.data(), static_cast<size_t>(got));
    if (hash.has_value()) hash->Update(piece);
    RETURN_IF_ERROR(sink(piece));
    offset += got;
  }
  if (hash.has_value() && hash->FinishHex() != digest) {
    return absl::DataLossError(absl::StrCat(
        "blob ", digest, " is damaged on the server's disk; 'fusionctl admin check --repair' sets it aside"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ArtifactStore::Get(const std::string& digest) {
  std::string bytes;
  RETURN_IF_ERROR(Stream(digest, 0, 1 << 20, [&](absl::string_view piece) {
    bytes.append(piece.data(), piece.size());
    return absl::OkStatus();
  }));
  return bytes;
}

}  // namespace fusion
