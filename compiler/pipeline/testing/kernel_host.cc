// kernel_host KERNEL.so JOB RESULT performs one KernelCall on a machine without the compiler and writes all buffers
// with their slack. kernel_call.cc compiles it for that machine, writes JOB and reads RESULT.
#include <dlfcn.h>
#include <stdio.h>

#include <memory>
#include <string>
#include <vector>

#include "compiler/pipeline/testing/guarded_buffer.h"

namespace {

using fusion::testing::GuardedBuffer;
using fusion::testing::kSlackBytes;

FILE* job;

void Get(void* to, int64_t bytes) {
  if (fread(to, 1, bytes, job) != static_cast<size_t>(bytes)) {
    fprintf(stderr, "the job is too short\n");
    exit(2);
  }
}

int64_t GetNumber() {
  int64_t number;
  Get(&number, sizeof number);
  return number;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  void* library = dlopen(argv[1], RTLD_NOW);
  if (library == nullptr) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  job = fopen(argv[2], "rb");
  if (job == nullptr) return 2;
  std::vector<std::unique_ptr<GuardedBuffer>> buffers(GetNumber());
  std::vector<void*> args;
  for (auto& buffer : buffers) {
    buffer = std::make_unique<GuardedBuffer>(GetNumber());
    Get(buffer->data(), buffer->bytes() + kSlackBytes);
    args.push_back(buffer->data());
  }
  GuardedBuffer scratch(GetNumber());
  for (int64_t phases = GetNumber(); phases > 0; --phases) {
    std::string symbol(GetNumber(), 0);
    Get(symbol.data(), static_cast<int64_t>(symbol.size()));
    const auto function = reinterpret_cast<fusion_kernel_phase>(dlsym(library, symbol.c_str()));
    if (function == nullptr) {
      fprintf(stderr, "no symbol %s\n", symbol.c_str());
      return 1;
    }
    for (int64_t ranges = GetNumber(); ranges > 0; --ranges) {
      const int64_t begin = GetNumber(), end = GetNumber();
      scratch.Poison();
      const bool ok = fusion::testing::CallGuarded(function, args.data(), scratch.data(), begin, end);
      if (ok && scratch.SlackUntouched()) continue;
      fprintf(stderr, "%s tasks [%ld, %ld) %s\n", symbol.c_str(), static_cast<long>(begin), static_cast<long>(end),
              ok ? "write scratch slack" : "touch memory out of bounds");
      return 1;
    }
  }
  FILE* result = fopen(argv[3], "wb");
  if (result == nullptr) return 2;
  for (auto& buffer : buffers) fwrite(buffer->data(), 1, buffer->bytes() + kSlackBytes, result);
  return fclose(result) == 0 ? 0 : 2;
}
