#include "tests/conformance/compile_and_run.h"

#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/backends/cpu/toolchain/clang_toolchain.h"
#include "compiler/backends/cuda/testing/shim_toolchain.h"
#include "compiler/backends/dsa/dsa_device_model.h"
#include "compiler/backends/dsa/toolchain/dsa_toolchain.h"
#include "compiler/backends/opencl/toolchain/opencl_toolchain.h"
#include "compiler/backends/toolchain_set.h"
#include "runtime/base/status_macros.h"
#include "runtime/devices/cuda/testing/use_shim_driver.h"
#include "runtime/loader/session.h"
#include "runtime/loader/testing/guarded_memory.h"
#include "tests/conformance/host_device.h"
#include "tests/conformance/isolated.h"

namespace fusion::conformance {
namespace {

using Outputs = absl::StatusOr<std::vector<Tensor>>;

absl::Status SameBytes(const std::vector<Tensor>& first, const std::vector<Tensor>& again, const char* when) {
  for (size_t o = 0; o < first.size(); ++o) {
    if (first[o].shape() != again[o].shape()) {
      return absl::AbortedError(absl::StrCat("output ", o, " is ", ShapeToString(first[o].shape()), " on one thread, ",
                                             ShapeToString(again[o].shape()), " ", when));
    }
    const int64_t bytes = DTypeBytes(first[o].dtype());
    const char *a = first[o].as<char>(), *b = again[o].as<char>();
    for (int64_t i = 0; i < first[o].num_elements(); ++i) {
      if (std::memcmp(a + i * bytes, b + i * bytes, static_cast<size_t>(bytes)) == 0) continue;
      return absl::AbortedError(
          absl::StrCat("output ", o, " at ", i, " has other bytes ", when, " than at first on one thread"));
    }
  }
  return absl::OkStatus();
}

// Repeats the last run of `session` on memory that ends `gap_elements` before a page whose access faults. Fails with
// ABORTED if outputs differ from `expected` in any bit, and with INTERNAL if the run writes an input or memory beside
// inputs and outputs.
absl::Status CheckOnCallerMemory(Session& session, const std::vector<Tensor>& inputs,
                                 const std::vector<Tensor>& expected, int64_t gap_elements) {
  std::vector<std::unique_ptr<GuardedMemory>> memories;
  std::vector<const void*> from;
  std::vector<void*> to;
  for (const Tensor& input : inputs) {
    GuardedMemory& memory = *memories.emplace_back(
        std::make_unique<GuardedMemory>(input.size_bytes(), gap_elements * DTypeBytes(input.dtype())));
    if (input.size_bytes() > 0) std::memcpy(memory.data(), input.data(), input.size_bytes());
    from.push_back(memory.data());
  }
  for (const Binding& output : session.program().outputs) {
    const int64_t element_bytes = DTypeBytes(output.dtype);
    GuardedMemory& memory = *memories.emplace_back(
        std::make_unique<GuardedMemory>(NumElements(output.shape) * element_bytes, gap_elements * element_bytes));
    to.push_back(memory.data());
  }
  RETURN_IF_ERROR(session.RunRaw(from, to));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].size_bytes() > 0 && std::memcmp(from[i], inputs[i].data(), inputs[i].size_bytes()) != 0) {
      return absl::InternalError(absl::StrCat("input ", i, " is written"));
    }
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    if (session.output_shape(static_cast<int>(i)) != expected[i].shape() ||
        (expected[i].size_bytes() > 0 && std::memcmp(to[i], expected[i].data(), expected[i].size_bytes()) != 0)) {
      return absl::AbortedError(
          absl::StrCat("output ", i, " differs in memory that ends ", gap_elements, " elements before a page"));
    }
  }
  for (const auto& memory : memories) {
    if (!memory->SurroundingsUntouched()) return absl::InternalError("memory beside inputs and outputs is written");
  }
  return absl::OkStatus();
}

Outputs RunBundle(const std::string& path, const std::vector<Tensor>& inputs, bool repeats) {
  ASSIGN_OR_RETURN(const auto bundle, Bundle::Open(path));
  ASSIGN_OR_RETURN(const auto session, Session::Create(bundle, 1));
  ASSIGN_OR_RETURN(std::vector<Tensor> outputs, session->Run(inputs));
  // Runs again on a caller's memory that is aligned to elements at best and lies near a page whose access faults: first
  // so near that it is copied, then, with another alignment, so far that kernels work in it.
  for (const int64_t gap_elements : {0, 65}) {
    RETURN_IF_ERROR(CheckOnCallerMemory(*session, inputs, outputs, gap_elements));
  }
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
  // The runs are forks of this process, and OpenCL drivers start threads. So this process does not build OpenCL text;
  // the runs do.
  toolchains.push_back(MakeOpenClToolchain({/*build=*/false}));
  ASSIGN_OR_RETURN(toolchains.emplace_back(), MakeCudaShimToolchain());
  toolchains.push_back(MakeDsaToolchain());
  return std::make_unique<ToolchainSet>(std::move(toolchains));
}

DeviceModel DeviceFor(const RunOptions& options) {
  if (options.target == "opencl") return OpenClDevice(options.group);
  if (options.target == "dsa") return *DsaDeviceOf("dsa");
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
  // An OpenCL driver loads its library before it builds its first program; PoCL takes a second for that.
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
