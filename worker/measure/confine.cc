#include "worker/measure/confine.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/backends/confinement/confinement.h"

namespace fusion {
namespace {

// The value of the variable, else `otherwise`, which lies below the user's home unless it is absolute.
std::string FolderOf(const char* variable, const std::string& otherwise) {
  if (const char* value = std::getenv(variable); value != nullptr && *value != 0) return value;
  if (otherwise.empty() || otherwise[0] == '/') return otherwise;
  const char* home = std::getenv("HOME");
  return home == nullptr ? "" : absl::StrCat(home, "/", otherwise);
}

// A rule needs the folder to be there.
std::string MadeFolder(const std::string& folder) {
  std::error_code ignored;
  if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
  return folder;
}

void Append(std::vector<std::string>* all, std::vector<std::string> more) {
  all->insert(all->end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// The driver compiles by programs of the system and uses the devices of GPUs.
void AddOpenClDriver(PathRules* rules) {
  Append(&rules->read, {FolderOf("OCL_ICD_VENDORS", "/etc/OpenCL"), "/proc", "/sys"});
  Append(&rules->write, {"/dev/dri", "/dev/kfd"});
}

// It also keeps what it has made.
void AddOpenCl(PathRules* rules) {
  AddOpenClDriver(rules);
  const std::string caches = FolderOf("XDG_CACHE_HOME", ".cache");
  Append(&rules->write, {MadeFolder(FolderOf("POCL_CACHE_DIR", caches.empty() ? "" : caches + "/pocl")),
                         FolderOf("TMPDIR", "/tmp"), "/dev/shm"});
}

void AddCuda(PathRules* rules) {
  rules->write.push_back("/proc/self/task");  // the driver names its threads, and does not start where it may not
  Append(&rules->read, {"/etc/nvidia", "/proc", "/sys"});
  Append(&rules->write, {MadeFolder(FolderOf("CUDA_CACHE_PATH", ".nv")), "/dev/shm", "/dev/nvidiactl",
                         "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset", "/dev/nvidia-caps"});
  for (int gpu = 0; gpu < 16; ++gpu) rules->write.push_back(absl::StrCat("/dev/nvidia", gpu));
}

}  // namespace

void LimitResources(int64_t most_data_bytes, int64_t most_cpu_seconds) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  const auto limit = [](int resource, rlim_t value) {
    const struct rlimit bound = {value, value};
    setrlimit(static_cast<__rlimit_resource>(resource), &bound);
  };
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, rlim_t{1} << 30);  // kernels are loaded from a file in memory
  limit(RLIMIT_CPU, static_cast<rlim_t>(most_cpu_seconds));
  limit(RLIMIT_DATA, static_cast<rlim_t>(most_data_bytes));
}

absl::Status Confine(const std::string& kind, const std::vector<std::string>& bundles, Namespaces namespaces) {
  LimitResources();
  if (kind == "none") return absl::OkStatus();
  PathRules rules;
  rules.read = MachinePaths();
  Append(&rules.read, bundles);
  if (kind == "cpu" || kind == "dsa") {
    Append(&rules.read, SystemPaths());
    return ConfineThisProcess(Profile::kKernel, rules, namespaces);
  }
  rules.execute = SystemPaths();
  Append(&rules.execute, absl::StrSplit(FolderOf("LD_LIBRARY_PATH", ""), ':', absl::SkipEmpty()));
  rules.write = {"/dev/null"};
  if (kind == "opencl") {
    AddOpenCl(&rules);
  } else if (kind == "cuda") {
    AddCuda(&rules);
  } else {
    return absl::InvalidArgumentError(absl::StrCat("no kernels of '", kind, "' can be confined"));
  }
  return ConfineThisProcess(Profile::kDriver, rules);
}

absl::Status ConfineBuild(const std::string& kind, const std::string& folder, Namespaces namespaces) {
  constexpr int64_t kMostCpuSecondsOfABatch = 3 * 3600;  // on all cores; the task's deadline comes first
  LimitResources(kMostDataBytes, kMostCpuSecondsOfABatch);
  if (kind == "none") return absl::OkStatus();
  setenv("TMPDIR", folder.c_str(), 1);
  setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  setenv("POCL_CACHE_DIR", folder.c_str(), 1);
  PathRules rules;
  rules.read = MachinePaths();
  rules.write = {folder, "/dev/null"};
  std::vector<std::string> libraries = SystemPaths();
  Append(&libraries, absl::StrSplit(FolderOf("LD_LIBRARY_PATH", ""), ':', absl::SkipEmpty()));
  if (kind == "cuda" || kind == "dsa") {
    Append(&rules.read, libraries);
    return ConfineThisProcess(Profile::kCompiler, rules, namespaces);
  }
  if (kind != "opencl") return absl::InvalidArgumentError(absl::StrCat("no compiler of '", kind, "' can be confined"));
  rules.execute = libraries;
  AddOpenClDriver(&rules);
  return ConfineThisProcess(Profile::kDriver, rules);
}

}  // namespace fusion
