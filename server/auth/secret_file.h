// Secret files: keys that a flag names, which no other user may open.
#ifndef FUSION_SERVER_AUTH_SECRET_FILE_H_
#define FUSION_SERVER_AUTH_SECRET_FILE_H_

#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace fusion {

struct FileCloser {
  void operator()(FILE* file) const { std::fclose(file); }
};
using OpenedFile = std::unique_ptr<FILE, FileCloser>;

// Opens a file for reading. Fails with INVALID_ARGUMENT, which names the flag and the file.
absl::StatusOr<OpenedFile> OpenFileOf(const char* flag, const std::string& path);
// The same, of a file that only its owner may open.
absl::StatusOr<OpenedFile> OpenSecretFileOf(const char* flag, const std::string& path);

}  // namespace fusion

#endif  // FUSION_SERVER_AUTH_SECRET_FILE_H_
