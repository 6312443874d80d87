#include "server/artifacts/artifact_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/sha256.h"
#include "server/testing/temporary_state.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ArtifactStoreTest : public ::testing::Test {
 protected:
  std::string PathOf(const std::string& digest) {
    return absl::StrCat(state_.folder(), "/blobs/", digest.substr(0, 2), "/", digest);
  }
  int FilesInTmp() {
    const std::filesystem::directory_iterator files(state_.folder() + "/blobs/tmp");
    return static_cast<int>(std::distance(begin(files), end(files)));
  }
  std::string FileWith(const std::string& bytes) {
    const std::string path = state_.folder() + "/file";
    std::ofstream(path) << bytes;
    return path;
  }

  testing::TemporaryState state_;
  ArtifactStore& artifacts_ = state_.artifacts();
};

TEST_F(ArtifactStoreTest, WhatIsPutIsFoundByItsDigest) {
  const auto artifact = artifacts_.Put("some bytes");
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  EXPECT_EQ(artifact->digest, Sha256Hex("some bytes"));
  EXPECT_EQ(artifact->size_bytes, 10);
  EXPECT_EQ(*artifacts_.Get(artifact->digest), "some bytes");
  EXPECT_EQ(*artifacts_.SizeBytes(artifact->digest), 10);
  EXPECT_TRUE(artifacts_.Put("some bytes").ok()) << "again";
  EXPECT_EQ(FilesInTmp(), 0);
}

TEST_F(ArtifactStoreTest, AnUnknownDigestIsNotFoundAndLeadsNowhere) {
  for (const std::string& digest : {Sha256Hex("never put"), std::string("../../etc/passwd"), std::string()}) {
    EXPECT_EQ(artifacts_.Get(digest).status().code(), absl::StatusCode::kNotFound) << digest;
    EXPECT_FALSE(IsDigest(digest) && digest.size() != 64);
  }
  EXPECT_TRUE(IsDigest(Sha256Hex("x")));
  EXPECT_FALSE(IsDigest(std::string(64, 'g')));
  EXPECT_FALSE(IsDigest(std::string(64, 'A'))) << "lower case";
  EXPECT_FALSE(IsDigest(std::string(63, 'a')));
}

TEST_F(ArtifactStoreTest, AFileOfAnotherSizeThanItsRowIsMissing) {
  const Artifact artifact = *artifacts_.Put("some bytes");
  std::ofstream(PathOf(artifact.digest)) << "cut";
  EXPECT_EQ(artifacts_.SizeBytes(artifact.digest).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(*artifacts_.Missing({artifact.digest}), ElementsAre(artifact.digest));
  EXPECT_TRUE(artifacts_.Put("some bytes").ok());
  EXPECT_EQ(*artifacts_.Get(artifact.digest), "some bytes") << "it is written again";
}

TEST_F(ArtifactStoreTest, StreamsPiecesFromAnOffset) {
  const Artifact artifact = *artifacts_.Put("0123456789");
  std::vector<std::string> pieces;
  const auto collect = [&](absl::string_view piece) {
    pieces.emplace_back(piece);
    return absl::OkStatus();
  };
  ASSERT_TRUE(artifacts_.Stream(artifact.digest, 3, 4, collect).ok());
  EXPECT_THAT(pieces, ElementsAre("3456", "789"));
  pieces.clear();
  ASSERT_TRUE(artifacts_.Stream(artifact.digest, 10, 4, collect).ok()) << "the end";
  EXPECT_TRUE(pieces.empty());
  for (const int64_t offset : {int64_t{-1}, int64_t{11}}) {
    EXPECT_EQ(artifacts_.Stream(artifact.digest, offset, 4, collect).code(), absl::StatusCode::kOutOfRange);
  }
  const absl::Status stopped =
      artifacts_.Stream(artifact.digest, 0, 4, [](absl::string_view) { return absl::AbortedError("enough"); });
  EXPECT_EQ(stopped, absl::AbortedError("enough"));
}

TEST_F(ArtifactStoreTest, SeveralBlobsArePutTogether) {
  ASSERT_TRUE(artifacts_.Put("two").ok());
  const auto put = artifacts_.PutAll({"one", "two", "three", "three"});
  ASSERT_TRUE(put.ok()) << put.status();
  ASSERT_EQ(put->size(), 4u);
  for (const char* bytes : {"one", "two", "three"}) EXPECT_EQ(artifacts_.Get(Sha256Hex(bytes)).value(), bytes);
  EXPECT_EQ(put->at(2).digest, put->at(3).digest);
  EXPECT_EQ(FilesInTmp(), 0);
  EXPECT_TRUE(artifacts_.PutAll({})->empty());
}

TEST_F(ArtifactStoreTest, APayloadIsReadByItsDigestAndHeldToIt) {
  const std::string digest = artifacts_.payloads().Put("what to measure").value();
  EXPECT_EQ(artifacts_.Get(digest).value(), "what to measure");
  EXPECT_EQ(artifacts_.SizeBytes(digest).status().code(), absl::StatusCode::kNotFound) << "it is no blob to keep";
  const std::string path = artifacts_.payloads().Find(digest)->path;
  std::ofstream(path) << std::string(15, '\0');
  EXPECT_EQ(artifacts_.Get(digest).status().code(), absl::StatusCode::kDataLoss);
  std::ofstream(path).close();
  EXPECT_FALSE(artifacts_.Get(digest).ok()) << "cut off";
  std::filesystem::remove(path);
  EXPECT_EQ(artifacts_.Get(digest).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ArtifactStoreTest, AnUploadWithAnotherDigestLeavesNothing) {
  {
    auto upload = artifacts_.Begin();
    ASSERT_TRUE(upload.ok()) << upload.status();
    ASSERT_TRUE((*upload)->Append("some ").ok());
    ASSERT_TRUE((*upload)->Append("bytes").ok());
    EXPECT_EQ(FilesInTmp(), 1);
    const absl::Status status = (*upload)->Seal(Sha256Hex("other bytes"));
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(status.message()), HasSubstr(Sha256Hex("some bytes")));
  }
  EXPECT_EQ(FilesInTmp(), 0);
  EXPECT_EQ(artifacts_.Get(Sha256Hex("some bytes")).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ArtifactStoreTest, AFileIsLentForALifetime) {
  const std::string path = FileWith("lent bytes"), digest = Sha256Hex("lent bytes");
  {
    const auto lent = artifacts_.Lend(path);
    ASSERT_TRUE(lent.ok()) << lent.status();
    EXPECT_EQ((*lent)->artifact().digest, digest);
    EXPECT_EQ(*artifacts_.Get(digest), "lent bytes");
    {
      const auto again = artifacts_.Lend(path);
      ASSERT_TRUE(again.ok());
    }
    EXPECT_TRUE(artifacts_.Get(digest).ok()) << "lent twice, given back once";
  }
  EXPECT_EQ(artifacts_.Get(digest).status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_F(ArtifactStoreTest, AnAdoptedFileMoves) {
  const std::string path = FileWith("own bytes");
  const auto artifact = artifacts_.Adopt(path);
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(*artifacts_.Get(artifact->digest), "own bytes");
  EXPECT_FALSE(artifacts_.Adopt(path).ok()) << "it is not there any more";
}

TEST_F(ArtifactStoreTest, OpeningEmptiesWhatACrashLeftBehind) {
  std::ofstream(state_.folder() + "/blobs/tmp/upload-left") << "half";
  const Artifact artifact = *artifacts_.Put("some bytes");
  const auto again = ArtifactStore::Open(state_.folder() + "/blobs", &state_.store());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(FilesInTmp(), 0);
  EXPECT_EQ(*(*again)->Get(artifact.digest), "some bytes");
}

TEST_F(ArtifactStoreTest, ABlobIsThereOnlyForTenantsThatBroughtItsBytes) {
  const auto upload = [&](const std::string& bytes, const std::string& tenant) {
    std::vector<std::unique_ptr<ArtifactStore::Upload>> uploads;
    uploads.push_back(std::move(artifacts_.Begin()).value());
    EXPECT_TRUE(uploads[0]->Append(bytes).ok());
    EXPECT_TRUE(uploads[0]->Seal(Sha256Hex(bytes)).ok());
    EXPECT_TRUE(artifacts_.Install(uploads, tenant).ok());
  };
  const std::string digest = Sha256Hex("a model");
  upload("a model", "acme");
  EXPECT_THAT(*artifacts_.Missing({digest}, "acme"), ElementsAre());
  EXPECT_THAT(*artifacts_.Missing({digest}, "other"), ElementsAre(digest));
  EXPECT_THAT(*artifacts_.Missing({digest}), ElementsAre(digest)) << "the default tenant is one like others";
  upload("a model", "other");
  EXPECT_THAT(*artifacts_.Missing({digest}, "other"), ElementsAre());
  EXPECT_THAT(*artifacts_.Missing({digest}, "acme"), ElementsAre());
  ASSERT_TRUE(artifacts_.SetAside(digest).ok());
  EXPECT_THAT(*artifacts_.Missing({digest}, "acme"), ElementsAre(digest));
  upload("a model", "other");
  EXPECT_THAT(*artifacts_.Missing({digest}, "acme"), ElementsAre(digest)) << "it must bring the bytes again";
}

}  // namespace
}  // namespace fusion
