#include "compiler/backends/opencl/toolchain/opencl_toolchain.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/devices/opencl/context.h"
#include "runtime/devices/opencl/program_file.h"

namespace fusion {
namespace {

class OpenClToolchain : public LocalToolchain {
 public:
  explicit OpenClToolchain(std::shared_ptr<opencl::Context> context)
      : context_(std::move(context)), version_(context_ ? context_->device().driver : "OpenCL C text") {}

  const char* kind() const override { return "opencl"; }
  const std::string& version() const override { return version_; }

  absl::StatusOr<std::vector<std::string>> Build(absl::Span<const BuildUnit> units,
                                                 const std::function<bool()>& cancelled) const override {
    std::vector<std::string> files;
    for (const BuildUnit& unit : units) {
      if (cancelled && cancelled()) return absl::CancelledError("the build was cancelled");
      opencl::ProgramFile file;
      file.source = unit.source;
      std::string binary;
      if (context_) {
        ASSIGN_OR_RETURN(const opencl::ClProgram program, context_->BuildSource(unit.source, "a generated kernel"));
        ASSIGN_OR_RETURN(binary, context_->BinaryOf(program));
        file.device = context_->device().name;
        file.driver = context_->device().driver;
        file.binary = binary;
      }
      files.push_back(opencl::WriteProgramFile(file));
    }
    return files;
  }

 private:
  const std::shared_ptr<opencl::Context> context_;
  const std::string version_;
};

}  // namespace

std::unique_ptr<LocalToolchain> MakeOpenClToolchain(OpenClToolchainOptions options) {
  std::shared_ptr<opencl::Context> context;
  if (options.build) {
    absl::StatusOr<std::shared_ptr<opencl::Context>> found = opencl::Context::Create();
    if (found.ok()) context = *std::move(found);
  }
  return std::make_unique<OpenClToolchain>(std::move(context));
}

}  // namespace fusion
