#include "worker/build/child_toolchain.h"

#include <errno.h>
#include <stdlib.h>

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compiler/backends/process/child_process.h"
#include "compiler/backends/process/made_file.h"
#include "runtime/base/errno_status.h"
#include "runtime/base/status_macros.h"
#include "worker/build/build_files.h"

namespace fusion {
namespace {

constexpr int64_t kMostBinaryBytes = int64_t{1} << 30;
constexpr int64_t kMostErrorBytes = 64 << 10;

// A new folder for one process, which goes with this object.
class WorkFolder {
 public:
  static absl::StatusOr<std::unique_ptr<WorkFolder>> Make(const std::string& parent) {
    std::string path = absl::StrCat(parent, "/fusion-build-XXXXXX");
    if (mkdtemp(path.data()) == nullptr) return ErrnoStatus(errno, absl::StrCat("cannot make a folder in ", parent));
    return std::unique_ptr<WorkFolder>(new WorkFolder(std::move(path)));
  }
  ~WorkFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  explicit WorkFolder(std::string path) : path_(std::move(path)) {}
  const std::string path_;
};

class ChildToolchain : public LocalToolchain {
 public:
  explicit ChildToolchain(ChildToolchainOptions options) : options_(std::move(options)) {}

  const char* kind() const override { return options_.kind.c_str(); }
  const std::string& version() const override { return version_; }

  absl::Status Init() {
    ASSIGN_OR_RETURN(version_, AskVersion());
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<std::string>> Build(absl::Span<const BuildUnit> units,
                                                 const std::function<bool()>& cancelled) const override {
    if (units.empty()) return std::vector<std::string>();
    const auto made = WorkFolder::Make(options_.temp_folder);
    if (!made.ok()) return absl::ResourceExhaustedError(made.status().message());
    const std::string& folder = (*made)->path();
    std::vector<std::string> command = Command();
    for (size_t u = 0; u < units.size(); ++u) {
      if (units[u].kind != options_.kind) {
        return absl::InvalidArgumentError(
            absl::StrCat("this toolchain builds units of kind '", options_.kind, "', not '", units[u].kind, "'"));
      }
      RETURN_IF_ERROR(WriteBuildFile(absl::StrCat(folder, "/", UnitFile(u)), units[u].source));
      command.push_back(absl::StrCat("--march=", units[u].march));
    }
    command.push_back(absl::StrCat("--version=", version_));
    ChildOptions child;
    child.working_directory = folder;
    child.deadline = options_.deadline;
    child.cancelled = cancelled;
    ASSIGN_OR_RETURN(const ChildResult result, RunChild(command, child));
    if (!result.ok()) return ErrorOf(result, folder);
    std::vector<std::string> binaries;
    for (size_t u = 0; u < units.size(); ++u) {
      absl::StatusOr<std::string> binary = ReadMadeFile(absl::StrCat(folder, "/", BinaryFile(u)), kMostBinaryBytes);
      if (!binary.ok()) {
        return absl::InternalError(
            absl::StrCat(version_, " reported success and made no binary: ", std::string(binary.status().message())));
      }
      binaries.push_back(*std::move(binary));
    }
    return binaries;
  }

 private:
  std::vector<std::string> Command() const {
    std::vector<std::string> command = {options_.program, options_.kind, absl::StrCat("--jobs=", options_.jobs),
                                        options_.confined ? "--confined" : "--unconfined"};
    if (options_.namespaces) command.emplace_back("--namespaces");
    return command;
  }

  // In a folder of its own, because the process may write where it works.
  absl::StatusOr<std::string> AskVersion() const {
    ASSIGN_OR_RETURN(const auto made, WorkFolder::Make(options_.temp_folder));
    const std::string& folder = made->path();
    ChildOptions child;
    child.working_directory = folder;
    child.deadline = options_.ask_deadline;
    ASSIGN_OR_RETURN(const ChildResult result, RunChild(Command(), child));
    if (result.ok()) return std::string(absl::StripTrailingAsciiWhitespace(result.stdout_text));
    if (auto error = ReadMadeFile(absl::StrCat(folder, "/", kBuildErrorFile), kMostErrorBytes);
        error.ok() && result.exit_code > 0) {
      return absl::FailedPreconditionError(BuildErrorOf(*error).message());
    }
    return absl::FailedPreconditionError(absl::StrCat("the compiler for '", options_.kind,
                                                      "' cannot be asked: ", options_.program, " ", result.Describe(),
                                                      ". It said: ", LastWords(result.stderr_text)));
  }

  absl::Status ErrorOf(const ChildResult& result, const std::string& folder) const {
    if (result.cancelled) return absl::CancelledError("the build was cancelled");
    if (result.exit_code > 0) {
      const auto error = ReadMadeFile(absl::StrCat(folder, "/", kBuildErrorFile), kMostErrorBytes);
      // The compiler may have been replaced since the worker started. A process that a text has taken over may only
      // claim so: that must not count against the worker.
      if (const auto now = AskVersion(); !now.ok() || *now != version_) {
        return absl::UnavailableError(
            absl::StrCat("the compiler was ", version_, " when this worker started and is now: ",
                         now.ok() ? *now : std::string(now.status().message()), "; start the worker again"));
      }
      if (error.ok()) return BuildErrorOf(*error);
    }
    return absl::InternalError(absl::StrCat("the process in which ", version_, " built ", result.Describe(),
                                            ". It said: ", LastWords(result.stderr_text)));
  }

  const ChildToolchainOptions options_;
  std::string version_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LocalToolchain>> MakeChildToolchain(ChildToolchainOptions options) {
  if (options.temp_folder.empty()) {
    const char* folder = getenv("TMPDIR");
    options.temp_folder = folder != nullptr && *folder != 0 ? folder : "/tmp";
  }
  auto toolchain = std::make_unique<ChildToolchain>(std::move(options));
  RETURN_IF_ERROR(toolchain->Init());
  return toolchain;
}

}  // namespace fusion
