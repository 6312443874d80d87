#include <stdlib.h>

#include <filesystem>
#include <memory>

#include "absl/strings/str_cat.h"
#include "compiler/backends/cpu/toolchain/clang_toolchain.h"
#include "compiler/pipeline/compile.h"
#include "runtime/loader/session.h"
#include "tests/conformance/host_device.h"
#include "tests/conformance/isolated.h"
#include "tests/conformance/modes.h"

namespace fusion::conformance {
namespace {

constexpr int kDeadlineSeconds = 60;  // one run; most take milliseconds

absl::StatusOr<Outputs> RunBundle(const std::string& path, const std::vector<Tensor>& inputs) {
  auto bundle = Bundle::Open(path);
  if (!bundle.ok()) return bundle.status();
  auto session = Session::Create(*bundle, 1);
  if (!session.ok()) return session.status();
  return (*session)->Run(inputs);
}

std::vector<absl::StatusOr<Outputs>> CompileAndRun(const std::vector<TestCase>& cases, const std::string& planner) {
  std::vector<absl::StatusOr<Outputs>> results(cases.size(), absl::InternalError("not run"));
  auto toolchain = ClangToolchain::Create();
  if (!toolchain.ok()) return std::vector<absl::StatusOr<Outputs>>(cases.size(), toolchain.status());
  std::string folder = (std::filesystem::temp_directory_path() / "fusion-conformance-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return results;
  const DeviceModel device = HostDevice();
  ModelOracle oracle;
  CompileContext context;
  context.device = &device;
  context.oracle = &oracle;
  context.toolchain = toolchain->get();
  std::vector<CompileJob> jobs;
  std::vector<size_t> case_of_job;
  std::vector<std::vector<Tensor>> inputs_of_job;
  for (size_t c = 0; c < cases.size(); ++c) {
    // The attempt that the import accepts decides which inputs are constants.
    for (int attempt = 0; attempt < kImportAttempts; ++attempt) {
      const onnx_import::ImportRequest request = RequestFor(cases[c], attempt);
      const auto imported = onnx_import::ImportOnnx(request);
      if (!imported.ok()) {
        results[c] = imported.status();
        if (imported.status().code() == absl::StatusCode::kUnimplemented) continue;
        break;
      }
      CompileJob job;
      job.files.model_path = request.model_path;
      job.files.model_name = cases[c].name;
      job.files.constant_inputs = request.constant_inputs;
      job.options.planner = planner;
      for (const auto& [name, shape] : request.shapes) job.options.shapes[name] = shape;
      job.options.dims = request.dims;
      job.bundle_path = absl::StrCat(folder, "/", c, ".fusion");
      std::vector<Tensor> inputs;
      for (const NamedTensor& input : cases[c].inputs) {
        if (!request.constant_inputs.count(input.name)) inputs.push_back(input.tensor);
      }
      jobs.push_back(std::move(job));
      inputs_of_job.push_back(std::move(inputs));
      case_of_job.push_back(c);
      break;
    }
  }
  const std::vector<absl::StatusOr<CompileAccount>> compiled = CompileMany(jobs, context);
  const std::vector<absl::StatusOr<Outputs>> outputs =
      RunIsolated(static_cast<int>(jobs.size()), kDeadlineSeconds, [&](int j) -> absl::StatusOr<Outputs> {
        if (!compiled[j].ok()) return compiled[j].status();
        return RunBundle(jobs[j].bundle_path, inputs_of_job[j]);
      });
  for (size_t j = 0; j < jobs.size(); ++j) results[case_of_job[j]] = outputs[j];
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return results;
}

}  // namespace

std::vector<Mode> CompiledModes() {
  auto mode = [](const std::string& name, const std::string& planner) {
    return Mode{name, [planner](const std::vector<TestCase>& cases, const ModeOptions& options) {
                  if (options.target == "cpu") return CompileAndRun(cases, planner);
                  return std::vector<absl::StatusOr<Outputs>>(
                      cases.size(),
                      absl::InvalidArgumentError(absl::StrCat("no target '", options.target, "' here, only cpu")));
                }};
  };
  return {mode("unfused", "none"), mode("fused", "dnnfusion")};
}

}  // namespace fusion::conformance
