// fusion-build: runs a compiler that is a library on generated text, confined (child_toolchain.h starts it).
//   fusion-build KIND [--jobs=N] [--confined | --unconfined] [--namespaces]  prints the version
//   fusion-build KIND ... --march=M... --version=VERSION                   builds one unit for each --march
// It works in the current folder (build_files.h). It fails with exit code 1 and the file `error`, and builds nothing
// where the compiler is another one than VERSION.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "compiler/backends/cuda/toolchain/nvrtc_toolchain.h"
#include "compiler/backends/dsa/toolchain/dsa_toolchain.h"
#include "compiler/backends/opencl/toolchain/opencl_toolchain.h"
#include "compiler/backends/process/made_file.h"
#include "runtime/base/status_macros.h"
#include "worker/build/build_files.h"
#include "worker/measure/confine.h"

namespace fusion {
namespace {

constexpr int64_t kMostUnitBytes = int64_t{1} << 30;

struct Request {
  std::string kind;
  int jobs = 0;
  bool confined = true;
  Namespaces namespaces = Namespaces::kShared;
  std::vector<std::string> marches;
  std::string version;
};

bool Parse(int argc, char** argv, Request* request) {
  if (argc < 2) return false;
  request->kind = argv[1];
  for (int i = 2; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (argument == "--confined") {
      request->confined = true;
    } else if (argument == "--unconfined") {
      request->confined = false;
    } else if (argument == "--namespaces") {
      request->namespaces = Namespaces::kOwn;
    } else if (absl::ConsumePrefix(&argument, "--jobs=")) {
      if (!absl::SimpleAtoi(argument, &request->jobs) || request->jobs < 0) return false;
    } else if (absl::ConsumePrefix(&argument, "--march=")) {
      request->marches.emplace_back(argument);
    } else if (absl::ConsumePrefix(&argument, "--version=")) {
      request->version = std::string(argument);
    } else {
      return false;
    }
  }
  return true;
}

absl::StatusOr<std::unique_ptr<LocalToolchain>> MakeToolchain(const std::string& kind, int jobs) {
  if (kind == "cuda") return MakeNvrtcToolchain(jobs);
  if (kind == "opencl") return MakeOpenClToolchain();
  if (kind == "dsa") return MakeDsaToolchain();
  return absl::InvalidArgumentError(
      absl::StrCat("no compiler of kind '", kind, "' is a library: use opencl, cuda or dsa"));
}

absl::Status Run(const Request& request) {
  std::error_code error;
  RETURN_IF_ERROR(
      ConfineBuild(request.confined ? request.kind : "none", std::filesystem::current_path(error), request.namespaces));
  ASSIGN_OR_RETURN(const std::unique_ptr<LocalToolchain> toolchain, MakeToolchain(request.kind, request.jobs));
  if (request.marches.empty()) {
    std::printf("%s\n", toolchain->version().c_str());
    return absl::OkStatus();
  }
  if (toolchain->version() != request.version) {
    return absl::InternalError(absl::StrCat("the compiler is ", toolchain->version(), ", not ", request.version));
  }
  std::vector<BuildUnit> units;
  for (size_t u = 0; u < request.marches.size(); ++u) {
    ASSIGN_OR_RETURN(std::string text, ReadMadeFile(UnitFile(u), kMostUnitBytes));
    units.push_back({request.kind, request.marches[u], std::move(text)});
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> binaries, toolchain->Build(units, nullptr));
  for (size_t u = 0; u < binaries.size(); ++u) RETURN_IF_ERROR(WriteBuildFile(BinaryFile(u), binaries[u]));
  return absl::OkStatus();
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) {
  fusion::Request request;
  if (!fusion::Parse(argc, argv, &request)) {
    std::fprintf(
        stderr, "usage: fusion-build KIND [--jobs=N] [--unconfined] [--namespaces] [--march=M... --version=VERSION]\n");
    return 2;
  }
  if (const absl::Status done = fusion::Run(request); !done.ok()) {
    std::fprintf(stderr, "%s\n", done.ToString().c_str());
    fusion::WriteBuildFile(fusion::kBuildErrorFile, fusion::BuildErrorText(done)).IgnoreError();
    return 1;
  }
  std::fflush(nullptr);
  _exit(0);  // a driver's destructors could still hang or crash
}
