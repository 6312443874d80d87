// Compilations in real processes, which run the compiler of server/testing/fake_compile.h.
#include "server/compile_process/compile_process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/backends/confinement/confinement.h"
#include "compiler/backends/confinement/namespaces.h"
#include "runtime/base/steady_clock.h"
#include "server/testing/fake_compile.h"

namespace fusion {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Answers as a farm would, and remembers what it was asked.
class Oracle : public LatencyOracle, public PlanOracle, public Toolchain {
 public:
  absl::StatusOr<std::vector<LatencyAnswer>> Latency(absl::Span<const LatencyQuestion> questions,
                                                     MeasurementBundler& bundler) override {
    if (!failure.ok()) return failure;
    std::vector<std::string> keys;
    for (const LatencyQuestion& question : questions) keys.push_back(question.key);
    auto bundles = bundler.MakeBundles(keys);
    if (!bundles.ok()) return bundles.status();
    std::vector<LatencyAnswer> answers;
    for (size_t i = 0; i < keys.size(); ++i) {
      EXPECT_EQ((*bundles)[i], "bundle of " + keys[i]);
      answers.push_back({1000.0 / 3 + i, LatencySource::kMeasured});
    }
    return answers;
  }
  absl::StatusOr<PlanAnswers> Compare(const PlanQuestion&, absl::Span<const PlanQuestion> plans,
                                      PlanBundler& bundler) override {
    const std::vector<size_t> all = {1, 0};
    if (const absl::Status wrote = bundler.WriteBundle(all, plans_path); !wrote.ok()) return wrote;
    EXPECT_TRUE(std::filesystem::exists(plans_path));
    PlanAnswers answers;
    answers.comparisons.resize(plans.size());
    answers.comparisons[0] = PlanComparison{0.75, 0.7, 0.8, 3, 4, 5};
    answers.not_measured = "no time";
    return answers;
  }
  absl::StatusOr<std::vector<std::string>> Build(absl::Span<const BuildUnit> units) override {
    std::vector<std::string> binaries;
    for (const BuildUnit& unit : units) binaries.push_back(absl::StrCat(unit.kind, unit.march, unit.source));
    return binaries;
  }
  absl::Status failure;
  std::string plans_path;
};

class CompileProcessTest : public ::testing::Test {
 protected:
  CompileProcessTest() {
    char folder[] = "/tmp/fusion-compile-process-XXXXXX";
    folder_ = mkdtemp(folder);
    device_.kind = "cpu", device_.name = "a device", device_.march = "x";
    oracle_.plans_path = folder_ + "/plans";
    process_.program = FUSION_FAKE_COMPILE_JOB;
    context_ = {&device_, &oracle_, &oracle_, [this](const ProgressEvent& event) { stages_ += event.stage + " "; },
                nullptr,  &oracle_};
  }
  ~CompileProcessTest() override { std::filesystem::remove_all(folder_); }
  ModelFiles Model(const std::string& command) {
    std::ofstream(folder_ + "/model.onnx") << command;
    ModelFiles files;
    files.model_path = folder_ + "/model.onnx";
    files.model_name = "m";
    files.external["a/b"] = files.model_path;
    return files;
  }
  absl::StatusOr<CompileAccount> Compile(const std::string& command) {
    return CompileInProcess(process_, Model(command), {}, context_, folder_ + "/out");
  }
  void ExpectEvidence(bool namespaces);
  std::string Read(const std::string& name) {
    std::ifstream file(folder_ + "/" + name);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  // Replaces the compiler by a script.
  void Script(const std::string& text) {
    process_.program = folder_ + "/script";
    std::ofstream(process_.program) << "#!/bin/sh\n" << text << "\n";
    std::filesystem::permissions(process_.program, std::filesystem::perms::owner_all);
  }
  // A compilation that goes on until somebody ends it, and whose group has another process.
  // Each file is there with its content: one that exists while it is empty would tell of nobody.
  void RunsForEver() { Script("sleep 1000 & echo $! > other; echo $$ > started; mv started leader; read line <&3"); }
  // The processes of RunsForEver.
  bool AnyoneLeft() {
    for (const char* name : {"other", "leader"}) {
      std::ifstream file(folder_ + "/" + name);
      pid_t pid = 0;
      if (!(file >> pid)) return true;
      // The other one is nobody's child any more, so whoever adopted it may not have waited for it.
      std::ifstream stat(absl::StrCat("/proc/", pid, "/stat"));
      std::string number, program, state;
      if (stat >> number >> program >> state && state != "Z" && state != "X") return true;
    }
    return false;
  }

  std::string folder_, stages_;
  DeviceModel device_;
  Oracle oracle_;
  CompileProcessOptions process_;
  CompileContext context_;
};

TEST_F(CompileProcessTest, AsksAndAnswersAsWithinOneProcess) {
  for (const char* command : {"ok", "ask 3", "compare 2 build 2", "plans 2 ask 1 build 3"}) {
    const absl::StatusOr<CompileAccount> within = FakeCompile(Model(command), {}, context_, folder_ + "/within");
    ASSERT_TRUE(within.ok()) << within.status();
    stages_.clear();
    const absl::StatusOr<CompileAccount> apart = Compile(command);
    ASSERT_TRUE(apart.ok()) << command << ": " << apart.status();
    EXPECT_EQ(Read("out"), Read("within")) << command;
    EXPECT_EQ(apart->measured, within->measured);
    EXPECT_EQ(apart->stages.size(), within->stages.size());
    EXPECT_EQ(apart->alternatives.size(), within->alternatives.size());
    EXPECT_EQ(stages_, "import ");
  }
}

TEST_F(CompileProcessTest, ItsLinesGoToTheLogOfTheJobWithTheTrace) {
  std::vector<LogLine> lines;
  context_.log = [&](const LogLine& line) { lines.push_back(line); };
  context_.trace = "0123456789abcdef0123456789abcdef";
  const auto field = [](const LogLine& line, const std::string& key) {
    for (const LogField& one : line.fields) {
      if (one.key == key) return one.value;
    }
    return std::string();
  };
  ASSERT_TRUE(Compile("ok").ok());
  ASSERT_EQ(lines.size(), 2);
  EXPECT_EQ(lines[0].message, "compiling");
  EXPECT_EQ(field(lines[0], "trace"), context_.trace) << "as the process was told";
  EXPECT_EQ(field(lines[0], "source"), "compilation");
  EXPECT_EQ(field(lines[1], "status"), "exit code 0");
  lines.clear();
  Script("echo one >&2; printf two >&2; exit 3");
  EXPECT_EQ(HowTheProcessEnded(Compile("ok").status()), "exit");
  ASSERT_EQ(lines.size(), 3);
  EXPECT_EQ(lines[0].message, "one");
  EXPECT_EQ(lines[0].level, LogLevel::kWarning);
  EXPECT_EQ(lines[1].message, "two");
  EXPECT_EQ(field(lines[2], "status"), "exit code 3");
  lines.clear();
  Script("yes | head -n 100000 >&2; exit 3");
  EXPECT_FALSE(Compile("ok").ok());
  EXPECT_LT(lines.size(), 300) << "bounded, whatever it prints";
}

TEST_F(CompileProcessTest, PlansOnly) {
  const absl::StatusOr<PlanReport> report = PlanInProcess(process_, Model("a plan"), {}, context_);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->text, "a plan");
}

TEST_F(CompileProcessTest, ErrorsOfTheModelAndOfAnswersAreTheCompilers) {
  const absl::Status bad = Compile("fail on purpose").status();
  EXPECT_EQ(bad, absl::InvalidArgumentError("on purpose"));
  oracle_.failure = absl::UnavailableError("shutting down");
  EXPECT_EQ(Compile("ask 1").status(), absl::UnavailableError("shutting down"));
  EXPECT_EQ(HowTheProcessEnded(bad), "");
  process_.program = folder_ + "/missing";
  EXPECT_EQ(Compile("ok").status().code(), absl::StatusCode::kNotFound);
}

// With `namespaces` a process stands between, which ends as the compilation does.
void CompileProcessTest::ExpectEvidence(bool namespaces) {
  process_.namespaces = namespaces;
  const auto dies = [&](const std::string& fault) {
    process_.arguments = {"--fault", "m:import:" + fault};
    return Compile("ok").status();
  };
  process_.memory_bytes = 512 << 20;
  process_.time = absl::Seconds(20);
  const absl::Status aborted = dies("abort");
  EXPECT_EQ(HowTheProcessEnded(aborted), "signal");
  EXPECT_THAT(std::string(aborted.message()),
              AllOf(HasSubstr("compiled 'm' was ended by signal 6"), HasSubstr("Last stage: import")));
  EXPECT_EQ(HowTheProcessEnded(dies("exit")), "exit");
  for (const char* fault : {"memory", "leak"}) {
    const absl::Status memory = dies(fault);
    EXPECT_EQ(HowTheProcessEnded(memory), "memory") << memory;
    EXPECT_THAT(std::string(memory.message()), HasSubstr("more than the 512 MiB")) << fault;
  }
  process_.time = absl::Milliseconds(300);
  const absl::Status loop = dies("loop");
  EXPECT_EQ(HowTheProcessEnded(loop), "time");
  EXPECT_THAT(std::string(loop.message()), HasSubstr("--compile-time"));
}

TEST_F(CompileProcessTest, DeathsAreToldApartAndHaveEvidence) { ExpectEvidence(/*namespaces=*/false); }

TEST_F(CompileProcessTest, DeathsInNamespacesAreToldApartAndHaveEvidence) {
  if (const absl::Status can = CheckNamespaces(); !can.ok()) GTEST_SKIP() << can;
  ExpectEvidence(/*namespaces=*/true);
}

// On a folder that looks like a control group.
TEST_F(CompileProcessTest, AControlGroupHoldsTheProcessAndTellsThatItRanOutOfMemory) {
  const std::string own = folder_ + "/group";
  for (const char* group : {"", "/server", "/compilation-0", "/compilation-1"}) {
    std::filesystem::create_directories(own + group);
    for (const char* name : {"cgroup.procs", "cgroup.kill", "cgroup.subtree_control", "memory.max", "memory.swap.max",
                             "memory.oom.group", "memory.events", "pids.max"}) {
      std::ofstream file(absl::StrCat(own, group, "/", name));
    }
  }
  std::ofstream(own + "/cgroup.controllers") << "memory pids";
  const auto groups = ControlGroups::Open(own);
  ASSERT_TRUE(groups.ok()) << groups.status();
  process_.groups = groups->get();
  process_.memory_bytes = 512 << 20;
  ASSERT_TRUE(Compile("ok").ok());
  EXPECT_EQ(Read("group/compilation-0/memory.max"), absl::StrCat(512 << 20));
  EXPECT_THAT(Read("group/compilation-0/cgroup.procs"), ::testing::MatchesRegex("[0-9]+"));
  EXPECT_EQ(Read("group/compilation-0/cgroup.kill"), "1");
  std::ofstream(own + "/compilation-1/memory.events") << "oom_kill 1\n";
  process_.arguments = {"--fault", "m:import:abort"};
  const absl::Status status = Compile("ok").status();
  EXPECT_EQ(HowTheProcessEnded(status), "memory") << status;
  process_.arguments = {};
  EXPECT_FALSE(Compile("ok").ok()) << "no third group can be made";
}

// A compilation can reach nothing of the server's but its own folder and its pipe.
TEST_F(CompileProcessTest, HarmToOthersIsRefused) {
  if (const absl::Status can = CheckConfinement(); !can.ok()) GTEST_SKIP() << can;
  const std::string elsewhere = folder_ + "-elsewhere";
  std::filesystem::create_directories(elsewhere);
  std::ofstream(elsewhere + "/fusion.db") << "models of others";
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, (elsewhere + "/s").c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listener, 9), 0);
  std::vector<std::string> deeds = {"connect=" + elsewhere + "/s", "fork", "program", "kill"};
  if (LevelOfThisMachine().landlock > 0) {
    deeds.push_back("read=" + elsewhere + "/fusion.db");
    deeds.push_back("write=" + elsewhere + "/new");
  }
  for (const std::string& deed : deeds) {
    process_.arguments = {"--fault", "m:import:" + deed};
    process_.unconfined = true;
    EXPECT_THAT(std::string(Compile("ok").status().message()), HasSubstr("HARM DONE")) << deed << " never works";
    process_.unconfined = false;
    for (const bool namespaces : {false, CheckNamespaces().ok()}) {
      process_.namespaces = namespaces;
      const absl::Status confined = Compile("ok").status();
      EXPECT_TRUE(confined.ok()) << deed << ": " << confined;
    }
  }
  close(listener);
  std::filesystem::remove_all(elsewhere);
}

TEST_F(CompileProcessTest, WaitingForAnAnswerTakesNoTimeOfTheProcess) {
  class Slow : public ModelOracle {
   public:
    absl::Duration waited = absl::ZeroDuration();

   private:
    absl::StatusOr<std::vector<LatencyAnswer>> Latency(absl::Span<const LatencyQuestion> questions,
                                                       MeasurementBundler& bundler) override {
      waited += 2 * absl::Hours(1);
      return ModelOracle::Latency(questions, bundler);
    }
  } slow;
  context_.oracle = &slow;
  process_.clock = [&] { return SteadyNow() + slow.waited; };
  process_.time = absl::Hours(1);
  const auto compiled = Compile("ask 1");
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  EXPECT_GT(slow.waited, process_.time) << "nothing was asked";
}

TEST_F(CompileProcessTest, ACancelledProcessIsKilledWithAllItHasStarted) {
  RunsForEver();
  context_.cancelled = [&] { return std::filesystem::exists(folder_ + "/leader"); };
  const absl::Status cancelled = Compile("ok").status();
  EXPECT_EQ(cancelled.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(HowTheProcessEnded(cancelled), "");
  while (AnyoneLeft()) usleep(1000);  // a signal takes a moment; a process that is left hangs the test
}

TEST_F(CompileProcessTest, WhatIsNoAnswerIsAnEndingToo) {
  Script("printf 'no message at all' >&3; read line <&3");
  EXPECT_EQ(HowTheProcessEnded(Compile("ok").status()), "garbled");
  Script("echo out; echo 'last \\001 words' >&2; exit 9");
  const absl::Status words = Compile("ok").status();
  EXPECT_EQ(HowTheProcessEnded(words), "exit");
  EXPECT_THAT(std::string(words.message()), AllOf(HasSubstr("exited with 9"), HasSubstr("last \\x01 words")));
}

TEST_F(CompileProcessTest, TheProcessHasNoDescriptorAndNoVariableOfTheServer) {
  setenv("FUSION_TOKEN", "secret", 1);
  const int open_file = fcntl(STDIN_FILENO, F_DUPFD, 50);  // not close-on-exec
  Script("env > variables; exec ls /proc/self/fd > descriptors");
  EXPECT_EQ(HowTheProcessEnded(Compile("ok").status()), "exit");
  close(open_file);
  unsetenv("FUSION_TOKEN");
  EXPECT_EQ(Read("descriptors"), "0\n1\n2\n3\n4\n") << "3 is the pipe, 4 the folder that is listed";
  EXPECT_THAT(Read("variables"), ::testing::Not(HasSubstr("secret")));
  EXPECT_THAT(Read("variables"), HasSubstr("TMPDIR="));
}

}  // namespace
}  // namespace fusion
