// The files by which a worker and its fusion-build process talk, in a work folder of the process's own:
//   unit-N    the text of unit N, written by the worker
//   binary-N  the binary of unit N, written by the process
//   error     instead of binaries: a canonical code in decimal, a newline, and the message
#ifndef FUSION_WORKER_BUILD_BUILD_FILES_H_
#define FUSION_WORKER_BUILD_BUILD_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace fusion {

inline constexpr char kBuildErrorFile[] = "error";
std::string UnitFile(size_t unit);    // "unit-0"
std::string BinaryFile(size_t unit);  // "binary-0"

// Fails as ErrnoStatus says: RESOURCE_EXHAUSTED where the disk takes no more.
absl::Status WriteBuildFile(const std::string& path, absl::string_view bytes);

// The error file's text, and the status that it tells. A process that somebody else has taken over may say anything, so
// only what is about the units or the disk is passed on (INVALID_ARGUMENT, RESOURCE_EXHAUSTED); all else, and text that
// is no such file, becomes INTERNAL. Never OK.
std::string BuildErrorText(const absl::Status& status);
absl::Status BuildErrorOf(absl::string_view text);

}  // namespace fusion

#endif  // FUSION_WORKER_BUILD_BUILD_FILES_H_
