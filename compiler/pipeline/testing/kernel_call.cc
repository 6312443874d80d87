#include "compiler/pipeline/testing/kernel_call.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "compiler/backends/process/child_process.h"
#include "compiler/pipeline/testing/compute_library_call.h"
#include "runtime/base/status_macros.h"

namespace fusion::testing {
namespace {

constexpr char kQemu[] = "qemu-aarch64";
constexpr int64_t kBlocksTogether = 3;  // thread blocks of a persistent kernel
constexpr char kCrossCompiler[] = "aarch64-linux-gnu-g++";

class Folder {
 public:
  Folder() : path_("/tmp/fusion_kernel_call_XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) abort();
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string File(const std::string& name) const { return absl::StrCat(path_, "/", name); }

 private:
  std::string path_;
};

void WriteFile(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

class HostHere : public KernelHost {
 public:
  HostHere(void* handle, std::string suffix) : handle_(handle), suffix_(std::move(suffix)) {}
  ~HostHere() override { dlclose(handle_); }

  absl::Status Run(const KernelCall& call) override {
    std::vector<void*> args;
    for (GuardedBuffer* buffer : call.args) args.push_back(buffer->data());
    unsigned grid_barrier = 0;  // state of the grid barrier (runtime/devices/cuda/kernel_abi.md)
    if (call.persistent) args.push_back(&grid_barrier);
    for (const KernelCall::Phase& phase : call.phases) {
      if (phase.library) {
        ComputeLibraryCall(*phase.library, args);
        continue;
      }
      const std::string symbol = phase.symbol + (call.persistent ? "_together" : suffix_);
      const auto function = reinterpret_cast<fusion_kernel_phase>(dlsym(handle_, symbol.c_str()));
      if (function == nullptr) return absl::InternalError(absl::StrCat("no symbol ", symbol));
      GuardedBuffer scratch(call.scratch_bytes);
      std::vector<std::pair<int64_t, int64_t>> ranges = phase.ranges;
      if (call.persistent) {
        int64_t fusion_blocks = 0;
        for (const auto& [begin, end] : ranges) fusion_blocks = std::max(fusion_blocks, end);
        ranges = {{0, std::min(fusion_blocks, kBlocksTogether)}};
      }
      for (const auto& [begin, end] : ranges) {
        scratch.Poison();
        if (!CallGuarded(function, args.data(), scratch.data(), begin, end)) {
          return absl::InternalError(
              absl::StrCat(phase.symbol, " tasks [", begin, ", ", end, ") touch memory out of bounds"));
        }
        if (!scratch.SlackUntouched()) return absl::InternalError("scratch slack is written");
      }
    }
    return absl::OkStatus();
  }

 private:
  void* const handle_;
  const std::string suffix_;  // of symbols
};

absl::StatusOr<std::unique_ptr<KernelHost>> LoadLibrary(const std::string& binary, const std::string& suffix) {
  const Folder folder;
  WriteFile(folder.File("kernel.so"), binary);
  void* handle = dlopen(folder.File("kernel.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return absl::InternalError(dlerror());
  return std::make_unique<HostHere>(handle, suffix);
}

class HostUnderQemu : public KernelHost {
 public:
  static absl::StatusOr<std::unique_ptr<KernelHost>> Load(const std::string& binary) {
    RETURN_IF_ERROR(FindQemu());
    std::unique_ptr<HostUnderQemu> host(new HostUnderQemu);
    ChildOptions options;
    options.deadline = absl::Minutes(2);
    const std::string source = FUSION_SOURCE_FOLDER "/compiler/pipeline/testing/kernel_host.cc";
    ASSIGN_OR_RETURN(const ChildResult compiled,
                     RunChild({kCrossCompiler, "-std=c++20", "-O1", "-I", FUSION_SOURCE_FOLDER, source, "-o",
                               host->folder_.File("host"), "-Wl,--no-as-needed", "-lm", "-ldl"},
                              options));
    if (!compiled.ok()) return absl::InternalError(absl::StrCat("kernel_host.cc: ", compiled.stderr_text));
    WriteFile(host->folder_.File("kernel.so"), binary);
    return std::unique_ptr<KernelHost>(std::move(host));
  }

  absl::Status Run(const KernelCall& call) override {
    std::string job;
    auto put = [&](int64_t number) { job.append(reinterpret_cast<const char*>(&number), sizeof number); };
    put(static_cast<int64_t>(call.args.size()));
    for (GuardedBuffer* buffer : call.args) {
      put(buffer->bytes());
      job.append(buffer->data(), buffer->bytes() + kSlackBytes);
    }
    put(call.scratch_bytes);
    put(static_cast<int64_t>(call.phases.size()));
    for (const KernelCall::Phase& phase : call.phases) {
      put(static_cast<int64_t>(phase.symbol.size()));
      job += phase.symbol;
      put(static_cast<int64_t>(phase.ranges.size()));
      for (const auto& [begin, end] : phase.ranges) put(begin), put(end);
    }
    WriteFile(folder_.File("job"), job);
    ChildOptions options;
    options.deadline = absl::Minutes(5);
    ASSIGN_OR_RETURN(const ChildResult ran,
                     RunChild({kQemu, "-L", "/usr/aarch64-linux-gnu", folder_.File("host"), folder_.File("kernel.so"),
                               folder_.File("job"), folder_.File("result")},
                              options));
    if (!ran.ok()) return absl::InternalError(absl::StrCat("under qemu: ", ran.Describe(), ": ", ran.stderr_text));
    std::ifstream result(folder_.File("result"), std::ios::binary);
    for (GuardedBuffer* buffer : call.args) result.read(buffer->data(), buffer->bytes() + kSlackBytes);
    return result ? absl::OkStatus() : absl::InternalError("under qemu: the result is too short");
  }

 private:
  const Folder folder_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<KernelHost>> LoadHere(const std::string& binary) { return LoadLibrary(binary, ""); }

absl::StatusOr<std::unique_ptr<KernelHost>> LoadAsCuda(const std::string& binary) {
  return LoadLibrary(binary, "_tasks");
}

absl::Status FindQemu() {
  if (FindOnPath({kQemu}).empty()) return absl::NotFoundError("no qemu-aarch64 here: apt-get install qemu-user");
  if (FindOnPath({kCrossCompiler}).empty()) {
    return absl::NotFoundError("no aarch64-linux-gnu-g++ here: apt-get install g++-aarch64-linux-gnu");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<KernelHost>> LoadUnderQemu(const std::string& binary) {
  return HostUnderQemu::Load(binary);
}

}  // namespace fusion::testing
