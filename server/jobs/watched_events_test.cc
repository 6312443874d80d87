#include "server/jobs/watched_events.h"

#include <gtest/gtest.h>

#include "server/testing/forwarding_store.h"
#include "server/testing/temporary_state.h"

namespace fusion {
namespace {

// A store in which the job ends in the moment between two reads.
struct EndsMeanwhile : testing::ForwardingStore {
  using ForwardingStore::ForwardingStore;
  absl::StatusOr<JobRow> FindSubmission(const std::string& id) override {
    if (running.has_value()) {
      running->state = JobPhase::kSucceeded;
      EXPECT_TRUE(ForwardingStore::FinishJob(*running, "last", std::nullopt).ok());
      running.reset();
    }
    return ForwardingStore::FindSubmission(id);
  }
  std::optional<JobRow> running;
};

TEST(ReadWatched, AJobThatEndsMeanwhileHasItsLastEvent) {
  testing::TemporaryState state;
  EndsMeanwhile store(&state.store());
  JobRow job;
  job.id = job.key = "j";
  job.created_ms = 1;
  ASSERT_TRUE(store.InsertJob(job, "first").ok());
  const auto claimed = store.ClaimJob("j", "me", absl::Minutes(1), 2);
  ASSERT_TRUE(claimed.ok() && claimed->has_value()) << claimed.status();

  const auto before = ReadWatched(&store, "j", "j", 0, 64);
  ASSERT_TRUE(before.ok()) << before.status();
  ASSERT_EQ(before->events.size(), 1u);
  EXPECT_FALSE(IsFinal(before->job.state));

  store.running = **claimed;
  const auto at_the_end = ReadWatched(&store, "j", "j", before->events.back().seq, 64);
  ASSERT_TRUE(at_the_end.ok()) << at_the_end.status();
  EXPECT_TRUE(IsFinal(at_the_end->job.state));
  ASSERT_EQ(at_the_end->events.size(), 1u) << "the watch would end without it";
  EXPECT_EQ(at_the_end->events[0].event, "last");

  const auto behind = ReadWatched(&store, "j", "j", at_the_end->events.back().seq, 64);
  ASSERT_TRUE(behind.ok()) << behind.status();
  EXPECT_TRUE(behind->events.empty());
  EXPECT_FALSE(ReadWatched(&store, "j", "nobody's", 0, 64).ok());
}

}  // namespace
}  // namespace fusion
