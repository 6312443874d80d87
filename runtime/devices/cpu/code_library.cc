#include "runtime/devices/cpu/code_library.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "runtime/base/errno_status.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/write_all.h"

namespace fusion {
namespace {

void* Open(const std::string& path) { return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); }

// Loads through a temporary file, for systems that forbid executing memory files (vm.memfd_noexec). The file is removed
// once it is mapped.
absl::StatusOr<void*> OpenThroughTemporary(absl::string_view elf, const std::string& name) {
  const char* folder = getenv("TMPDIR");
  std::string path = absl::StrCat(folder != nullptr && *folder != '\0' ? folder : "/tmp", "/fusion-XXXXXX");
  const int fd = mkstemp(path.data());
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot create '", path, "'"));
  const absl::Status written = WriteAll(fd, elf, absl::StrCat("cannot copy '", name, "'"));
  close(fd);
  void* handle = written.ok() ? Open(path) : nullptr;
  unlink(path.c_str());
  RETURN_IF_ERROR(written);
  return handle;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CodeLibrary>> CodeLibrary::Load(absl::string_view elf, const std::string& name) {
  void* handle = nullptr;
  const int fd = memfd_create(absl::StrCat("fusion:", name.substr(0, 200)).c_str(), MFD_CLOEXEC);
  if (fd >= 0) {
    const absl::Status written = WriteAll(fd, elf, absl::StrCat("cannot copy '", name, "'"));
    if (!written.ok()) {
      close(fd);
      return written;
    }
    handle = Open(absl::StrCat("/proc/self/fd/", fd));
  }
  if (handle == nullptr) {
    absl::StatusOr<void*> opened = OpenThroughTemporary(elf, name);
    if (opened.ok()) handle = *opened;
    if (handle == nullptr) {
      if (fd >= 0) close(fd);
      RETURN_IF_ERROR(opened.status());
      const char* error = dlerror();
      return absl::FailedPreconditionError(
          absl::StrCat("cannot load '", name, "': ", error == nullptr ? "unknown error" : error));
    }
  }
  // dlopen returns the library that it already has for a path. The descriptor therefore stays open: its number, which
  // is part of the path, must not be used again while the library is loaded.
  return std::unique_ptr<CodeLibrary>(new CodeLibrary(handle, fd, name));
}

CodeLibrary::~CodeLibrary() {
  dlclose(handle_);
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<void*> CodeLibrary::Symbol(const std::string& symbol) const {
  void* address = dlsym(handle_, symbol.c_str());
  if (address == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("'", name_, "' does not export '", symbol, "'"));
  }
  return address;
}

}  // namespace fusion
