#include "runtime/devices/null/null_device.h"

#include <cstring>
#include <vector>

#include "runtime/base/tensor.h"

namespace fusion {
namespace {

class NullExecutable : public Executable {
 public:
  NullExecutable(std::shared_ptr<const BundleReader> bundle, size_t program)
      : bundle_(std::move(bundle)), program_(bundle_->manifest().program(program)) {
    for (const Binding& input : program_.inputs) inputs_.emplace_back(input.dtype, input.shape);
    for (const Binding& output : program_.outputs) outputs_.emplace_back(output.dtype, output.shape);
  }

  absl::Status Run(absl::Span<const void* const>, absl::Span<void* const> outputs,
                   const LaunchObserver& observer) override {
    for (size_t i = 0; i < program_.launches.size() && observer; ++i) observer(static_cast<int>(i), 0);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs_[i].size_bytes() > 0) std::memset(outputs[i], 0, outputs_[i].size_bytes());
    }
    return absl::OkStatus();
  }
  void* input(int index) override { return inputs_[index].mutable_data(); }
  const void* output(int index) override { return outputs_[index].data(); }
  void* buffer(int) override {  // an extent: 0, since nothing has run
    extent_ = 0;
    return &extent_;
  }

 private:
  int64_t extent_ = 0;
  const std::shared_ptr<const BundleReader> bundle_;
  const ManifestProgram& program_;
  std::vector<Tensor> inputs_, outputs_;
};

class NullDevice : public Device {
 public:
  absl::Status CheckSupported(const Manifest&) const override { return absl::OkStatus(); }
  absl::StatusOr<std::unique_ptr<Executable>> Load(std::shared_ptr<const BundleReader> bundle,
                                                   const LoadOptions& options) const override {
    return std::make_unique<NullExecutable>(std::move(bundle), options.program);
  }
};

}  // namespace

std::unique_ptr<Device> MakeNullDevice() { return std::make_unique<NullDevice>(); }

}  // namespace fusion
