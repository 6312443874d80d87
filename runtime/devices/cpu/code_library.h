// CodeLibrary: a shared object loaded from bytes in memory.
#ifndef FUSION_RUNTIME_DEVICES_CPU_CODE_LIBRARY_H_
#define FUSION_RUNTIME_DEVICES_CPU_CODE_LIBRARY_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fusion {

// Immutable after loading; any thread. Addresses are valid while it lives.
class CodeLibrary {
 public:
  // The bytes are those of a trusted file: loading runs its initialisers. FAILED_PRECONDITION with the loader's words.
  static absl::StatusOr<std::unique_ptr<CodeLibrary>> Load(absl::string_view elf, const std::string& name);
  ~CodeLibrary();
  CodeLibrary(const CodeLibrary&) = delete;
  CodeLibrary& operator=(const CodeLibrary&) = delete;

  absl::StatusOr<void*> Symbol(const std::string& symbol) const;

 private:
  CodeLibrary(void* handle, int fd, std::string name) : handle_(handle), fd_(fd), name_(std::move(name)) {}
  void* handle_;
  int fd_;
  std::string name_;
};

}  // namespace fusion

#endif  // FUSION_RUNTIME_DEVICES_CPU_CODE_LIBRARY_H_
