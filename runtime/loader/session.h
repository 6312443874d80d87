// The runtime for C++: open a bundle, make a session, run it on tensors. The C form is fusion_runtime.h.
// Of a bundle with several specialisations, Run takes the one that the tensors' shapes fit, RunRaw the selected one.
#ifndef FUSION_RUNTIME_LOADER_SESSION_H_
#define FUSION_RUNTIME_LOADER_SESSION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/base/fifo_semaphore.h"
#include "runtime/base/tensor.h"
#include "runtime/bundle/bundle_reader.h"
#include "runtime/devices/device.h"

namespace fusion {

// A bundle that was checked (BundleReader::Open) and that this machine can run. Immutable; shared by its sessions.
class Bundle {
 public:
  // The errors of BundleReader::Open, UNIMPLEMENTED for a target without a device here, FAILED_PRECONDITION for
  // instructions this CPU lacks.
  static absl::StatusOr<std::shared_ptr<const Bundle>> Open(const std::string& path);
  static absl::StatusOr<std::shared_ptr<const Bundle>> FromBytes(absl::string_view bytes);

  const Manifest& manifest() const { return reader_->manifest(); }
  const std::shared_ptr<const BundleReader>& reader() const { return reader_; }
  const Device& device() const { return *device_; }

 private:
  Bundle() = default;
  static absl::StatusOr<std::shared_ptr<const Bundle>> Bring(std::shared_ptr<const BundleReader> reader);

  std::shared_ptr<const BundleReader> reader_;
  std::unique_ptr<Device> device_;
};

// A bundle with memory of its own. Any thread may call; runs of one session follow each other in the order of the calls.
class Session {
 public:
  // threads: how many a run takes, the caller's included; 0 means every CPU this process may use, or all of `pool`.
  // They come from `pool`, by default the one that all sessions of the process share; runs that find too few free wait in
  // line. Sessions of one bundle share its constants. INVALID_ARGUMENT for more threads than a pool of a fixed size has.
  static absl::StatusOr<std::unique_ptr<Session>> Create(std::shared_ptr<const Bundle> bundle, int threads,
                                                         std::shared_ptr<ThreadPool> pool = nullptr);

  const Manifest& manifest() const { return bundle_->manifest(); }
  int threads() const { return threads_; }

  // For runs of inputs of these shapes, which are parallel to the manifest's inputs. Where they are smaller than the
  // program's, the session pads. At first the first specialisation is selected. INVALID_ARGUMENT of PickProgram; the
  // errors of Create, since what is not yet loaded is loaded. Not while another thread uses what the functions below
  // return.
  absl::Status Select(absl::Span<const Shape> shapes);
  size_t selected() const { return selected_; }
  const Program& program() const { return manifest().program(selected_); }

  // Selects by the shapes. Tensors in the manifest's order, of the shapes that this run gave them. INVALID_ARGUMENT
  // naming the input whose type or shape differs.
  absl::StatusOr<std::vector<Tensor>> Run(absl::Span<const Tensor> inputs);
  // The same; latencies_ns gets one entry per launch of program().
  absl::StatusOr<std::vector<Tensor>> RunTimed(absl::Span<const Tensor> inputs, std::vector<int64_t>* latencies_ns);

  // On host memory: of each input's selected shape, of each output's shape in program(). An output with extents is
  // packed row-major to its actual shape at the start of its memory. INVALID_ARGUMENT for a wrong count or a null
  // pointer. On a processor kernels work in this memory where cpu/caller_memory.h lets them; else it is copied. An
  // output may overlap an input.
  absl::Status RunRaw(absl::Span<const void* const> inputs, absl::Span<void* const> outputs,
                      const LaunchObserver& observer = {});

  // Of the latest run; before the first, and for outputs without extents, the binding's.
  Shape output_shape(int index) const;

  // Of the selected shape.
  size_t input_bytes(int index) const;
  // The session's own memory: fill it and pass the same pointer to RunRaw, and nothing is ever copied.
  void* input(int index) { return padding() ? staged_[index].mutable_data() : executables_[selected_]->input(index); }
  const void* output(int index) { return executables_[selected_]->output(index); }

 private:
  Session() = default;
  absl::Status SelectLocked(absl::Span<const Shape> shapes);
  absl::Status RunLocked(absl::Span<const void* const> inputs, absl::Span<void* const> outputs,
                         const LaunchObserver& observer);
  absl::Status Load(size_t program);
  bool padding() const { return !given_.empty(); }
  void PadInputs(absl::Span<const void* const> inputs);
  absl::Status PackOutputs(absl::Span<void* const> outputs);

  std::shared_ptr<const Bundle> bundle_;
  int threads_ = 1;
  std::shared_ptr<ThreadPool> pool_;

  mutable FifoMutex mutex_;                               // held while running
  std::vector<Shape> output_shapes_;                      // under mutex_
  std::vector<std::unique_ptr<Executable>> executables_;  // by program; null: not loaded yet
  size_t selected_ = 0;
  std::vector<Shape> given_;    // of the inputs that are padded; empty: none is
  std::vector<Tensor> staged_;  // parallel to given_: the session's own memory of those
};

// One seeded tensor per input (runtime/base/random_inputs.h); input i draws from DeriveSeed(seed, i).
std::vector<Tensor> RandomInputs(const Program& program, uint64_t seed, int64_t integer_limit = 2);

}  // namespace fusion

#endif  // FUSION_RUNTIME_LOADER_SESSION_H_
