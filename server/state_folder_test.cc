#include "server/state_folder.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace {
int64_t g_file_system = 0;  // what statfs says; 0: the truth
}  // namespace

// It stands before the C library's: no test machine has a network file system mounted.
extern "C" int statfs(const char* path, struct statfs* found) noexcept {
  const auto result = static_cast<int>(syscall(SYS_statfs, path, found));
  if (result == 0 && g_file_system != 0) found->f_type = static_cast<decltype(found->f_type)>(g_file_system);
  return result;
}

namespace fusion {
namespace {

using testing::HasSubstr;

class StateFolderTest : public testing::Test {
 protected:
  StateFolderTest() : folder_(absl::StrCat("/tmp/fusion-folder-test-", getpid())) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ + "/inner");
    Mode("", 0755);
    Mode("/inner", 0755);
  }
  ~StateFolderTest() override { std::filesystem::remove_all(folder_); }
  void Mode(const std::string& below, mode_t mode) { ASSERT_EQ(chmod((folder_ + below).c_str(), mode), 0); }
  absl::Status Check(const std::string& below) { return CheckSocketIsPrivate("unix:" + folder_ + below); }

  const std::string folder_;
};

TEST_F(StateFolderTest, ASocketThatOthersReachIsRefused) {
  const absl::Status open = Check("/inner/s");
  EXPECT_EQ(open.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(open.message(), HasSubstr(absl::StrCat("chmod 700 ", folder_, "/inner")));
  for (const mode_t mode : {0710, 0701, 0770, 0711, 01777}) {
    Mode("/inner", mode);
    EXPECT_FALSE(Check("/inner/s").ok()) << mode;
  }
  Mode("/inner", 0700);
  EXPECT_TRUE(Check("/inner/s").ok());
  Mode("/inner", 0755);
  Mode("", 0700);
  EXPECT_TRUE(Check("/inner/s").ok()) << "nobody comes as far as the inner folder";
  EXPECT_TRUE(Check("/s").ok());
}

TEST_F(StateFolderTest, ALinkIsJudgedByWhereItLeads) {
  std::filesystem::create_directories(folder_ + "/closed");
  Mode("/closed", 0700);
  std::filesystem::create_directory_symlink(folder_ + "/inner", folder_ + "/closed/link");
  EXPECT_FALSE(Check("/closed/link/s").ok());
  EXPECT_FALSE(Check("/closed/../s").ok());
  EXPECT_EQ(Check("/missing/s").code(), absl::StatusCode::kNotFound);
}

TEST_F(StateFolderTest, NetworkFileSystemsAreKnownByTheirTypes) {
  EXPECT_EQ(NetworkFileSystem(0x6969), "NFS");
  EXPECT_EQ(NetworkFileSystem(static_cast<int64_t>(0xff534d42)), "CIFS");
  EXPECT_EQ(NetworkFileSystem(static_cast<int32_t>(0xfe534d42)), "SMB2") << "f_type is signed on some machines";
  EXPECT_EQ(NetworkFileSystem(0xc36400), "Ceph");
  // ext4, XFS, Btrfs, tmpfs, overlay
  for (const int64_t local : std::initializer_list<int64_t>{0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x794c7630}) {
    EXPECT_EQ(NetworkFileSystem(local), "") << local;
  }
  EXPECT_TRUE(StateFolderLock::Take(folder_ + "/state").ok());
}

TEST_F(StateFolderTest, AFolderOnANetworkFileSystemIsRefusedUnlessThatIsAllowed) {
  g_file_system = 0x6969;
  const absl::Status refused = StateFolderLock::Take(folder_ + "/state").status();
  const bool allowed = StateFolderLock::Take(folder_ + "/state", /*allow_network_fs=*/true).ok();
  g_file_system = 0;
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.message(), HasSubstr("lies on a network file system (NFS)"));
  EXPECT_TRUE(allowed);
}

}  // namespace
}  // namespace fusion
