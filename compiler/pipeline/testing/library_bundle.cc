#include "compiler/pipeline/testing/library_bundle.h"

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/backends/cpu/toolchain/clang_toolchain.h"
#include "compiler/backends/cuda/testing/shim_toolchain.h"
#include "compiler/pipeline/compile.h"
#include "runtime/base/status_macros.h"
#include "runtime/devices/cuda/testing/use_shim_driver.h"
#include "runtime/loader/session.h"

namespace fusion::testing {
namespace {

// A worker that measures this share of our kernels' time for the library.
class Worker : public LatencyOracle {
 public:
  explicit Worker(double share) : share_(share) {}
  absl::StatusOr<std::vector<LatencyAnswer>> Latency(absl::Span<const LatencyQuestion> questions,
                                                     MeasurementBundler&) override {
    std::vector<LatencyAnswer> answers;
    for (const LatencyQuestion& question : questions) {
      const bool library = absl::StrContains(question.description, "library=1");
      answers.push_back({library ? 1000 * share_ : 1000, LatencySource::kMeasured});
    }
    return answers;
  }

 private:
  const double share_;
};

}  // namespace

std::vector<LibraryCall> LibraryCallsOf(const movement::Kernel& kernel) {
  std::vector<LibraryCall> calls;
  for (const movement::Phase& phase : kernel.phases) {
    if (const LibraryCall* call = movement::LibraryCallOf(phase)) calls.push_back(*call);
  }
  return calls;
}

absl::StatusOr<std::unique_ptr<LibraryBundles>> LibraryBundles::Create() {
  RETURN_IF_ERROR(UseCudaShimDriver());
  std::vector<std::unique_ptr<LocalToolchain>> local;
  ASSIGN_OR_RETURN(auto clang, ClangToolchain::Create({}));
  local.push_back(std::move(clang));
  ASSIGN_OR_RETURN(auto shim, MakeCudaShimToolchain());
  local.push_back(std::move(shim));
  std::unique_ptr<LibraryBundles> bundles(new LibraryBundles);
  bundles->toolchains_ = std::make_unique<ToolchainSet>(std::move(local));
  bundles->path_ = absl::StrCat(std::filesystem::temp_directory_path().string(), "/library_", getpid(), ".fusion");
  return bundles;
}

LibraryBundles::~LibraryBundles() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

absl::StatusOr<LibraryBundles::Result> LibraryBundles::Run(const ecg::Graph& graph, const Options& options) {
  Worker worker(options.share);
  CompileContext context;
  context.device = &options.device;
  context.oracle = &worker;
  context.toolchain = toolchains_.get();
  ModelFiles files;
  files.graph = &graph;
  CompileOptions compile;
  compile.target = "cuda";
  compile.precision = options.precision;
  compile.tune = "quick";
  compile.disabled_passes = {"beyond-table"};  // makes each product a kernel
  RETURN_IF_ERROR(Compile(files, compile, context, path_).status());
  ASSIGN_OR_RETURN(const auto bundle, Bundle::Open(path_));
  Result result;
  result.format = bundle->manifest().format;
  for (const ManifestKernel& kernel : bundle->manifest().kernels) {
    for (const Phase& phase : kernel.phases) {
      if (phase.library) result.calls.push_back(*phase.library);
    }
  }
  ASSIGN_OR_RETURN(const auto session, Session::Create(bundle, 1));
  const std::vector<Tensor> inputs = options.inputs.empty() ? RandomInputs(session->manifest(), 5) : options.inputs;
  ASSIGN_OR_RETURN(result.outputs, session->Run(inputs));
  std::vector<int64_t> latencies_ns;  // launch by launch, outside of a graph
  ASSIGN_OR_RETURN(const std::vector<Tensor> again, session->RunTimed(inputs, &latencies_ns));
  for (size_t o = 0; o < again.size(); ++o) {
    const size_t bytes = again[o].size_bytes();
    if (bytes != result.outputs[o].size_bytes() || memcmp(again[o].data(), result.outputs[o].data(), bytes) != 0) {
      return absl::InternalError("a run differs from one that is a graph");
    }
  }
  return result;
}

}  // namespace fusion::testing
