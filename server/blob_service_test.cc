// Tests the calls of the service Blobs.
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/sha256.h"
#include "server/testing/server_fixture.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

using BlobServiceTest = ServerFixture;

TEST_F(BlobServiceTest, BlobsAreCheckedAndFound) {
  EXPECT_EQ(client_->WriteBlob(Sha256Hex("right"), "wrong").error_code(), grpc::DATA_LOSS);
  EXPECT_EQ(client_->WriteBlob("short", "x").error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_TRUE(client_->WriteBlob(Sha256Hex("right"), "right").ok());
  EXPECT_TRUE(client_->WriteBlob(Sha256Hex("right"), "right").ok()) << "again is harmless";
  EXPECT_TRUE(client_->WriteBlob(Sha256Hex(""), "").ok());
  grpc::ClientContext context;
  v1::FindMissingRequest request;
  v1::FindMissingResponse response;
  request.add_digests(Sha256Hex("right"));
  request.add_digests(Sha256Hex("wrong"));
  ASSERT_TRUE(client_->blobs->FindMissing(&context, request, &response).ok());
  EXPECT_THAT(response.missing(), testing::ElementsAre(Sha256Hex("wrong")));
  EXPECT_EQ(client_->ReadBlob(Sha256Hex("right")), "right");
  EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/blobs/tmp")) << "nothing half-written stays";
}

TEST_F(BlobServiceTest, BlobsBeforeAWrongOneStay) {
  constexpr int kBlobs = 100;  // more than wait for the disk at once
  grpc::ClientContext write_context, find_context;
  v1::WriteResponse written;
  auto writer = client_->blobs->Write(&write_context, &written);
  v1::FindMissingRequest request;
  for (int b = 0; b <= kBlobs; ++b) {
    const std::string bytes = absl::StrCat("blob ", b);
    v1::WriteRequest message;
    message.set_digest(Sha256Hex(b < kBlobs ? bytes : "another"));
    message.set_size_bytes(static_cast<int64_t>(bytes.size()));
    message.set_data(bytes);
    message.set_finish(true);
    request.add_digests(message.digest());
    writer->Write(message);
  }
  writer->WritesDone();
  EXPECT_EQ(writer->Finish().error_code(), grpc::DATA_LOSS);
  v1::FindMissingResponse response;
  ASSERT_TRUE(client_->blobs->FindMissing(&find_context, request, &response).ok());
  EXPECT_THAT(response.missing(), testing::ElementsAre(Sha256Hex("another")));
  EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/blobs/tmp")) << "nothing half-written stays";
}

TEST_F(BlobServiceTest, ABlobThatCannotBeKeptFailsItsStream) {
  // A file stands where the folder of the blob's digest would be. The stream learns of it only when it has sent all.
  const std::string digest = Sha256Hex("homeless");
  std::ofstream(absl::StrCat(folder_, "/blobs/", digest.substr(0, 2))) << "in the way";
  const grpc::Status written = client_->WriteBlob(digest, "homeless");
  EXPECT_THAT(written.error_message(), HasSubstr("cannot rename to"));
  grpc::ClientContext context;
  v1::FindMissingRequest request;
  v1::FindMissingResponse response;
  request.add_digests(digest);
  ASSERT_TRUE(client_->blobs->FindMissing(&context, request, &response).ok());
  EXPECT_THAT(response.missing(), testing::ElementsAre(digest));
  EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/blobs/tmp")) << "nothing half-written stays";
}

}  // namespace
}  // namespace fusion
