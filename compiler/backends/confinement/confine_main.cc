// fusion-confine: becomes a program of the toolchain, confined. fusion-worker starts compilers and linkers by it.
//   fusion-confine [--namespaces] [--cpu-seconds=N] PROGRAM [ARGUMENT...]
// The program may read and start what the system's folders and its own hold, and write below the working directory.
// With --namespaces it also has namespaces of its own, and fusion-confine waits for it and ends as it does.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "compiler/backends/confinement/confinement.h"

namespace fusion {
namespace {

constexpr int kExitCannotRun = 126;  // as shells have it

// A toolchain that is installed elsewhere than the system's programs: PREFIX/bin/PROGRAM, and what its links lead to.
void AddPrefixesOf(const std::string& program, PathRules* rules) {
  std::error_code error;
  for (const std::filesystem::path& path :
       {std::filesystem::absolute(program, error), std::filesystem::canonical(program, error)}) {
    const std::filesystem::path folder = path.parent_path();
    if (folder.filename() == "bin" && folder.parent_path() != "/") {
      rules->execute.push_back(folder.parent_path());
    } else if (!folder.empty() && folder != "/") {
      rules->execute.push_back(folder);
    }
  }
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) {
  fusion::Namespaces namespaces = fusion::Namespaces::kShared;
  for (; argc > 1 && argv[1][0] == '-'; --argc, ++argv) {
    absl::string_view flag = argv[1];
    int cpu_seconds = 0;
    if (flag == "--namespaces") {
      namespaces = fusion::Namespaces::kOwn;
    } else if (absl::ConsumePrefix(&flag, "--cpu-seconds=") && absl::SimpleAtoi(flag, &cpu_seconds) &&
               cpu_seconds > 0) {
      // SIGXCPU, and SIGKILL for a program that takes no notice.
      const struct rlimit limit = {static_cast<rlim_t>(cpu_seconds), static_cast<rlim_t>(cpu_seconds) + 1};
      setrlimit(RLIMIT_CPU, &limit);
    } else {
      argc = 0;
      break;
    }
  }
  if (argc < 2) {
    std::fprintf(stderr, "usage: fusion-confine [--namespaces] [--cpu-seconds=N] PROGRAM [ARGUMENT...]\n");
    return 2;
  }
  std::error_code error;
  const std::string folder = std::filesystem::current_path(error);
  fusion::PathRules rules;
  rules.execute = fusion::SystemPaths();
  rules.read = fusion::MachinePaths();
  rules.write = {folder, "/dev/null"};
  fusion::AddPrefixesOf(argv[1], &rules);
  setenv("TMPDIR", folder.c_str(), 1);
  if (const absl::Status confined = fusion::ConfineThisProcess(fusion::Profile::kToolchain, rules, namespaces);
      !confined.ok()) {
    std::fprintf(stderr, "fusion-confine: %s\n", std::string(confined.message()).c_str());
    return fusion::kExitCannotRun;
  }
  execvp(argv[1], argv + 1);
  std::fprintf(stderr, "fusion-confine: cannot start '%s': %s\n", argv[1], std::strerror(errno));
  return fusion::kExitCannotRun;
}
