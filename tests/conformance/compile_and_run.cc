#include "tests/conformance/compile_and_run.h"

#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/backends/cpu/toolchain/clang_toolchain.h"
#include "compiler/backends/cuda/testing/shim_toolchain.h"
#include "compiler/backends/opencl/toolchain/opencl_toolchain.h"
#include "compiler/backends/toolchain_set.h"
#include "runtime/base/status_macros.h"
#include "runtime/devices/cuda/testing/use_shim_driver.h"
#include "runtime/loader/session.h"
#include "tests/conformance/host_device.h"
#include "tests/conformance/isolated.h"

namespace fusion::conformance {
namespace {

using Outputs = absl::StatusOr<std::vector<Tensor>>;

absl::Status SameBytes(const std::vector<Tensor>& first, const std::vector<Tensor>& again, const char* when) {
  for (size_t o = 0; o < first.size(); ++o) {
    if (first[o].shape() != again[o].shape()) {
      return absl::FailedPreconditionError(absl::StrCat("output ", o, " is ", ShapeToString(first[o].shape()),
                                                        " on one thread, ", ShapeToString(again[o].shape()), " ", when));
    }
    const int64_t bytes = DTypeBytes(first[o].dtype());
    const char *a = first[o].as<char>(), *b = again[o].as<char>();
    for (int64_t i = 0; i < first[o].num_elements(); ++i) {
      if (std::memcmp(a + i * bytes, b + i * bytes, static_cast<size_t>(bytes)) == 0) continue;
      return absl::FailedPreconditionError(absl::StrCat("output ", o, " at ", i, " has other bytes ", when,
                                                        " than at first on one thread"));
    }
  }
  return absl::OkStatus();
}

Outputs RunBundle(const std::string& path, const std::vector<Tensor>& inputs, bool repeats) {
  ASSIGN_OR_RETURN(const auto bundle, Bundle::Open(path));
  ASSIGN_OR_RETURN(const auto session, Session::Create(bundle, 1));
  ASSIGN_OR_RETURN(std::vector<Tensor> outputs, session->Run(inputs));
  if (!repeats) return outputs;
  ASSIGN_OR_RETURN(const auto two, Session::Create(bundle, 2));
  for (const char* when : {"on two threads", "in the second run on two threads"}) {
    ASSIGN_OR_RETURN(const std::vector<Tensor> again, two->Run(inputs));
    RETURN_IF_ERROR(SameBytes(outputs, again, when));
  }
  return outputs;
}

absl::StatusOr<std::unique_ptr<Toolchain>> MakeToolchain(const RunOptions& options) {
  if (options.target == "cuda-shim") RETURN_IF_ERROR(UseCudaShimDriver());
  ClangToolchainOptions clang;
  clang.more_flags = options.compiler_flags;
  std::vector<std::unique_ptr<LocalToolchain>> toolchains;
  ASSIGN_OR_RETURN(toolchains.emplace_back(), ClangToolchain::Create(clang));
  // Drivers of OpenCL start threads, and the runs are forks of this process: they build the text.
  toolchains.push_back(MakeOpenClToolchain({/*build=*/false}));
  ASSIGN_OR_RETURN(toolchains.emplace_back(), MakeCudaShimToolchain());
  return std::make_unique<ToolchainSet>(std::move(toolchains));
}

DeviceModel DeviceFor(const RunOptions& options) {
  if (options.target == "opencl") return OpenClDevice(options.group);
  return options.target == "cuda-shim" ? CudaDevice() : HostDevice(options.isa);
}

}  // namespace

std::vector<Outputs> CompileAndRun(std::vector<CompileJob> jobs, const std::function<std::vector<Tensor>(int)>& inputs,
                                   const RunOptions& options) {
  const auto toolchain = MakeToolchain(options);
  if (!toolchain.ok()) return std::vector<Outputs>(jobs.size(), toolchain.status());
  std::string folder = (std::filesystem::temp_directory_path() / "fusion-bundles-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {
    return std::vector<Outputs>(jobs.size(), absl::ResourceExhaustedError(absl::StrCat("cannot make ", folder)));
  }
  const DeviceModel device = DeviceFor(options);
  for (size_t j = 0; j < jobs.size(); ++j) {
    jobs[j].bundle_path = absl::StrCat(folder, "/", j, ".fusion");
    jobs[j].options.target = device.kind;
  }
  ModelOracle oracle;
  CompileContext context;
  context.device = &device;
  context.oracle = &oracle;
  context.toolchain = toolchain->get();
  const std::vector<absl::StatusOr<CompileAccount>> compiled = CompileMany(jobs, context);
  // A driver of OpenCL reads its library before it builds its first program, PoCL for a second.
  const CasesPerProcess cases = options.target == "opencl" ? CasesPerProcess::kMany : CasesPerProcess::kOne;
  std::vector<Outputs> outputs =
      RunIsolated(static_cast<int>(jobs.size()), options.deadline_s, cases, [&](int j) -> Outputs {
        if (!compiled[j].ok()) return compiled[j].status();
        return RunBundle(jobs[j].bundle_path, inputs(j), options.repeats);
      });
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return outputs;
}

}  // namespace fusion::conformance
