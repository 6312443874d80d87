#include "worker/worker.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion {
namespace {

TEST(Worker, WithoutTheProgramThatTimesItRefusesToOfferADevice) {
  WorkerOptions options;
  options.server.address = "127.0.0.1:1";
  options.kinds = {"cpu"};
  options.measure_program = "/no/such/fusion-measure";
  const absl::Status status = Worker::Create(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), testing::HasSubstr("no program '/no/such/fusion-measure' to time kernels of 'cpu'"));
}

}  // namespace
}  // namespace fusion
