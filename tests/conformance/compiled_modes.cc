#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/conformance/compile_and_run.h"
#include "tests/conformance/modes.h"

namespace fusion::conformance {
namespace {

std::vector<absl::StatusOr<Outputs>> RunCases(const std::vector<TestCase>& cases, const std::string& planner,
                                              const ModeOptions& options) {
  std::vector<absl::StatusOr<Outputs>> results(cases.size(), absl::InternalError("not run"));
  std::vector<CompileJob> jobs;
  std::vector<size_t> case_of_job;
  std::vector<std::vector<Tensor>> inputs_of_job;
  for (size_t c = 0; c < cases.size(); ++c) {
    // The first attempt that import accepts decides which inputs are constants.
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
  RunOptions run_options;
  run_options.target = options.target;
  run_options.group = options.group;
  run_options.bundles = options.bundles;
  if (options.target == "opencl") run_options.deadline_s = 300;  // the driver compiles while it runs
  const std::vector<absl::StatusOr<Outputs>> outputs = CompileAndRun(
      std::move(jobs), [&](int j) { return inputs_of_job[j]; }, run_options);
  for (size_t j = 0; j < outputs.size(); ++j) results[case_of_job[j]] = outputs[j];
  return results;
}

}  // namespace

std::vector<Mode> CompiledModes() {
  auto mode = [](const std::string& name, const std::string& planner) {
    return Mode{
        name, [planner](const std::vector<TestCase>& cases, const ModeOptions& options) {
          if (options.target == "cpu" || options.target == "opencl" || absl::StartsWith(options.target, "cuda-shim") ||
              options.target == "dsa" || absl::StartsWith(options.target, "cuda:")) {
            return RunCases(cases, planner, options);
          }
          return std::vector<absl::StatusOr<Outputs>>(
              cases.size(),
              absl::InvalidArgumentError(absl::StrCat(
                  "no target '", options.target, "' here, only cpu, opencl, cuda-shim, cuda:ARCHITECTURE and dsa")));
        }};
  };
  return {mode("unfused", "none"), mode("fused", "dnnfusion")};
}

}  // namespace fusion::conformance
