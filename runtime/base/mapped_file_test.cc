#include "runtime/base/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "runtime/base/atomic_file.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

class MappedFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "/mapped_file_test_" + std::to_string(getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string folder_;
};

TEST_F(MappedFileTest, OpenNamesThePath) {
  EXPECT_EQ(MappedFile::Open(folder_ + "/none").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(MappedFile::Open(folder_).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(AtomicFile::Create(folder_ + "/missing/file").ok());
}

TEST_F(MappedFileTest, OutlivesItsName) {
  const std::string path = folder_ + "/a";
  ASSERT_TRUE(WriteFileAtomically(path, "bytes").ok());
  const auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  std::filesystem::remove(path);
  EXPECT_EQ((*file)->bytes(), "bytes");
}

TEST_F(MappedFileTest, ACopyBeginsAtAPage) {
  const std::string bytes(10000, 'a');
  const auto file = MappedFile::FromBytes(bytes);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->bytes(), bytes);
  EXPECT_NE((*file)->bytes().data(), bytes.data());
  EXPECT_EQ(reinterpret_cast<uintptr_t>((*file)->bytes().data()) % static_cast<uintptr_t>(getpagesize()), 0u);
}

}  // namespace
}  // namespace fusion
