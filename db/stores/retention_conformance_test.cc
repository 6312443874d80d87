// Tests what every Store must do with blobs and tokens, and what is kept.
#include "db/stores/store_conformance_test.h"

namespace fusion {
namespace {

TEST_P(StoreConformance, Blobs) {
  const std::string digest(64, 'c');
  const std::string other(64, 'e');
  ASSERT_TRUE(store_->PutBlobs({{digest, 12, 1}}).ok());
  ASSERT_TRUE(store_->PutBlobs({{digest, 12, 2}, {other, 3, 2}}).ok());
  auto sizes = store_->BlobSizes({digest, std::string(64, 'd'), other}).value();
  EXPECT_EQ(sizes[0], 12);
  EXPECT_FALSE(sizes[1].has_value());
  EXPECT_EQ(sizes[2], 3);
}

TEST_P(StoreConformance, ABlobIsOfTheTenantsThatBroughtItUntilItIsRemoved) {
  const std::string a(64, 'a'), b(64, 'b');
  ASSERT_TRUE(store_->PutBlobs({{a, 1, 5}}, "acme").ok());
  ASSERT_TRUE(store_->PutBlobs({{a, 1, 5}, {b, 2, 5}}).ok());
  EXPECT_EQ(store_->AreOfTenant("acme", {a, b, a}).value(), (std::vector<bool>{true, false, true}));
  EXPECT_EQ(store_->AreOfTenant("", {a, b}).value(), (std::vector<bool>{true, true}));
  EXPECT_EQ(store_->AreOfTenant("other", {a}).value(), (std::vector<bool>{false}));
  ASSERT_TRUE(store_->RemoveBlobs({a}).ok());
  EXPECT_EQ(store_->AreOfTenant("acme", {a}).value(), (std::vector<bool>{false}));
}

TEST_P(StoreConformance, BlobsAreListedInPagesAndRemoved) {
  const std::string a(64, 'a'), b(64, 'b'), c(64, 'c');
  ASSERT_TRUE(store_->PutBlobs({{b, 2, 5}, {a, 1, 5}, {c, 3, 5}}).ok());
  const auto digests = [&](const std::string& after, int limit) {
    std::vector<std::string> all;
    const std::vector<BlobRow> rows = store_->Blobs(after, limit).value();
    for (const BlobRow& row : rows) all.push_back(row.digest);
    return all;
  };
  EXPECT_THAT(digests("", 2), ::testing::ElementsAre(a, b));
  EXPECT_THAT(digests(b, 2), ::testing::ElementsAre(c));
  ASSERT_TRUE(store_->RemoveBlobs({b, "unknown"}).ok());
  EXPECT_THAT(digests("", 9), ::testing::ElementsAre(a, c));
  EXPECT_FALSE(store_->BlobSizes({b})->at(0).has_value());
}

TEST_P(StoreConformance, Tokens) {
  const std::string hash(64, 'b');
  TokenRow token{"id2", "ci", hash, "client,admin", false, 20, 0, 0, "local"};
  ASSERT_TRUE(store_->InsertToken(token).ok());
  EXPECT_EQ(store_->InsertToken(token).code(), absl::StatusCode::kAlreadyExists);
  ASSERT_TRUE(store_->InsertToken({"id1", "rack", hash, "build", true, 30, 40, 0, "token id2", "", "id2", 7}).ok());
  ASSERT_TRUE(store_->RevokeToken("id1", 35).ok());
  ASSERT_TRUE(store_->RevokeToken("id1", 36).ok());
  EXPECT_TRUE(store_->RevokeToken("unknown", 36).ok());
  const auto tokens = store_->Tokens().value();
  ASSERT_EQ(tokens.size(), 2u);
  EXPECT_EQ(tokens[0].id, "id2");
  EXPECT_EQ(tokens[0].roles, "client,admin");
  EXPECT_EQ(tokens[0].revoked_ms, 0);
  EXPECT_EQ(tokens[0].hash, hash);
  EXPECT_FALSE(tokens[0].joins);
  EXPECT_TRUE(tokens[1].joins);
  EXPECT_EQ(tokens[1].expires_ms, 40);
  EXPECT_EQ(tokens[1].revoked_ms, 35) << "the first time stays";
  EXPECT_EQ(tokens[1].created_by, "token id2");
  EXPECT_EQ(tokens[1].parent, "id2");
  EXPECT_EQ(tokens[1].most_joins, 7);
  EXPECT_FALSE(tokens[1].certificate);
  TokenRow certificate{"id3", "worker one", hash, "build", false, 40, 50, 0, "token id1", "", "id1"};
  certificate.certificate = true;
  ASSERT_TRUE(store_->InsertToken(certificate).ok());
  ASSERT_TRUE(store_->ExtendToken("id3", 80).ok());
  EXPECT_TRUE(store_->ExtendToken("unknown", 80).ok());
  const auto renewed = store_->Tokens().value();
  ASSERT_EQ(renewed.size(), 3u);
  EXPECT_TRUE(renewed[2].certificate);
  EXPECT_EQ(renewed[2].expires_ms, 80);
  EXPECT_EQ(renewed[1].expires_ms, 40) << "of another";
}

TEST_P(StoreConformance, OldFinalRowsExpireInSteps) {
  for (int i = 0; i < 5; ++i) {
    const std::string id = "j-" + std::to_string(i), key(64, static_cast<char>('a' + i));
    ASSERT_TRUE(store_->InsertJob(MakeJob(id, key), "e").ok());
    if (i == 4) break;  // stays in flight
    ASSERT_TRUE(store_->InsertJob(MakeJob("s-" + std::to_string(i), key), "e").ok()) << "joins";
    JobRow job = store_->GetJob(id).value();
    job.state = JobPhase::kSucceeded, job.finished_ms = 10 * (i + 1), job.bundle_digest = "bundle";
    ASSERT_TRUE(store_->FinishJob(job, "e", ResultRow{key, "bundle", 3, "acc", job.finished_ms}).ok());
  }
  ExpiredRows expired = store_->ExpireRows({35, 0, 0}, 2).value();
  EXPECT_EQ(expired.jobs, 2) << "no more than the limit, the oldest first";
  EXPECT_EQ(expired.results, 2);
  EXPECT_EQ(store_->FindSubmission("s-0").status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(store_->JobEvents("j-0", 0, 10)->empty());
  expired = store_->ExpireRows({35, 0, 0}, 2).value();
  EXPECT_EQ(expired.jobs, 1);
  EXPECT_EQ(store_->ExpireRows({35, 0, 0}, 2)->jobs, 0);
  EXPECT_TRUE(store_->GetJob("j-3").ok() && store_->FindSubmission("s-3").ok());
  EXPECT_TRUE(store_->GetJob("j-4").ok()) << "in flight, however old";
  EXPECT_TRUE(store_->FindResult(std::string(64, 'd'))->has_value());
  EXPECT_TRUE(store_->Faults()->empty());
}

TEST_P(StoreConformance, PinnedJobsStayAndTheOldestOthersGo) {
  for (int i = 1; i <= 4; ++i) {
    JobRow job = MakeJob("j-" + std::to_string(i), "k" + std::to_string(i));
    ASSERT_TRUE(store_->InsertJob(job, "e").ok());
    if (i == 2) ASSERT_EQ(store_->InsertJob(MakeJob("joined", "k2"), "e").value(), "j-2");
    job.state = JobPhase::kSucceeded, job.finished_ms = 10 * (5 - i);  // j-4 is the oldest
    const std::string bundle(64, static_cast<char>('0' + i));
    ASSERT_TRUE(
        store_->FinishJob(job, "e", ResultRow{std::string(63, 'f') + std::to_string(i), bundle, 1, "a", 1}).ok());
  }
  ASSERT_TRUE(store_->InsertJob(MakeJob("runs", "k5"), "e").ok());
  ASSERT_TRUE(store_->PinJob("j-4", true).ok());
  ASSERT_TRUE(store_->PinJob("joined", true).ok());
  EXPECT_EQ(store_->PinJob("nobody", true).code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(store_->GetJob("j-2")->pinned && store_->FindSubmission("joined")->pinned);
  EXPECT_FALSE(store_->GetJob("j-1")->pinned);
  EXPECT_EQ(store_->ExpireOldestJobs(1)->jobs, 1) << "j-3";
  EXPECT_TRUE(store_->GetJob("j-1").ok());
  EXPECT_EQ(store_->ExpireRows({1000, 0, 0}, 10)->jobs, 1) << "j-1";
  EXPECT_EQ(store_->ExpireOldestJobs(10)->jobs, 0);
  ASSERT_TRUE(store_->PinJob("j-2", false).ok());
  EXPECT_EQ(store_->ExpireRows({1000, 0, 0}, 10)->jobs, 1);
  EXPECT_TRUE(store_->GetJob("j-4").ok() && store_->GetJob("runs").ok());
}

TEST_P(StoreConformance, AnAnswerGoesWithTheLastJobOfItsKey) {
  const std::string key(64, 'k');
  for (const char* id : {"first", "again"}) {
    JobRow job = MakeJob(id, key);
    ASSERT_TRUE(store_->InsertJob(job, "e").ok());
    job.state = JobPhase::kSucceeded, job.finished_ms = id[0] == 'f' ? 1 : 2;
    ASSERT_TRUE(store_->FinishJob(job, "e", ResultRow{key, "b", 1, "a", 1}).ok());
  }
  EXPECT_EQ(store_->ExpireOldestJobs(1)->results, 0);
  EXPECT_TRUE(store_->FindResult(key)->has_value());
  EXPECT_EQ(store_->ExpireOldestJobs(1)->results, 1);
  EXPECT_FALSE(store_->FindResult(key)->has_value());
}

TEST_P(StoreConformance, TheBlobsOfAModelAreThoseOfAllItsJobs) {
  const std::string model(64, 'a'), one(64, '1'), two(64, '2');
  for (const char* id : {"j-1", "j-2"}) {
    JobRow job = MakeJob(id, id);
    job.model = model, job.model_blobs = {one, two, one};
    ASSERT_TRUE(store_->InsertJob(job, "e").ok());
    job.state = JobPhase::kFailed, job.finished_ms = id[2];
    ASSERT_TRUE(store_->FinishJob(job, "e", std::nullopt).ok());
  }
  ASSERT_TRUE(store_->InsertJob(MakeJob("unnamed", "k"), "e").ok());
  const auto named = [&] {
    std::vector<std::string> digests;
    EXPECT_TRUE(store_
                    ->ScanReferences(
                        [&](const Reference& reference) {
                          EXPECT_EQ(reference.kind, ReferenceKind::kModel);
                          EXPECT_THAT(reference.owner, ::testing::StartsWith("j-"));
                          digests.push_back(reference.digest);
                        },
                        [&](const std::string& id, const std::string&) { EXPECT_EQ(id, "unnamed"); })
                    .ok());
    return digests;
  };
  EXPECT_THAT(named(), ::testing::UnorderedElementsAre(one, two));
  ASSERT_EQ(store_->ExpireOldestJobs(1)->jobs, 1);
  EXPECT_THAT(named(), ::testing::UnorderedElementsAre(one, two));
  ASSERT_EQ(store_->ExpireOldestJobs(1)->jobs, 1);
  EXPECT_TRUE(named().empty());
}

TEST_P(StoreConformance, EveryRowThatNeedsABlobSaysSo) {
  const std::string key(64, 'k');
  ASSERT_TRUE(store_->InsertJob(MakeJob("j", key), "e").ok());
  JobRow job = store_->GetJob("j").value();
  job.state = JobPhase::kSucceeded, job.finished_ms = 1, job.bundle_digest = "bundle";
  ASSERT_TRUE(store_->FinishJob(job, "e", ResultRow{key, "stored", 3, "acc", 1}).ok());
  ASSERT_TRUE(AddRows({.builds = {BuildRow{key, "binary", 1}}}).ok());
  TaskRow queued;  // its payload is no blob
  queued.id = queued.key = "queued", queued.payload_digest = "payload";
  ASSERT_THAT(Call({QueueTask{queued}}), ::testing::ElementsAre(0));
  std::vector<std::string> found;
  ASSERT_TRUE(store_
                  ->ScanReferences(
                      [&](const Reference& reference) { found.push_back(reference.digest); },
                      [&](const std::string& id, const std::string& request) { found.push_back(id + ":" + request); })
                  .ok());
  EXPECT_THAT(found, ::testing::UnorderedElementsAre("bundle", "stored", "binary", "j:" + std::string("\0bin", 4)));
}

}  // namespace
}  // namespace fusion
