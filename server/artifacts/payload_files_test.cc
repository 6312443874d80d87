#include "server/artifacts/payload_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

class PayloadFilesTest : public ::testing::Test {
 protected:
  PayloadFilesTest() { std::filesystem::remove_all(folder_); }
  ~PayloadFilesTest() override { std::filesystem::remove_all(folder_); }
  static std::string Read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  int FilesThere() { return static_cast<int>(std::distance(std::filesystem::directory_iterator(folder_), {})); }
  const std::string folder_ = absl::StrCat(::testing::TempDir(), "payloads_", getpid());
};

TEST_F(PayloadFilesTest, AFileStaysUntilItsLastUserDropsIt) {
  auto files = PayloadFiles::Open(folder_).value();
  const std::string digest = files->Put("bytes").value();
  EXPECT_EQ(files->Put("bytes").value(), digest);
  EXPECT_EQ(files->Find(digest)->size_bytes, 5);
  EXPECT_EQ(Read(files->Find(digest)->path), "bytes");
  files->Drop(digest);
  EXPECT_TRUE(files->Find(digest).has_value());
  files->Drop(digest);
  EXPECT_FALSE(files->Find(digest).has_value());
  files->Drop(digest);  // of nobody
  EXPECT_EQ(FilesThere(), 0);
}

TEST_F(PayloadFilesTest, ADamagedFileIsWrittenAgain) {
  auto files = PayloadFiles::Open(folder_).value();
  const std::string digest = files->Put("bytes").value();
  std::ofstream(files->Find(digest)->path) << "X";
  EXPECT_EQ(files->Put("bytes").value(), digest);
  EXPECT_EQ(Read(files->Find(digest)->path), "bytes");
}

TEST_F(PayloadFilesTest, AfterARestartOnlyFilesWithAUserStay) {
  std::string kept, other;
  {
    auto files = PayloadFiles::Open(folder_).value();
    kept = files->Put("kept").value(), other = files->Put("other").value();
    std::ofstream(folder_ + "/part-123456") << "unfinished";
  }
  auto files = PayloadFiles::Open(folder_).value();
  EXPECT_EQ(Read(files->Find(other)->path), "other") << "nothing is removed before it is known who needs what";
  files->KeepOnly({kept, kept, "unknown"});
  EXPECT_EQ(FilesThere(), 1);
  files->Drop(kept);
  EXPECT_EQ(FilesThere(), 1) << "two tasks have it";
  files->Drop(kept);
  EXPECT_EQ(FilesThere(), 0);
}

TEST_F(PayloadFilesTest, WhatCannotBeWrittenLeavesNothing) {
  auto files = PayloadFiles::Open(folder_).value();
  std::filesystem::remove_all(folder_);
  EXPECT_FALSE(files->Put("bytes").ok());
  EXPECT_FALSE(std::filesystem::exists(folder_));
}

}  // namespace
}  // namespace fusion
