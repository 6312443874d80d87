#include "runtime/devices/cpu/cpu_device.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/bundle/buffer_footprint.h"
#include "runtime/devices/cpu/caller_memory.h"
#include "runtime/devices/cpu/cpu_launches.h"
#include "runtime/devices/cpu/isa.h"
#include "runtime/devices/host_memory.h"

namespace fusion {
namespace {

struct BoundBinding {
  int buffer;
  CallerPiece piece;  // each run sets `caller`
};

class CpuExecutable : public Executable {
 public:
  static absl::StatusOr<std::unique_ptr<Executable>> Create(std::shared_ptr<const BundleReader> bundle,
                                                            const LoadOptions& options) {
    auto executable = std::make_unique<CpuExecutable>();
    executable->bundle_ = std::move(bundle);
    const ManifestProgram& program = executable->bundle_->manifest().program(options.program);
    RETURN_IF_ERROR(executable->PlaceBuffers(program));
    ASSIGN_OR_RETURN(executable->launches_, CpuLaunches::Create(*executable->bundle_, program, CpuLaunches::Which::kAll,
                                                                executable->bases_, options.threads, options.pool));
    executable->launch_count_ = program.launches.size();
    executable->program_ = options.program;
    return executable;
  }

  absl::Status Run(absl::Span<const void* const> inputs, absl::Span<void* const> outputs,
                   const LaunchObserver& observer) override {
    // Programs whose phases have one task each need no other thread, so their runs wait for none.
    std::optional<WorkerPool::Hold> hold;
    if (launches_.parallel()) hold.emplace(*launches_.pool());
    Place(inputs, outputs);
    for (size_t i = 0; i < inputs.size(); ++i) Move(inputs_[i].buffer, inputs[i], inputs_[i].piece.size_bytes);
    if (observer) {
      Observe(observer);
    } else {
      launches_.Run();
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      const char* from = bases_[outputs_[i].buffer];
      if (from != outputs[i]) launches_.pool()->Copy(outputs[i], from, outputs_[i].piece.size_bytes);
    }
    return absl::OkStatus();
  }

  void* input(int index) override { return const_cast<char*>(inputs_[index].piece.own); }
  const void* output(int index) override { return outputs_[index].piece.own; }
  void* buffer(int index) override { return bases_[index]; }

 private:
  // Runs launch by launch. The time of one that repeats is that of all its iterations.
  void Observe(const LaunchObserver& observer) {
    using Clock = std::chrono::steady_clock;
    const std::vector<Repeat>& repeats = bundle_->manifest().program(program_).repeats;
    auto repeat = repeats.begin();
    for (size_t first = 0, end = 0; first < launch_count_; first = end) {
      const bool repeats_here = repeat != repeats.end() && static_cast<size_t>(repeat->first) == first;
      end = repeats_here ? static_cast<size_t>((repeat++)->end) : first + 1;
      std::vector<Clock::duration> took(end - first, Clock::duration::zero());
      for (int64_t t = 0; t < launches_.trips(first); ++t) {
        for (size_t l = first; l < end; ++l) {
          const Clock::time_point start = Clock::now();
          launches_.Run(l, t);
          took[l - first] += Clock::now() - start;
        }
      }
      for (size_t l = first; l < end; ++l) {
        observer(static_cast<int>(l), std::chrono::duration_cast<std::chrono::nanoseconds>(took[l - first]).count());
      }
    }
  }

  absl::Status PlaceBuffers(const ManifestProgram& program) {
    int64_t bytes = BufferFootprint(program.arena_bytes);
    std::vector<int64_t> own_offsets(program.buffers.size());
    for (size_t i = 0; i < program.buffers.size(); ++i) {
      const Buffer& buffer = program.buffers[i];
      if (buffer.kind != Buffer::Kind::kInput && buffer.kind != Buffer::Kind::kOutput) continue;
      own_offsets[i] = bytes;
      bytes += BufferFootprint(buffer.size_bytes);
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
    own_begin_ = memory_.data();
    own_end_ = own_begin_ + bytes;
    std::vector<bool> bound(program.buffers.size());
    RETURN_IF_ERROR(Bind(program, program.inputs, Buffer::Kind::kInput, &bound, &inputs_));
    return Bind(program, program.outputs, Buffer::Kind::kOutput, &bound, &outputs_);
  }

  // An output may be a buffer of any kind, and several outputs may be the same buffer.
  absl::Status Bind(const ManifestProgram& program, const std::vector<Binding>& bindings, Buffer::Kind kind,
                    std::vector<bool>* bound, std::vector<BoundBinding>* result) {
    for (const Binding& binding : bindings) {
      ASSIGN_OR_RETURN(const int64_t size_bytes, CheckedSizeBytes(binding.shape, binding.dtype));
      const Buffer& buffer = program.buffers[binding.buffer];
      const bool can_bind = buffer.kind == kind && buffer.size_bytes == size_bytes && !(*bound)[binding.buffer];
      (*bound)[binding.buffer] = (*bound)[binding.buffer] || can_bind;
      const char* own = bases_[binding.buffer];
      result->push_back({binding.buffer, {nullptr, own, size_bytes, DTypeBytes(buffer.dtype), can_bind}});
    }
    return absl::OkStatus();
  }

  // Gives the kernels the caller's memory where they may use it (DecideUses), and the executable's own memory
  // elsewhere.
  void Place(absl::Span<const void* const> inputs, absl::Span<void* const> outputs) {
    if (std::equal(inputs.begin(), inputs.end(), last_inputs_.begin(), last_inputs_.end()) &&
        std::equal(outputs.begin(), outputs.end(), last_outputs_.begin(), last_outputs_.end())) {
      return;
    }
    std::vector<CallerPiece> input_pieces, output_pieces;
    for (size_t i = 0; i < inputs.size(); ++i) {
      input_pieces.push_back(inputs_[i].piece);
      input_pieces.back().caller = static_cast<const char*>(inputs[i]);
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      output_pieces.push_back(outputs_[i].piece);
      output_pieces.back().caller = static_cast<const char*>(outputs[i]);
    }
    const UsesCaller uses = DecideUses(input_pieces, output_pieces, own_begin_, own_end_);
    for (size_t i = 0; i < inputs.size(); ++i) PlaceBuffer(inputs_[i].buffer, input_pieces[i], uses.inputs[i]);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs_[i].piece.can_bind) PlaceBuffer(outputs_[i].buffer, output_pieces[i], uses.outputs[i]);
    }
    last_inputs_.assign(inputs.begin(), inputs.end());
    last_outputs_.assign(outputs.begin(), outputs.end());
  }

  void PlaceBuffer(int buffer, const CallerPiece& piece, bool uses_caller) {
    // Dropping const is safe because kernels do not write inputs.
    char* base = const_cast<char*>(uses_caller ? piece.caller : piece.own);
    if (bases_[buffer] == base) return;
    bases_[buffer] = base;
    launches_.Rebind(buffer, base);
  }

  void Move(int buffer, const void* from, int64_t size_bytes) {
    if (bases_[buffer] != from) launches_.pool()->Copy(bases_[buffer], from, size_bytes);
  }

  std::shared_ptr<const BundleReader> bundle_;
  HostMemory memory_;  // the arena, then inputs and outputs, each with its slack
  const char *own_begin_ = nullptr, *own_end_ = nullptr;
  std::vector<char*> bases_;  // parallel to Program::buffers; for inputs and outputs as of the latest run
  std::vector<BoundBinding> inputs_, outputs_;
  std::vector<const void*> last_inputs_;  // the pointers of the latest run, from which `bases_` follows
  std::vector<void*> last_outputs_;
  CpuLaunches launches_;
  size_t launch_count_ = 0, program_ = 0;
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
