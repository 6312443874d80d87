#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/pipeline/testing/kernel_call.h"
#include "runtime/base/status_macros.h"
#include "runtime/devices/opencl/context.h"
#include "runtime/devices/opencl/program_file.h"

namespace fusion::testing {
namespace {

// Most buffers that are passed as parameters; a kernel with more gets a table.
constexpr size_t kMostParameterBuffers = 64;

// Kernels work in the buffers themselves, which the processor as a device allows. A read past the slack ends the
// process. The driver decides the order of tasks.
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
    if (call.args.size() > kMostParameterBuffers) return RunWithTable(call);
    std::vector<opencl::Buffer> buffers;
    for (GuardedBuffer* buffer : call.args) {
      ASSIGN_OR_RETURN(opencl::Buffer memory, context_->ShareMemory(buffer->data(), buffer->bytes() + kSlackBytes));
      buffers.push_back(std::move(memory));
    }
    for (const KernelCall::Phase& phase : call.phases) {
      int64_t tasks = 0;
      for (const auto& [begin, end] : phase.ranges) tasks = std::max(tasks, end);
      if (tasks == 0) continue;
      ASSIGN_OR_RETURN(const opencl::ClKernel kernel, context_->MakeKernel(program_, phase.symbol));
      cl_uint index = 0;
      for (const opencl::Buffer& buffer : buffers) {
        const cl_mem memory = buffer.get();
        const cl_long offset = 0;
        RETURN_IF_ERROR(opencl::ToStatus(api.clSetKernelArg(kernel.get(), index++, sizeof(cl_mem), &memory), "memory"));
        RETURN_IF_ERROR(opencl::ToStatus(api.clSetKernelArg(kernel.get(), index++, sizeof offset, &offset), "offset"));
      }
      RETURN_IF_ERROR(Launch(kernel, call, index, tasks));
      RETURN_IF_ERROR(Annotate(context_->Finish(), phase.symbol));
    }
    return absl::OkStatus();
  }

 private:
  // One object holds copies of all buffers (runtime/devices/opencl/kernel_abi.md).
  absl::Status RunWithTable(const KernelCall& call) {
    const opencl::Api& api = context_->api();
    std::vector<cl_long> places;
    int64_t bytes = 0;
    for (const GuardedBuffer* buffer : call.args) {
      places.insert(places.end(), {0, bytes});
      bytes += (buffer->bytes() + 2 * kSlackBytes - 1) / kSlackBytes * kSlackBytes;
    }
    std::string copies(static_cast<size_t>(bytes), 0);
    const auto all = [&](const auto& copy) {
      for (size_t a = 0; a < call.args.size(); ++a) {
        copy(copies.data() + places[2 * a + 1], call.args[a]->data(), call.args[a]->bytes() + kSlackBytes);
      }
    };
    all([](char* inside, char* own, int64_t size) { std::memcpy(inside, own, size); });
    ASSIGN_OR_RETURN(const opencl::Buffer memory, context_->ShareMemory(copies.data(), bytes));
    ASSIGN_OR_RETURN(const opencl::Buffer table,
                     context_->ShareMemory(places.data(), static_cast<int64_t>(places.size() * sizeof(cl_long))));
    for (const KernelCall::Phase& phase : call.phases) {
      int64_t tasks = 0;
      for (const auto& [begin, end] : phase.ranges) tasks = std::max(tasks, end);
      if (tasks == 0) continue;
      ASSIGN_OR_RETURN(const opencl::ClKernel kernel, context_->MakeKernel(program_, phase.symbol));
      cl_uint index = 0;
      for (const cl_mem object : {memory.get(), memory.get(), table.get()}) {
        RETURN_IF_ERROR(opencl::ToStatus(api.clSetKernelArg(kernel.get(), index++, sizeof object, &object), "table"));
      }
      RETURN_IF_ERROR(Launch(kernel, call, index, tasks));
      RETURN_IF_ERROR(Annotate(context_->Finish(), phase.symbol));
    }
    all([](char* inside, char* own, int64_t size) { std::memcpy(own, inside, size); });
    return absl::OkStatus();
  }

  absl::Status Launch(const opencl::ClKernel& kernel, const KernelCall& call, cl_uint parameters, int64_t tasks) {
    std::vector<cl_int> none = {0, 0};  // tickets
    opencl::Buffer tickets;
    if (call.persistent) {
      ASSIGN_OR_RETURN(tickets, context_->ShareMemory(none.data(), 2 * sizeof(cl_int)));
      const cl_mem memory = tickets.get();
      RETURN_IF_ERROR(opencl::ToStatus(
          context_->api().clSetKernelArg(kernel.get(), parameters, sizeof(cl_mem), &memory), "tickets"));
      tasks = 2 * context_->device().persistent_groups + 1;  // some work-groups begin when others have done everything
    }
    RETURN_IF_ERROR(context_->Launch(kernel, tasks, nullptr));
    RETURN_IF_ERROR(context_->Finish());
    if (none != std::vector<cl_int>{0, 0}) return absl::InternalError("tickets are not as they were found");
    return absl::OkStatus();
  }

  std::shared_ptr<opencl::Context> context_;
  opencl::ClProgram program_;
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
