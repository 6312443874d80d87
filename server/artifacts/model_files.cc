#include "server/artifacts/model_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

bool IsPlainRelativePath(const std::string& path) {
  if (path.empty() || path.size() > 4096 || path[0] == '/' || path.find('\0') != std::string::npos) return false;
  for (absl::string_view part : absl::StrSplit(path, '/')) {
    if (part == "..") return false;
  }
  return true;
}

absl::Status WriteFile(const v1::ModelFile& file, ArtifactStore& artifacts, const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot create ", path));
  auto closer = absl::MakeCleanup([fd] { close(fd); });
  int64_t left = file.size_bytes();
  for (const std::string& digest : file.chunk_digests()) {
    const int64_t expected = std::min(left, kChunkBytes);
    ASSIGN_OR_RETURN(const int64_t size_bytes, artifacts.SizeBytes(digest));
    if (size_bytes != expected) {
      return absl::InvalidArgumentError(
          absl::StrCat("file '", file.path(), "': chunk ", digest, " has ", size_bytes, " bytes, expected ", expected));
    }
    RETURN_IF_ERROR(artifacts.Stream(digest, 0, 1 << 20, [&](absl::string_view piece) -> absl::Status {
      while (!piece.empty()) {
        const ssize_t written = write(fd, piece.data(), piece.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return ErrnoStatus(errno, absl::StrCat("cannot write ", path));
        piece.remove_prefix(static_cast<size_t>(written));
      }
      return absl::OkStatus();
    }));
    left -= expected;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckModelFiles(const v1::SubmitRequest& request) {
  if (request.files().empty()) return absl::InvalidArgumentError("a submission needs files; files[0] is the model");
  if (request.files_size() > kMaxModelFiles) {
    return absl::InvalidArgumentError(
        absl::StrCat(request.files_size(), " files; at most ", kMaxModelFiles, " are taken"));
  }
  int64_t total_bytes = 0;
  for (int i = 0; i < request.files_size(); ++i) {
    const v1::ModelFile& file = request.files(i);
    if (i > 0 && !IsPlainRelativePath(file.path())) {
      return absl::InvalidArgumentError(
          absl::StrCat("external data path '", file.path(), "' is not a relative path beneath the model's folder"));
    }
    if (file.size_bytes() < 0 || file.size_bytes() > kMaxModelBytes ||
        (total_bytes += file.size_bytes()) > kMaxModelBytes) {
      return absl::InvalidArgumentError(absl::StrCat("model larger than ", kMaxModelBytes, " bytes"));
    }
    if ((file.size_bytes() + kChunkBytes - 1) / kChunkBytes != file.chunk_digests_size()) {
      return absl::InvalidArgumentError(absl::StrCat("file '", file.path(), "' of ", file.size_bytes(), " bytes has ",
                                                     file.chunk_digests_size(), " chunks of ", kChunkBytes));
    }
    for (const std::string& digest : file.chunk_digests()) {
      if (!IsDigest(digest)) {
        return absl::InvalidArgumentError(
            absl::StrCat("file '", file.path(), "': a digest is not 64 lower-case hex digits"));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckChunksPresent(const v1::SubmitRequest& request, ArtifactStore& artifacts) {
  std::vector<std::string> digests;
  for (const v1::ModelFile& file : request.files()) {
    digests.insert(digests.end(), file.chunk_digests().begin(), file.chunk_digests().end());
  }
  ASSIGN_OR_RETURN(std::vector<std::string> missing, artifacts.Missing(digests, request.tenant()));
  if (missing.empty()) return absl::OkStatus();
  const size_t count = missing.size();
  if (missing.size() > 4) missing.resize(4);
  return absl::FailedPreconditionError(absl::StrCat(count,
                                                    " chunks of the model are not here yet; write them with "
                                                    "Blobs.Write and submit again: ",
                                                    absl::StrJoin(missing, ", "), count > 4 ? ", …" : ""));
}

absl::StatusOr<ModelFiles> AssembleModel(const v1::SubmitRequest& request, ArtifactStore& artifacts,
                                         const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("cannot make ", folder));
  ModelFiles files;
  files.model_name = request.model_name();
  for (int i = 0; i < request.files_size(); ++i) {
    const std::string path = absl::StrCat(folder, i == 0 ? "/model.onnx" : "/external-", i == 0 ? "" : absl::StrCat(i));
    RETURN_IF_ERROR(WriteFile(request.files(i), artifacts, path));
    if (i == 0) {
      files.model_path = path;
    } else {
      files.external[request.files(i).path()] = path;
    }
  }
  return files;
}

}  // namespace fusion
