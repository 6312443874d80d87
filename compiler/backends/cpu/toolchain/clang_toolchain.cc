#include "compiler/backends/cpu/toolchain/clang_toolchain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/backends/process/child_process.h"
#include "compiler/backends/process/made_file.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

constexpr int64_t kMostBinaryBytes = int64_t{1} << 30;
constexpr char kInstall[] = "install it with `apt-get install clang` (any version from 14)";

bool IsArm(const std::string& march) { return absl::StartsWith(march, "armv"); }

absl::Status CheckMarch(const std::string& march) {
  const bool plain = !march.empty() && std::all_of(march.begin(), march.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.';
  });
  if (plain) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("march '", march, "' is not the name of an architecture"));
}

// "Debian clang version 14.0.6" -> "clang 14.0.6"
std::string ParseVersion(const std::string& text) {
  constexpr char kWord[] = "clang version ";
  size_t begin = text.find(kWord);
  if (begin == std::string::npos) return "";
  begin += strlen(kWord);
  return absl::StrCat("clang ", text.substr(begin, text.find_first_of(" \n-", begin) - begin));
}

// The programs are small beside the libraries in which compilers consist; their build ids differ with each package.
std::string DigestOf(const std::string& says, const std::vector<std::string>& programs,
                     const std::vector<std::string>& flags) {
  Sha256 hash;
  const auto add = [&](const std::string& part) {
    hash.Update(absl::StrCat(part.size(), ":"));
    hash.Update(part);
  };
  add(says);
  for (const std::string& flag : flags) add(flag);
  for (const std::string& program : programs) {
    std::ifstream file(program, std::ios::binary);
    add(std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>()));
  }
  return hash.FinishHex();
}

// Compilers print pages; the first errors tell what is wrong.
std::string FirstLines(const std::string& text) {
  constexpr size_t kMaxBytes = 2000;
  return text.size() <= kMaxBytes ? text : absl::StrCat(text.substr(0, kMaxBytes), "…");
}

absl::Status ToStatus(const ChildResult& result, const std::string& what) {
  if (result.ok()) return absl::OkStatus();
  const std::string message = absl::StrCat(what, " ", result.Describe());
  if (result.cancelled) return absl::CancelledError(message);
  if (result.timed_out) return absl::DeadlineExceededError(message);
  if (absl::StrContains(result.stderr_text, "No space left on device")) {
    return absl::ResourceExhaustedError(absl::StrCat(message, ": no space left in the temporary folder"));
  }
  return absl::InternalError(absl::StrCat(message, ":\n", FirstLines(result.stderr_text)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ClangToolchain>> ClangToolchain::Create(ClangToolchainOptions options) {
  if (options.compiler.empty()) {
    options.compiler =
        FindOnPath({"clang++", "clang++-19", "clang++-18", "clang++-17", "clang++-16", "clang++-15", "clang++-14"});
  }
  if (options.compiler.empty()) {
    return absl::FailedPreconditionError(absl::StrCat("no clang++ on PATH; kernels are built with it: ", kInstall));
  }
  const std::string linker = FindOnPath({"ld", "ld.bfd", "ld.lld", "ld.lld-14"});
  if (linker.empty()) {
    return absl::FailedPreconditionError("no ld on PATH; install it with `apt-get install binutils`");
  }
  absl::StatusOr<ChildResult> result = RunChild({options.compiler, "--version"}, {});
  const std::string version = result.ok() ? ParseVersion(result->stdout_text) : "";
  if (version.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("'", options.compiler, " --version' does not look like clang; ", kInstall));
  }
  if (options.jobs <= 0) options.jobs = std::max(1u, std::thread::hardware_concurrency());
  if (options.temp_folder.empty()) {
    const char* folder = getenv("TMPDIR");
    options.temp_folder = folder != nullptr && *folder != 0 ? folder : "/tmp";
  }
  std::string digest = DigestOf(result->stdout_text, {options.compiler, linker}, options.more_flags);
  return std::unique_ptr<ClangToolchain>(new ClangToolchain(std::move(options), linker, version, std::move(digest)));
}

std::vector<std::string> ClangToolchain::Flags(const std::string& march) {
  // clang accepts "+feature" in -march for Arm only.
  const std::vector<std::string> parts = absl::StrSplit(march, '+');
  std::vector<std::string> flags = {"-std=c++20",
                                    "-O3",
                                    absl::StrCat("-march=", IsArm(march) ? march : parts[0]),
                                    "-ffp-contract=fast",
                                    "-fno-math-errno",
                                    "-fPIC",
                                    "-fvisibility=hidden",
                                    "-fno-exceptions",
                                    "-fno-rtti",
                                    "-fno-asynchronous-unwind-tables",
                                    "-fno-stack-protector",
                                    "-fno-ident",
                                    "-w"};
  // LLVM 14 joins addresses that come from several branches into one, and where one of them has no index it takes the
  // scale of the next: of b[0], (b as bytes)[x] and b[y] it made (b as bytes)[y] (CodeGenPrepare, ExtAddrMode).
  flags.insert(flags.end(), {"-mllvm", "-addr-sink-combine-scaled-reg=false"});
  if (IsArm(march)) {
    flags.push_back("--target=aarch64-linux-gnu");
  } else {
    // Without -mprefer-vector-width clang splits 64-byte vectors. Without -enable-misched=0 its scheduler interleaves
    // the loads of a tile until it spills.
    flags.insert(flags.end(), {"-mprefer-vector-width=512", "-mllvm", "-enable-misched=0"});
    for (size_t i = 1; i < parts.size(); ++i) flags.push_back(absl::StrCat("-m", parts[i]));
  }
  return flags;
}

absl::StatusOr<std::string> ClangToolchain::BuildOne(const BuildUnit& unit, const std::string& folder,
                                                     const std::function<bool()>& cancelled) const {
  if (unit.kind != "cpu") {
    return absl::InvalidArgumentError(absl::StrCat("clang builds units of kind 'cpu', not '", unit.kind, "'"));
  }
  RETURN_IF_ERROR(CheckMarch(unit.march));
  std::error_code error;
  std::filesystem::create_directory(folder, error);
  {
    std::ofstream file(folder + "/kernel.cc", std::ios::binary);
    file << unit.source;
    file.close();
    if (error || !file) return absl::ResourceExhaustedError(absl::StrCat("cannot write into ", folder));
  }
  ChildOptions child;
  child.working_directory = folder;  // relative names, so that no path enters the binary
  child.deadline = 10 * options_.unit_cpu_limit;
  child.cpu_limit = options_.unit_cpu_limit;
  child.cancelled = cancelled;

  std::vector<std::string> compile = options_.launcher;
  compile.push_back(options_.compiler);
  for (const std::string& flag : Flags(unit.march)) compile.push_back(flag);
  compile.insert(compile.end(), options_.more_flags.begin(), options_.more_flags.end());
  for (const char* arg : {"-c", "kernel.cc", "-o", "kernel.o"}) compile.push_back(arg);
  ASSIGN_OR_RETURN(ChildResult compiled, RunChild(compile, child));
  RETURN_IF_ERROR(ToStatus(compiled, absl::StrCat(version_, " on a generated kernel")));

  std::vector<std::string> link = {linker_, "-shared", "--build-id=none", "-z",      "noexecstack", "-z", "now",
                                   "-s",    "-o",      "kernel.so",       "kernel.o"};
  if (IsArm(unit.march)) {
    link = {options_.compiler, "--target=aarch64-linux-gnu", "-shared", "-nostdlib", "-s", "-o", "kernel.so",
            "kernel.o"};
  }
  link.insert(link.begin(), options_.launcher.begin(), options_.launcher.end());
  ASSIGN_OR_RETURN(ChildResult linked, RunChild(link, child));
  RETURN_IF_ERROR(ToStatus(linked, "ld on a generated kernel"));

  const absl::StatusOr<std::string> binary = ReadMadeFile(folder + "/kernel.so", kMostBinaryBytes);
  if (!binary.ok() || binary->empty()) {
    return absl::InternalError(absl::StrCat("ld reported success and wrote no shared object: ",
                                            binary.ok() ? "it is empty" : std::string(binary.status().message())));
  }
  std::filesystem::remove_all(folder, error);
  return binary;
}

absl::StatusOr<std::vector<std::string>> ClangToolchain::Build(absl::Span<const BuildUnit> units) {
  return Build(units, options_.cancelled);
}

absl::StatusOr<std::vector<std::string>> ClangToolchain::Build(absl::Span<const BuildUnit> units,
                                                               const std::function<bool()>& cancelled) const {
  std::vector<std::string> binaries(units.size());
  if (units.empty()) return binaries;
  std::string root = options_.temp_folder + "/fusion-build-XXXXXX";
  if (mkdtemp(root.data()) == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot make a folder in ", options_.temp_folder, ": ", strerror(errno)));
  }
  auto remove_root = absl::MakeCleanup([&] {
    std::error_code ignored;
    std::filesystem::remove_all(root, ignored);
  });

  std::vector<absl::Status> outcomes(units.size());
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  auto work = [&] {
    for (size_t i = next++; i < units.size() && !failed; i = next++) {
      absl::StatusOr<std::string> binary = BuildOne(units[i], absl::StrCat(root, "/", i), cancelled);
      if (binary.ok()) {
        binaries[i] = *std::move(binary);
      } else {
        outcomes[i] = binary.status();
        failed = true;
      }
    }
  };
  std::vector<std::thread> threads;
  const size_t extra = std::min<size_t>(options_.jobs, units.size()) - 1;
  for (size_t t = 0; t < extra; ++t) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& outcome : outcomes) RETURN_IF_ERROR(outcome);
  return binaries;
}

}  // namespace fusion
