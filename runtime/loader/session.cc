#include "runtime/loader/session.h"

#include <algorithm>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "runtime/base/pack_box.h"
#include "runtime/base/random_inputs.h"
#include "runtime/base/run_check.h"
#include "runtime/base/status_macros.h"
#include "runtime/bundle/bundle_signature.h"
#include "runtime/devices/cpu/thread_pool.h"
#include "runtime/loader/pick_program.h"

namespace fusion {
namespace {

absl::Status CheckInput(const Binding& binding, bool any_shape, const Tensor& tensor) {
  if (tensor.dtype() == binding.dtype && (any_shape || tensor.shape() == binding.shape)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("input '", binding.name, "' must be ", DTypeName(binding.dtype),
                                                 ShapeToString(binding.shape), ", not ", DTypeName(tensor.dtype()),
                                                 ShapeToString(tensor.shape())));
}

template <typename Pointers>
absl::Status CheckPointers(const std::vector<Binding>& bindings, const Pointers& pointers, const char* what) {
  if (pointers.size() != bindings.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the bundle has ", bindings.size(), " ", what, "s, ", pointers.size(), " were given"));
  }
  for (size_t i = 0; i < bindings.size(); ++i) {
    if (pointers[i] == nullptr && NumElements(bindings[i].shape) > 0) {
      return absl::InvalidArgumentError(absl::StrCat(what, " '", bindings[i].name, "' has a null pointer"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Bundle>> Bundle::Bring(std::shared_ptr<const BundleReader> reader) {
  std::shared_ptr<Bundle> bundle(new Bundle());
  ASSIGN_OR_RETURN(bundle->device_, MakeDevice(reader->manifest().target));
  RETURN_IF_ERROR(bundle->device_->CheckSupported(reader->manifest()));
  bundle->reader_ = std::move(reader);
  return std::shared_ptr<const Bundle>(std::move(bundle));
}

absl::StatusOr<std::shared_ptr<const Bundle>> Bundle::Open(const std::string& path) {
  ASSIGN_OR_RETURN(std::shared_ptr<const BundleReader> reader, BundleReader::Open(path));
  auto bundle = Bring(std::move(reader));
  if (!bundle.ok()) return Annotate(bundle.status(), absl::StrCat("'", path, "'"));
  return bundle;
}

absl::StatusOr<std::shared_ptr<const Bundle>> Bundle::FromBytes(absl::string_view bytes) {
  ASSIGN_OR_RETURN(std::shared_ptr<const BundleReader> reader, BundleReader::FromBytes(bytes));
  return Bring(std::move(reader));
}

absl::StatusOr<std::shared_ptr<const Bundle>> Bundle::OpenSigned(const std::string& path,
                                                                 const std::string& keys_path) {
  ASSIGN_OR_RETURN(std::shared_ptr<const BundleReader> reader, BundleReader::Open(path));
  RETURN_IF_ERROR(CheckSignatureFiles(*reader, path, keys_path).status());
  auto bundle = Bring(std::move(reader));
  if (!bundle.ok()) return Annotate(bundle.status(), absl::StrCat("'", path, "'"));
  return bundle;
}

absl::StatusOr<std::unique_ptr<Session>> Session::Create(std::shared_ptr<const Bundle> bundle, int threads,
                                                         std::shared_ptr<ThreadPool> pool) {
  std::unique_ptr<Session> session(new Session());
  session->threads_ = threads != 0 ? threads : std::min(pool != nullptr ? pool->threads() : UsableCpus(), 1024);
  session->pool_ = std::move(pool);
  session->bundle_ = std::move(bundle);
  session->executables_.resize(session->manifest().program_count());
  RETURN_IF_ERROR(session->Load(0));
  return session;
}

absl::Status Session::Load(size_t program) {
  if (executables_[program] == nullptr) {
    LoadOptions options;
    options.threads = threads_;
    options.program = program;
    options.pool = pool_;
    ASSIGN_OR_RETURN(executables_[program], bundle_->device().Load(bundle_->reader(), options));
  }
  selected_ = program;
  output_shapes_.clear();
  for (const Binding& binding : this->program().outputs) output_shapes_.push_back(binding.shape);
  return absl::OkStatus();
}

absl::Status Session::Select(absl::Span<const Shape> shapes) {
  const std::lock_guard<FifoMutex> lock(mutex_);
  return SelectLocked(shapes);
}

absl::Status Session::SelectProgram(size_t program) {
  const std::lock_guard<FifoMutex> lock(mutex_);
  if (program >= manifest().program_count()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the bundle has ", manifest().program_count(), " programs, number ", program, " was asked for"));
  }
  std::vector<Shape> shapes;
  for (const Binding& input : manifest().program(program).inputs) shapes.push_back(input.shape);
  return SelectLocked(program, shapes);
}

absl::Status Session::SelectLocked(absl::Span<const Shape> shapes) {
  ASSIGN_OR_RETURN(const size_t picked, PickProgram(manifest(), shapes));
  return SelectLocked(picked, shapes);
}

absl::Status Session::SelectLocked(size_t picked, absl::Span<const Shape> shapes) {
  if (picked != selected_) RETURN_IF_ERROR(Load(picked));
  const std::vector<Binding>& bindings = program().inputs;
  const bool pads =
      std::any_of(bindings.begin(), bindings.end(), [](const Binding& input) { return !input.extents.empty(); });
  if (!pads) {
    given_.clear();
    staged_.clear();
  } else if (!std::equal(shapes.begin(), shapes.end(), given_.begin(), given_.end())) {
    given_.assign(shapes.begin(), shapes.end());
    staged_.clear();
    for (size_t i = 0; i < bindings.size(); ++i) staged_.emplace_back(bindings[i].dtype, given_[i]);
  }
  return absl::OkStatus();
}

void Session::PadInputs(absl::Span<const void* const> inputs) {
  Executable& executable = *executables_[selected_];
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Binding& binding = program().inputs[i];
    SpreadBox(inputs[i], executable.input(static_cast<int>(i)), DTypeBytes(binding.dtype), binding.shape, given_[i]);
    for (size_t d = 0; d < binding.extents.size(); ++d) {
      if (binding.extents[d] >= 0) *static_cast<int64_t*>(executable.buffer(binding.extents[d])) = given_[i][d];
    }
  }
}

absl::Status Session::RunRaw(absl::Span<const void* const> inputs, absl::Span<void* const> outputs,
                             const LaunchObserver& observer) {
  const std::lock_guard<FifoMutex> lock(mutex_);
  return RunLocked(inputs, outputs, observer);
}

absl::Status Session::RunLocked(absl::Span<const void* const> inputs, absl::Span<void* const> outputs,
                                const LaunchObserver& observer) {
  RETURN_IF_ERROR(CheckPointers(program().inputs, inputs, "input"));
  RETURN_IF_ERROR(CheckPointers(program().outputs, outputs, "output"));
  std::vector<const void*> padded;
  if (padding()) {
    PadInputs(inputs);
    for (size_t i = 0; i < inputs.size(); ++i) padded.push_back(executables_[selected_]->input(static_cast<int>(i)));
    inputs = padded;
  }
  RETURN_IF_ERROR(executables_[selected_]->Run(inputs, outputs, observer));
  for (const RunCheck& check : program().checks) {
    const auto* values = static_cast<const int64_t*>(executables_[selected_]->buffer(check.buffer));
    const auto count = static_cast<size_t>(program().buffers[static_cast<size_t>(check.buffer)].shape[0]);
    RETURN_IF_ERROR(RunCheckResult(check.message, absl::MakeConstSpan(values, count)));
  }
  return PackOutputs(outputs);
}

absl::Status Session::PackOutputs(absl::Span<void* const> outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Binding& binding = program().outputs[i];
    Shape shape = binding.shape;
    for (size_t d = 0; d < binding.extents.size(); ++d) {
      if (binding.extents[d] < 0) continue;
      const int64_t extent = *static_cast<const int64_t*>(executables_[selected_]->buffer(binding.extents[d]));
      if (extent < 0 || extent > shape[d]) {
        return absl::InternalError(absl::StrCat("output '", binding.name, "' has ", extent, " elements in dimension ",
                                                d, ", the bundle has room for ", shape[d]));
      }
      shape[d] = extent;
    }
    PackBox(outputs[i], DTypeBytes(binding.dtype), binding.shape, shape);
    output_shapes_[i] = std::move(shape);
  }
  return absl::OkStatus();
}

size_t Session::input_bytes(int index) const {
  const Binding& binding = program().inputs[index];
  const Shape& shape = padding() ? given_[index] : binding.shape;
  return static_cast<size_t>(NumElements(shape) * DTypeBytes(binding.dtype));
}

Shape Session::output_shape(int index) const {
  const std::lock_guard<FifoMutex> lock(mutex_);
  return output_shapes_[index];
}

absl::StatusOr<std::vector<Tensor>> Session::Run(absl::Span<const Tensor> inputs) { return RunTimed(inputs, nullptr); }

absl::StatusOr<std::vector<Tensor>> Session::RunTimed(absl::Span<const Tensor> inputs,
                                                      std::vector<int64_t>* latencies_ns) {
  std::vector<const void*> input_data;
  std::vector<Shape> shapes;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (i < manifest().inputs.size()) {
      RETURN_IF_ERROR(CheckInput(manifest().inputs[i], !manifest().others.empty(), inputs[i]));
    }
    input_data.push_back(inputs[i].data());
    shapes.push_back(inputs[i].shape());
  }
  const std::lock_guard<FifoMutex> lock(mutex_);
  RETURN_IF_ERROR(SelectLocked(shapes));
  std::vector<Tensor> outputs;
  std::vector<void*> output_data;
  for (const Binding& binding : program().outputs) {
    Tensor& output = outputs.emplace_back(binding.dtype, binding.shape);
    if (output.data() == nullptr) {
      return absl::ResourceExhaustedError(absl::StrCat("no memory for output '", binding.name, "'"));
    }
    output_data.push_back(output.mutable_data());
  }
  LaunchObserver observer;
  if (latencies_ns != nullptr) {
    latencies_ns->assign(program().launches.size(), 0);
    observer = [latencies_ns](int launch, int64_t latency_ns) { (*latencies_ns)[launch] = latency_ns; };
  }
  RETURN_IF_ERROR(RunLocked(input_data, output_data, observer));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Shape& shape = output_shapes_[i];
    if (shape == outputs[i].shape()) continue;
    // A shared_ptr, because the smaller tensor borrows the bytes of the whole one.
    const auto whole = std::make_shared<Tensor>(outputs[i]);
    outputs[i] = Tensor(whole->dtype(), shape, whole->data(), whole);
  }
  return outputs;
}

std::vector<Tensor> RandomInputs(const ManifestProgram& program, uint64_t seed, int64_t integer_limit) {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const Binding& input = program.inputs[i];
    tensors.push_back(RandomTensor(input.dtype, input.shape, DeriveSeed(seed, i), integer_limit));
  }
  return tensors;
}

}  // namespace fusion
