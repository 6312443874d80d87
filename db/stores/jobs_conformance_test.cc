// Tests what every Store must do with jobs, their submissions, claims and events.
#include <thread>

#include "db/stores/store_conformance_test.h"

namespace fusion {
namespace {

TEST_P(StoreConformance, JobLifeAndEvents) {
  EXPECT_EQ(store_->InsertJob(MakeJob("j-1", "k"), "e1").value(), "j-1");
  EXPECT_EQ(store_->InsertJob(MakeJob("j-2", "k"), "e1").value(), "j-1") << "joined";
  EXPECT_EQ(store_->FindSubmission("j-2")->runs_as, "j-1");
  EXPECT_EQ(store_->GetJob("j-2").status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(Claim("j-1").has_value());
  ASSERT_TRUE(store_->AppendJobEvent(store_->GetJob("j-1")->claim(), "e2").ok());
  EXPECT_EQ(store_->UnfinishedJobs()->size(), 1u);

  JobRow job = store_->GetJob("j-1").value();
  EXPECT_EQ(job.request, std::string("\0bin", 4));
  EXPECT_EQ(job.state, JobPhase::kRunning);
  job.state = JobPhase::kSucceeded, job.finished_ms = 9, job.bundle_digest = "d", job.bundle_bytes = 3;
  const std::string key(64, 'a');
  job.checks = "found";
  ASSERT_TRUE(store_->FinishJob(job, "e3", ResultRow{key, "d", 3, "acc", 9, "found"}).ok());
  EXPECT_EQ(store_->FinishJob(job, "e4", std::nullopt).code(), absl::StatusCode::kFailedPrecondition);

  EXPECT_EQ(store_->OfferEarlyBundle(job.claim(), ResultRow{key}, "e4").code(), absl::StatusCode::kFailedPrecondition);

  auto events = store_->JobEvents("j-1", 1, 100).value();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].seq, 2);
  EXPECT_EQ(events[1].event, "e3");
  EXPECT_EQ(store_->GetJob("j-1")->last_seq, 3);
  EXPECT_EQ(store_->FindResult(key).value()->account, "acc");
  EXPECT_EQ(store_->FindResult(key).value()->checks, "found");
  EXPECT_EQ(store_->GetJob("j-1")->checks, "found");
  ASSERT_TRUE(store_->PutResult({key, "e", 4, "acc", 9, "more"}).ok());
  EXPECT_EQ(store_->FindResult(key).value()->bundle_digest, "e");
  EXPECT_EQ(store_->FindResult(key).value()->checks, "more");
  EXPECT_FALSE(store_->FindResult(std::string(64, 'b'))->has_value());
  EXPECT_TRUE(store_->UnfinishedJobs()->empty());
  EXPECT_EQ(store_->InsertJob(MakeJob("j-3", "k"), "e").value(), "j-3") << "a final job does not block its key";
  EXPECT_EQ(store_->ListJobs(1, std::nullopt)->front().id, "j-3");
}

TEST_P(StoreConformance, AttemptsAreCompilationsThatDiedNotStarts) {
  ASSERT_TRUE(store_->InsertJob(MakeJob("j", "k"), "e").ok());
  const JobClaim nobodys = store_->GetJob("j")->claim();
  EXPECT_EQ(store_->FailJobAttempt(nobodys, "died").code(), absl::StatusCode::kFailedPrecondition) << "it does not run";
  EXPECT_EQ(store_->ReleaseJob(nobodys, "back").code(), absl::StatusCode::kFailedPrecondition) << "it does not run";
  EXPECT_EQ(store_->GetJob("j")->last_seq, 1) << "so that nothing is said";
  EXPECT_EQ(Claim("j")->fence, 1);
  const std::optional<JobRow> job = Claim("j");  // again: the answer may have been lost
  EXPECT_EQ(job->fence, 2);
  EXPECT_EQ(job->started_ms, 6);
  EXPECT_EQ(store_->UnfinishedJobs()->front().attempts, 0);
  ASSERT_TRUE(store_->FailJobAttempt(job->claim(), "died").ok());
  ASSERT_TRUE(store_->ReleaseJob(job->claim(), "back").ok());
  EXPECT_EQ(store_->GetJob("j")->attempts, 1);
  EXPECT_EQ(store_->GetJob("j")->state, JobPhase::kQueued);
  EXPECT_EQ(store_->JobEvents("j", 1, 9)->front().event, "died");
  EXPECT_EQ(store_->JobEvents("j", 1, 9)->back().event, "back");
}

TEST_P(StoreConformance, AJobTakesAnotherKeyUnlessAJobInFlightHasIt) {
  for (const char* id : {"early", "other"}) ASSERT_TRUE(store_->InsertJob(MakeJob(id, id), "e").ok());
  EXPECT_EQ(store_->GiveJobKey(store_->GetJob("early")->claim(), "key").status().code(),
            absl::StatusCode::kFailedPrecondition)
      << "it does not run";
  const JobClaim claim = Claim("early")->claim();
  EXPECT_EQ(store_->GiveJobKey(claim, "other").value(), "other");
  EXPECT_EQ(store_->GetJob("early")->key, "early");
  EXPECT_EQ(store_->GiveJobKey(claim, "key").value(), "early");
  EXPECT_EQ(store_->GiveJobKey(claim, "key").value(), "early") << "again: the answer may have been lost";
  EXPECT_EQ(store_->GetJob("early")->key, "key");
  EXPECT_EQ(store_->InsertJob(MakeJob("late", "key"), "e").value(), "early") << "joined";
  JobRow other = store_->GetJob("other").value();
  other.state = JobPhase::kFailed;
  ASSERT_TRUE(store_->FinishJob(other, "end", std::nullopt).ok());
  EXPECT_EQ(store_->GiveJobKey(claim, "other").value(), "early") << "a final job does not block its key";
}

TEST_P(StoreConformance, AllRunningJobsAreReleasedAtOnce) {
  for (const char* id : {"waits", "runs", "runs too", "ended"}) {
    ASSERT_TRUE(store_->InsertJob(MakeJob(id, id), "e").ok());
    if (id != std::string("waits")) {
      ASSERT_TRUE(Claim(id).has_value());
    }
  }
  JobRow ended = store_->GetJob("ended").value();
  ended.state = JobPhase::kFailed;
  ASSERT_TRUE(store_->FinishJob(ended, "end", std::nullopt).ok());
  ASSERT_TRUE(store_->ReleaseAllJobs("back").ok());
  for (const char* id : {"waits", "runs", "runs too"}) EXPECT_EQ(store_->GetJob(id)->state, JobPhase::kQueued) << id;
  EXPECT_EQ(store_->GetJob("ended")->state, JobPhase::kFailed);
  EXPECT_EQ(store_->JobEvents("waits", 0, 9)->back().event, "e");
  EXPECT_EQ(store_->JobEvents("runs", 1, 9)->back().event, "back");
  EXPECT_EQ(store_->JobEvents("runs too", 1, 9)->back().event, "back");
  EXPECT_EQ(store_->JobEvents("ended", 0, 9)->back().event, "end");
}

TEST_P(StoreConformance, AClaimHasAClaimantAndALeaseThatIsNotTooLong) {
  ASSERT_TRUE(store_->InsertJob(MakeJob("j", "k"), "e").ok());
  for (const auto& claimed : {store_->ClaimJob("j", "", absl::Seconds(1), 6),
                              store_->ClaimJob("j", "me", kLongestLease + absl::Seconds(1), 6)}) {
    EXPECT_EQ(claimed.status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST_P(StoreConformance, ConcurrentEventsHaveNoGaps) {
  ASSERT_TRUE(store_->InsertJob(MakeJob("j", "k"), "first").ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i) EXPECT_TRUE(store_->AppendJobEvent({"j"}, "x").ok());
    });
  }
  for (auto& thread : threads) thread.join();
  auto events = store_->JobEvents("j", 0, 1000).value();
  ASSERT_EQ(events.size(), 101u);
  for (int i = 0; i < 101; ++i) EXPECT_EQ(events[i].seq, i + 1);
}

TEST_P(StoreConformance, AnEarlyBundleIsOfItsJobAndAResultAndIsKept) {
  const std::string early(64, 'e');
  ASSERT_TRUE(store_->InsertJob(MakeJob("j", "k"), "e1").ok());
  ASSERT_TRUE(store_->InsertJob(MakeJob("joined", "k"), "").ok());
  const JobClaim lost = Claim("j")->claim(), claim = Claim("j")->claim();
  for (const JobClaim& none :
       {JobClaim{"j"}, lost, JobClaim{"j", "another", claim.fence}, JobClaim{"nobody", "me", 1}}) {
    EXPECT_EQ(store_->OfferEarlyBundle(none, ResultRow{early, "late", 7, "acc", 1}, "late").code(),
              absl::StatusCode::kFailedPrecondition);
  }
  EXPECT_FALSE(store_->FindResult(early)->has_value()) << "of an attempt that was lost";
  EXPECT_EQ(store_->FindSubmission("j")->last_seq, 1);
  ASSERT_TRUE(store_->OfferEarlyBundle(claim, ResultRow{early, "digest", 7, "acc", 1}, "e2").ok());
  for (const char* id : {"j", "joined"}) {
    const JobRow job = store_->FindSubmission(id).value();
    EXPECT_EQ(job.early_digest, "digest");
    EXPECT_EQ(job.early_bytes, 7);
    EXPECT_EQ(job.early_key, early);
    EXPECT_EQ(job.last_seq, 2);
  }
  EXPECT_EQ(store_->FindResult(early).value()->bundle_digest, "digest");
  std::vector<std::string> owners;
  ASSERT_TRUE(store_
                  ->ScanReferences(
                      [&](const Reference& reference) {
                        if (reference.digest == "digest") owners.push_back(reference.owner);
                      },
                      [](const std::string&, const std::string&) {})
                  .ok());
  EXPECT_THAT(owners, ::testing::UnorderedElementsAre("j", early));
  ASSERT_TRUE(store_->LeaveJob("joined", 9, "c", 1, "cancelled").ok());
  EXPECT_EQ(store_->FindSubmission("joined")->early_digest, "") << "it has left";
}

TEST_P(StoreConformance, AJobLastsAsLongAsOneOfItsSubmissions) {
  ASSERT_EQ(store_->InsertJob(MakeJob("first", "k"), "e1").value(), "first");
  JobRow joined = MakeJob("joined", "k");
  joined.model_name = "another name", joined.created_ms = 6;
  ASSERT_EQ(store_->InsertJob(joined, "e1").value(), "first");
  EXPECT_FALSE(store_->LeaveJob("nobody", 7, "cancelled", 1, "cancelled")->left);
  const Store::Leaving first = store_->LeaveJob("first", 7, "cancelled", 1, "cancelled").value();
  EXPECT_TRUE(first.left);
  EXPECT_FALSE(first.ended);
  EXPECT_FALSE(store_->LeaveJob("first", 8, "cancelled", 1, "cancelled")->left) << "once";
  ASSERT_TRUE(store_->AppendJobEvent({"first"}, "e2").ok());
  EXPECT_EQ(store_->GetJob("first")->state, JobPhase::kQueued) << "it goes on for the other one";
  const JobRow left = store_->FindSubmission("first").value(), stays = store_->FindSubmission("joined").value();
  EXPECT_EQ(left.state, JobPhase::kCancelled);
  EXPECT_EQ(left.left_seq, 2);
  EXPECT_EQ(left.last_seq, 2) << "the events of the job are no longer its own";
  EXPECT_EQ(left.finished_ms, 7);
  EXPECT_EQ(stays.state, JobPhase::kQueued);
  EXPECT_EQ(stays.id, "joined");
  EXPECT_EQ(stays.model_name, "another name");
  EXPECT_EQ(stays.last_seq, 2);
  std::vector<std::string> listed;
  const std::vector<JobRow> jobs = store_->ListJobs(10, std::nullopt).value();
  for (const JobRow& job : jobs) listed.push_back(job.id);
  EXPECT_THAT(listed, ::testing::ElementsAre("joined", "first"));

  EXPECT_TRUE(store_->LeaveJob("joined", 9, "cancelled", 1, "cancelled")->ended);
  EXPECT_EQ(store_->GetJob("first")->state, JobPhase::kCancelled);
  EXPECT_EQ(store_->JobEvents("first", 2, 10)->front().event, "cancelled");
  EXPECT_EQ(store_->FindSubmission("joined")->left_seq, 3);
  EXPECT_EQ(store_->InsertJob(MakeJob("later", "k"), "e1").value(), "later") << "nothing is in flight";
  EXPECT_FALSE(store_->LeaveJob("joined", 10, "cancelled", 1, "cancelled")->left);
}

TEST_P(StoreConformance, EachSubmissionHasItsOwnOwner) {
  JobRow first = MakeJob("first", "k"), joined = MakeJob("joined", "k"), other = MakeJob("other", "k2");
  first.owner = "a", joined.owner = "b", other.owner = "b";
  for (const JobRow& job : {first, joined, other}) ASSERT_TRUE(store_->InsertJob(job, "e").ok());
  const auto ids = [&](const std::optional<std::string>& owner) {
    std::vector<std::string> all;
    const std::vector<JobRow> jobs = store_->ListJobs(10, owner).value();
    for (const JobRow& job : jobs) all.push_back(job.id);
    return all;
  };
  EXPECT_THAT(ids("a"), ::testing::ElementsAre("first"));
  EXPECT_THAT(ids("b"), ::testing::UnorderedElementsAre("joined", "other"));
  EXPECT_THAT(ids("nobody"), ::testing::IsEmpty());
  EXPECT_EQ(ids(std::nullopt).size(), 3u);
  EXPECT_EQ(store_->FindSubmission("joined")->owner, "b");
  EXPECT_EQ(store_->FindSubmission("joined")->runs_as, "first");
  EXPECT_EQ(store_->GetJob("first")->owner, "a");
}

TEST_P(StoreConformance, ARequestIsSubmittedOnce) {
  const auto submit = [&](const std::string& id, const std::string& owner, const std::string& request_id) {
    JobRow job = MakeJob(id, "k");
    job.owner = owner, job.request_id = request_id;
    return store_->InsertJob(job, "e").status().code();
  };
  EXPECT_EQ(submit("first", "a", "r1"), absl::StatusCode::kOk);
  EXPECT_EQ(submit("again", "a", "r1"), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(submit("joined", "a", "r2"), absl::StatusCode::kOk);
  EXPECT_EQ(submit("joined again", "a", "r2"), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(submit("of another", "b", "r1"), absl::StatusCode::kOk) << "ids are the callers' own";
  EXPECT_EQ(submit("without", "a", ""), absl::StatusCode::kOk);
  EXPECT_EQ(submit("without either", "a", ""), absl::StatusCode::kOk);
  EXPECT_EQ(store_->FindRequest("a", "r1")->id, "first");
  EXPECT_EQ(store_->FindRequest("a", "r2")->id, "joined");
  EXPECT_EQ(store_->FindRequest("a", "r2")->runs_as, "first");
  EXPECT_EQ(store_->FindRequest("b", "r1")->id, "of another");
  for (const char* unknown : {"", "r3"}) {
    EXPECT_EQ(store_->FindRequest("a", unknown).status().code(), absl::StatusCode::kNotFound);
  }
}

TEST_P(StoreConformance, AJobHasThePriorityOfItsBestSubmissionThatIsLeft) {
  const auto submit = [&](const std::string& id, int priority) {
    JobRow job = MakeJob(id, "k");
    job.priority = priority;
    ASSERT_TRUE(store_->InsertJob(job, "e").ok());
  };
  submit("first", -10);
  EXPECT_EQ(store_->GetJob("first")->priority, -10);
  submit("second", 10);
  submit("third", 0);
  EXPECT_EQ(store_->GetJob("first")->priority, 10);
  EXPECT_EQ(store_->UnfinishedJobs()->front().priority, 10);
  ASSERT_TRUE(store_->LeaveJob("second", 7, "cancelled", 1, "cancelled").ok());
  EXPECT_EQ(store_->GetJob("first")->priority, 0);
  for (const char* id : {"first", "third"}) ASSERT_TRUE(store_->LeaveJob(id, 8, "cancelled", 1, "cancelled").ok());
  EXPECT_EQ(store_->GetJob("first")->priority, -10) << "nobody waits any more";
}

TEST_P(StoreConformance, AJobHasTheOwnersOfItsSubmissionsThatAreLeft) {
  using ::testing::ElementsAre;
  const auto submit = [&](const std::string& id, const std::string& owner) {
    JobRow job = MakeJob(id, "k");
    job.owner = owner;
    ASSERT_TRUE(store_->InsertJob(job, "e").ok());
  };
  submit("first", "token b, and \x1f more");
  EXPECT_THAT(store_->GetJob("first")->owners, ElementsAre("token b, and \x1f more"));
  submit("second", "a"), submit("third", ""), submit("fourth", "a");
  EXPECT_THAT(store_->GetJob("first")->owners, ElementsAre("", "a", "token b, and \x1f more"));
  EXPECT_THAT(store_->UnfinishedJobs()->front().owners, ElementsAre("", "a", "token b, and \x1f more"));
  EXPECT_THAT(store_->FindSubmission("fourth")->owners, ElementsAre("", "a", "token b, and \x1f more"));
  ASSERT_TRUE(store_->LeaveJob("second", 7, "cancelled", 1, "cancelled").ok());
  ASSERT_TRUE(store_->LeaveJob("first", 7, "cancelled", 1, "cancelled").ok());
  EXPECT_THAT(Claim("first")->owners, ElementsAre("", "a"));
}

// Pages through lists in which other submissions come meanwhile.
TEST_P(StoreConformance, PagesOfJobsHaveEachOnceWhateverComesMeanwhile) {
  int64_t now_ms = 100;
  int count = 0;
  const auto submit = [&](const std::string& owner, const std::string& key) {
    JobRow job = MakeJob("s" + std::to_string(1000 + count++), key);
    job.owner = owner, job.created_ms = now_ms;
    ASSERT_TRUE(store_->InsertJob(job, "e").ok());
  };
  // Every third one joins, and several come within one millisecond.
  for (int i = 0; i < 40; ++i, now_ms += i % 4 == 0)
    submit(i % 2 ? "a" : "b", i % 3 == 0 ? "shared" : "k" + std::to_string(i));
  for (const std::optional<std::string>& owner : {std::optional<std::string>(), std::optional<std::string>("a")}) {
    for (const int limit : {1, 3, 7, 100}) {
      const std::vector<JobRow> before = store_->ListJobs(1000, owner).value();
      const int limit_of_new = count + 6;
      std::vector<std::string> expected, paged;
      for (const JobRow& job : before) expected.push_back(job.id);
      JobCursor cursor;
      for (bool more = true; more;) {
        const JobPage page = store_->PageOfJobs(limit, owner, cursor).value();
        EXPECT_LE(page.jobs.size(), static_cast<size_t>(limit));
        for (const JobRow& job : page.jobs) paged.push_back(job.id);
        if (count < limit_of_new) {
          ++now_ms;
          submit("a", "shared");
          submit("a", "new" + std::to_string(count));
        }
        more = page.next.has_value();
        if (more) cursor = *page.next;
      }
      EXPECT_EQ(paged, expected) << "pages of " << limit;
    }
  }
}

}  // namespace
}  // namespace fusion
