// Tests what a worker's certificate is worth, and to whom, on a server with TLS, with the worker's own way of joining,
// calling and renewing, by a clock that the test sets.
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/admin.grpc.pb.h"
#include "proto/auth.grpc.pb.h"
#include "proto/channel/channel.h"
#include "proto/channel/testing/made_certificate.h"
#include "proto/channel/worker_certificate.h"
#include "proto/compile.grpc.pb.h"
#include "proto/worker.grpc.pb.h"
#include "runtime/base/atomic_file.h"
#include "server/auth/worker_authority.h"
#include "server/server.h"
#include "server/testing/fake_compile.h"
#include "server/testing/test_client.h"
#include "worker/lease/join.h"
#include "worker/lease/transport.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kDay = absl::Hours(24);

std::string Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class WorkerCertificatesTest : public ::testing::Test {
 protected:
  WorkerCertificatesTest() : folder_(absl::StrCat(::testing::TempDir(), "worker_certificates_", getpid())) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    std::filesystem::permissions(folder_, std::filesystem::perms::owner_all);
    testing::CertificateWish host{"server"};
    host.hosts = "DNS:localhost";
    host.issuer = &operators_;
    const testing::MadeCertificate server = testing::Make(host);
    Write("server.pem", server.certificate);
    Write("server.key", server.key);
    Write("ca.pem", operators_.certificate);
    Start();
  }
  ~WorkerCertificatesTest() override {
    server_.reset();
    std::filesystem::remove_all(folder_);
  }

  std::string Path(const std::string& name) const { return absl::StrCat(folder_, "/", name); }
  void Write(const std::string& name, const std::string& text) const {
    ASSERT_TRUE(WriteFileAtomically(Path(name), text, 0600).ok());
  }

  // A server over `state`, at the port that it had before. Callers need a certificate if `demand`.
  void Start(bool demand = false, const std::string& state = "state") {
    server_.reset();
    ServerOptions options;
    options.state_folder = Path(state);
    options.listen = {absl::StrCat("unix:", Path("s")), absl::StrCat("localhost:", port_)};
    options.tls = {Path("server.pem"), Path("server.key"), demand ? Path("ca.pem") : ""};
    options.scheduler.lease = options.scheduler.heartbeat = absl::Hours(1);
    options.wall_clock = [this] { return Now(); };
    options.log = Log();
    auto server = Server::Start(options, {FakeCompile, FakePlan, {"dnnfusion", "none"}, FakeCheckRule});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    const std::vector<std::string> parts = absl::StrSplit(server_->addresses()[1], ':');
    port_ = std::stoi(parts.back());
    owner_ = grpc::CreateCustomChannel(absl::StrCat("unix:", Path("s")), grpc::InsecureChannelCredentials(), Apart());
  }
  static grpc::ChannelArguments Apart() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 200);
    return arguments;
  }
  absl::Time Now() const { return start_ + absl::Seconds(passed_s_.load()); }
  void Pass(absl::Duration time) { passed_s_ += absl::ToInt64Seconds(time); }
  fusion::Log Log() {
    return [this](const LogLine& line) {
      absl::MutexLock lock(&mutex_);
      log_.push_back(line.message);
    };
  }

  // A file with a join token, by the server's owner.
  std::string JoinToken(int64_t most = 0, std::string* id = nullptr) {
    v1::CreateTokenRequest request;
    request.set_name("rack");
    request.add_roles("measure");
    request.set_join(true);
    request.set_most_joins(most);
    v1::CreateTokenResponse made;
    grpc::ClientContext context;
    EXPECT_TRUE(v1::Auth::NewStub(owner_)->CreateToken(&context, request, &made).ok());
    if (id != nullptr) *id = made.info().id();
    Write("join", made.token());
    return Path("join");
  }
  Endpoint Address() const {
    Endpoint server;
    server.address = absl::StrCat("localhost:", port_);
    server.tls = true;
    server.ca_file = Path("ca.pem");
    return server;
  }
  absl::StatusOr<Joined> TryJoin(const std::string& name, const std::string& token) {
    return Join(Address(), token, Path(name), name, Now(), Log());
  }
  Endpoint JoinAs(const std::string& name) {
    const absl::StatusOr<Joined> joined = TryJoin(name, JoinToken());
    EXPECT_TRUE(joined.ok()) << joined.status();
    EXPECT_TRUE(joined->certificate);
    return joined->server;
  }
  std::unique_ptr<Transport> Worker(const Endpoint& server) {
    return MakeGrpcTransport(server, std::make_unique<CertificateRenewal>(
                                         server.certificate_file, server.key_file, [this] { return Now(); }, Log()));
  }
  static absl::Status Call(Transport* worker, absl::Duration hold = absl::ZeroDuration()) {
    v1::SynchronizeRequest request;
    request.set_worker_id("w");
    *request.mutable_info() = CpuWorkerInfo("w");
    request.mutable_info()->clear_toolchains();
    request.set_max_wait_ms(absl::ToInt64Milliseconds(hold));
    return worker->Synchronize(request, hold + absl::Seconds(20)).status();
  }
  // A call of one who has this certificate and key, and nothing else.
  absl::Status CallWith(const std::string& certificate, const std::string& key) {
    static int count = 0;
    const std::string name = absl::StrCat("caller", count++);
    Write(name + ".pem", certificate);
    Write(name + ".key", key);
    Endpoint caller = Address();
    caller.certificate_file = Path(name + ".pem");
    caller.key_file = Path(name + ".key");
    return Call(MakeGrpcTransport(caller).get());
  }
  std::vector<v1::TokenInfo> Listed() {
    v1::ListTokensResponse listed;
    grpc::ClientContext context;
    EXPECT_TRUE(v1::Auth::NewStub(owner_)->ListTokens(&context, {}, &listed).ok());
    return {listed.tokens().begin(), listed.tokens().end()};
  }
  v1::TokenInfo TheCertificate() {
    for (const v1::TokenInfo& row : Listed()) {
      if (row.certificate()) return row;
    }
    return {};
  }
  void Revoke(const std::string& id, bool with_joined = false) {
    v1::RevokeTokenRequest request;
    request.set_id(id);
    request.set_with_joined(with_joined);
    v1::TokenInfo revoked;
    grpc::ClientContext context;
    EXPECT_TRUE(v1::Auth::NewStub(owner_)->RevokeToken(&context, request, &revoked).ok());
  }
  v1::WorkerStatus Attached() {
    v1::ListWorkersResponse workers;
    grpc::ClientContext context;
    EXPECT_TRUE(v1::WorkerAdmin::NewStub(owner_)->ListWorkers(&context, {}, &workers).ok());
    return workers.workers_size() == 1 ? workers.workers(0) : v1::WorkerStatus();
  }
  static void Refused(const absl::Status& status, const char* words) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  }

  const std::string folder_;
  const testing::MadeCertificate operators_ = [] {
    testing::CertificateWish authority{"the operator's authority"};
    authority.authority = true;
    return testing::Make(authority);
  }();
  const absl::Time start_ = absl::FromUnixSeconds(absl::ToUnixSeconds(absl::Now()));
  std::atomic<int64_t> passed_s_{0};
  int port_ = 0;
  absl::Mutex mutex_;
  std::vector<std::string> log_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> owner_;
};

TEST_F(WorkerCertificatesTest, AWorkerComesBackWithItsCertificateAfterRestartsOfBoth) {
  const Endpoint server = JoinAs("one");
  EXPECT_THAT(ReadSecretFile(server.key_file).value_or(""), HasSubstr("PRIVATE KEY")) << "or others may read it";
  EXPECT_TRUE(server.token.empty() && server.token_file.empty());
  auto worker = Worker(server);
  EXPECT_TRUE(Call(worker.get()).ok());
  const v1::WorkerStatus status = Attached();
  EXPECT_EQ(status.known_by(), "certificate");
  EXPECT_EQ(status.known_until_ms(), absl::ToUnixMillis(start_ + 30 * kDay));
  EXPECT_EQ(status.source(), "token worker one");
  for (const bool demand : {false, true}) {
    Start(demand);
    const absl::StatusOr<Joined> again = TryJoin("one", Path("gone"));
    ASSERT_TRUE(again.ok()) << again.status() << ": no join token is needed twice";
    worker = Worker(again->server);
    const absl::Status called = Call(worker.get());
    EXPECT_TRUE(called.ok()) << called << " of a server that " << (demand ? "demands" : "takes") << " certificates";
  }
  ASSERT_EQ(Listed().size(), 2u);
  const v1::TokenInfo row = TheCertificate();
  EXPECT_EQ(row.name(), "worker one");
  EXPECT_EQ(absl::StrCat("fus_", row.parent()), Read(Path("join")).substr(0, 14));
}

TEST_F(WorkerCertificatesTest, ACertificateIsRenewedBeforeItEndsAndWithoutARestart) {
  const Endpoint server = JoinAs("one");
  auto worker = Worker(server);
  ASSERT_TRUE(Call(worker.get()).ok());
  const std::string first = Read(server.certificate_file), key = Read(server.key_file);
  for (int month = 1; month <= 4; ++month) {
    Pass(21 * kDay);
    const absl::Status called = Call(worker.get());
    ASSERT_TRUE(called.ok()) << called << " after " << 21 * month << " days";
  }
  EXPECT_NE(Read(server.certificate_file), first);
  EXPECT_EQ(Read(server.key_file), key);
  EXPECT_EQ(Listed().size(), 2u) << "it stays one worker";
  EXPECT_EQ(Attached().known_until_ms(), absl::ToUnixMillis(Now() + 30 * kDay));
  Refused(CallWith(first, key), "expired on");
}

TEST_F(WorkerCertificatesTest, AnExpiredCertificateIsRefusedAndSaysWhatToDo) {
  const Endpoint server = JoinAs("one");
  Pass(30 * kDay);
  Refused(CallWith(Read(server.certificate_file), Read(server.key_file)), "expired on");
  Refused(Call(Worker(server).get()), "--join-token-file");
  const absl::StatusOr<Joined> alone = TryJoin("one", Path("gone"));
  ASSERT_TRUE(alone.ok()) << alone.status();
  Refused(Call(Worker(alone->server).get()), "--join-token-file");
  EXPECT_TRUE(Call(Worker(JoinAs("one")).get()).ok()) << "with another join token";
}

TEST_F(WorkerCertificatesTest, ARevokedCertificateEndsItsOpenCallsAndComesBackNeverMore) {
  std::string join_id;
  const absl::StatusOr<Joined> joined = TryJoin("one", JoinToken(0, &join_id));
  ASSERT_TRUE(joined.ok()) << joined.status();
  auto worker = Worker(joined->server);
  ASSERT_TRUE(Call(worker.get()).ok());
  absl::Status open;
  std::thread call([&] { open = Call(worker.get(), absl::Seconds(50)); });
  while (Attached().state() != "idle") absl::SleepFor(absl::Milliseconds(10));
  absl::SleepFor(absl::Milliseconds(200));  // until the call is held; one that comes later is refused as well
  Revoke(join_id, /*with_joined=*/true);
  call.join();
  EXPECT_FALSE(open.ok());
  Refused(Call(worker.get()), "was revoked on");
  Start();
  Refused(Call(Worker(joined->server).get()), "was revoked on");
  Pass(20 * kDay);
  Refused(Call(Worker(joined->server).get()), "was revoked on");
  EXPECT_TRUE(TryJoin("one", Path("join")).ok()) << "its files are there, and worth nothing";
  Refused(Call(Worker(joined->server).get()), "was revoked on");
}

TEST_F(WorkerCertificatesTest, ACertificateOfAnotherAuthorityWithTheSameNamesIsNobodys) {
  const Endpoint server = JoinAs("one");
  const std::string id = TheCertificate().id(), key = Read(server.key_file);
  ASSERT_EQ(ReadCertificateFacts(Read(server.certificate_file))->name, id);
  const std::string issuer = ReadCertificateFacts(Read(WorkerAuthorityCertificates(Path("state"))))->name;
  testing::CertificateWish authority{issuer};
  authority.authority = true;
  const testing::MadeCertificate impostor = testing::Make(authority);
  for (const testing::MadeCertificate* by : {&impostor, &operators_}) {
    testing::CertificateWish worker{id, by};
    const testing::MadeCertificate strangers = testing::Make(worker);
    worker.key = key;  // even with the worker's own key
    const testing::MadeCertificate own = testing::Make(worker);
    for (const testing::MadeCertificate* made : {&strangers, &own}) {
      Refused(CallWith(made->certificate, made->key), "wants a token");
    }
  }
  // Where certificates are demanded, one of the operator's authority connects, and one of another does not.
  Start(/*demand=*/true);
  const testing::MadeCertificate of_operator = testing::Make({id, &operators_}),
                                 of_impostor = testing::Make({id, &impostor});
  Refused(CallWith(of_operator.certificate, of_operator.key), "wants a token");
  EXPECT_EQ(CallWith(of_impostor.certificate, of_impostor.key).code(), absl::StatusCode::kUnavailable);
}

TEST_F(WorkerCertificatesTest, AStolenKeyOfTheAuthorityMakesNobody) {
  const Endpoint server = JoinAs("one");
  const testing::MadeCertificate authority{Read(WorkerAuthorityCertificates(Path("state"))),
                                           Read(WorkerAuthorityKey(Path("state")))};
  ASSERT_TRUE(IsCertificateOfKey(authority.certificate, authority.key)) << "this test has the wrong files";
  const testing::MadeCertificate forged = testing::Make({TheCertificate().id(), &authority});
  Refused(CallWith(forged.certificate, forged.key), "does not know this worker's certificate");
}

TEST_F(WorkerCertificatesTest, AWorkersCertificateIsNoClientsAndNoAdministrators) {
  const Endpoint server = JoinAs("one");
  const auto channel = MakeChannel(server, Apart());
  grpc::ClientContext submits, revokes, creates, backs_up, joins, renews;
  v1::SubmitResponse submitted;
  v1::TokenInfo revoked;
  v1::CreateTokenResponse made;
  v1::BackUpRequest folder;
  const auto denied = [](const grpc::Status& status, const char* role) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(role));
  };
  denied(v1::Compile::NewStub(channel)->Submit(&submits, {}, &submitted), "needs client");
  const auto auth = v1::Auth::NewStub(channel);
  denied(auth->RevokeToken(&revokes, {}, &revoked), "needs admin");
  denied(auth->CreateToken(&creates, {}, &made), "needs admin");
  denied(auth->Join(&joins, {}, &made), "needs join");
  EXPECT_TRUE(auth->RenewCertificate(&renews, {}, &made).ok());
  // It measures, and its join token did not say that it builds.
  v1::SynchronizeRequest request;
  request.set_worker_id("w");
  *request.mutable_info() = CpuWorkerInfo("w");
  EXPECT_EQ(Worker(server)->Synchronize(request, absl::Seconds(20)).status().code(),
            absl::StatusCode::kPermissionDenied);
}

TEST_F(WorkerCertificatesTest, AStolenJoinAnswerIsWorthNothingWithoutTheKey) {
  const std::string key = NewPrivateKey().value(), mine = NewPrivateKey().value();
  Endpoint joining = Address();
  joining.token_file = JoinToken();
  v1::JoinRequest request;
  request.set_name("one");
  request.set_certificate_request(CertificateRequest(key).value());
  v1::CreateTokenResponse answer;
  grpc::ClientContext context, again;
  ASSERT_TRUE(v1::Auth::NewStub(MakeChannel(joining, Apart()))->Join(&context, request, &answer).ok());
  EXPECT_TRUE(CallWith(answer.certificate(), key).ok());
  EXPECT_EQ(answer.token(), "");
  EXPECT_THAT(answer.DebugString(), ::testing::Not(HasSubstr("PRIVATE")));

  // With another key, and with one that claims to be the certificate's.
  EXPECT_FALSE(CallWith(answer.certificate(), mine).ok());
  const std::string forged = testing::KeyThatClaims(answer.certificate(), mine);
  ASSERT_TRUE(IsCertificateOfKey(answer.certificate(), forged));
  EXPECT_FALSE(CallWith(answer.certificate(), forged).ok());
  // As a token.
  Endpoint bearer = Address();
  bearer.token = answer.info().id();
  Refused(Call(MakeGrpcTransport(bearer).get()), "does not know this token");
  // The request, sent again by one who has it and the join token: the answer is for the same key.
  v1::CreateTokenResponse other;
  ASSERT_TRUE(v1::Auth::NewStub(MakeChannel(joining, Apart()))->Join(&again, request, &other).ok());
  EXPECT_EQ(other.info().id(), answer.info().id()) << "a worker that asks again is the same one";
  EXPECT_FALSE(CallWith(other.certificate(), mine).ok());
}

TEST_F(WorkerCertificatesTest, AJoinTokenBringsSoManyCertificates) {
  std::string join_id;
  const std::string token = JoinToken(2, &join_id);
  ASSERT_TRUE(TryJoin("one", token).ok());
  ASSERT_TRUE(TryJoin("two", token).ok());
  EXPECT_EQ(TryJoin("three", token).status().code(), absl::StatusCode::kResourceExhausted);
  Pass(31 * kDay);
  EXPECT_TRUE(TryJoin("three", token).ok()) << "those of before have expired";
  Revoke(join_id);
  EXPECT_EQ(TryJoin("four", token).status().code(), absl::StatusCode::kUnauthenticated);
  Endpoint joining = Address();
  joining.token_file = JoinToken();
  v1::JoinRequest request;
  request.set_name("five");
  request.set_certificate_request("no request");
  v1::CreateTokenResponse answer;
  grpc::ClientContext context;
  EXPECT_EQ(v1::Auth::NewStub(MakeChannel(joining, Apart()))->Join(&context, request, &answer).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(WorkerCertificatesTest, AnOlderWorkerGetsAToken) {
  Endpoint joining = Address();
  joining.token_file = JoinToken();
  v1::JoinRequest request;
  request.set_name("old");
  v1::CreateTokenResponse answer;
  grpc::ClientContext context;
  ASSERT_TRUE(v1::Auth::NewStub(MakeChannel(joining, Apart()))->Join(&context, request, &answer).ok());
  EXPECT_EQ(answer.certificate(), "");
  EXPECT_EQ(answer.info().expires_ms(), 0);
  Endpoint bearer = Address();
  bearer.token = answer.token();
  EXPECT_TRUE(Call(MakeGrpcTransport(bearer).get()).ok());
  EXPECT_EQ(Attached().known_by(), "token");
  // It has nothing to renew.
  v1::CreateTokenResponse renewed;
  grpc::ClientContext renews;
  EXPECT_EQ(v1::Auth::NewStub(MakeChannel(bearer, Apart()))->RenewCertificate(&renews, {}, &renewed).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(WorkerCertificatesTest, ABackupKnowsTheWorkersAndHoldsNoKey) {
  const Endpoint server = JoinAs("one");
  v1::BackUpRequest request;
  request.set_folder(Path("backup"));
  grpc::ClientContext context;
  auto reader = v1::Admin::NewStub(owner_)->BackUp(&context, request);
  for (v1::BackUpProgress progress; reader->Read(&progress);) {
  }
  ASSERT_TRUE(reader->Finish().ok());
  EXPECT_FALSE(std::filesystem::exists(WorkerAuthorityKey(Path("backup"))));
  Start(/*demand=*/true, "backup");
  const absl::Status called = Call(Worker(server).get());
  EXPECT_TRUE(called.ok()) << called;
  EXPECT_NE(Read(WorkerAuthorityKey(Path("backup"))), Read(WorkerAuthorityKey(Path("state"))));
  Start(/*demand=*/false, "backup");  // else gRPC judges the certificate, too, and by the machine's clock
  Pass(21 * kDay);
  EXPECT_TRUE(Call(Worker(server).get()).ok()) << "renewed by another key";
}

}  // namespace
}  // namespace fusion
