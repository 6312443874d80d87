#include <set>

#include "client/cli/exit_codes.h"
#include "client/cli/proto_json.h"
#include "client/cli/words.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/compile.pb.h"

namespace fusion {
namespace {

TEST(Words, Numbers) {
  EXPECT_EQ(BytesInWords(12), "12 B");
  EXPECT_EQ(BytesInWords(102550733), "97.8 MiB");
  EXPECT_EQ(SecondsInWords(0.42), "0.4s");
  EXPECT_EQ(SecondsInWords(112), "1m52s");
  EXPECT_EQ(LatencyInWords(1.92e6), "1.92 ms");
  EXPECT_EQ(CountInWords(1840), "1,840");
  EXPECT_EQ(CountInWords(999), "999");
  EXPECT_EQ(CountInWords(-1234567), "-1,234,567");
  EXPECT_EQ(Plural(1, "worker"), "1 worker");
  EXPECT_EQ(ShortDigest("3f9a00000000c2"), "3f9a…c2");
}

TEST(Words, NothingAFileSaysSteersATerminal) { EXPECT_EQ(Printable("a\033[2J\nb"), "a?[2J?b"); }

TEST(Words, TablesAlign) {
  EXPECT_EQ(Table({"NAME", "N"}, {{"résumé", "1"}, {"x", "22"}}), "NAME    N\nrésumé  1\nx       22\n");
}

TEST(ExitCodes, FollowTheTable) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCodeOf(absl::InternalError("")), 1);
  EXPECT_EQ(ExitCodeOf(UsageError("")), 2);
  EXPECT_EQ(ExitCodeOf(absl::InvalidArgumentError("")), 3);
  EXPECT_EQ(ExitCodeOf(absl::UnimplementedError("")), 3);
  EXPECT_EQ(ExitCodeOf(absl::UnauthenticatedError("")), 4);
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("")), 5);
  EXPECT_EQ(ExitCodeOf(absl::DeadlineExceededError("")), 6);
  EXPECT_EQ(ExitCodeOf(absl::FailedPreconditionError("")), 7);
  EXPECT_EQ(ExitCodeOf(absl::ResourceExhaustedError("")), 8);
}

TEST(ProtoJson, NumbersStayNumbersAndStatesAreWords) {
  v1::Job job;
  job.set_job_id("j-1");
  job.set_state(v1::SUCCEEDED);
  job.set_created_ms(1234567890123);
  job.mutable_account()->set_kernels(3);
  auto* stage = job.mutable_account()->add_stages();
  stage->set_stage("plan");
  stage->set_seconds(0.5);
  const std::string json = ProtoToJson(job, -1);
  EXPECT_THAT(json, testing::HasSubstr("\"state\":\"succeeded\""));
  EXPECT_THAT(json, testing::HasSubstr("\"created_ms\":1234567890123"));
  EXPECT_THAT(json, testing::HasSubstr("\"stages\":[{\"stage\":\"plan\",\"seconds\":0.5}]"));
  EXPECT_THAT(json, testing::Not(testing::HasSubstr("\"error\"")));
}

TEST(Words, MomentsAreRead) {
  const absl::TimeZone zone = absl::FixedTimeZone(3600);
  const absl::Time now = absl::FromUnixSeconds(1700000000);  // 2023-11-14 23:13:20 in that zone
  const auto in_words = [&](const std::string& text) {
    const auto moment = ParseMoment("--from", text, now, zone);
    return moment.ok() ? absl::FormatTime("%Y-%m-%d %H:%M", *moment, zone) : std::string(moment.status().message());
  };
  EXPECT_EQ(in_words("2026-12-24 22:00"), "2026-12-24 22:00");
  EXPECT_EQ(in_words("2026-12-24T22:00:00Z"), "2026-12-24 23:00");
  EXPECT_EQ(in_words("23:30"), "2023-11-14 23:30");
  EXPECT_EQ(in_words("22:00"), "2023-11-15 22:00") << "the next one";
  for (const char* wrong : {"", "soon", "25:00", "2026-13-01 00:00"}) {
    EXPECT_NE(in_words(wrong).find("--from is '"), std::string::npos) << wrong;
  }
}

}  // namespace
}  // namespace fusion
