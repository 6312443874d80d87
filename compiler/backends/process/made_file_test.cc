#include "compiler/backends/process/made_file.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace fusion {
namespace {

class MadeFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ + "/secret") << "a token";
  }
  ~MadeFile() override { std::filesystem::remove_all(folder_); }
  absl::StatusCode CodeOf(const std::string& name) { return ReadMadeFile(folder_ + "/" + name, 100).status().code(); }

  const std::string folder_ = absl::StrCat(testing::TempDir(), "/made-file-", getpid());
};

TEST_F(MadeFile, PlainFilesAreRead) {
  const std::string bytes("a\0b\n", 4);
  std::ofstream(folder_ + "/binary", std::ios::binary) << bytes;
  EXPECT_EQ(ReadMadeFile(folder_ + "/binary", 4).value_or("-"), bytes);
  EXPECT_EQ(ReadMadeFile(folder_ + "/binary", 3).status().code(), absl::StatusCode::kInvalidArgument);
  std::ofstream(folder_ + "/empty");
  EXPECT_EQ(ReadMadeFile(folder_ + "/empty", 3).value_or("-"), "");
}

TEST_F(MadeFile, NothingElseIs) {
  EXPECT_EQ(CodeOf("none"), absl::StatusCode::kNotFound);
  std::filesystem::create_symlink(folder_ + "/secret", folder_ + "/symlink");
  EXPECT_EQ(CodeOf("symlink"), absl::StatusCode::kInvalidArgument);
  std::filesystem::create_symlink("nowhere", folder_ + "/dangling");
  EXPECT_EQ(CodeOf("dangling"), absl::StatusCode::kInvalidArgument);
  std::filesystem::create_hard_link(folder_ + "/secret", folder_ + "/second");
  EXPECT_EQ(CodeOf("second"), absl::StatusCode::kInvalidArgument);
  std::filesystem::create_directory(folder_ + "/folder");
  EXPECT_EQ(CodeOf("folder"), absl::StatusCode::kInvalidArgument);
  ASSERT_EQ(mkfifo((folder_ + "/pipe").c_str(), 0600), 0);
  EXPECT_EQ(CodeOf("pipe"), absl::StatusCode::kInvalidArgument) << "and does not wait for a writer";
  const int socket_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, (folder_ + "/socket").c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(bind(socket_fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(CodeOf("socket"), absl::StatusCode::kInvalidArgument);
  close(socket_fd);
}

}  // namespace
}  // namespace fusion
