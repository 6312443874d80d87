// The two sides of a large farm, for reliability.py, which measures the server: its jobs, its database and its wire are
// fusiond's, but a job only asks questions, since a thousand real compilations would keep two cores busy for
// minutes.
//   farm_load serve STATE --threads 32 --questions 20     serves at STATE/fusion.sock until SIGTERM
//   farm_load work unix:PATH --workers 1000 [--label k=v]  a thousand workers with a connection each, until SIGTERM
#include <grpcpp/grpcpp.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/blob.grpc.pb.h"
#include "proto/worker.grpc.pb.h"
#include "proto/worker_protocol.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status_macros.h"
#include "server/server.h"
#include "server/testing/fake_compile.h"
#include "worker/lease/worker_channel.h"
#include "worker/simulated/simulated_device.h"

namespace fusion {
namespace {

void AwaitTermination() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  int signal = 0;
  sigwait(&signals, &signal);
}

class SmallBundles : public MeasurementBundler {
 public:
  absl::StatusOr<std::vector<std::string>> MakeBundles(absl::Span<const std::string> keys) override {
    // A kernel's bundle has some tens of kilobytes.
    return std::vector<std::string>(keys.size(), std::string(20000, 'b'));
  }
};

// `tune` tells submissions apart, so that no question was asked before.
absl::StatusOr<CompileAccount> Ask(int questions, const CompileOptions& options, const CompileContext& context,
                                   const std::string& bundle_path) {
  std::vector<LatencyQuestion> asked;
  for (int i = 0; i < questions; ++i) {
    asked.push_back({Sha256Hex(absl::StrCat(options.tune, " ", i)), "a kernel", 1e6, 1e6});
  }
  SmallBundles bundler;
  ASSIGN_OR_RETURN(const std::vector<LatencyAnswer> answers, context.oracle->Latency(asked, bundler));
  CompileAccount account;
  account.questions = static_cast<int64_t>(answers.size());
  for (const LatencyAnswer& answer : answers) account.measured += answer.source == LatencySource::kMeasured;
  std::ofstream(bundle_path) << "bundle " << options.tune;
  return account;
}

int Serve(const std::string& state, int threads, int questions) {
  ServerOptions options;
  options.state_folder = state;
  options.listen = {absl::StrCat("unix:", state, "/fusion.sock")};
  options.compile_threads = threads;
  options.jobs_per_caller = 1 << 30;
  options.streams_per_caller = 1 << 20;
  const CompilerFunctions compiler{
      [questions](const ModelFiles&, const CompileOptions& asked, const CompileContext& context,
                  const std::string& path) { return Ask(questions, asked, context, path); },
      FakePlan,
      {"dnnfusion", "none"},
      FakeCheckRule};
  const auto server = Server::Start(options, compiler);
  if (!server.ok()) return std::fprintf(stderr, "%s\n", server.status().ToString().c_str()), 1;
  std::printf("ready\n");
  std::fflush(stdout);
  AwaitTermination();
  (*server)->Shutdown(absl::Seconds(1));
  return 0;
}

std::string Result(const std::string& payload) {
  v1::MeasurePayload asked;
  asked.ParseFromString(payload);
  v1::MeasureResults measured;
  for (int i = 0; i < asked.items_size(); ++i) {
    v1::MeasureResult& one = *measured.add_results();
    for (int sample = 0; sample < 20; ++sample) one.add_samples_ns(1000.0 + sample);
    one.set_median_ns(1010);
  }
  return measured.SerializeAsString();
}

// Does each task at once. A worker that cannot reach the server tries again.
void Work(const std::string& address, const v1::WorkerInfo& info, int number, const std::atomic<bool>& stopping) {
  grpc::ChannelArguments arguments = WorkerChannelArguments();
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
  const auto channel = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  const auto worker = v1::Worker::NewStub(channel);
  const auto blobs = v1::Blobs::NewStub(channel);
  v1::SynchronizeRequest request;
  request.set_worker_id(absl::StrCat("load-", getpid(), "-", number));
  *request.mutable_info() = info;
  request.mutable_info()->set_name(absl::StrCat("load", number));
  request.set_max_wait_ms(kIdlePollMs);
  while (!stopping) {
    grpc::ClientContext context;
    v1::SynchronizeResponse response;
    if (!worker->Synchronize(&context, request, &response).ok()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      continue;
    }
    request.clear_current();
    if (!response.has_task()) continue;
    grpc::ClientContext reading;
    v1::ReadRequest read;
    read.set_digest(response.task().payload_digest());
    const auto reader = blobs->Read(&reading, read);
    std::string payload;
    for (v1::ReadResponse piece; reader->Read(&piece);) payload += piece.data();
    if (!reader->Finish().ok()) continue;
    v1::CurrentTask* current = request.mutable_current();
    current->set_task_id(response.task().task_id());
    current->set_fence(response.task().fence());
    current->mutable_result()->set_inline_(Result(payload));
  }
}

int WorkAll(const std::string& address, int workers, const std::string& label) {
  v1::WorkerInfo info;
  info.set_protocol(kWorkerProtocol);
  info.add_measure_kinds(kSimulatedKind);
  info.set_device_model_json(DeviceModelToJson(SimulatedDeviceModel(1)));
  const std::vector<std::string> parts = absl::StrSplit(label, '=');
  if (parts.size() == 2) (*info.mutable_labels())[parts[0]] = parts[1];
  std::atomic<bool> stopping{false};
  for (int i = 0; i < workers; ++i) {
    std::thread([&, i] { Work(address, info, i, stopping); }).detach();
  }
  AwaitTermination();
  std::_Exit(0);  // the calls that wait for work need not end
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) {
  CLI::App app("the two sides of a large farm");
  app.require_subcommand(1);
  std::string state, address, label;
  int threads = 32, questions = 20, workers = 1000;
  CLI::App* serve = app.add_subcommand("serve");
  serve->add_option("state", state)->required();
  serve->add_option("--threads", threads);
  serve->add_option("--questions", questions);
  CLI::App* work = app.add_subcommand("work");
  work->add_option("address", address)->required();
  work->add_option("--workers", workers);
  work->add_option("--label", label);
  CLI11_PARSE(app, argc, argv);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return serve->parsed() ? fusion::Serve(state, threads, questions) : fusion::WorkAll(address, workers, label);
}
