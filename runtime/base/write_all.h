// WriteAll: write(2) until all bytes are written.
#ifndef FUSION_RUNTIME_BASE_WRITE_ALL_H_
#define FUSION_RUNTIME_BASE_WRITE_ALL_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace fusion {

// Fails as ErrnoStatus says, with the message "WHAT: …"; some of the bytes may be written then.
absl::Status WriteAll(int fd, absl::string_view bytes, const std::string& what);

}  // namespace fusion

#endif  // FUSION_RUNTIME_BASE_WRITE_ALL_H_
