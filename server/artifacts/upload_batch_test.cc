#include "server/artifacts/upload_batch.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/sha256.h"
#include "server/testing/temporary_state.h"

namespace fusion {
namespace {

class UploadBatchTest : public ::testing::Test {
 protected:
  std::unique_ptr<ArtifactStore::Upload> Sealed(const std::string& bytes) {
    auto upload = state_.artifacts().Begin();
    EXPECT_TRUE(upload.ok()) << upload.status();
    EXPECT_TRUE((*upload)->Append(bytes).ok());
    EXPECT_TRUE((*upload)->Seal("").ok());
    return std::move(upload).value();
  }
  bool Has(const std::string& bytes) { return state_.artifacts().Get(Sha256Hex(bytes)).ok(); }

  testing::TemporaryState state_;
};

TEST_F(UploadBatchTest, AllAreThereOnceItIsFinished) {
  UploadBatch batch(&state_.artifacts());
  // More than may wait at the same time.
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(batch.Add(Sealed(absl::StrCat("blob ", i))).ok());
  const absl::Status finished = batch.Finish();
  ASSERT_TRUE(finished.ok()) << finished;
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(Has(absl::StrCat("blob ", i))) << i;
}

TEST_F(UploadBatchTest, DestroyingItInstallsWhatWasAdded) {
  {
    UploadBatch batch(&state_.artifacts());
    ASSERT_TRUE(batch.Add(Sealed("a blob")).ok());
  }
  EXPECT_TRUE(Has("a blob"));
  UploadBatch empty(&state_.artifacts());
  EXPECT_TRUE(empty.Finish().ok());
}

TEST_F(UploadBatchTest, AnErrorIsToldByEachLaterCallAndNobodyWaitsForever) {
  UploadBatch batch(&state_.artifacts());
  std::unique_ptr<ArtifactStore::Upload> lost = Sealed("lost");
  std::filesystem::remove_all(state_.folder() + "/blobs");  // a file can no longer get its name
  std::filesystem::create_directories(state_.folder() + "/blobs/tmp");
  EXPECT_TRUE(batch.Add(std::move(lost)).ok()) << "the error comes later";
  absl::Status status;
  for (int i = 0; i < 1000 && status.ok(); ++i) status = batch.Add(Sealed(absl::StrCat("blob ", i)));
  const absl::Status finished = batch.Finish();
  EXPECT_FALSE(finished.ok());
  if (!status.ok()) EXPECT_EQ(finished, status);
  EXPECT_FALSE(Has("lost"));
}

}  // namespace
}  // namespace fusion
