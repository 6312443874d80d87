#include "server/compile_process/job_process.h"

#include <sys/types.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/api/generator_version.h"
#include "compiler/backends/process/child_process.h"
#include "compiler/cost/device_model.h"
#include "runtime/base/status_macros.h"
#include "server/compile_process/faults.h"
#include "server/compile_process/pipe_questions.h"
#include "server/compile_process/process_limits.h"
#include "server/compile_process/process_messages.h"

namespace fusion {
namespace {

constexpr int kExitUsage = 2;

absl::StatusOr<ModelFiles> FilesOf(const v1::CompileStart& start) {
  if (start.generator_version() != kGeneratorVersion) {
    return absl::FailedPreconditionError(absl::StrCat("fusion-compile-job has generator ", kGeneratorVersion,
                                                      " and fusiond ", start.generator_version(),
                                                      "; install both from one build and start fusiond again"));
  }
  ModelFiles files;
  files.model_path = start.model_path();
  files.model_name = start.model_name();
  files.external.insert(start.external().begin(), start.external().end());
  return files;
}

// Says something for the log of the job, with the trace that the process was given.
void Say(MessagePipe& pipe, const v1::CompileStart& start, const LogLine& line) {
  v1::FromCompiler message;
  v1::SaidMessage& said = *message.mutable_said();
  said.set_level(static_cast<int>(line.level));
  said.set_message(line.message);
  for (const LogField& field : line.fields) (*said.mutable_fields())[field.key] = field.value;
  if (!start.trace_id().empty()) (*said.mutable_fields())["trace"] = start.trace_id();
  SendOrExit(pipe, message);
}

absl::Status Perform(MessagePipe& pipe, const v1::CompileStart& start, pid_t pid, const JobCompiler& compiler,
                     const std::vector<Fault>& faults, v1::CompileEnd* end) {
  ASSIGN_OR_RETURN(const ModelFiles files, FilesOf(start));
  if (start.memory_bytes() > 0) RETURN_IF_ERROR(LimitMemory(start.memory_bytes()));
  ASSIGN_OR_RETURN(const DeviceModel device, DeviceModelFromJson(start.device_json()));
  PipeOracle oracle(&pipe);
  PipeToolchain toolchain(&pipe);
  PipePlans plans(&pipe);
  CompileContext context;
  context.device = &device, context.oracle = &oracle, context.toolchain = &toolchain;
  context.cancelled = [] { return false; };  // a cancelled process is killed
  context.progress = [&](const ProgressEvent& event) {
    v1::FromCompiler message;
    *message.mutable_progress() = ToMessage(event);
    SendOrExit(pipe, message);
    for (const Fault& fault : faults) {
      if (fault.model == files.model_name && fault.stage == event.stage) Commit(fault.kind);
    }
  };
  if (start.compares_plans()) context.plans = &plans;
  Say(pipe, start,
      {LogLevel::kDebug,
       "compiling",
       {{"pid", absl::StrCat(pid)}, {"memory_limit", absl::StrCat(start.memory_bytes())}}});
  const CompileOptions options = FromMessage(start.options());
  if (start.bundle_path().empty()) {
    ASSIGN_OR_RETURN(PlanReport report, compiler.plan(files, options, context));
    *end->mutable_account() = ToMessage(report.account);
    end->set_plan_text(std::move(report.text));
  } else {
    ASSIGN_OR_RETURN(const CompileAccount account, compiler.compile(files, options, context, start.bundle_path()));
    *end->mutable_account() = ToMessage(account);
  }
  return absl::OkStatus();
}

// The model's folder, and the bundle's: they are one. It holds whatever the compilation reads and writes.
absl::Status ConfineToFoldersOf(const v1::CompileStart& start, Namespaces namespaces) {
  std::vector<std::string> folders;
  for (const std::string& path : {start.model_path(), start.bundle_path()}) {
    if (!path.empty()) folders.push_back(std::filesystem::path(path).parent_path().string());
  }
  return ConfineToFolders(folders, namespaces);
}

}  // namespace

int RunJobProcess(int argc, char** argv, const JobCompiler& compiler) {
  CLI::App app("fusion-compile-job: compiles one model for fusiond, which starts it");
  pid_t parent = 0;
  bool unconfined = false, in_namespaces = false;
  std::vector<std::string> specified;
  app.add_option("--parent", parent, "process id of the fusiond that started this one")->required();
  app.add_flag("--unconfined", unconfined, "open what the user may, and start and connect to anything");
  app.add_flag("--namespaces", in_namespaces, "have namespaces of its own, unless it is unconfined");
  app.add_option("--fault", specified, "MODEL:STAGE:KIND")->group("");
  CLI11_PARSE(app, argc, argv);
  std::vector<Fault> faults;
  for (const std::string& text : specified) {
    absl::StatusOr<Fault> fault = ParseFault(text);
    if (!fault.ok()) return kExitUsage;
    faults.push_back(*std::move(fault));
  }
  if (const absl::Status tied = TieToParent(parent); !tied.ok()) {
    std::fprintf(stderr, "%s\n", std::string(tied.message()).c_str());
    return kExitServerGone;
  }
  MessagePipe pipe(kInheritedFd);
  const v1::ToCompiler first = ReceiveOrExit(pipe);
  if (!first.has_start()) return kExitUsage;
  const pid_t pid = getpid();  // as fusiond knows this process
  if (!unconfined) {
    const Namespaces namespaces = in_namespaces ? Namespaces::kOwn : Namespaces::kShared;
    if (const absl::Status confined = ConfineToFoldersOf(first.start(), namespaces); !confined.ok()) {
      std::fprintf(stderr, "%s\n", std::string(confined.message()).c_str());
      return 1;
    }
  }
  v1::FromCompiler last;
  v1::CompileEnd& end = *last.mutable_end();
  if (const absl::Status done = Perform(pipe, first.start(), pid, compiler, faults, &end); !done.ok()) {
    end.Clear();
    *end.mutable_status() = ToMessage(done);
  }
  SendOrExit(pipe, last);
  _exit(0);  // freeing a model takes time that fusiond would wait
}

}  // namespace fusion
