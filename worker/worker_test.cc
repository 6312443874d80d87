#include "worker/worker.h"

#include "compiler/backends/confinement/confinement.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion {
namespace {

TEST(Worker, WithoutTheProgramThatTimesItRefusesToOfferADevice) {
  WorkerOptions options;
  options.server.address = "127.0.0.1:1";
  options.kinds = {"cpu"};
  options.measure_program = "/no/such/fusion-measure";
  options.unconfined = true;
  const absl::Status status = Worker::Create(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), testing::HasSubstr("no program '/no/such/fusion-measure' to time kernels of 'cpu'"));
}

TEST(Worker, WithoutTheProgramThatConfinesCompilersItBuildsNothing) {
  if (const absl::Status can = CheckConfinement(); !can.ok()) GTEST_SKIP() << can;
  WorkerOptions options;
  options.server.address = "127.0.0.1:1";
  options.kinds = {};
  const absl::Status status = Worker::Create(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), testing::HasSubstr("no program fusion-confine beside this one"));
}

}  // namespace
}  // namespace fusion
