#include "runtime/devices/cpu/isa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fusion {
namespace {

TEST(IsaTest, RefusesWhatTheHostLacks) {
  EXPECT_TRUE(HostIsa().empty() || CheckIsa(HostIsa()).ok());
  const absl::Status status = CheckIsa("avx1024");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("need 'avx1024', this CPU has " + HostIsa()));
}

}  // namespace
}  // namespace fusion
