// CodeLibrary: a shared object loaded from bytes in memory.
#ifndef FUSION_RUNTIME_DEVICES_CPU_CODE_LIBRARY_H_
#define FUSION_RUNTIME_DEVICES_CPU_CODE_LIBRARY_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fusion {

// Immutable after loading, so any thread may use it. Addresses are valid while it lives.
class CodeLibrary {
 public:
  // The bytes must come from a trusted file, because loading runs its initialisers. Fails with FAILED_PRECONDITION and
  // the loader's message.
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
