#include "client/api/model_files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "client/api/digest_cache.h"
#include "client/api/model_scan.h"
#include "runtime/base/errno_status.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

// Opens `location` below `folder`. Symbolic links are followed only while they stay below it.
absl::StatusOr<std::shared_ptr<const MappedFile>> OpenBeneath(int folder, const ExternalTensor& external) {
  const std::string what = absl::StrCat("external data '", external.location, "' of tensor '", external.tensor, "'");
  if (external.location.empty()) return absl::InvalidArgumentError(what + " names no file");
  if (external.location.find('\0') != std::string::npos) return absl::InvalidArgumentError(what + " holds a zero byte");
  struct open_how how = {};
  how.flags = O_RDONLY | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  const int fd = static_cast<int>(syscall(SYS_openat2, folder, external.location.c_str(), &how, sizeof how));
  if (fd < 0 && (errno == EXDEV || errno == ELOOP)) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, " lies outside the model's folder; external data must lie beneath it (move the file and fix the model)"));
  }
  if (fd < 0 && errno == ENOENT) return absl::InvalidArgumentError(what + " is missing from the model's folder");
  if (fd < 0) {
    return absl::InvalidArgumentError(std::string(ErrnoStatus(errno, absl::StrCat("cannot open ", what)).message()));
  }
  auto close_fd = absl::MakeCleanup([fd] { close(fd); });
  // Maps the descriptor, which was checked; the path could name another file by now.
  auto mapping = MappedFile::Open(absl::StrCat("/proc/self/fd/", fd));
  if (!mapping.ok()) return absl::InvalidArgumentError(what + " is empty or no regular file");
  return mapping;
}

std::vector<std::string> DigestChunks(absl::string_view bytes, int64_t chunk_bytes) {
  std::vector<std::string> digests;
  for (size_t offset = 0; offset < bytes.size(); offset += static_cast<size_t>(chunk_bytes)) {
    digests.push_back(Sha256Hex(bytes.substr(offset, static_cast<size_t>(chunk_bytes))));
  }
  return digests;
}

}  // namespace

absl::StatusOr<LocalModel> OpenModel(const std::string& path, int64_t chunk_bytes, const std::string& cache_folder) {
  ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> mapping, MappedFile::Open(path));
  LocalModel model;
  model.name = std::filesystem::path(path).filename().string();
  DigestCache cache(cache_folder, chunk_bytes);

  absl::StatusOr<ModelScan> scan = ScanModel(mapping->bytes());
  if (!scan.ok()) return Annotate(scan.status(), path);
  model.nodes = scan->nodes;
  model.opset = scan->opset;

  auto add = [&](const std::string& name, const std::string& file_path, std::shared_ptr<const MappedFile> bytes) {
    FileDigests digests = cache.Get(file_path, [&] {
      FileDigests fresh;
      fresh.chunks = DigestChunks(bytes->bytes(), chunk_bytes);
      fresh.sha256 = fresh.chunks.size() == 1 ? fresh.chunks[0] : Sha256Hex(bytes->bytes());
      return fresh;
    });
    if (model.files.empty()) model.sha256 = digests.sha256;
    model.size_bytes += static_cast<int64_t>(bytes->bytes().size());
    model.files.push_back({name, std::move(bytes), std::move(digests.chunks)});
  };
  add(model.name, path, mapping);

  if (scan->external.empty()) return model;
  std::filesystem::path parent = std::filesystem::path(path).parent_path();
  if (parent.empty()) parent = ".";
  const int folder = open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return ErrnoStatus(errno, absl::StrCat("cannot open folder ", parent.string()));
  auto close_folder = absl::MakeCleanup([folder] { close(folder); });
  std::set<std::string> seen;
  for (const ExternalTensor& external : scan->external) {
    if (!seen.insert(external.location).second) continue;
    absl::StatusOr<std::shared_ptr<const MappedFile>> bytes = OpenBeneath(folder, external);
    if (!bytes.ok()) return Annotate(bytes.status(), path);
    add(external.location, (parent / external.location).string(), *std::move(bytes));
  }
  return model;
}

}  // namespace fusion
