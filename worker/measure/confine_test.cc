#include "worker/measure/confine.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>

#include "gtest/gtest.h"

namespace fusion {
namespace {

void* Map(size_t bytes, int protection) {
  return mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

// In a process of its own, because limits cannot be lifted again. The exit code says what went wrong.
[[noreturn]] void UseMemory() {
  LimitResources();
  // CUDA's driver does this when it starts: it reserves addresses for the memory of every device, and of the host.
  if (Map(size_t{512} << 30, PROT_NONE) == MAP_FAILED) _exit(1);
  LimitResources(int64_t{256} << 20);
  if (Map(size_t{64} << 30, PROT_NONE) == MAP_FAILED) _exit(2);
  if (Map(size_t{64} << 20, PROT_READ | PROT_WRITE) == MAP_FAILED) _exit(3);
  if (Map(size_t{512} << 20, PROT_READ | PROT_WRITE) != MAP_FAILED) _exit(4);
  _exit(0);
}

TEST(ConfineDeathTest, AddressSpaceMayBeReservedAndMemoryIsLimited) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(UseMemory(), testing::ExitedWithCode(0), "");
}

// CUDA's driver does not start where it may not name its threads.
[[noreturn]] void NameAThread() {
  if (!Confine("cuda", {}).ok()) _exit(1);
  std::atomic<int> number = 0, done = 0;
  std::thread other([&] {
    number = gettid();
    number.notify_one();
    done.wait(0);
  });
  number.wait(0);
  const std::string path = "/proc/self/task/" + std::to_string(number) + "/comm";
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  const bool named = fd >= 0 && write(fd, "named", 5) == 5;
  const bool of_another = open(("/proc/" + std::to_string(getppid()) + "/comm").c_str(), O_WRONLY) >= 0;
  done = 1;
  done.notify_one();
  other.join();
  _exit(!named ? 2 : of_another ? 3 : 0);
}

TEST(ConfineDeathTest, ADriverNamesItsOwnThreads) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(NameAThread(), testing::ExitedWithCode(0), "");
}

TEST(ConfineDeathTest, AnUnknownKindIsRefused) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(_exit(Confine("abacus", {}).code() == absl::StatusCode::kInvalidArgument ? 0 : 1),
              testing::ExitedWithCode(0), "");
  EXPECT_EXIT(_exit(ConfineBuild("abacus", "/tmp").code() == absl::StatusCode::kInvalidArgument ? 0 : 1),
              testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace fusion
