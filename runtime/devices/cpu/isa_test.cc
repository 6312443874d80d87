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

TEST(IsaTest, TheHostsInstructionSetIsTheOneThatBundlesName) {
  const absl::StatusOr<InstructionSet> set = HostInstructionSet();
  ASSERT_EQ(set.ok(), !HostIsa().empty());
  if (!set.ok()) GTEST_SKIP() << set.status();
  EXPECT_EQ(set->isa, HostIsa());
  EXPECT_EQ(set->vector_bytes, set->isa.rfind("avx512", 0) == 0 ? 64 : set->isa == "avx2" ? 32 : 16);
  EXPECT_FALSE(set->march.empty());
}

}  // namespace
}  // namespace fusion
