// The blobs that a sweep takes and leaves, and those that are damaged.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "db/stores/store.h"
#include "runtime/base/sha256.h"
#include "server/artifacts/artifact_store.h"
#include "server/testing/temporary_state.h"

namespace fusion {
namespace {

constexpr absl::Duration kNoGrace = absl::ZeroDuration();

class ArtifactSweepTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto artifacts = ArtifactStore::Open(state_.folder() + "/swept", &state_.store(), [this] { return now_; });
    ASSERT_TRUE(artifacts.ok()) << artifacts.status();
    artifacts_ = *std::move(artifacts);
  }
  std::string Put(const std::string& bytes) { return artifacts_->Put(bytes)->digest; }
  std::string PathOf(const std::string& digest) {
    return absl::StrCat(state_.folder(), "/swept/", digest.substr(0, 2), "/", digest);
  }
  // Without live blobs.
  ArtifactStore::Swept SweepAll(absl::Duration grace) {
    const auto swept = artifacts_->Sweep([](const std::string&) { return false; }, grace);
    EXPECT_TRUE(swept.ok()) << swept.status();
    return swept.value();
  }
  void MakeOld(const std::string& path) {
    std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(48));
  }

  testing::TemporaryState state_;
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1000);
  std::unique_ptr<ArtifactStore> artifacts_;
};

TEST_F(ArtifactSweepTest, TakesWhatNobodyNeedsAndLeavesTheRest) {
  const std::string kept = Put("kept"), gone = Put("gone");
  now_ += absl::Seconds(1);
  const auto swept = artifacts_->Sweep([&](const std::string& digest) { return digest == kept; }, kNoGrace);
  ASSERT_TRUE(swept.ok()) << swept.status();
  EXPECT_EQ(swept->blobs, 1);
  EXPECT_EQ(swept->bytes, 4);
  EXPECT_EQ(*artifacts_->Get(kept), "kept");
  EXPECT_EQ(artifacts_->SizeBytes(gone).status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(PathOf(gone)));
  EXPECT_EQ(Put("gone"), gone) << "it can come again";
  EXPECT_EQ(*artifacts_->Get(gone), "gone");
}

TEST_F(ArtifactSweepTest, WhoHasJustSeenABlobMayStillReferToIt) {
  // Rows from before a restart: what tells that they were touched is memory alone.
  const std::string asked = Put("asked"), read = Put("read"), listed = Put("listed"), old = Put("old");
  now_ += absl::Hours(2);
  const absl::Duration grace = absl::Hours(1);
  EXPECT_TRUE(artifacts_->SizeBytes(asked).ok());
  EXPECT_TRUE(artifacts_->Get(read).ok());
  EXPECT_TRUE(artifacts_->Missing({listed})->empty());
  // The rows are young by the wall clock, so nothing goes with a grace; then they are not.
  EXPECT_EQ(SweepAll(grace).blobs, 0);
  ASSERT_TRUE(state_.store().RemoveBlobs({asked, read, listed, old}).ok());
  const int64_t long_ago = absl::ToUnixMillis(absl::Now() - absl::Hours(48));
  ASSERT_TRUE(state_.store()
                  .PutBlobs({{asked, 5, long_ago}, {read, 4, long_ago}, {listed, 6, long_ago}, {old, 3, long_ago}})
                  .ok());
  EXPECT_EQ(SweepAll(grace).blobs, 1);
  EXPECT_FALSE(std::filesystem::exists(PathOf(old)));
  now_ += absl::Hours(2);
  EXPECT_EQ(SweepAll(grace).blobs, 3) << "nobody referred to them";
}

TEST_F(ArtifactSweepTest, FilesWithoutARowGoWhenTheyAreOld) {
  const std::string digest = Sha256Hex("stray"), other = Sha256Hex("young");
  for (const std::string& one : {digest, other}) {
    std::filesystem::create_directories(std::filesystem::path(PathOf(one)).parent_path());
    std::ofstream(PathOf(one)) << "stray";
  }
  std::ofstream(state_.folder() + "/swept/tmp/upload-abc") << "being written";
  MakeOld(PathOf(digest));
  EXPECT_EQ(SweepAll(absl::Hours(1)).strays, 1);
  EXPECT_FALSE(std::filesystem::exists(PathOf(digest)));
  EXPECT_TRUE(std::filesystem::exists(PathOf(other))) << "its row may be on its way";
  EXPECT_TRUE(std::filesystem::exists(state_.folder() + "/swept/tmp/upload-abc"));
}

TEST_F(ArtifactSweepTest, ADamagedBlobIsFoundWhenItIsReadAndCanBeSetAside) {
  const std::string digest = Put("some bytes"), missing = Put("other bytes"), good = Put("good");
  std::ofstream(PathOf(digest), std::ios::in) << "S";
  std::filesystem::remove(PathOf(missing));
  EXPECT_EQ(artifacts_->Get(digest).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(*artifacts_->Examine(digest), ArtifactStore::Condition::kDamaged);
  EXPECT_EQ(*artifacts_->Examine(missing), ArtifactStore::Condition::kMissing);
  EXPECT_EQ(*artifacts_->Examine(good), ArtifactStore::Condition::kGood);
  ASSERT_TRUE(artifacts_->SetAside(digest).ok());
  EXPECT_EQ(artifacts_->SizeBytes(digest).status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(std::filesystem::exists(state_.folder() + "/swept/damaged/" + digest));
  EXPECT_EQ(Put("some bytes"), digest);
  EXPECT_EQ(*artifacts_->Get(digest), "some bytes");
  std::filesystem::resize_file(PathOf(digest), 3);
  EXPECT_EQ(*artifacts_->Examine(digest), ArtifactStore::Condition::kDamaged) << "cut";
}

TEST_F(ArtifactSweepTest, ACopyIsHeldToItsDigest) {
  const std::string digest = Put("some bytes");
  const std::string folder = state_.folder() + "/copy";
  ASSERT_TRUE(artifacts_->CopyTo(digest, folder).ok());
  std::string text;
  std::ifstream(absl::StrCat(folder, "/", digest.substr(0, 2), "/", digest)) >> text;
  EXPECT_EQ(text, "some");
  std::ofstream(PathOf(digest), std::ios::in) << "S";
  EXPECT_EQ(artifacts_->CopyTo(digest, folder).code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace fusion
