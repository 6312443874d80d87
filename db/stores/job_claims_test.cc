// JobClaims' own rules, and SQLite's claims held against them: random calls of several claimants, through two openings
// of one database, with crashes between the calls.
#include "db/stores/job_claims.h"

#include <algorithm>
#include <map>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "db/stores/testing/two_openings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion {
namespace {

constexpr absl::Duration kLease = absl::Seconds(30);
const absl::Time kBegin = absl::UnixEpoch() + absl::Hours(1);

TEST(JobClaims, OneClaimantAtATimeHasAJobWhileItsLeaseLasts) {
  JobClaims claims;
  claims.Add("j", JobPhase::kQueued);
  EXPECT_EQ(claims.Claim("j", "a", kLease, kBegin), 1);
  EXPECT_FALSE(claims.Claim("j", "b", kLease, kBegin + kLease - absl::Milliseconds(1)).has_value());
  EXPECT_TRUE(claims.Renew({"j", "a", 1}, kLease, kBegin + absl::Seconds(10)));
  EXPECT_FALSE(claims.Claim("j", "b", kLease, kBegin + kLease).has_value());
  EXPECT_TRUE(claims.Lapsed("b", kBegin + kLease).empty());
  EXPECT_FALSE(claims.Claim("unknown", "b", kLease, kBegin).has_value());
}

TEST(JobClaims, AClaimThatRanOutHoldsUntilAnotherClaimsTheJobAndItsAttemptsStay) {
  JobClaims claims;
  claims.Add("j", JobPhase::kQueued);
  ASSERT_TRUE(claims.Claim("j", "a", kLease, kBegin).has_value());
  EXPECT_TRUE(claims.Fail({"j", "a", 1}));
  const absl::Time late = kBegin + 2 * kLease;
  EXPECT_THAT(claims.Lapsed("b", late), ::testing::ElementsAre("j"));
  EXPECT_THAT(claims.Lapsed("a", late), ::testing::IsEmpty());
  EXPECT_TRUE(claims.Renew({"j", "a", 1}, kLease, late)) << "nobody else has wanted it";
  EXPECT_FALSE(claims.Claim("j", "b", kLease, late).has_value());
  EXPECT_EQ(claims.Claim("j", "b", kLease, late + kLease), 2);
  EXPECT_EQ(claims.Find("j")->attempts, 1) << "that a lease ran out is no attempt";
  for (const JobClaim& old : {JobClaim{"j", "a", 1}, JobClaim{"j", "b", 1}, JobClaim{"j", "", 2}}) {
    EXPECT_FALSE(claims.Renew(old, kLease, late)) << old.claimant << old.fence;
    EXPECT_FALSE(claims.Fail(old)) << old.claimant << old.fence;
    EXPECT_FALSE(claims.Release(old)) << old.claimant << old.fence;
    EXPECT_FALSE(claims.Finish(old, JobPhase::kSucceeded)) << old.claimant << old.fence;
  }
  EXPECT_TRUE(claims.Finish({"j", "b", 2}, JobPhase::kSucceeded));
  EXPECT_FALSE(claims.Claim("j", "b", kLease, late).has_value()) << "it is final";
  EXPECT_FALSE(claims.Cancel("j"));
}

TEST(JobClaims, LeasesFromBeforeTheMachineWasStartedAreOver) {
  JobClaims claims;
  claims.Add("j", JobPhase::kQueued);
  ASSERT_TRUE(claims.Claim("j", "a", kLease, kBegin + absl::Hours(100)).has_value());
  EXPECT_THAT(claims.Lapsed("b", kBegin), ::testing::ElementsAre("j"));
  EXPECT_EQ(claims.Claim("j", "b", kLease, kBegin), 2);
}

TEST(JobClaims, ACancelledJobAndOneThatIsReleasedAreNobodys) {
  JobClaims claims;
  for (const char* id : {"cancelled", "released", "waits"}) claims.Add(id, JobPhase::kQueued);
  ASSERT_TRUE(claims.Claim("cancelled", "a", kLease, kBegin).has_value());
  ASSERT_TRUE(claims.Claim("released", "a", kLease, kBegin).has_value());
  EXPECT_TRUE(claims.Cancel("cancelled"));
  EXPECT_FALSE(claims.Finish({"cancelled", "a", 1}, JobPhase::kSucceeded));
  EXPECT_THAT(claims.ReleaseAll(), ::testing::ElementsAre("released"));
  EXPECT_FALSE(claims.Finish({"released", "a", 1}, JobPhase::kSucceeded));
  EXPECT_EQ(claims.Claim("released", "b", kLease, kBegin), 2);
  EXPECT_TRUE(claims.Finish({"waits", "", 0}, JobPhase::kFailed)) << "it waited too long";
}

// A database that two processes have opened, and what they may do with it.
class TwoProcesses {
 public:
  explicit TwoProcesses(int seed) : random_(seed) {}

  void Step() {
    switch (Below(12)) {
      case 0:
        return Insert();
      case 1:
      case 2:
      case 3:
        return Claim();
      case 4:
        return Renew();
      case 5:
        Job();
        if (Below(3) == 0) {
          return ExpectSame(claims_.Holds(claim_), store().AppendJobEvent(claim_, "event"), "append");
        }
        if (Below(2) == 0) {
          const ResultRow early{std::string(64, 'e'), absl::StrCat("bundle ", calls_), 1, "", 1};
          return ExpectSame(!claim_.claimant.empty() && claims_.Holds(claim_),
                            store().OfferEarlyBundle(claim_, early, "early"), "offer");
        }
        return ExpectSame(claims_.Fail(claim_), store().FailJobAttempt(claim_, "died"), "fail");
      case 6:
        Job();
        return ExpectSame(claims_.Release(claim_), store().ReleaseJob(claim_, "back"), "release");
      case 7:
        return Finish();
      case 8:
        if (Below(2) == 0) return Cancel();
        return ReleaseAll();
      case 9:
        if (Below(2) == 0) return openings_.Crash();
        break;
      default:
        break;
    }
    now_ += absl::Seconds(Below(50));
    if (Below(20) == 0) now_ = kBegin + absl::Minutes(Below(10));  // the machine starts anew
  }
  // Everything that can be read is what the model says.
  void Compare() {
    for (const auto& [id, last] : last_) {
      const JobClaims::Job& model = *claims_.Find(id);
      const JobRow row = store().GetJob(id).value();
      ASSERT_EQ(row.state, model.state) << What() << id;
      ASSERT_EQ(row.claimant, model.claimant) << What() << id;
      ASSERT_EQ(row.fence, model.fence) << What() << id;
      ASSERT_EQ(row.attempts, model.attempts) << What() << id;
    }
    for (const char* claimant : {"a", "b"}) {
      std::vector<std::string> lapsed;
      const std::vector<JobRow> rows = store().LapsedJobs(claimant).value();
      for (const JobRow& row : rows) lapsed.push_back(row.id);
      std::sort(lapsed.begin(), lapsed.end());
      ASSERT_EQ(lapsed, claims_.Lapsed(claimant, now_)) << What();
    }
  }
  int claimed() const { return claimed_; }
  int refused() const { return refused_; }
  int taken_over() const { return taken_over_; }

 private:
  int Below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  std::string What() const { return absl::StrCat("call ", calls_, ": "); }
  Store& store() { return openings_.of(calls_ % 2); }
  std::string Claimant() { return Below(2) == 0 ? "a" : "b"; }
  // Draws a job, and for `claim_` mostly its latest claim, sometimes an older one or another's.
  std::string Job() {
    ++calls_;
    const std::string id = last_.empty() ? "j-0" : absl::StrCat("j-", Below(static_cast<int>(last_.size())));
    claim_ = last_.count(id) > 0 ? last_.at(id) : JobClaim{id, "a", 1};
    if (Below(6) == 0) claim_.claimant = Claimant();
    if (Below(6) == 0) claim_.fence -= 1;
    if (Below(12) == 0) claim_.claimant = "";
    return id;
  }

  void Insert() {
    JobRow job;
    job.id = job.key = absl::StrCat("j-", last_.size());
    job.created_ms = 1;
    claims_.Add(job.id, JobPhase::kQueued);
    ASSERT_EQ(store().InsertJob(job, "first").value(), job.id);
    last_[job.id] = {job.id, "", 0};
  }
  void Claim() {
    const std::string id = Job(), claimant = Claimant();
    const bool was_anothers =
        claims_.Find(id) != nullptr && !claims_.Find(id)->claimant.empty() && claims_.Find(id)->claimant != claimant;
    const std::optional<int64_t> fence = claims_.Claim(id, claimant, kLease, now_);
    const std::optional<JobRow> row = store().ClaimJob(id, claimant, kLease, 7).value();
    ASSERT_EQ(row.has_value(), fence.has_value()) << What() << id;
    ++(fence.has_value() ? claimed_ : refused_);
    if (!fence.has_value()) return;
    taken_over_ += was_anothers;
    ASSERT_EQ(row->fence, *fence) << What() << id;
    ASSERT_EQ(row->claimant, claimant);
    ASSERT_EQ(row->state, JobPhase::kRunning);
    last_[id] = row->claim();
  }
  void Renew() {
    std::vector<JobClaim> claims;
    std::vector<bool> held;
    for (int i = Below(4); i >= 0; --i) {
      Job();
      claims.push_back(claim_);
      held.push_back(claims_.Renew(claim_, kLease, now_));
    }
    ASSERT_EQ(store().RenewJobs(claims, kLease).value(), held) << What();
  }
  void Finish() {
    Job();
    JobRow row;
    row.id = claim_.job, row.claimant = claim_.claimant, row.fence = claim_.fence;
    row.state = Below(2) == 0 ? JobPhase::kSucceeded : JobPhase::kFailed;
    ExpectSame(claims_.Finish(claim_, row.state), store().FinishJob(row, "last", std::nullopt), "finish");
  }
  void Cancel() {
    const std::string id = Job();
    const bool cancelled = claims_.Cancel(id);
    ASSERT_EQ(store().LeaveJob(id, 9, "cancelled", 1, "cancelled").value().ended, cancelled) << What() << id;
  }
  void ReleaseAll() {
    ++calls_;
    (void)claims_.ReleaseAll();
    ASSERT_TRUE(store().ReleaseAllJobs("back").ok());
  }
  void ExpectSame(bool held, const absl::Status& status, const char* call) {
    ASSERT_EQ(status.code(), held ? absl::StatusCode::kOk : absl::StatusCode::kFailedPrecondition)
        << What() << call << " " << claim_.job << ": " << status;
  }

  std::mt19937 random_;
  absl::Time now_ = kBegin;
  testing::TwoOpenings openings_{[this] { return now_; }};
  JobClaims claims_;
  std::map<std::string, JobClaim> last_;  // by job
  JobClaim claim_;
  int calls_ = 0, claimed_ = 0, refused_ = 0, taken_over_ = 0;
};

TEST(JobClaims, SqliteDoesWhatTheySay) {
  int claimed = 0, refused = 0, taken_over = 0;
  for (int seed = 0; seed < 16; ++seed) {
    TwoProcesses processes(seed);
    for (int step = 0; step < 120; ++step) {
      processes.Step();
      if (step % 10 == 9) processes.Compare();
      ASSERT_FALSE(::testing::Test::HasFatalFailure()) << "seed " << seed << ", step " << step;
    }
    claimed += processes.claimed(), refused += processes.refused(), taken_over += processes.taken_over();
  }
  EXPECT_GT(claimed, 100);
  EXPECT_GT(refused, 40);
  EXPECT_GT(taken_over, 10);
}

}  // namespace
}  // namespace fusion
