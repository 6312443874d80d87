#include "server/auth/secret_file.h"

#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace fusion {

absl::StatusOr<OpenedFile> OpenFileOf(const char* flag, const std::string& path) {
  OpenedFile file(std::fopen(path.c_str(), "re"));
  if (file == nullptr) return absl::InvalidArgumentError(absl::StrCat(flag, ": cannot read '", path, "'"));
  return file;
}

absl::StatusOr<OpenedFile> OpenSecretFileOf(const char* flag, const std::string& path) {
  ASSIGN_OR_RETURN(OpenedFile file, OpenFileOf(flag, path));
  struct stat found;
  if (fstat(fileno(file.get()), &found) != 0 || (found.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(flag, ": other users may open '", path, "': chmod 600 ", path));
  }
  return file;
}

}  // namespace fusion
