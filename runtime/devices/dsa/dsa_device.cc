#include "runtime/devices/dsa/dsa_device.h"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/tensor.h"
#include "runtime/devices/dsa_sim/check.h"
#include "runtime/devices/dsa_sim/exact_integer.h"
#include "runtime/devices/dsa_sim/execute.h"
#include "runtime/devices/dsa_sim/timing.h"
#include "runtime/devices/dsa_sim/unit_evaluator.h"

namespace fusion {
namespace {

// The elements of a tensor as the machine holds them.
absl::StatusOr<std::vector<float>> Floats(const Tensor& tensor) {
  if (tensor.dtype() == DType::kF32) {
    const auto* const data = static_cast<const float*>(tensor.data());
    return std::vector<float>(data, data + tensor.num_elements());
  }
  std::vector<float> values(static_cast<size_t>(tensor.num_elements()));
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    if (IsFloat(tensor.dtype())) {
      values[i] = static_cast<float>(tensor.GetDouble(i));
      continue;
    }
    const int64_t value = tensor.GetInt(i);
    if (!dsa::IsExactAsFloat(value)) {
      return absl::UnimplementedError(absl::StrCat("element ", i, " is ", dsa::InexactInWords(value)));
    }
    values[i] = static_cast<float>(value);
  }
  return values;
}

void Put(const std::vector<float>& values, Tensor* tensor) {
  if (tensor->dtype() == DType::kF32) {
    std::memcpy(tensor->mutable_data(), values.data(), values.size() * sizeof(float));
    return;
  }
  for (int64_t i = 0; i < tensor->num_elements(); ++i) {
    if (IsFloat(tensor->dtype())) {
      tensor->SetDouble(i, values[i]);
    } else {
      tensor->SetInt(i, static_cast<int64_t>(values[i]));
    }
  }
}

class DsaExecutable : public Executable {
 public:
  DsaExecutable(std::shared_ptr<const BundleReader> bundle, size_t program)
      : bundle_(std::move(bundle)), manifest_(bundle_->manifest().program(program)) {}

  absl::Status Load() {
    RETURN_IF_ERROR(CheckForm());
    ASSIGN_OR_RETURN(const absl::string_view description, bundle_->Entry(kDsaMachineEntry));
    ASSIGN_OR_RETURN(const dsa::Machine machine, dsa::MachineFromJson(std::string(description)));
    const Launch& launch = manifest_.launches[0];
    ASSIGN_OR_RETURN(const absl::string_view text, bundle_->Entry(manifest_.kernels[launch.kernel].file));
    ASSIGN_OR_RETURN(program_, dsa::Parse(std::string(text)));
    RETURN_IF_ERROR(dsa::CheckOperands(machine, program_));
    RETURN_IF_ERROR(dsa::CheckAccesses(machine, program_));
    absl::StatusOr<dsa::UnitEvaluator> evaluator = dsa::UnitEvaluator::Create(program_);
    if (!evaluator.ok()) return evaluator.status();
    evaluator_ = std::make_unique<dsa::UnitEvaluator>(*std::move(evaluator));
    const dsa::Timing timing = dsa::TimeProgram(machine, program_);
    time_ = {timing.cycles, timing.seconds};
    RETURN_IF_ERROR(BindArguments(launch));
    for (const Buffer& buffer : manifest_.buffers) {
      // Constants stay in the bundle's mapping.
      memory_.push_back(buffer.kind == Buffer::Kind::kConstant ? Tensor() : Tensor(buffer.dtype, buffer.shape));
    }
    return absl::OkStatus();
  }

  absl::Status Run(absl::Span<const void* const> inputs, absl::Span<void* const> outputs,
                   const LaunchObserver& observer) override {
    for (size_t i = 0; i < inputs.size(); ++i) Copy(inputs[i], input(static_cast<int>(i)), manifest_.inputs[i]);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const int buffer = manifest_.inputs[i].buffer;
      if (names_[buffer].empty()) continue;
      absl::StatusOr<std::vector<float>> values = Floats(memory_[buffer]);
      if (!values.ok()) return Annotate(values.status(), absl::StrCat("input '", manifest_.inputs[i].name, "'"));
      values_[names_[buffer]] = *std::move(values);
    }
    ASSIGN_OR_RETURN(const dsa::Values results, dsa::Execute(program_, values_, evaluator_.get()));
    for (size_t b = 0; b < memory_.size(); ++b) {
      if (manifest_.buffers[b].kind == Buffer::Kind::kOutput && !names_[b].empty()) {
        Put(results.at(names_[b]), &memory_[b]);
      }
    }
    for (size_t i = 0; i < outputs.size(); ++i) Copy(output(static_cast<int>(i)), outputs[i], manifest_.outputs[i]);
    if (observer) observer(0, static_cast<int64_t>(std::llround(time_.seconds * 1e9)));
    return absl::OkStatus();
  }

  void* input(int index) override { return memory_[manifest_.inputs[index].buffer].mutable_data(); }
  const void* output(int index) override {
    const int number = manifest_.outputs[index].buffer;
    const Buffer& buffer = manifest_.buffers[number];
    return buffer.kind == Buffer::Kind::kConstant ? bundle_->weights().data() + buffer.offset : memory_[number].data();
  }
  void* buffer(int index) override { return memory_[index].mutable_data(); }
  std::optional<SimulatedTime> simulated_time() const override { return time_; }

 private:
  static void Copy(const void* from, void* to, const Binding& binding) {
    const int64_t size_bytes = NumElements(binding.shape) * DTypeBytes(binding.dtype);
    if (from != to && size_bytes > 0) std::memmove(to, from, static_cast<size_t>(size_bytes));
  }

  absl::Status CheckForm() const {
    bool plain = manifest_.launches.size() == 1 && manifest_.launches[0].others.empty() && manifest_.repeats.empty() &&
                 manifest_.checks.empty();
    for (const Binding& binding : manifest_.inputs) plain = plain && binding.extents.empty();
    for (const Binding& binding : manifest_.outputs) plain = plain && binding.extents.empty();
    for (const Buffer& buffer : manifest_.buffers) plain = plain && buffer.kind != Buffer::Kind::kArena;
    if (plain && !manifest_.kernels[manifest_.launches[0].kernel].on_host) return absl::OkStatus();
    return absl::FailedPreconditionError(
        "a bundle for dsa has one launch, a whole program, without extents, checks, repeats or an arena");
  }

  // Gives each argument of the launch the name that it has in the program, and reads the constants.
  absl::Status BindArguments(const Launch& launch) {
    names_.resize(manifest_.buffers.size());
    std::vector<const dsa::Buffer*> arguments;
    for (const dsa::Buffer& one : program_.buffers) {
      if (one.input || one.output) arguments.push_back(&one);
    }
    if (arguments.size() != launch.buffers.size()) {
      return absl::FailedPreconditionError(absl::StrCat("the program has ", arguments.size(),
                                                        " inputs and outputs, the launch ", launch.buffers.size()));
    }
    for (size_t a = 0; a < arguments.size(); ++a) {
      RETURN_IF_ERROR(BindArgument(*arguments[a], launch.buffers[a]));
    }
    for (size_t b = 0; b < names_.size(); ++b) {
      const Buffer& buffer = manifest_.buffers[b];
      if (buffer.kind == Buffer::Kind::kOutput && names_[b].empty() && NumElements(buffer.shape) > 0) {
        return absl::FailedPreconditionError(absl::StrCat("the program makes no '", buffer.name, "'"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status BindArgument(const dsa::Buffer& one, int number) {
    const Buffer& buffer = manifest_.buffers[number];
    const bool fits = names_[number].empty() && one.output == (buffer.kind == Buffer::Kind::kOutput) &&
                      !(one.input && one.output) && NumElements(buffer.shape) == one.elements;
    if (!fits) {
      return absl::FailedPreconditionError(absl::StrCat("the program's buffer ", one.name, " of ", one.elements,
                                                        " elements is not the bundle's '", buffer.name, "', ",
                                                        DTypeName(buffer.dtype), ShapeToString(buffer.shape)));
    }
    names_[number] = one.name;
    if (buffer.kind != Buffer::Kind::kConstant) return absl::OkStatus();
    const Tensor constant(buffer.dtype, buffer.shape, bundle_->weights().data() + buffer.offset, bundle_);
    absl::StatusOr<std::vector<float>> values = Floats(constant);
    if (!values.ok()) return Annotate(values.status(), absl::StrCat("constant '", buffer.name, "'"));
    values_[one.name] = *std::move(values);
    return absl::OkStatus();
  }

  const std::shared_ptr<const BundleReader> bundle_;
  const ManifestProgram& manifest_;
  dsa::Program program_;
  std::unique_ptr<dsa::UnitEvaluator> evaluator_;
  SimulatedTime time_;
  std::vector<std::string> names_;  // of the bundle's buffers in the program; "": the program has none
  std::vector<Tensor> memory_;      // of the bundle's buffers but for constants
  dsa::Values values_;              // of the program's inputs; constants stay
};

class DsaDevice : public Device {
 public:
  absl::Status CheckSupported(const Manifest& manifest) const override {
    if (manifest.digests.count(kDsaMachineEntry) > 0) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat("the bundle for dsa ", manifest.isa, " describes no machine: '",
                                                      kDsaMachineEntry, "' is missing"));
  }
  absl::StatusOr<std::unique_ptr<Executable>> Load(std::shared_ptr<const BundleReader> bundle,
                                                   const LoadOptions& options) const override {
    auto executable = std::make_unique<DsaExecutable>(std::move(bundle), options.program);
    const absl::Status loaded = executable->Load();
    if (loaded.ok()) return executable;
    return absl::FailedPreconditionError(
        absl::StrCat("the program cannot run on its machine: ", std::string(loaded.message())));
  }
};

}  // namespace

std::unique_ptr<Device> MakeDsaDevice() { return std::make_unique<DsaDevice>(); }

}  // namespace fusion
