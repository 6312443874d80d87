// Calls every method of every service with every role, on a real server.
#include "server/auth/guard.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor_database.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/auth.grpc.pb.h"
#include "server/server.h"
#include "server/testing/fake_compile.h"
#include "server/testing/test_client.h"

namespace fusion {
namespace {

using testing::HasSubstr;

// "/fusion.v1.Compile/Submit" and so on, of every service whose description is linked into this program.
std::set<std::string> LinkedMethods() {
  std::set<std::string> methods;
  std::vector<std::string> files;
  google::protobuf::DescriptorPool::internal_generated_database()->FindAllFileNames(&files);
  for (const std::string& name : files) {
    const auto* file = google::protobuf::DescriptorPool::generated_pool()->FindFileByName(name);
    for (int i = 0; i < file->service_count(); ++i) {
      const google::protobuf::ServiceDescriptor* service = file->service(i);
      for (int j = 0; j < service->method_count(); ++j) {
        methods.insert(absl::StrCat("/", service->full_name(), "/", service->method(j)->name()));
      }
    }
  }
  return methods;
}

TEST(MethodTableTest, HoldsEveryMethodOnce) {
  std::vector<std::string> listed;
  for (const MethodAccess& access : MethodTable()) {
    listed.emplace_back(access.method);
    EXPECT_FALSE(access.any_of.empty()) << access.method << " is for nobody";
  }
  EXPECT_THAT(listed, testing::UnorderedElementsAreArray(LinkedMethods()));
}

// A server whose callers say their roles: "roles client,build", or "roles " for a caller that it knows and that has
// none; "roles client token ID" names a token, too.
class GuardTest : public testing::Test {
 protected:
  GuardTest() : folder_(absl::StrCat("/tmp/fusion-guard-test-", getpid())) {
    std::filesystem::remove_all(folder_);
    ServerOptions options;
    options.state_folder = folder_;
    options.listen = {absl::StrCat("unix:", folder_, "/s")};
    options.identify = [this](const Caller& caller) -> absl::StatusOr<Principal> {
      absl::string_view roles = caller.authorization;
      if (!absl::ConsumePrefix(&roles, "roles ")) return absl::UnauthenticatedError("say who you are");
      const std::pair<std::string, std::string> said = absl::StrSplit(roles, absl::MaxSplits(" token ", 1));
      if (!said.second.empty()) {
        absl::MutexLock lock(&mutex_);
        ++asked_with_token_;
      }
      return Principal{"somebody", RolesOf(said.first), said.second};
    };
    auto server = Server::Start(options, {FakeCompile, FakePlan, {"dnnfusion", "none"}, FakeCheckRule});
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = std::move(server).value();
    client_ = std::make_unique<TestClient>(options.listen.front());
  }
  ~GuardTest() override {
    server_.reset();
    std::filesystem::remove_all(folder_);
  }

  // The status of a call with an empty message. A method that streams may answer more than one message, which gRPC
  // calls an error of this client: such a call was not refused.
  grpc::Status Call(const std::string& method, const std::string& authorization) {
    grpc::GenericStub stub(client_->channel);
    grpc::ClientContext context;
    if (!authorization.empty()) context.AddMetadata("authorization", authorization);
    grpc::CompletionQueue queue;
    grpc::Slice nothing("");
    auto call = stub.PrepareUnaryCall(&context, method, grpc::ByteBuffer(&nothing, 1), &queue);
    call->StartCall();
    grpc::ByteBuffer answer;
    grpc::Status status;
    call->Finish(&answer, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue.Next(&tag, &ok));
    return status;
  }

  const std::string folder_;
  absl::Mutex mutex_;
  int asked_with_token_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<Server> server_;
  std::unique_ptr<TestClient> client_;
};

TEST_F(GuardTest, EveryMethodRefusesTheAnonymousAndEachWrongRole) {
  int refused = 0, let_in = 0;
  for (const std::string& method : LinkedMethods()) {
    SCOPED_TRACE(method);
    for (const char* authorization : {"", "Bearer client", "roles"}) {
      const grpc::Status status = Call(method, authorization);
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << authorization;
      EXPECT_EQ(status.error_message(), "say who you are");
    }
    EXPECT_EQ(Call(method, "roles ").error_code(), grpc::StatusCode::PERMISSION_DENIED);
    for (const Role role : AllRoles()) {
      const grpc::Status status = Call(method, absl::StrCat("roles ", NameOf(role)));
      if (RolesFor(method).Has(role)) {
        ++let_in;
        EXPECT_NE(status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << NameOf(role);
        EXPECT_NE(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << NameOf(role);
        EXPECT_NE(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << NameOf(role) << ": not served";
      } else {
        ++refused;
        EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << NameOf(role);
        EXPECT_THAT(status.error_message(), HasSubstr(absl::StrCat("somebody has the roles ", NameOf(role))));
        EXPECT_THAT(status.error_message(), HasSubstr(absl::StrCat("needs ", NamesInWords(RolesFor(method)))));
      }
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(let_in, 0);
}

// Calls that wait for their client on a thread of the server, and one that waits for the server on none.
TEST_F(GuardTest, RevokingEndsCallsOfEveryShape) {
  v1::CreateTokenRequest wanted;
  v1::CreateTokenResponse made;
  wanted.set_name("n");
  wanted.add_roles("client");
  const auto auth = v1::Auth::NewStub(client_->channel);
  {
    grpc::ClientContext context;
    context.AddMetadata("authorization", "roles admin");
    ASSERT_TRUE(auth->CreateToken(&context, wanted, &made).ok());
  }
  const std::string all = "roles client,build,measure,admin token ";
  grpc::ClientContext write, import, sync, other;
  for (grpc::ClientContext* context : {&write, &import, &sync}) {
    context->AddMetadata("authorization", all + made.info().id());
  }
  other.AddMetadata("authorization", all + "another");

  v1::WriteResponse written, others_written;
  const auto writer = client_->blobs->Write(&write, &written);
  const auto others_writer = client_->blobs->Write(&other, &others_written);
  v1::ProfileImportResponse imported;
  const auto importer = client_->profile->Import(&import, &imported);
  grpc::Status polled;
  std::thread poll([&] {
    v1::SynchronizeRequest request;
    v1::SynchronizeResponse response;
    request.set_worker_id("w");
    *request.mutable_info() = CpuWorkerInfo("w");
    request.set_max_wait_ms(50000);
    polled = client_->worker->Synchronize(&sync, request, &response);
  });
  // The guard asks a second time when it has noted a call.
  const auto all_noted = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return asked_with_token_ >= 2 * 4; };
  mutex_.LockWhen(absl::Condition(&all_noted));
  mutex_.Unlock();
  {
    grpc::ClientContext context;
    v1::RevokeTokenRequest request;
    v1::TokenInfo revoked;
    context.AddMetadata("authorization", "roles admin");
    request.set_id(made.info().id());
    ASSERT_TRUE(auth->RevokeToken(&context, request, &revoked).ok());
    EXPECT_GT(revoked.revoked_ms(), 0);
  }
  poll.join();
  EXPECT_EQ(polled.error_code(), grpc::StatusCode::CANCELLED) << polled.error_message();
  EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(importer->Finish().error_code(), grpc::StatusCode::CANCELLED);
  others_writer->WritesDone();
  EXPECT_TRUE(others_writer->Finish().ok());
}

TEST_F(GuardTest, HealthAloneIsAnonymousAndNothingListsTheMethods) {
  EXPECT_TRUE(Call("/grpc.health.v1.Health/Check", "").ok());
  for (const char* version : {"v1", "v1alpha"}) {
    const std::string method = absl::StrCat("/grpc.reflection.", version, ".ServerReflection/ServerReflectionInfo");
    EXPECT_EQ(Call(method, "roles admin").error_code(), grpc::StatusCode::UNIMPLEMENTED);
  }
}

TEST_F(GuardTest, AWorkerOffersWhatItsRolesAllow) {
  const auto attach = [&](const std::string& roles, bool measures, bool builds) {
    v1::SynchronizeRequest request;
    v1::SynchronizeResponse response;
    request.set_worker_id("w");
    *request.mutable_info() = CpuWorkerInfo("w");
    if (!measures) {
      request.mutable_info()->clear_measure_kinds();
      request.mutable_info()->clear_device_model_json();
    }
    if (!builds) request.mutable_info()->clear_toolchains();
    grpc::ClientContext context;
    context.AddMetadata("authorization", "roles " + roles);
    return client_->worker->Synchronize(&context, request, &response);
  };
  EXPECT_TRUE(attach("build,measure", true, true).ok());
  EXPECT_TRUE(attach("build", false, true).ok());
  EXPECT_TRUE(attach("measure", true, false).ok());
  const grpc::Status measures = attach("build", true, true), builds = attach("measure,client,admin", true, true);
  EXPECT_EQ(measures.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(measures.error_message(), HasSubstr("--kinds none"));
  EXPECT_EQ(builds.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(builds.error_message(), HasSubstr("--no-build"));
}

}  // namespace
}  // namespace fusion
