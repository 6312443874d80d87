// Turns a submission's chunk digests into files that the compiler can open.
#ifndef FUSION_SERVER_ARTIFACTS_MODEL_FILES_H_
#define FUSION_SERVER_ARTIFACTS_MODEL_FILES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/pipeline/compile.h"
#include "proto/compile.pb.h"
#include "server/artifacts/artifact_store.h"

namespace fusion {

inline constexpr int64_t kChunkBytes = 4 << 20;
inline constexpr int64_t kMaxModelBytes = int64_t{16} << 30;
inline constexpr int kMaxModelFiles = 10000;

// Checks what needs no reading: counts, sizes, digests, paths. Fails with INVALID_ARGUMENT and names the file.
absl::Status CheckModelFiles(const v1::SubmitRequest& request);

// Checks that all chunks are present for the request's tenant. Fails with FAILED_PRECONDITION and names the first
// missing digests.
absl::Status CheckChunksPresent(const v1::SubmitRequest& request, ArtifactStore& artifacts);

// Creates `folder` and writes the files there under names that the server chooses; no name from outside reaches the
// file system.
absl::StatusOr<ModelFiles> AssembleModel(const v1::SubmitRequest& request, ArtifactStore& artifacts,
                                         const std::string& folder);

}  // namespace fusion

#endif  // FUSION_SERVER_ARTIFACTS_MODEL_FILES_H_
