#include "worker/build/build_files.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace fusion {
namespace {

TEST(BuildFiles, AFileIsWrittenOnce) {
  const std::string path = testing::TempDir() + "/build_files_test";
  std::filesystem::remove(path);
  const std::string bytes("a\0b", 3);
  ASSERT_TRUE(WriteBuildFile(path, bytes).ok());
  std::ifstream file(path, std::ios::binary);
  EXPECT_EQ(std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>()), bytes);
  EXPECT_FALSE(WriteBuildFile(path, "more").ok());
  EXPECT_FALSE(WriteBuildFile(path + "/below", "").ok());
  std::filesystem::remove(path);
}

TEST(BuildFiles, ErrorsOfUnitsAndOfTheDiskArePassedOn) {
  for (const absl::Status& status :
       {absl::InternalError("line 1: error\nline 2"), absl::InvalidArgumentError("no sm_12"),
        absl::ResourceExhaustedError("disk"), absl::InternalError("")}) {
    EXPECT_EQ(BuildErrorOf(BuildErrorText(status)), status);
  }
}

// UNAVAILABLE would blame the worker, CANCELLED would hide the failure, and OK would be none.
TEST(BuildFiles, AnythingElseIsTheTasksFault) {
  for (const absl::Status& status : {absl::OkStatus(), absl::UnavailableError("x"), absl::CancelledError("x"),
                                     absl::DeadlineExceededError("x"), absl::PermissionDeniedError("x")}) {
    EXPECT_EQ(BuildErrorOf(BuildErrorText(status)).code(), absl::StatusCode::kInternal) << status;
  }
  for (const char* text : {"", "\n", "13", "x\nwords", "99999999999999\nwords", "-1\nwords", "7777\nwords"}) {
    EXPECT_EQ(BuildErrorOf(text).code(), absl::StatusCode::kInternal) << text;
  }
}

}  // namespace
}  // namespace fusion
