#include "server/compile_process/compile_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/api/generator_version.h"
#include "compiler/backends/process/child_process.h"
#include "runtime/base/errno_status.h"
#include "runtime/base/status_macros.h"
#include "server/compile_process/message_pipe.h"
#include "server/compile_process/process_limits.h"
#include "server/compile_process/process_messages.h"

namespace fusion {
namespace {

constexpr char kEndingUrl[] = "fusion/compile-process-ended";
constexpr size_t kMostLastWords = 600;
// So much of the stderr of the process goes to the log.
constexpr int kMostLines = 200;
constexpr int64_t kMostProcesses = 1024;  // threads counted
constexpr size_t kMostLineBytes = 2048;
// How long a process may take to end after its last message.
constexpr absl::Duration kGrace = absl::Seconds(2);

// The variables that the loader and sanitizers read. Everything else of the server's environment stays, tokens and
// proxies among it.
std::vector<std::string> Environment(const std::string& folder) {
  std::vector<std::string> environment = {absl::StrCat("TMPDIR=", folder)};
  for (const char* name : {"LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"}) {
    if (const char* value = std::getenv(name)) environment.push_back(absl::StrCat(name, "=", value));
  }
  return environment;
}

std::string Absolute(const std::string& path) { return std::filesystem::absolute(path).string(); }

std::string Memory(int64_t size_bytes) {
  return size_bytes >= int64_t{1} << 30 ? absl::StrFormat("%.1f GiB", static_cast<double>(size_bytes) / (1 << 30))
                                        : absl::StrCat(size_bytes >> 20, " MiB");
}

double SecondsOf(const timeval& time) { return static_cast<double>(time.tv_sec) + 1e-6 * time.tv_usec; }

// One process, from its start to its end. One thread calls everything.
class Session {
 public:
  Session(const CompileProcessOptions& process, const CompileContext& context, std::string model_name)
      : process_(process), context_(context), model_name_(std::move(model_name)) {}
  ~Session() {
    End(/*kill_now=*/true);
    if (errors_ >= 0) close(errors_);
  }

  absl::StatusOr<v1::CompileEnd> Run(const v1::CompileStart& start);
  // Asks the process for something while one of its questions is answered.
  absl::StatusOr<std::vector<std::string>> MakeBundles(absl::Span<const std::string> keys);
  absl::Status WritePlanBundle(absl::Span<const size_t> plans, const std::string& path);

 private:
  absl::Status Start(const std::string& folder);
  // Called while the process works.
  absl::Status Tick();
  void ReadErrors();
  // Passes the lines of stderr on to the log of the job; with `all` also one that has no end yet.
  void SayLines(bool all);
  absl::Status Send(const v1::ToCompiler& message);
  // Returns the next message that is neither progress nor a question; these are taken and answered.
  absl::StatusOr<v1::FromCompiler> Next();
  absl::StatusOr<bool> Receive(v1::FromCompiler* message);
  // Passes a line on to the log of the job.
  void Say(LogLine line) const;
  void Take(const v1::SaidMessage& said) const;
  absl::StatusOr<v1::Answer> AnswerTo(const v1::FromCompiler& question);
  absl::StatusOr<v1::Answer> AnswerToLatency(const v1::LatencyAsked& asked);
  absl::StatusOr<v1::Answer> AnswerToPlans(const v1::PlansAsked& asked);
  absl::StatusOr<v1::Answer> AnswerToBuild(const v1::UnitsAsked& asked);
  // Ends the process, unless it has ended itself (`how` is empty), and returns the evidence. `reason` says what was
  // garbled.
  absl::Status Ended(const std::string& how, const std::string& reason);
  void End(bool kill_now);
  // The process has ended.
  bool RanOutOfMemory() const {
    return (WIFEXITED(wait_status_) && WEXITSTATUS(wait_status_) == kExitOutOfMemory) ||
           (group_ != nullptr && group_->RanOutOfMemory());
  }

  const CompileProcessOptions& process_;
  const CompileContext& context_;
  const std::string model_name_;
  pid_t pid_ = 0;
  int errors_ = -1;  // the process's stderr
  std::string last_words_, stage_ = "none";
  std::string unsaid_;  // the beginning of a line on stderr
  std::optional<MessagePipe> pipe_;
  std::unique_ptr<ControlGroup> group_;  // null: the process limits itself
  absl::Status failed_;  // the reason why the process has been ended; everything fails with it afterwards
  absl::Time started_, waits_since_ = absl::InfiniteFuture();
  absl::Duration own_time_ = absl::ZeroDuration();
  int wait_status_ = 0, lines_said_ = 0;
  struct rusage usage_ = {};
};

class SessionBundler : public MeasurementBundler {
 public:
  explicit SessionBundler(Session* session) : session_(session) {}
  absl::StatusOr<std::vector<std::string>> MakeBundles(absl::Span<const std::string> keys) override {
    return session_->MakeBundles(keys);
  }

 private:
  Session* const session_;
};

class SessionPlanBundler : public PlanBundler {
 public:
  explicit SessionPlanBundler(Session* session) : session_(session) {}
  absl::Status WriteBundle(absl::Span<const size_t> plans, const std::string& path) override {
    return session_->WritePlanBundle(plans, path);
  }

 private:
  Session* const session_;
};

absl::Status Session::Start(const std::string& folder) {
  int ends[2], errors[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return ErrnoStatus(errno, "cannot make sockets for a compilation");
  }
  pipe_.emplace(ends[0], [this] { return Tick(); });
  auto close_end = absl::MakeCleanup([&] { close(ends[1]); });
  if (pipe2(errors, O_CLOEXEC) != 0) return ErrnoStatus(errno, "cannot make a pipe for a compilation");
  errors_ = errors[0];
  fcntl(errors_, F_SETFL, O_NONBLOCK);
  auto close_errors = absl::MakeCleanup([&] { close(errors[1]); });
  std::vector<std::string> argv = {process_.program, "--parent", absl::StrCat(getpid())};
  if (process_.unconfined) argv.emplace_back("--unconfined");
  if (process_.namespaces) argv.emplace_back("--namespaces");
  argv.insert(argv.end(), process_.arguments.begin(), process_.arguments.end());
  StartOptions options;
  options.working_directory = folder;
  options.stdout_fd = options.stderr_fd = errors[1];
  options.inherited_fd = ends[1];
  options.environment = Environment(folder);
  started_ = process_.clock();
  if (process_.groups != nullptr) {
    ASSIGN_OR_RETURN(group_, process_.groups->Make(process_.memory_bytes, kMostProcesses));
  }
  ASSIGN_OR_RETURN(pid_, StartChild(argv, options));
  // The process waits for its first message.
  return group_ == nullptr ? absl::OkStatus() : group_->Add(pid_);
}

void Session::ReadErrors() {
  char buffer[4096];
  ssize_t count;
  while ((count = read(errors_, buffer, sizeof buffer)) > 0) {
    last_words_.append(buffer, static_cast<size_t>(count));
    unsaid_.append(buffer, static_cast<size_t>(count));
    if (last_words_.size() > 2 * kMostLastWords) last_words_.erase(0, last_words_.size() - kMostLastWords);
    SayLines(/*all=*/false);
  }
}

void Session::SayLines(bool all) {
  size_t end;
  while ((end = unsaid_.find('\n')) != std::string::npos || unsaid_.size() > kMostLineBytes ||
         (all && !unsaid_.empty())) {
    const std::string line = unsaid_.substr(0, std::min(end, kMostLineBytes));
    unsaid_.erase(0, end == line.size() ? end + 1 : line.size());
    if (!line.empty() && lines_said_++ < kMostLines) Say({LogLevel::kWarning, line, {{"stage", stage_}}});
  }
}

void Session::Say(LogLine line) const {
  if (!context_.log) return;
  line.fields.push_back({"source", "compilation"});
  context_.log(line);
}

void Session::Take(const v1::SaidMessage& said) const {
  LogLine line{
      static_cast<LogLevel>(std::clamp(said.level(), 0, static_cast<int>(LogLevel::kError))), said.message(), {}};
  const std::map<std::string, std::string> fields(said.fields().begin(), said.fields().end());
  for (const auto& [key, value] : fields) line.fields.push_back({key, value});
  Say(std::move(line));
}

absl::Status Session::Tick() {
  ReadErrors();
  if (context_.cancelled && context_.cancelled()) return absl::CancelledError("the job was cancelled");
  if (own_time_ + (process_.clock() - waits_since_) > process_.time) return absl::DeadlineExceededError("");
  return absl::OkStatus();
}

absl::Status Session::Send(const v1::ToCompiler& message) {
  RETURN_IF_ERROR(failed_);
  waits_since_ = process_.clock();
  const absl::Status sent = pipe_->Send(message);
  own_time_ += process_.clock() - waits_since_;
  if (absl::IsUnavailable(sent)) return Ended("", "");
  if (absl::IsDeadlineExceeded(sent)) return Ended("time", "");
  if (!sent.ok()) {
    failed_ = sent;
    End(/*kill_now=*/true);
  }
  return sent;
}

absl::StatusOr<bool> Session::Receive(v1::FromCompiler* message) {
  RETURN_IF_ERROR(failed_);
  waits_since_ = process_.clock();
  const absl::StatusOr<bool> received = pipe_->Receive(message);
  own_time_ += process_.clock() - waits_since_;
  if (received.ok() && *received) return true;
  if (received.ok()) return Ended("", "");
  if (absl::IsDeadlineExceeded(received.status())) return Ended("time", "");
  if (absl::IsDataLoss(received.status())) return Ended("garbled", std::string(received.status().message()));
  failed_ = received.status();
  End(/*kill_now=*/true);
  return failed_;
}

absl::StatusOr<v1::FromCompiler> Session::Next() {
  while (true) {
    // A compilation that sends messages without a pause never waits long enough for a tick.
    if (context_.cancelled && context_.cancelled() && failed_.ok()) {
      failed_ = absl::CancelledError("the job was cancelled");
      End(/*kill_now=*/true);
    }
    v1::FromCompiler message;
    RETURN_IF_ERROR(Receive(&message).status());
    switch (message.message_case()) {
      case v1::FromCompiler::kProgress:
        stage_ = message.progress().stage();
        if (context_.progress) context_.progress(FromMessage(message.progress()));
        continue;
      case v1::FromCompiler::kSaid:
        Take(message.said());
        continue;
      case v1::FromCompiler::kEnd:
      case v1::FromCompiler::kMadeBundle:
      case v1::FromCompiler::kWrotePlanBundle:
        return message;
      case v1::FromCompiler::MESSAGE_NOT_SET:
        return Ended("garbled", "it sent an empty message");
      default:
        break;
    }
    absl::StatusOr<v1::Answer> answer = AnswerTo(message);
    RETURN_IF_ERROR(failed_);
    v1::ToCompiler reply;
    if (answer.ok()) {
      *reply.mutable_answer() = *std::move(answer);
    } else {
      *reply.mutable_answer()->mutable_status() = ToMessage(answer.status());
    }
    RETURN_IF_ERROR(Send(reply));
  }
}

absl::StatusOr<v1::Answer> Session::AnswerToLatency(const v1::LatencyAsked& asked) {
  std::vector<LatencyQuestion> questions;
  for (const v1::LatencyQuestionMessage& question : asked.questions()) questions.push_back(FromMessage(question));
  SessionBundler bundler(this);
  ASSIGN_OR_RETURN(const std::vector<LatencyAnswer> answers, context_.oracle->Latency(questions, bundler));
  v1::Answer answer;
  answer.mutable_latencies();
  for (const LatencyAnswer& one : answers) {
    v1::LatencyAnswerMessage* out = answer.mutable_latencies()->add_answers();
    out->set_latency_ns(one.latency_ns);
    out->set_source(static_cast<int>(one.source));
  }
  return answer;
}

absl::StatusOr<v1::Answer> Session::AnswerToPlans(const v1::PlansAsked& asked) {
  if (context_.plans == nullptr) return absl::FailedPreconditionError("plans are not compared as a whole");
  std::vector<PlanQuestion> plans;
  for (const v1::PlanQuestionMessage& plan : asked.plans()) plans.push_back(FromMessage(plan));
  SessionPlanBundler bundler(this);
  ASSIGN_OR_RETURN(const PlanAnswers answers, context_.plans->Compare(FromMessage(asked.reference()), plans, bundler));
  v1::Answer answer;
  *answer.mutable_plans() = ToMessage(answers);
  return answer;
}

absl::StatusOr<v1::Answer> Session::AnswerToBuild(const v1::UnitsAsked& asked) {
  std::vector<BuildUnit> units;
  for (const v1::Unit& unit : asked.units()) units.push_back({unit.kind(), unit.march(), unit.source()});
  ASSIGN_OR_RETURN(std::vector<std::string> binaries, context_.toolchain->Build(units));
  v1::Answer answer;
  answer.mutable_binaries();
  for (std::string& binary : binaries) answer.mutable_binaries()->add_binaries(std::move(binary));
  return answer;
}

absl::StatusOr<v1::Answer> Session::AnswerTo(const v1::FromCompiler& question) {
  v1::Answer answer;
  switch (question.message_case()) {
    case v1::FromCompiler::kLatency:
      return AnswerToLatency(question.latency());
    case v1::FromCompiler::kComparePlans:
      return AnswerToPlans(question.compare_plans());
    case v1::FromCompiler::kBuild:
      return AnswerToBuild(question.build());
    case v1::FromCompiler::kKnows: {
      ASSIGN_OR_RETURN(const bool knows, context_.oracle->Knows(question.knows()));
      answer.set_knows(knows);
      return answer;
    }
    case v1::FromCompiler::kModelError: {
      ASSIGN_OR_RETURN(const ModelError error, context_.oracle->Error());
      *answer.mutable_model_error() = ToMessage(error);
      return answer;
    }
    case v1::FromCompiler::kDevices:
      answer.set_devices(context_.oracle->Devices());
      return answer;
    case v1::FromCompiler::kTrials: {
      ASSIGN_OR_RETURN(const std::vector<KnownTrial> trials, context_.oracle->Trials(question.trials()));
      answer.mutable_trials();
      for (const KnownTrial& trial : trials) {
        v1::Trial* out = answer.mutable_trials()->add_trials();
        out->set_choices(trial.choices);
        out->set_latency_ns(trial.latency_ns);
      }
      return answer;
    }
    case v1::FromCompiler::kNeighbours: {
      const v1::NeighboursAsked& asked = question.neighbours();
      ASSIGN_OR_RETURN(const std::vector<std::string> choices,
                       context_.oracle->NeighbourChoices(asked.structure(), asked.workload(), asked.limit()));
      answer.mutable_choices()->mutable_strings()->Assign(choices.begin(), choices.end());
      return answer;
    }
    default:
      return absl::InternalError("the compiler asked an unknown question");
  }
}

absl::StatusOr<std::vector<std::string>> Session::MakeBundles(absl::Span<const std::string> keys) {
  v1::ToCompiler asked;
  asked.mutable_make_bundles()->mutable_keys()->Assign(keys.begin(), keys.end());
  RETURN_IF_ERROR(Send(asked));
  std::vector<std::string> bundles;
  while (bundles.size() < keys.size()) {
    ASSIGN_OR_RETURN(v1::FromCompiler message, Next());
    if (!message.has_made_bundle()) return Ended("garbled", "it sent no bundle where it was asked for one");
    RETURN_IF_ERROR(FromMessage(message.made_bundle().status()));
    bundles.push_back(std::move(*message.mutable_made_bundle()->mutable_bundle()));
  }
  return bundles;
}

absl::Status Session::WritePlanBundle(absl::Span<const size_t> plans, const std::string& path) {
  v1::ToCompiler asked;
  asked.mutable_write_plan_bundle()->mutable_plans()->Assign(plans.begin(), plans.end());
  asked.mutable_write_plan_bundle()->set_path(Absolute(path));
  RETURN_IF_ERROR(Send(asked));
  ASSIGN_OR_RETURN(const v1::FromCompiler message, Next());
  if (!message.has_wrote_plan_bundle()) return Ended("garbled", "it wrote no bundle where it was asked for one");
  return FromMessage(message.wrote_plan_bundle());
}

void Session::End(bool kill_now) {
  if (pid_ <= 0) return;
  pipe_->Close();
  // The process stays a zombie until the group has been killed, so that its number cannot be another's by then.
  const auto has_ended = [&] {
    siginfo_t info = {};
    return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_;
  };
  const int handle = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  if (!kill_now && !has_ended() && handle >= 0) {
    struct pollfd ended = {handle, POLLIN, 0};
    while (poll(&ended, 1, static_cast<int>(absl::ToInt64Milliseconds(kGrace))) < 0 && errno == EINTR) {
    }
  }
  if (handle >= 0) close(handle);
  kill(-pid_, SIGKILL);
  if (group_ != nullptr) group_->KillAll();
  while (wait4(pid_, &wait_status_, 0, &usage_) < 0 && errno == EINTR) {
  }
  pid_ = 0;
  ReadErrors();
  SayLines(/*all=*/true);
  Say({LogLevel::kDebug,
       "the compilation's process has ended",
       {{"status", WIFSIGNALED(wait_status_) ? absl::StrCat("signal ", WTERMSIG(wait_status_))
                                             : absl::StrCat("exit code ", WEXITSTATUS(wait_status_))},
        {"stage", stage_},
        {"seconds", absl::StrFormat("%.3f", absl::ToDoubleSeconds(process_.clock() - started_))},
        {"cpu_seconds", absl::StrFormat("%.3f", SecondsOf(usage_.ru_utime) + SecondsOf(usage_.ru_stime))},
        {"memory", Memory(int64_t{usage_.ru_maxrss} << 10)}}});
}

absl::Status Session::Ended(const std::string& how, const std::string& reason) {
  RETURN_IF_ERROR(failed_);
  End(/*kill_now=*/!how.empty());
  std::string kind = how, what = reason;
  if (how == "time") {
    what = absl::StrCat("took longer than the ", absl::FormatDuration(process_.time),
                        " that a compilation may take for itself (fusiond --compile-time)");
  } else if (how.empty() && process_.memory_bytes > 0 && RanOutOfMemory()) {
    kind = "memory";
    what = absl::StrCat("needed more than the ", Memory(process_.memory_bytes),
                        " that a compilation may allocate (fusiond --compile-memory)");
  } else if (how.empty() && WIFSIGNALED(wait_status_)) {
    kind = "signal";
    what = absl::StrFormat("was ended by signal %d (%s)", WTERMSIG(wait_status_), strsignal(WTERMSIG(wait_status_)));
  } else if (how.empty()) {
    kind = "exit";
    what = absl::StrCat("exited with ", WEXITSTATUS(wait_status_), " and without a result");
  }
  std::string message = absl::StrFormat(
      "the process that compiled '%s' %s. Last stage: %s; it ran for %.1f s, with %.1f s of CPU time and %s of memory "
      "at most",
      model_name_, what, stage_, absl::ToDoubleSeconds(process_.clock() - started_),
      SecondsOf(usage_.ru_utime) + SecondsOf(usage_.ru_stime), Memory(int64_t{usage_.ru_maxrss} << 10));
  absl::string_view words = absl::StripTrailingAsciiWhitespace(last_words_);
  if (words.size() > kMostLastWords) words.remove_prefix(words.size() - kMostLastWords);
  if (!words.empty()) absl::StrAppend(&message, "; its last words: ", absl::CHexEscape(words));
  return failed_ = ProcessEndedError(kind, message);
}

absl::StatusOr<v1::CompileEnd> Session::Run(const v1::CompileStart& start) {
  RETURN_IF_ERROR(Start(std::filesystem::path(start.model_path()).parent_path().string()));
  v1::ToCompiler first;
  *first.mutable_start() = start;
  RETURN_IF_ERROR(Send(first));
  ASSIGN_OR_RETURN(v1::FromCompiler message, Next());
  if (!message.has_end()) return Ended("garbled", "it sent a bundle that nobody asked for");
  End(/*kill_now=*/false);
  RETURN_IF_ERROR(FromMessage(message.end().status()));
  return std::move(*message.mutable_end());
}

absl::StatusOr<v1::CompileEnd> RunProcess(const CompileProcessOptions& process, const ModelFiles& files,
                                          const CompileOptions& options, const CompileContext& context,
                                          const std::string& bundle_path) {
  if (files.graph != nullptr || !files.constant_inputs.empty()) {
    return absl::UnimplementedError("a process that compiles takes a model's files and no graph or constants");
  }
  v1::CompileStart start;
  start.set_generator_version(kGeneratorVersion);
  *start.mutable_options() = ToMessage(options);
  start.set_device_json(DeviceModelToJson(*context.device));
  start.set_model_path(Absolute(files.model_path));
  start.set_model_name(files.model_name);
  for (const auto& [name, path] : files.external) (*start.mutable_external())[name] = Absolute(path);
  if (!bundle_path.empty()) start.set_bundle_path(Absolute(bundle_path));
  start.set_compares_plans(context.plans != nullptr);
  start.set_memory_bytes(process.groups == nullptr ? process.memory_bytes : 0);
  start.set_trace_id(context.trace);
  return Session(process, context, files.model_name).Run(start);
}

}  // namespace

absl::StatusOr<CompileAccount> CompileInProcess(const CompileProcessOptions& process, const ModelFiles& files,
                                                const CompileOptions& options, const CompileContext& context,
                                                const std::string& bundle_path) {
  ASSIGN_OR_RETURN(const v1::CompileEnd end, RunProcess(process, files, options, context, bundle_path));
  return FromMessage(end.account());
}

absl::StatusOr<PlanReport> PlanInProcess(const CompileProcessOptions& process, const ModelFiles& files,
                                         const CompileOptions& options, const CompileContext& context) {
  ASSIGN_OR_RETURN(const v1::CompileEnd end, RunProcess(process, files, options, context, ""));
  return PlanReport{FromMessage(end.account()), end.plan_text()};
}

std::string HowTheProcessEnded(const absl::Status& status) {
  const absl::optional<absl::Cord> how = status.GetPayload(kEndingUrl);
  return how.has_value() ? std::string(*how) : "";
}

absl::Status ProcessEndedError(const std::string& how, const std::string& message) {
  absl::Status status = absl::InternalError(message);
  status.SetPayload(kEndingUrl, absl::Cord(how));
  return status;
}

}  // namespace fusion
