#include "worker/build/build_files.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/errno_status.h"
#include "runtime/base/write_all.h"

namespace fusion {

std::string UnitFile(size_t unit) { return absl::StrCat("unit-", unit); }
std::string BinaryFile(size_t unit) { return absl::StrCat("binary-", unit); }

absl::Status WriteBuildFile(const std::string& path, absl::string_view bytes) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot make ", path));
  const absl::Status written = WriteAll(fd, bytes, absl::StrCat("cannot write ", path));
  close(fd);
  return written;
}

std::string BuildErrorText(const absl::Status& status) {
  return absl::StrCat(static_cast<int>(status.code()), "\n", std::string(status.message()));
}

absl::Status BuildErrorOf(absl::string_view text) {
  int number = 0;
  const size_t line = text.find('\n');
  const bool well_formed = line != absl::string_view::npos && absl::SimpleAtoi(text.substr(0, line), &number);
  if (!well_formed) return absl::InternalError("the build process wrote a damaged error");
  const auto code = static_cast<absl::StatusCode>(number);
  const bool passed_on = code == absl::StatusCode::kInvalidArgument || code == absl::StatusCode::kResourceExhausted;
  return absl::Status(passed_on ? code : absl::StatusCode::kInternal, text.substr(line + 1));
}

}  // namespace fusion
