#include "runtime/devices/cpu/cpu_device.h"

#include <chrono>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/devices/cpu/cpu_launches.h"
#include "runtime/devices/cpu/isa.h"
#include "runtime/devices/host_memory.h"

namespace fusion {
namespace {

int64_t WithSlack(int64_t size_bytes) {
  return (size_bytes + kBufferAlignBytes - 1) / kBufferAlignBytes * kBufferAlignBytes + kBufferSlackBytes;
}

struct BoundBinding {
  char* data;
  int64_t size_bytes;
};

class CpuExecutable : public Executable {
 public:
  static absl::StatusOr<std::unique_ptr<Executable>> Create(std::shared_ptr<const BundleReader> bundle,
                                                            const LoadOptions& options) {
    auto executable = std::make_unique<CpuExecutable>();
    executable->bundle_ = std::move(bundle);
    const Program& program = executable->bundle_->manifest().program(options.program);
    RETURN_IF_ERROR(executable->PlaceBuffers(program));
    ASSIGN_OR_RETURN(executable->launches_, CpuLaunches::Create(*executable->bundle_, program, CpuLaunches::Which::kAll,
                                                                executable->bases_, options.threads));
    executable->launch_count_ = program.launches.size();
    return executable;
  }

  absl::Status Run(absl::Span<const void* const> inputs, absl::Span<void* const> outputs,
                   const LaunchObserver& observer) override {
    using Clock = std::chrono::steady_clock;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs[i] != inputs_[i].data && inputs_[i].size_bytes > 0) {
        std::memcpy(inputs_[i].data, inputs[i], inputs_[i].size_bytes);
      }
    }
    for (size_t i = 0; i < launch_count_; ++i) {
      const Clock::time_point start = observer ? Clock::now() : Clock::time_point();
      launches_.Run(i);
      if (observer) {
        observer(static_cast<int>(i),
                 std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
      }
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (outputs[i] != outputs_[i].data && outputs_[i].size_bytes > 0) {
        std::memcpy(outputs[i], outputs_[i].data, outputs_[i].size_bytes);
      }
    }
    return absl::OkStatus();
  }

  void* input(int index) override { return inputs_[index].data; }
  const void* output(int index) override { return outputs_[index].data; }
  void* buffer(int index) override { return bases_[index]; }

 private:
  absl::Status PlaceBuffers(const Program& program) {
    int64_t bytes = WithSlack(program.arena_bytes);
    std::vector<int64_t> own_offsets(program.buffers.size());
    for (size_t i = 0; i < program.buffers.size(); ++i) {
      const Buffer& buffer = program.buffers[i];
      if (buffer.kind != Buffer::Kind::kInput && buffer.kind != Buffer::Kind::kOutput) continue;
      own_offsets[i] = bytes;
      bytes += WithSlack(buffer.size_bytes);
    }
    ASSIGN_OR_RETURN(memory_, HostMemory::Allocate(bytes, "the bundle's buffers"));
    for (size_t i = 0; i < program.buffers.size(); ++i) {
      const Buffer& buffer = program.buffers[i];
      switch (buffer.kind) {
        case Buffer::Kind::kInput:
        case Buffer::Kind::kOutput:
          bases_.push_back(memory_.data() + own_offsets[i]);
          break;
        case Buffer::Kind::kArena:
          bases_.push_back(memory_.data() + buffer.offset);
          break;
        case Buffer::Kind::kConstant:
          bases_.push_back(const_cast<char*>(bundle_->weights().data()) + buffer.offset);
          break;
      }
    }
    RETURN_IF_ERROR(Bind(program.inputs, &inputs_));
    return Bind(program.outputs, &outputs_);
  }

  absl::Status Bind(const std::vector<Binding>& bindings, std::vector<BoundBinding>* bound) {
    for (const Binding& binding : bindings) {
      ASSIGN_OR_RETURN(const int64_t size_bytes, CheckedSizeBytes(binding.shape, binding.dtype));
      bound->push_back({bases_[binding.buffer], size_bytes});
    }
    return absl::OkStatus();
  }

  std::shared_ptr<const BundleReader> bundle_;
  HostMemory memory_;         // the arena, then inputs and outputs, each with its slack
  std::vector<char*> bases_;  // parallel to Program::buffers
  std::vector<BoundBinding> inputs_, outputs_;
  CpuLaunches launches_;
  size_t launch_count_ = 0;
};

class CpuDevice : public Device {
 public:
  absl::Status CheckSupported(const Manifest& manifest) const override { return CheckIsa(manifest.isa); }

  absl::StatusOr<std::unique_ptr<Executable>> Load(std::shared_ptr<const BundleReader> bundle,
                                                   const LoadOptions& options) const override {
    if (options.threads < 1 || options.threads > 1024) {
      return absl::InvalidArgumentError(absl::StrCat("threads must be 1 to 1024, not ", options.threads));
    }
    RETURN_IF_ERROR(CheckSupported(bundle->manifest()));
    return CpuExecutable::Create(std::move(bundle), options);
  }
};

}  // namespace

std::unique_ptr<Device> MakeCpuDevice() { return std::make_unique<CpuDevice>(); }

}  // namespace fusion
