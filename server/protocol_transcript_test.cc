// Old peers and today's server. A transcript holds the messages of a client and of a worker, as bytes, and what a
// server of that time answered. Its requests are made again, and whatever an answer told the peer then, it must tell it
// now.
//
// Each version of the protocol (proto/worker_protocol.h) gets a transcript when it is new, by
// RECORD_TRANSCRIPT=server/testing/transcripts/NAME.txt; transcripts of the versions that the server still speaks stay.
// The transcript of protocol 2 was written later, with the proto files of its time: the conversation of protocol 3 without the
// fields that these did not have.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/worker_protocol.h"
#include "runtime/base/sha256.h"
#include "server/testing/server_fixture.h"

namespace fusion {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Fields whose values differ from run to run, or from version to version. They must be set all the same.
const std::set<std::string>& Varying() {
  static const auto* names = new std::set<std::string>{"server_version",
                                                       "generator_version",
                                                       "protocol_max",
                                                       "job_id",
                                                       "key",
                                                       "time_ms",
                                                       "created_ms",
                                                       "started_ms",
                                                       "finished_ms",
                                                       "last_seq",
                                                       "task_id",
                                                       "fence",
                                                       "digest",
                                                       "payload_digest",
                                                       "fingerprint",
                                                       "trace_id",
                                                       "device_name",
                                                       "size_bytes",
                                                       "description",
                                                       "seconds",
                                                       "seq",
                                                       "payload_size_bytes"};
  return *names;
}

// Returns a field that `then` told and `now` does not; empty if there is none.
std::string Lacking(const Message& then, const Message& now) {
  const google::protobuf::Reflection& reflection = *then.GetReflection();
  if (!reflection.GetUnknownFields(then).empty()) {
    return absl::StrCat(then.GetTypeName(), " has lost a field, or numbers one anew");
  }
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(then, &fields);
  for (const FieldDescriptor* field : fields) {
    const auto lacks = [&](const std::string& how) { return absl::StrCat(field->full_name(), " ", how); };
    if (field->is_repeated()) {
      const int count = reflection.FieldSize(then, field);
      if (reflection.FieldSize(now, field) < count) return lacks("has fewer elements");
      if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || field->is_map()) continue;
      for (int i = 0; i < count; ++i) {
        const std::string inner =
            Lacking(reflection.GetRepeatedMessage(then, field, i), reflection.GetRepeatedMessage(now, field, i));
        if (!inner.empty()) return inner;
      }
      continue;
    }
    if (!reflection.HasField(now, field)) return lacks("is not set");
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      const std::string inner = Lacking(reflection.GetMessage(then, field), reflection.GetMessage(now, field));
      if (!inner.empty()) return inner;
    } else if (Varying().count(field->name()) == 0) {
      std::string a, b;
      google::protobuf::TextFormat::PrintFieldValueToString(then, field, -1, &a);
      google::protobuf::TextFormat::PrintFieldValueToString(now, field, -1, &b);
      if (a != b) return lacks(absl::StrCat("was ", a, " and is ", b));
    }
  }
  return "";
}

// The messages of a transcript by their steps: "submit" to request and response.
using Transcript = std::map<std::string, std::pair<std::string, std::string>>;

class ProtocolTranscriptTest : public ServerFixture {
 protected:
  // Makes one call. `call` gets the request and fills the response. When a transcript is made, both are written; else
  // the request is that of the transcript, with what `adapt` puts in of this run, and the response is held against it.
  template <typename Request, typename Response>
  Response Step(const std::string& name, Request request, const std::function<void(Request*)>& adapt,
                const std::function<grpc::Status(const Request&, Response*)>& call) {
    const auto told = transcript_.find(name);
    if (record_ == nullptr) {
      EXPECT_NE(told, transcript_.end()) << name;
      if (told == transcript_.end()) return {};
      EXPECT_TRUE(request.ParseFromString(told->second.first)) << name;
      EXPECT_TRUE(request.GetReflection()->GetUnknownFields(request).empty()) << name << ": a field is gone";
    }
    if (adapt) adapt(&request);
    Response response;
    const grpc::Status status = call(request, &response);
    EXPECT_TRUE(status.ok()) << name << ": " << status.error_message();
    if (record_ != nullptr) {
      *record_ << name << " " << absl::BytesToHexString(request.SerializeAsString()) << " "
               << absl::BytesToHexString(response.SerializeAsString()) << "\n";
    } else {
      Response then;
      EXPECT_TRUE(then.ParseFromString(told->second.second)) << name;
      EXPECT_EQ(Lacking(then, response), "")
          << name << "\nthen: " << then.ShortDebugString() << "\nnow: " << response.ShortDebugString();
    }
    return response;
  }

  template <typename Stub, typename Request, typename Response>
  std::function<grpc::Status(const Request&, Response*)> Unary(
      Stub* stub, grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*)) {
    return [stub, method](const Request& request, Response* response) {
      grpc::ClientContext context;
      return (stub->*method)(&context, request, response);
    };
  }

  void Converse();

  Transcript transcript_;
  std::ofstream* record_ = nullptr;
};

// A submission that needs a build and four measurements, and a worker that does them.
void ProtocolTranscriptTest::Converse() {
  Step<v1::GetCapabilitiesRequest, v1::Capabilities>(
      "capabilities", {}, nullptr, Unary(client_->compile.get(), &v1::Compile::Stub::GetCapabilities));
  const std::string model = "ask 2 build 1";
  v1::FindMissingRequest find;
  find.add_digests(Sha256Hex(model));
  Step<v1::FindMissingRequest, v1::FindMissingResponse>("find missing", find, nullptr,
                                                        Unary(client_->blobs.get(), &v1::Blobs::Stub::FindMissing));
  v1::WriteRequest write;
  write.set_digest(Sha256Hex(model));
  write.set_size_bytes(static_cast<int64_t>(model.size()));
  write.set_data(model);
  write.set_finish(true);
  Step<v1::WriteRequest, v1::WriteResponse>("write", write, nullptr, [&](const auto& request, auto* response) {
    grpc::ClientContext context;
    auto writer = client_->blobs->Write(&context, response);
    writer->Write(request);
    writer->WritesDone();
    return writer->Finish();
  });
  v1::SynchronizeRequest idle;
  idle.set_worker_id("w-0123456789abcdef");
  *idle.mutable_info() = CpuWorkerInfo("rack7");
  idle.mutable_info()->set_version("0.1.0");
  (*idle.mutable_info()->mutable_labels())["rack"] = "7";
  const auto synchronize = Unary(client_->worker.get(), &v1::Worker::Stub::Synchronize);
  Step<v1::SynchronizeRequest, v1::SynchronizeResponse>("attach", idle, nullptr, synchronize);

  v1::SubmitRequest submit = client_->Model(model);
  submit.set_client_id("ada@laptop");
  submit.mutable_options()->set_target("cpu");
  submit.mutable_options()->set_tune("off");
  const auto submitted = Step<v1::SubmitRequest, v1::SubmitResponse>(
      "submit", submit, nullptr, Unary(client_->compile.get(), &v1::Compile::Stub::Submit));
  idle.set_max_wait_ms(20000);
  for (const std::string task : {"measure 1", "measure 2", "build"}) {
    v1::SynchronizeResponse leased;
    while (!leased.has_task()) {  // a hold may end without one; what is written is the answer with it
      v1::SynchronizeRequest request = idle;
      if (record_ == nullptr) {
        EXPECT_TRUE(request.ParseFromString(transcript_["lease " + task].first));
      }
      EXPECT_TRUE(synchronize(request, &leased).ok());
    }
    const v1::SynchronizeResponse again = Step<v1::SynchronizeRequest, v1::SynchronizeResponse>(
        "lease " + task, idle, nullptr, synchronize);  // the answer may have been lost: the same task
    EXPECT_EQ(again.task().task_id(), leased.task().task_id());
    v1::ReadRequest read;
    const auto payload = Step<v1::ReadRequest, v1::ReadResponse>(
        "payload " + task, read, [&](v1::ReadRequest* request) { request->set_digest(again.task().payload_digest()); },
        [&](const auto& request, auto* response) {
          grpc::ClientContext context;
          auto reader = client_->blobs->Read(&context, request);
          reader->Read(response);
          return reader->Finish();
        });
    v1::SynchronizeRequest busy = idle;
    const auto of_this_run = [&](v1::SynchronizeRequest* request) {
      request->mutable_current()->set_task_id(again.task().task_id());
      request->mutable_current()->set_fence(again.task().fence());
    };
    busy.mutable_current()->set_stage(v1::RUNNING_TASK);
    Step<v1::SynchronizeRequest, v1::SynchronizeResponse>("beat " + task, busy, of_this_run, synchronize);
    busy.mutable_current()->clear_stage();
    busy.set_max_wait_ms(0);
    *busy.mutable_current()->mutable_result() = FakeWorker::Good(again.task(), payload.data());
    grpc::ClientContext context;
    Step<v1::SynchronizeRequest, v1::SynchronizeResponse>(
        "result " + task, busy, of_this_run, [&](const auto& request, auto* response) {
          const grpc::Status status = synchronize(request, response);
          response->Clear();  // whether the next task is there already is a matter of luck
          return status;
        });
  }
  const auto of_the_job = [&](auto* request) { request->set_job_id(submitted.job_id()); };
  Step<v1::WatchRequest, v1::JobEvent>("last event", {}, of_the_job, [&](const auto& request, auto* response) {
    grpc::ClientContext context;
    auto reader = client_->compile->Watch(&context, request);
    for (v1::JobEvent event; reader->Read(&event);) *response = event;
    return reader->Finish();
  });
  const auto job =
      Step<v1::GetJobRequest, v1::Job>("get", {}, of_the_job, Unary(client_->compile.get(), &v1::Compile::Stub::Get));
  Step<v1::ListJobsRequest, v1::ListJobsResponse>("list", {}, nullptr,
                                                  Unary(client_->compile.get(), &v1::Compile::Stub::List));
  Step<v1::ReadRequest, v1::ReadResponse>(
      "bundle", {}, [&](v1::ReadRequest* request) { request->set_digest(job.bundle().digest()); },
      [&](const auto& request, auto* response) {
        grpc::ClientContext context;
        auto reader = client_->blobs->Read(&context, request);
        reader->Read(response);
        response->clear_data();  // the bytes are the compiler's matter
        return reader->Finish();
      });
  Step<v1::ListWorkersRequest, v1::ListWorkersResponse>(
      "workers", {}, nullptr, [&](const auto& request, auto* response) {
        grpc::ClientContext context;
        const grpc::Status status = client_->admin->ListWorkers(&context, request, response);
        for (v1::WorkerStatus& worker : *response->mutable_workers()) worker.clear_last_seen_ms();
        return status;
      });
}

TEST_F(ProtocolTranscriptTest, ThePeersOfThisProtocolAndOfTheOneBeforeAreServed) {
  if (const char* path = std::getenv("RECORD_TRANSCRIPT")) {
    std::ofstream file(path);
    record_ = &file;
    Converse();
    return;
  }
  int replayed = 0;
  for (const int protocol : {kOldestWorkerProtocol, kWorkerProtocol}) {
    std::ifstream file(absl::StrCat(FUSION_TRANSCRIPTS "/protocol_", protocol, ".txt"));
    ASSERT_TRUE(file) << "there is no transcript of protocol " << protocol;
    transcript_.clear();
    for (std::string line; std::getline(file, line);) {
      const std::vector<std::string> words = absl::StrSplit(line, ' ');
      ASSERT_GE(words.size(), 3) << line;
      const size_t n = words.size();
      const std::string name = line.substr(0, line.size() - words[n - 1].size() - words[n - 2].size() - 2);
      transcript_[name] = {absl::HexStringToBytes(words[n - 2]), absl::HexStringToBytes(words[n - 1])};
    }
    SCOPED_TRACE(absl::StrCat("protocol ", protocol));
    Converse();
    ++replayed;
    server_.reset();
    std::filesystem::remove_all(folder_);
    StartServer();
    client_ = std::make_unique<TestClient>(address_);
  }
  EXPECT_EQ(replayed, 2);
}

}  // namespace
}  // namespace fusion
