// Files that a program has made which code of others may have taken over, such as a compiler.
#ifndef FUSION_COMPILER_BACKENDS_PROCESS_MADE_FILE_H_
#define FUSION_COMPILER_BACKENDS_PROCESS_MADE_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace fusion {

// Reads a file that no process may write any more. Follows no link at its end and waits for nothing, because the
// program may have put a link to a secret there, a second name of one, or a pipe: these, and files of more than
// `most_bytes`, are refused with INVALID_ARGUMENT. Fails with NOT_FOUND where there is nothing.
absl::StatusOr<std::string> ReadMadeFile(const std::string& path, int64_t most_bytes);

}  // namespace fusion

#endif  // FUSION_COMPILER_BACKENDS_PROCESS_MADE_FILE_H_
