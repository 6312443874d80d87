#include "runtime/base/write_all.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

namespace fusion {
namespace {

TEST(WriteAll, WritesEveryByte) {
  const std::string path = testing::TempDir() + "write_all", bytes = std::string(100'000, 'x') + std::string(1, '\0');
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ASSERT_GE(fd, 0);
  EXPECT_TRUE(WriteAll(fd, bytes, "cannot").ok());
  EXPECT_TRUE(WriteAll(fd, "", "cannot").ok());
  close(fd);
  std::ifstream file(path, std::ios::binary);
  EXPECT_EQ(std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>()), bytes);
}

TEST(WriteAll, SaysWhatCannotBeWritten) {
  const int full = open("/dev/full", O_WRONLY);
  ASSERT_GE(full, 0);
  EXPECT_EQ(WriteAll(full, "x", "cannot write it"),
            absl::ResourceExhaustedError("cannot write it: No space left on device"));
  close(full);
}

}  // namespace
}  // namespace fusion
