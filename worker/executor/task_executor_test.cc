#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "compiler/backends/cpu/toolchain/clang_toolchain.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/sha256.h"
#include "worker/executor/build_executor.h"
#include "worker/executor/decorators.h"
#include "worker/executor/measure_executor.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

TaskContext NeverCancelled() {
  return {[] { return false; }};
}

class Echo : public TaskExecutor {
 public:
  absl::StatusOr<std::string> Execute(const v1::Task&, const std::string& payload, const TaskContext&) override {
    return payload;
  }
};

// Lets a minute pass, and stops if that cancels it.
class Slow : public TaskExecutor {
 public:
  explicit Slow(absl::Time* now) : now_(now) {}
  absl::StatusOr<std::string> Execute(const v1::Task&, const std::string&, const TaskContext& context) override {
    *now_ += absl::Minutes(1);
    if (context.cancelled()) return absl::CancelledError("stopped");
    return "done";
  }

 private:
  absl::Time* const now_;
};

constexpr int64_t kEver = 86400000;  // one day in milliseconds

// Writes a measuring program that is a shell script.
std::string Script(const std::string& name, const std::string& body) {
  std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

absl::StatusOr<std::string> Measure(const std::string& program, int64_t timeout_ms = kEver, int bundles = 1) {
  MeasureExecutor executor({program, "", 1, absl::InfiniteDuration()});
  v1::Task task;
  task.set_description("Conv+Relu");
  task.set_timeout_ms(timeout_ms);
  v1::MeasurePayload payload;
  for (int i = 0; i < bundles; ++i) payload.add_items()->set_bundle("bundle");
  return executor.Execute(task, payload.SerializeAsString(), NeverCancelled());
}

TEST(Decorators, DeadlineBecomesDeadlineExceeded) {
  absl::Time now = absl::UnixEpoch();
  auto executor = WithDeadline(std::make_unique<Slow>(&now), [&] { return now; });
  v1::Task task;
  task.set_timeout_ms(59999);
  EXPECT_EQ(executor->Execute(task, "", NeverCancelled()).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(executor->Execute(task, "", {[] { return true; }}).status().code(), absl::StatusCode::kCancelled)
      << "the server's wish is not the deadline";
  task.set_timeout_ms(60000);
  EXPECT_TRUE(executor->Execute(task, "", NeverCancelled()).ok());
}

TEST(Decorators, PayloadIsReadAndItsDigestChecked) {
  auto executor = WithPayload(std::make_unique<Echo>(), [](const std::string&, int64_t) { return "bytes"; });
  v1::Task task;
  task.set_payload_digest(Sha256Hex("bytes"));
  EXPECT_EQ(executor->Execute(task, "", NeverCancelled()).value(), "bytes");
  task.set_payload_digest(Sha256Hex("others"));
  EXPECT_EQ(executor->Execute(task, "", NeverCancelled()).status().code(), absl::StatusCode::kUnavailable);
}

TEST(Decorators, UnknownKindBlamesTheWorker) {
  auto executor = ByKind({});
  EXPECT_EQ(executor->Execute({}, "", NeverCancelled()).status().code(), absl::StatusCode::kUnavailable);
}

TEST(Decorators, LogsStartAndEnd) {
  std::vector<LogLine> lines;
  auto executor = WithLogging(std::make_unique<Echo>(), [&](const LogLine& line) { lines.push_back(line); });
  v1::Task task;
  task.set_job_id("j-1");
  ASSERT_TRUE(executor->Execute(task, "", NeverCancelled()).ok());
  ASSERT_EQ(lines.size(), 2);
  for (const LogLine& line : lines) {
    ASSERT_FALSE(line.fields.empty());
    EXPECT_EQ(line.fields[0].key, "job");
    EXPECT_EQ(line.fields[0].value, "j-1");
  }
  EXPECT_EQ(lines[1].fields.back().value, "OK");
}

constexpr char kSummary[] = R"({"samples_ns":[5,7],"min_ns":5,"median_ns":7,"p90_ns":7,"peak_ratio":1})";

TEST(MeasureExecutor, ReportsTheSummary) {
  auto bytes = Measure(Script("measure_ok", absl::StrCat("echo '[", kSummary, "]'")));
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  v1::MeasureResults results;
  ASSERT_TRUE(results.ParseFromString(*bytes));
  ASSERT_EQ(results.results_size(), 1);
  EXPECT_EQ(results.results(0).median_ns(), 7);
  EXPECT_EQ(results.results(0).samples_ns_size(), 2);
}

TEST(MeasureExecutor, ReportsASummaryOfEachBundle) {
  const std::string two = absl::StrCat("echo '[", kSummary, ",", kSummary, "]'");
  auto bytes = Measure(Script("measure_two", "test $# = 4 && " + two), kEver, 2);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  v1::MeasureResults results;
  ASSERT_TRUE(results.ParseFromString(*bytes));
  EXPECT_EQ(results.results_size(), 2);
  EXPECT_EQ(Measure(Script("measure_less", two), kEver, 3).status().code(), absl::StatusCode::kInternal);
}

TEST(MeasureExecutor, ACrashIsTheTasksFaultWithEvidence) {
  auto result = Measure(Script("measure_crash", "echo last words >&2; kill -SEGV $$"));
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(result.status().message()), testing::AllOf(HasSubstr("signal 11"), HasSubstr("last words")));
}

TEST(MeasureExecutor, AHangIsKilled) {
  auto result = Measure(Script("measure_hang", "sleep 100000"), 100);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(MeasureExecutor, NonsenseIsAnError) { EXPECT_FALSE(Measure(Script("measure_nonsense", "echo fast")).ok()); }

TEST(MeasureExecutor, AMissingProgramBlamesTheWorker) {
  EXPECT_EQ(Measure("/no/such/fusion-measure").status().code(), absl::StatusCode::kUnavailable);
}

// Runs a whole model by a script in place of fusion-measure. The bundles' bytes are "bundle" and "other".
absl::StatusOr<std::string> RunModel(const std::string& program, bool verify,
                                     absl::Duration deadline = absl::InfiniteDuration()) {
  MeasureExecutorOptions options{program, "", 1, absl::InfiniteDuration()};
  options.read_blob = [](const std::string& digest, int64_t) { return digest; };
  options.model_deadline = deadline;
  MeasureExecutor executor(options);
  v1::Task task;
  task.set_threads(3);
  v1::MeasurePayload payload;
  payload.mutable_model()->set_bundle_digest("bundle");
  payload.mutable_model()->set_other_digest("other");
  payload.mutable_model()->set_verify(verify);
  return executor.Execute(task, payload.SerializeAsString(), NeverCancelled());
}

TEST(MeasureExecutor, RunsAWholeModelBesideItsUnfusedForm) {
  auto bytes = RunModel(Script("model_ok", "test $1$2$3 = --models--threads3 && test $(cat $4) = bundle && "
                                           "test $(cat $5) = other && echo '{\"rounds\": 7, \"ratio\": 1.5}'"),
                        /*verify=*/false);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  v1::MeasureResults results;
  ASSERT_TRUE(results.ParseFromString(*bytes));
  EXPECT_FALSE(results.has_verification());
  EXPECT_EQ(results.measurement().rounds(), 7);
  EXPECT_EQ(results.measurement().ratio(), 1.5);
}

TEST(MeasureExecutor, VerifiesAWholeModelOnAllCores) {
  auto bytes = RunModel(Script("model_verify", "test $1$2$3 = --verify--threads0 && echo "
                                               "'{\"verdict\": \"OUTPUT_WRONG\", \"outputs\": [{\"max_rel_err\": "
                                               "\"Infinity\"}]}'"),
                        /*verify=*/true);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  v1::MeasureResults results;
  ASSERT_TRUE(results.ParseFromString(*bytes));
  EXPECT_FALSE(results.has_measurement());
  EXPECT_EQ(results.verification().verdict(), v1::OUTPUT_WRONG);
}

TEST(MeasureExecutor, AWholeModelThatIsTooSlowIsNoError) {
  for (const bool verify : {false, true}) {
    auto bytes = RunModel(Script("model_slow", "sleep 100000"), verify, absl::Milliseconds(50));
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    v1::MeasureResults results;
    ASSERT_TRUE(results.ParseFromString(*bytes));
    EXPECT_EQ(results.has_verification(), verify);
    EXPECT_THAT(verify ? results.verification().not_done() : results.measurement().not_done(),
                HasSubstr("did not finish within 50ms"));
  }
  EXPECT_EQ(RunModel(Script("model_crash", "kill -SEGV $$"), true).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(RunModel(Script("model_nonsense", "echo fast"), true).status().code(), absl::StatusCode::kInternal);
}

TEST(MeasureExecutor, ComparesThePlansOfABundle) {
  MeasureExecutorOptions options;
  options.program = Script("plans_ok",
                           "test $1$2$3 = --plans--threads3 && test $(cat $4) = bundle && echo "
                           "'{\"rounds\": 20, \"plans\": [{\"ratio\": 1}, {\"ratio\": 1.04}]}'");
  options.temp_folder = "/tmp";
  options.read_blob = [](const std::string& digest, int64_t) { return digest; };
  v1::Task task;
  task.set_threads(3);
  v1::MeasurePayload payload;
  payload.mutable_plans()->set_bundle_digest("bundle");
  auto bytes = MeasureExecutor(options).Execute(task, payload.SerializeAsString(), NeverCancelled());
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  v1::MeasureResults results;
  ASSERT_TRUE(results.ParseFromString(*bytes));
  ASSERT_EQ(results.plans().plans_size(), 2);
  EXPECT_EQ(results.plans().plans(1).ratio(), 1.04);
  EXPECT_EQ(results.plans().rounds(), 20);

  options.program = Script("plans_slow", "sleep 100000");
  options.model_deadline = absl::Milliseconds(50);
  bytes = MeasureExecutor(options).Execute(task, payload.SerializeAsString(), NeverCancelled());
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  ASSERT_TRUE(results.ParseFromString(*bytes));
  EXPECT_THAT(results.plans().not_done(), HasSubstr("did not finish within 50ms"));
}

TEST(BuildExecutor, BuildsAllUnits) {
  auto toolchain = ClangToolchain::Create();
  ASSERT_TRUE(toolchain.ok());
  BuildExecutor executor({toolchain->get()});
  v1::BuildPayload payload;
  for (int i = 0; i < 2; ++i) {
    auto* unit = payload.add_units();
    unit->set_kind("cpu");
    unit->set_march("x86-64-v3");
    unit->set_source("extern \"C\" int f() { return 1; }");
  }
  auto bytes = executor.Execute({}, payload.SerializeAsString(), NeverCancelled());
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  v1::BuildResult result;
  ASSERT_TRUE(result.ParseFromString(*bytes));
  EXPECT_EQ(result.binaries_size(), 2);
  EXPECT_THAT(result.toolchain(), HasSubstr("clang"));
  EXPECT_EQ(executor.Execute({}, "\xff garbage", NeverCancelled()).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(BuildExecutor, RefusesAKindThatItsWorkerDoesNotBuild) {
  BuildExecutor executor({});
  v1::BuildPayload payload;
  payload.add_units()->set_kind("abacus");
  const absl::Status status = executor.Execute({}, payload.SerializeAsString(), NeverCancelled()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'abacus'"));
}

}  // namespace
}  // namespace fusion
