#include "server/compile_process/process_limits.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace fusion {
namespace {

void Allocate(size_t blocks, size_t block_bytes) {
  if (!LimitMemory(256 << 20).ok()) _exit(1);
  for (size_t taken = 0; taken < blocks; ++taken) {
    volatile char* block = new char[block_bytes];
    for (size_t i = 0; i < block_bytes; i += 4096) block[i] = 1;
  }
  _exit(0);
}

TEST(ProcessLimitsDeathTest, MemoryBeyondTheLimitEndsTheProcess) {
  EXPECT_EXIT(Allocate(8, 16 << 20), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(Allocate(64, 16 << 20), ::testing::ExitedWithCode(kExitOutOfMemory), "at the limit of memory");
  EXPECT_EXIT(Allocate(1, size_t{30} << 30), ::testing::ExitedWithCode(kExitOutOfMemory), "at the limit of memory");
}

void TieAndTell() {
  struct rlimit core = {1, 1};
  const bool tied = TieToParent(getppid()).ok() && getrlimit(RLIMIT_CORE, &core) == 0;
  _exit(tied && core.rlim_max == 0 && prctl(PR_GET_DUMPABLE) == 0 ? 0 : 1);
}

TEST(ProcessLimitsDeathTest, ATiedProcessDumpsNoCoreAndRefusesAnotherParent) {
  EXPECT_EXIT(TieAndTell(), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(_exit(TieToParent(getppid() + 1).code() == absl::StatusCode::kUnavailable ? 0 : 1),
              ::testing::ExitedWithCode(0), "");
}

TEST(ProcessLimits, TheDefaultIsSharedAmongCompilations) {
  EXPECT_GE(DefaultMemoryLimit(1), DefaultMemoryLimit(2));
  EXPECT_GE(DefaultMemoryLimit(1 << 20), int64_t{1} << 30);
  EXPECT_LE(DefaultMemoryLimit(1), int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE));
}

}  // namespace
}  // namespace fusion
