// The runtime for C++: open a bundle, make a session, run it on tensors. The C form is fusion_runtime.h. With several
// specialisations, Run selects the one that the tensors' shapes fit; RunRaw runs the selected one.
#ifndef FUSION_RUNTIME_LOADER_SESSION_H_
#define FUSION_RUNTIME_LOADER_SESSION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/base/fifo_semaphore.h"
#include "runtime/base/tensor.h"
#include "runtime/bundle/bundle_reader.h"
#include "runtime/devices/device.h"

namespace fusion {

// A bundle that was checked (BundleReader::Open) and that this machine can run. It is immutable, and its sessions share
// it.
class Bundle {
 public:
  // Fails like BundleReader::Open, with UNIMPLEMENTED if this library has no device for the target, or with
  // FAILED_PRECONDITION if the machine lacks what the bundle needs.
  static absl::StatusOr<std::shared_ptr<const Bundle>> Open(const std::string& path);
  static absl::StatusOr<std::shared_ptr<const Bundle>> FromBytes(absl::string_view bytes);
  // The same as Open, but nothing of the bundle is loaded unless a key of `keys_path` (PEM) has signed it, in the file
  // beside it. Fails with PERMISSION_DENIED if none has.
  static absl::StatusOr<std::shared_ptr<const Bundle>> OpenSigned(const std::string& path,
                                                                  const std::string& keys_path);

  const Manifest& manifest() const { return reader_->manifest(); }
  const std::shared_ptr<const BundleReader>& reader() const { return reader_; }
  const Device& device() const { return *device_; }

 private:
  Bundle() = default;
  static absl::StatusOr<std::shared_ptr<const Bundle>> Bring(std::shared_ptr<const BundleReader> reader);

  std::shared_ptr<const BundleReader> reader_;
  std::unique_ptr<Device> device_;
};

// A bundle with memory of its own. Any thread may call; runs of one session are executed in the order of the calls.
class Session {
 public:
  // `threads` is the number of threads of a run, including the caller's; 0 means every CPU that this process may use,
  // or all of `pool`. The threads come from `pool`, by default the pool that all sessions of the process share. If too
  // few threads are free, runs wait in the order of the calls. Sessions of one bundle share its constants. Fails with
  // INVALID_ARGUMENT for more threads than a pool of fixed size has.
  static absl::StatusOr<std::unique_ptr<Session>> Create(std::shared_ptr<const Bundle> bundle, int threads,
                                                         std::shared_ptr<ThreadPool> pool = nullptr);

  const Manifest& manifest() const { return bundle_->manifest(); }
  int threads() const { return threads_; }

  // Selects the program for runs with inputs of these shapes, which are parallel to the manifest's inputs. The session
  // pads inputs that are smaller than the program's. The first specialisation is selected at the start. Fails like
  // PickProgram and, because it loads a program that is not loaded yet, like Create. Must not be called while another
  // thread uses what the functions below return.
  absl::Status Select(absl::Span<const Shape> shapes);
  // Selects a program by its number, for runs with inputs of its own shapes. Programs that PickProgram never picks,
  // since another one has the same shapes, can be run in this way only. Otherwise as Select.
  absl::Status SelectProgram(size_t program);
  size_t selected() const { return selected_; }
  const ManifestProgram& program() const { return manifest().program(selected_); }

  // Selects by the shapes and runs. The tensors are in the manifest's order; results have the shapes that this run gave
  // them. Fails with INVALID_ARGUMENT and names the input whose type or shape differs.
  absl::StatusOr<std::vector<Tensor>> Run(absl::Span<const Tensor> inputs);
  // Does the same; latencies_ns gets one entry per launch of program().
  absl::StatusOr<std::vector<Tensor>> RunTimed(absl::Span<const Tensor> inputs, std::vector<int64_t>* latencies_ns);

  // Runs on host memory, which holds inputs of the selected shapes and has room for outputs of their shapes in
  // program(). An output with extents is packed row-major, in its actual shape, to the start of its memory. On a CPU
  // kernels work in this memory if cpu/caller_memory.h allows it; otherwise it is copied. An output may overlap an
  // input. Fails with INVALID_ARGUMENT for a wrong count or a null pointer.
  absl::Status RunRaw(absl::Span<const void* const> inputs, absl::Span<void* const> outputs,
                      const LaunchObserver& observer = {});

  // Returns the shape in the latest run. Before the first run, and for outputs without extents, returns the binding's
  // shape.
  Shape output_shape(int index) const;

  // Returns the time of a run of the selected program on a simulated device (Executable::simulated_time).
  std::optional<SimulatedTime> simulated_time() const { return executables_[selected_]->simulated_time(); }

  // Size of the input with its selected shape.
  size_t input_bytes(int index) const;
  // The session's own memory. If it is filled and passed to RunRaw, nothing is ever copied.
  void* input(int index) { return padding() ? staged_[index].mutable_data() : executables_[selected_]->input(index); }
  const void* output(int index) { return executables_[selected_]->output(index); }

 private:
  Session() = default;
  absl::Status SelectLocked(absl::Span<const Shape> shapes);
  absl::Status SelectLocked(size_t picked, absl::Span<const Shape> shapes);
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
  std::vector<Shape> given_;    // shapes of the inputs if some are padded; else empty
  std::vector<Tensor> staged_;  // parallel to given_: the session's own memory for these inputs
};

// Returns one seeded tensor per input (runtime/base/random_inputs.h); input i draws from DeriveSeed(seed, i).
std::vector<Tensor> RandomInputs(const ManifestProgram& program, uint64_t seed, int64_t integer_limit = 2);

}  // namespace fusion

#endif  // FUSION_RUNTIME_LOADER_SESSION_H_
