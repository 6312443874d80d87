#include "client/verbs/top_frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace fusion {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::Job* AddJob(FarmPicture* picture, const std::string& id, v1::JobState state) {
  v1::Job* job = picture->jobs.add_jobs();
  job->set_job_id(id);
  job->set_state(state);
  job->set_model_name("model of " + id);
  job->set_target("cpu");
  job->set_created_ms(1000);
  return job;
}

TEST(TopFrameTest, AFarmWithoutAnything) {
  const std::string frame = TopFrame({"unix:/s.sock", {}, {}, {}, 5000}, 3);
  EXPECT_THAT(frame, HasSubstr("unix:/s.sock   no workers   no jobs in flight"));
  EXPECT_EQ(std::count(frame.begin(), frame.end(), '\n'), 1);
}

TEST(TopFrameTest, JobsInFlightComeFirstAndOfTheOthersTheNewest) {
  FarmPicture picture;
  picture.now_ms = 61000;
  for (const char* state : {"idle", "busy", "busy"}) {
    v1::WorkerStatus* worker = picture.workers.add_workers();
    worker->mutable_info()->set_name("rack7");
    worker->set_state(state);
  }
  AddJob(&picture, "newest", v1::SUCCEEDED)->set_finished_ms(3000);
  v1::Job* running = AddJob(&picture, "runs", v1::RUNNING);
  running->set_started_ms(1000);
  v1::JobEvent& event = picture.last_event["runs"];
  event.set_stage("tune");
  event.set_done(3);
  event.set_total(8);
  event.set_message("a name with \x1b[2J in it");
  AddJob(&picture, "older", v1::FAILED)->mutable_error()->set_message("no such operator");
  AddJob(&picture, "oldest", v1::SUCCEEDED);
  AddJob(&picture, "waits", v1::QUEUED);
  const std::string frame = TopFrame(picture, 2);
  EXPECT_THAT(frame, HasSubstr("3 workers: 2 busy, 1 idle   2 jobs: 1 queued, 1 running in flight"));
  EXPECT_LT(frame.find("waits"), frame.find("runs"));
  EXPECT_LT(frame.find("runs"), frame.find("newest"));
  EXPECT_THAT(frame, Not(HasSubstr("oldest")));
  EXPECT_THAT(frame, HasSubstr("1m00s"));
  EXPECT_THAT(frame, HasSubstr("tune 3/8  a name with ?[2J in it"));
  EXPECT_THAT(frame, HasSubstr("no such operator"));
}

}  // namespace
}  // namespace fusion
