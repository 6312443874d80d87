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

// It reads the payloads of tasks alone (tests/e2e/test_builders.py), also of the default tenant, whose its token is.
TEST_F(BlobServiceTest, AnUntrustedBuilderReadsNothingThatOthersUploaded) {
  server_.reset();
  identify_ = [](const Caller& caller) -> absl::StatusOr<Principal> {
    const RoleSet untrusted = {Role::kUntrustedBuild};
    return Principal{"somebody", caller.authorization.empty() ? RoleSet::All() : untrusted, caller.authorization};
  };
  StartServer();
  client_ = std::make_unique<TestClient>(address_);
  const std::string digest = Sha256Hex("a model that many know");
  ASSERT_TRUE(client_->WriteBlob(digest, "a model that many know").ok());
  for (const bool untrusted : {false, true}) {
    grpc::ClientContext context;
    if (untrusted) context.AddMetadata("authorization", "token");
    v1::ReadRequest request;
    request.set_digest(digest);
    auto reader = client_->blobs->Read(&context, request);
    for (v1::ReadResponse response; reader->Read(&response);) {
    }
    const grpc::Status read = reader->Finish();
    EXPECT_EQ(read.error_code(), untrusted ? grpc::NOT_FOUND : grpc::OK) << read.error_message();
  }
}

// Every question by which one tenant could learn whether another has a model.
TEST_F(BlobServiceTest, OneTenantLearnsNothingOfAnothersModels) {
  server_.reset();
  identify_ = [](const Caller& caller) -> absl::StatusOr<Principal> {
    if (caller.authorization.empty()) return Principal{"worker", RoleSet::All()};
    return Principal{caller.authorization, {Role::kClient}, "", "ci of " + caller.authorization, caller.authorization};
  };
  StartServer();
  client_ = std::make_unique<TestClient>(address_);
  FakeWorker worker(address_, "a");
  const std::string bytes = "build 1 of acme", digest = Sha256Hex(bytes);
  const auto missing = [&](const std::string& tenant) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", tenant);
    v1::FindMissingRequest request;
    request.add_digests(digest);
    v1::FindMissingResponse response;
    EXPECT_TRUE(client_->blobs->FindMissing(&context, request, &response).ok());
    return response.missing_size() == 1;
  };
  const auto write = [&](const std::string& tenant, const std::string& data) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", tenant);
    v1::WriteResponse response;
    auto writer = client_->blobs->Write(&context, &response);
    v1::WriteRequest request;
    request.set_digest(digest);
    request.set_size_bytes(static_cast<int64_t>(data.size()));
    request.set_data(data);
    request.set_finish(true);
    writer->Write(request);
    writer->WritesDone();
    return writer->Finish();
  };
  const auto read = [&](const std::string& tenant, const std::string& wanted) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", tenant);
    v1::ReadRequest request;
    request.set_digest(wanted);
    auto reader = client_->blobs->Read(&context, request);
    for (v1::ReadResponse response; reader->Read(&response);) {
    }
    return reader->Finish();
  };
  v1::SubmitRequest model = client_->Model("build 1 of nobody");  // only its form: the default tenant's
  model.mutable_files(0)->set_chunk_digests(0, digest);
  model.mutable_files(0)->set_size_bytes(static_cast<int64_t>(bytes.size()));
  const auto submit = [&](const std::string& tenant, const std::string& says, grpc::Status* status) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", tenant);
    model.set_tenant(says);
    v1::SubmitResponse response;
    *status = client_->compile->Submit(&context, model, &response);
    return response;
  };
  grpc::Status status;
  ASSERT_TRUE(write("acme", bytes).ok());
  const v1::SubmitResponse first = submit("acme", "", &status);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(client_->Watch(first.job_id()).back().state(), v1::SUCCEEDED);
  EXPECT_TRUE(submit("acme", "", &status).from_store());
  const std::string bundle = Get(first.job_id()).bundle().digest();
  EXPECT_TRUE(read("acme", bundle).ok());

  EXPECT_FALSE(missing("acme"));
  EXPECT_TRUE(missing("other"));
  submit("other", "acme", &status);
  EXPECT_EQ(status.error_code(), grpc::FAILED_PRECONDITION) << "its bytes are not here yet, whatever tenant it names";
  for (const std::string& of_acme : {digest, bundle}) {
    const grpc::Status refused = read("other", of_acme);
    EXPECT_EQ(refused.error_code(), grpc::NOT_FOUND);
    EXPECT_EQ(refused.error_message(), "no blob " + of_acme) << "as for one that nobody has";
  }
  EXPECT_EQ(write("other", std::string(bytes.size(), 'x')).error_code(), grpc::DATA_LOSS)
      << "a digest alone brings no blob";
  EXPECT_TRUE(missing("other"));

  ASSERT_TRUE(write("other", bytes).ok());
  EXPECT_FALSE(missing("other"));
  const v1::SubmitResponse own = submit("other", "", &status);
  ASSERT_TRUE(status.ok());
  EXPECT_FALSE(own.from_store()) << "no instant answer tells that acme has it";
  EXPECT_FALSE(own.joined());
  EXPECT_NE(own.key(), first.key());
  EXPECT_EQ(client_->Watch(own.job_id()).back().state(), v1::SUCCEEDED);
  EXPECT_TRUE(read("other", Get(own.job_id()).bundle().digest()).ok()) << "it made that bundle, too";
}

}  // namespace
}  // namespace fusion
