// The files of a submission: the model and its external data, opened safely and cut into chunks with digests. The
// server gets digests, never paths.
#ifndef FUSION_CLIENT_API_MODEL_FILES_H_
#define FUSION_CLIENT_API_MODEL_FILES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/base/mapped_file.h"

namespace fusion {

struct ChunkedFile {
  std::string path;  // the model: its file name; external data: the location as written in the model
  std::shared_ptr<const MappedFile> mapping;
  std::vector<std::string> chunk_digests;

  absl::string_view Chunk(size_t index, int64_t chunk_bytes) const {
    return mapping->bytes().substr(index * static_cast<size_t>(chunk_bytes), static_cast<size_t>(chunk_bytes));
  }
};

struct LocalModel {
  std::string name;  // file name
  std::string sha256;
  int64_t size_bytes = 0;  // including external data
  int64_t nodes = 0;
  int64_t opset = 0;
  std::vector<ChunkedFile> files;  // files[0] is the model
};

// Fails with INVALID_ARGUMENT for a file that is no model, and for external data that is missing or lies outside the
// model's folder (by an absolute path, by "..", or by a symbolic link), naming it; with NOT_FOUND if there is no such
// model. Digests of an unchanged file are remembered in `cache_folder` (empty: not at all).
absl::StatusOr<LocalModel> OpenModel(const std::string& path, int64_t chunk_bytes, const std::string& cache_folder);

}  // namespace fusion

#endif  // FUSION_CLIENT_API_MODEL_FILES_H_
