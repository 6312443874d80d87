#include "tests/conformance/compile_and_run.h"

#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compiler/backends/cpu/toolchain/clang_toolchain.h"
#include "compiler/backends/cuda/testing/shim_toolchain.h"
#include "compiler/backends/cuda/toolchain/nvrtc_toolchain.h"
#include "compiler/backends/dsa/dsa_device_model.h"
#include "compiler/backends/dsa/toolchain/dsa_toolchain.h"
#include "compiler/backends/opencl/toolchain/opencl_toolchain.h"
#include "compiler/backends/toolchain_set.h"
#include "compiler/cost/stored_devices.h"
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

bool OnGpu(const std::string& target) { return absl::StartsWith(target, "cuda:"); }
bool OnShim(const std::string& target) { return absl::StartsWith(target, "cuda-shim"); }

absl::StatusOr<std::unique_ptr<Toolchain>> MakeToolchain(const RunOptions& options) {
  if (OnShim(options.target)) RETURN_IF_ERROR(UseCudaShimDriver());
  ClangToolchainOptions clang;
  clang.more_flags = options.compiler_flags;
  std::vector<std::unique_ptr<LocalToolchain>> toolchains;
  absl::StatusOr<std::unique_ptr<LocalToolchain>> host = ClangToolchain::Create(clang);
  if (host.ok()) {
    toolchains.push_back(*std::move(host));
  } else if (!OnGpu(options.target)) {  // there, only models with routines need it, and are refused
    return host.status();
  }
  // The runs are forks of this process, and OpenCL drivers start threads. So this process does not build OpenCL text;
  // the runs do.
  toolchains.push_back(MakeOpenClToolchain({/*build=*/false}));
  ASSIGN_OR_RETURN(toolchains.emplace_back(), OnGpu(options.target) ? MakeNvrtcToolchain() : MakeCudaShimToolchain());
  toolchains.push_back(MakeDsaToolchain());
  return std::make_unique<ToolchainSet>(std::move(toolchains));
}

absl::StatusOr<DeviceModel> DeviceFor(const RunOptions& options) {
  if (OnGpu(options.target)) return StoredDevice(options.target);
  if (absl::string_view architecture = options.target; absl::ConsumePrefix(&architecture, "cuda-shim:")) {
    return StoredDevice(absl::StrCat("cuda:", architecture));
  }
  if (options.target == "opencl") return OpenClDevice(options.group);
  if (options.target == "dsa") return *DsaDeviceOf("dsa");
  return options.target == "cuda-shim" ? CudaDevice() : HostDevice(options.isa);
}

std::vector<absl::Status> Compiled(const std::vector<CompileJob>& jobs, const DeviceModel& device,
                                   Toolchain* toolchain) {
  ModelOracle oracle;
  CompileContext context;
  context.device = &device;
  context.oracle = &oracle;
  context.toolchain = toolchain;
  std::vector<absl::Status> statuses;
  for (const absl::StatusOr<CompileAccount>& one : CompileMany(jobs, context)) statuses.push_back(one.status());
  return statuses;
}

std::vector<absl::Status> FoundBefore(const std::vector<CompileJob>& jobs) {
  std::vector<absl::Status> statuses;
  for (const CompileJob& job : jobs) {
    statuses.push_back(std::filesystem::exists(job.bundle_path)
                           ? absl::OkStatus()
                           : absl::FailedPreconditionError(absl::StrCat(job.bundle_path, " is not there")));
  }
  return statuses;
}

// NVRTC starts the driver of a GPU, which does not work in forks of its process. So this process does not compile; a
// fork does, and hands the statuses over as tensors.
std::vector<absl::Status> CompiledApart(const std::vector<CompileJob>& jobs, const DeviceModel& device,
                                        Toolchain* toolchain) {
  constexpr int kMostSeconds = 3600;
  const auto compile = [&](int) -> Outputs {
    std::vector<Tensor> made;
    for (const absl::Status& status : Compiled(jobs, device, toolchain)) {
      Tensor& words = made.emplace_back(DType::kU8, Shape{static_cast<int64_t>(status.message().size()) + 1});
      char* const to = static_cast<char*>(words.mutable_data());
      to[0] = static_cast<char>(status.code());
      std::memcpy(to + 1, status.message().data(), status.message().size());
    }
    return made;
  };
  const Outputs made = RunIsolated(1, kMostSeconds, CasesPerProcess::kOne, compile)[0];
  if (!made.ok()) return std::vector<absl::Status>(jobs.size(), made.status());
  std::vector<absl::Status> statuses;
  for (const Tensor& words : *made) {
    const char* const from = words.as<char>();
    statuses.emplace_back(static_cast<absl::StatusCode>(from[0]),
                          absl::string_view(from + 1, static_cast<size_t>(words.num_elements()) - 1));
  }
  return statuses;
}

}  // namespace

std::vector<Outputs> CompileAndRun(std::vector<CompileJob> jobs, const std::function<std::vector<Tensor>(int)>& inputs,
                                   const RunOptions& options) {
  const auto toolchain = MakeToolchain(options);
  if (!toolchain.ok()) return std::vector<Outputs>(jobs.size(), toolchain.status());
  const absl::StatusOr<DeviceModel> device = DeviceFor(options);
  if (!device.ok()) return std::vector<Outputs>(jobs.size(), device.status());
  static int calls = 0;
  const bool keep = !options.bundles.empty();
  std::string folder = keep ? absl::StrCat(options.bundles, "/", calls++)
                            : (std::filesystem::temp_directory_path() / "fusion-bundles-XXXXXX").string();
  std::error_code ignored;
  const bool compiled_before = keep && std::filesystem::exists(folder, ignored);
  if (keep ? !compiled_before && !std::filesystem::create_directories(folder, ignored)
           : mkdtemp(folder.data()) == nullptr) {
    return std::vector<Outputs>(jobs.size(), absl::ResourceExhaustedError(absl::StrCat("cannot make ", folder)));
  }
  for (size_t j = 0; j < jobs.size(); ++j) {
    jobs[j].bundle_path = absl::StrCat(folder, "/", j, ".fusion");
    jobs[j].options.target = device->kind;
  }
  const std::vector<absl::Status> compiled = compiled_before         ? FoundBefore(jobs)
                                             : OnGpu(options.target) ? CompiledApart(jobs, *device, toolchain->get())
                                                                     : Compiled(jobs, *device, toolchain->get());
  // An OpenCL driver loads its library before it builds its first program; PoCL takes a second for that. A GPU's driver
  // takes as long for its context.
  const bool slow_start = options.target == "opencl" || OnGpu(options.target);
  const CasesPerProcess cases = slow_start ? CasesPerProcess::kMany : CasesPerProcess::kOne;
  std::vector<Outputs> outputs =
      RunIsolated(static_cast<int>(jobs.size()), options.deadline_s, cases, [&](int j) -> Outputs {
        if (!compiled[j].ok()) return compiled[j];
        return RunBundle(jobs[j].bundle_path, inputs(j), options.repeats);
      });
  if (!keep) std::filesystem::remove_all(folder, ignored);
  return outputs;
}

}  // namespace fusion::conformance
