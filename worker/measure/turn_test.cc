#include "worker/measure/turn.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>

namespace fusion {
namespace {

class TurnTest : public testing::Test {
 protected:
  TurnTest() : folder_(testing::TempDir() + "turn-" + std::to_string(getpid())), file_(folder_ + "/deeper/turn") {}
  ~TurnTest() override { std::filesystem::remove_all(folder_); }
  const std::string folder_, file_;
};

TEST_F(TurnTest, OneAfterAnother) {
  std::optional<Turn> first(Turn::Take(file_, nullptr));
  EXPECT_FALSE(first->cancelled());
  int asked = 0;
  EXPECT_TRUE(Turn::Take(file_, [&] { return ++asked == 3; }).cancelled()) << "the first has it";
  EXPECT_EQ(asked, 3);
  first.reset();
  EXPECT_FALSE(Turn::Take(file_, [] { return true; }).cancelled()) << "nobody has it";
}

TEST_F(TurnTest, EndsWithTheProcessThatHasIt) {
  const pid_t child = fork();
  if (child == 0) {
    const Turn turn = Turn::Take(file_, nullptr);
    _exit(turn.cancelled() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(Turn::Take(file_, [] { return true; }).cancelled());
}

TEST_F(TurnTest, WithoutAFileThereIsNothingToWaitFor) {
  EXPECT_FALSE(Turn::Take("", nullptr).cancelled());
  EXPECT_FALSE(Turn::Take("/proc/no/such/folder/turn", nullptr).cancelled());
}

}  // namespace
}  // namespace fusion
