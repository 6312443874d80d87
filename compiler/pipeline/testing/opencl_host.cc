#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/pipeline/testing/kernel_call.h"
#include "runtime/base/status_macros.h"
#include "runtime/devices/opencl/context.h"
#include "runtime/devices/opencl/program_file.h"

namespace fusion::testing {
namespace {

// Kernels work in the buffers themselves, which a device that is the processor does: what reads past the slack ends the
// process. The order of tasks is the driver's.
class HostOnOpenCl : public KernelHost {
 public:
  static absl::StatusOr<std::unique_ptr<KernelHost>> Load(const std::string& binary) {
    auto host = std::make_unique<HostOnOpenCl>();
    ASSIGN_OR_RETURN(host->context_, opencl::Context::Create());
    ASSIGN_OR_RETURN(const opencl::ProgramFile file, opencl::ReadProgramFile(binary));
    ASSIGN_OR_RETURN(host->program_, host->context_->BuildSource(file.source, "kernels of a test"));
    return host;
  }

  absl::Status Run(const KernelCall& call) override {
    const opencl::Api& api = context_->api();
    std::vector<opencl::Buffer> buffers;
    for (GuardedBuffer* buffer : call.args) {
      ASSIGN_OR_RETURN(opencl::Buffer memory, context_->ShareMemory(buffer->data(), buffer->bytes() + kSlackBytes));
      buffers.push_back(std::move(memory));
    }
    for (const KernelCall::Phase& phase : call.phases) {
      int64_t tasks = 0;
      for (const auto& [begin, end] : phase.ranges) tasks = std::max(tasks, end);
      if (tasks == 0) continue;
      ASSIGN_OR_RETURN(const opencl::Kernel kernel, context_->MakeKernel(program_, phase.symbol));
      cl_uint index = 0;
      for (const opencl::Buffer& buffer : buffers) {
        const cl_mem memory = buffer.get();
        const cl_long offset = 0;
        RETURN_IF_ERROR(opencl::ToStatus(api.clSetKernelArg(kernel.get(), index++, sizeof(cl_mem), &memory), "memory"));
        RETURN_IF_ERROR(opencl::ToStatus(api.clSetKernelArg(kernel.get(), index++, sizeof offset, &offset), "offset"));
      }
      RETURN_IF_ERROR(context_->Launch(kernel, tasks, nullptr));
      RETURN_IF_ERROR(Annotate(context_->Finish(), phase.symbol));
    }
    return absl::OkStatus();
  }

 private:
  std::shared_ptr<opencl::Context> context_;
  opencl::Program program_;
};

}  // namespace

absl::Status FindOpenCl() {
  ASSIGN_OR_RETURN(const auto context, opencl::Context::Create());
  if (context->device().shares_memory) return absl::OkStatus();
  return absl::FailedPreconditionError("the OpenCL device does not work in the memory of the processor");
}

absl::StatusOr<std::unique_ptr<KernelHost>> LoadOnOpenCl(const std::string& binary) {
  return HostOnOpenCl::Load(binary);
}

}  // namespace fusion::testing
