#include "server/server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/impl/service_type.h>

#include <atomic>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/status_macros.h"
#include "server/auth/expiry_watch.h"
#include "server/auth/tokens.h"
#include "server/auth/worker_authority.h"
#include "server/bundle_signer.h"
#include "server/byte_budget.h"
#include "server/disk_executor.h"
#include "server/jobs/job_logs.h"
#include "server/local_devices.h"
#include "server/rpc_metrics.h"
#include "server/scheduler/accept_result.h"
#include "server/services.h"
#include "server/state_folder.h"
#include "server/stream_places.h"

namespace fusion {
namespace {

constexpr int kExecutorThreads = 4;
constexpr int kMaxCallThreads = 128;  // for unary calls and blob streams; polls and watches hold no thread
constexpr int kMaxStreams = 96;       // of blobs and profiles; what is left answers other calls
constexpr absl::Duration kCollectEvery = absl::Hours(1);
constexpr absl::Duration kLongestPauseOfStream = absl::Minutes(5);

// Whether the server reports that it serves.
class Serving {
 public:
  // `try_to_store`: Store::TryToStore; `try_to_write`: ArtifactStore::TryToWrite.
  Serving(int64_t least_free_bytes, std::function<int64_t()> free_bytes, std::function<absl::Status()> try_to_store,
          std::function<absl::Status()> try_to_write, Log log)
      : least_free_bytes_(least_free_bytes),
        free_bytes_(std::move(free_bytes)),
        try_to_store_(std::move(try_to_store)),
        try_to_write_(std::move(try_to_write)),
        log_(std::move(log)) {}

  // Fails with RESOURCE_EXHAUSTED, and with DATA_LOSS where the database is damaged.
  absl::Status Room() const {
    {
      absl::MutexLock lock(&mutex_);
      if (!damage_.ok()) return damage_;
    }
    const int64_t free_bytes = free_bytes_();
    if (free_bytes < 0 || free_bytes >= least_free_bytes_) return absl::OkStatus();
    return absl::ResourceExhaustedError(absl::StrCat("the server's disk has ", free_bytes >> 20,
                                                     " MiB left, less than ", least_free_bytes_ >> 20,
                                                     "; free some or give it a larger one"));
  }
  void Begin(grpc::HealthCheckServiceInterface* health) {
    absl::MutexLock lock(&mutex_);
    health_ = health;
  }
  void End() {
    absl::MutexLock lock(&mutex_);
    if (health_ != nullptr) health_->SetServingStatus(false);
    health_ = nullptr;
  }
  // From now on it does not serve, until the next start. The first damage is the one that is named.
  void Damaged(const absl::Status& damage) {
    absl::MutexLock lock(&mutex_);
    if (damage_.ok()) damage_ = damage;
  }
  // Whether the database took the latest commit, of whatever kind. Called by the thread that writes it.
  void Stored(const absl::Status& stored) {
    absl::MutexLock lock(&mutex_);
    stored_ = stored;
  }
  // The disk has not taken a blob or a payload. Any thread may call.
  void FailedToWrite(const absl::Status& error) {
    absl::MutexLock lock(&mutex_);
    written_ = error;
  }
  void Observe(const absl::Status& tasks_stored) {
    absl::Status state = tasks_stored.ok() ? Room() : tasks_stored;
    if (state.ok()) state = LatestCommit();
    if (state.ok()) state = LatestWrite();
    absl::MutexLock lock(&mutex_);
    if (health_ == nullptr || state.ok() == serves_) return;
    serves_ = state.ok();
    health_->SetServingStatus(serves_);
    LogLine line{serves_ ? LogLevel::kInfo : LogLevel::kError, serves_ ? "serves again" : "not serving", {}};
    if (!serves_) line.fields.push_back({"error", state.ToString()});
    log_(line);
  }

 private:
  // Where it failed, tries again once a second: nobody else may write to a server that does not serve.
  absl::Status LatestCommit() {
    constexpr absl::Duration kPause = absl::Seconds(1);
    {
      absl::MutexLock lock(&mutex_);
      if (stored_.ok() || SteadyNow() < next_try_) return stored_;
      next_try_ = SteadyNow() + kPause;
    }
    return try_to_store_();
  }

  // One file that cannot be written may be larger than what is left: nobody else's need be. A server whose disk takes
  // no other either does not serve until it does.
  absl::Status LatestWrite() {
    constexpr absl::Duration kPause = absl::Seconds(1);
    {
      absl::MutexLock lock(&mutex_);
      if (written_.ok() || SteadyNow() < next_write_) return written_;
      next_write_ = SteadyNow() + kPause;
    }
    const absl::Status tried = try_to_write_();
    absl::MutexLock lock(&mutex_);
    return written_ = tried;
  }

  const int64_t least_free_bytes_;
  const std::function<int64_t()> free_bytes_;
  const std::function<absl::Status()> try_to_store_, try_to_write_;
  const Log log_;
  mutable absl::Mutex mutex_;
  absl::Status damage_ ABSL_GUARDED_BY(mutex_), stored_ ABSL_GUARDED_BY(mutex_), written_ ABSL_GUARDED_BY(mutex_);
  absl::Time next_try_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Time next_write_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  grpc::HealthCheckServiceInterface* health_ ABSL_GUARDED_BY(mutex_) = nullptr;  // null: before and after serving
  bool serves_ ABSL_GUARDED_BY(mutex_) = true;
};

// Bounds the threads of calls, and notices callers that are gone.
void Configure(grpc::ServerBuilder* builder) {
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 30000);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5000);
  grpc::ResourceQuota quota("calls");
  quota.SetMaxThreads(kMaxCallThreads);
  builder->SetResourceQuota(quota);
}

// Whoever reaches a socket is its owner. Every other address has TLS and wants tokens, or certificates of workers, or
// the server is insecure: then `authority` is null. A certificate of another authority says nothing about its holder.
Identify IdentifyBy(const TokenBook* tokens, const WorkerAuthority* authority) {
  return [tokens, authority](const Caller& caller) -> absl::StatusOr<Principal> {
    if (absl::StartsWith(caller.peer, "unix:")) return LocalPrincipal(caller);
    if (authority == nullptr) return Principal{"anybody", RoleSet::All()};
    if (caller.authorization.empty() && !caller.certificate.empty()) {
      if (const auto facts = authority->FactsOf(caller.certificate)) return tokens->Identify(*facts);
    }
    return tokens->Identify(caller.authorization);
  };
}

std::string ClientRootsPath(const std::string& state_folder) { return absl::StrCat(state_folder, "/client-roots.pem"); }

}  // namespace

// Keeps the metrics about certificates of a server with TLS, and the authorities that callers may come with. A file
// that is being replaced leaves both as they were.
struct CertificateWatch {
  std::string path;  // of the server's certificate; empty: there is none
  Metrics* metrics;
  const TokenBook* tokens;
  ClientRoots* roots;  // null: callers need no certificate
  Log log;
  absl::Time next = absl::InfinitePast();
  absl::Status roots_kept = absl::OkStatus();
  bool workers_came = false;

  void Look() {
    constexpr absl::Duration kPause = absl::Seconds(2);
    if (path.empty() || SteadyNow() < next) return;
    next = SteadyNow() + kPause;
    if (const auto end = CertificateEnd(path); end.ok())
      metrics->Set(Metric::kCertificateEnd, static_cast<double>(*end));
    const absl::Time first = tokens->FirstEndInUse();
    workers_came = workers_came || first < absl::InfiniteFuture();
    if (workers_came) {
      metrics->Set(Metric::kWorkerCertificateEnd, first < absl::InfiniteFuture()
                                                      ? static_cast<double>(absl::ToUnixSeconds(first))
                                                      : std::numeric_limits<double>::infinity());
    }
    const absl::Status kept = roots == nullptr ? absl::OkStatus() : roots->Look();
    if (!kept.ok() && roots_kept.ok()) {
      log({LogLevel::kError, "the authorities of callers stay as they were", {{"error", kept.ToString()}}});
    }
    roots_kept = kept;
  }
};

// Members are in order of construction; destruction goes backwards.
struct Server::State {
  StateFolderLock lock;
  std::unique_ptr<Metrics> metrics = std::make_unique<Metrics>();
  std::unique_ptr<Store> store;
  std::unique_ptr<ArtifactStore> artifacts;
  std::unique_ptr<JobLogs> logs;
  std::unique_ptr<Serving> serving;
  std::atomic<bool> starting = true;
  absl::Status damage_at_start;  // of the database
  std::unique_ptr<TokenBook> tokens;
  std::unique_ptr<WorkerAuthority> authority;  // null: no TLS
  std::unique_ptr<ClientRoots> client_roots;   // null: callers need no certificate
  std::unique_ptr<Retention> retention;        // its thread uses what stands above
  std::unique_ptr<Farm> farm;
  std::unique_ptr<JobRunner> jobs;
  std::unique_ptr<DiskExecutor> executor;
  std::unique_ptr<StreamPlaces> streams;
  std::unique_ptr<ByteBudget> uploads;
  std::unique_ptr<BundleSigner> signer;
  std::unique_ptr<Guard> guard;
  std::unique_ptr<ExpiryWatch> expiry;
  std::vector<std::unique_ptr<grpc::Service>> services;
  std::unique_ptr<grpc::Server> grpc;
  std::vector<std::string> addresses;
  int metrics_port = 0;
  bool stopped = false;

  // The steps of Start, in order.
  absl::Status OpenFolder(ServerOptions* options);
  absl::Status OpenStores(const ServerOptions& options);
  void MakeJobs(const ServerOptions& options, const CompilerFunctions& compiler);
  absl::Status OpenCertificates(const ServerOptions& options);
  absl::Status Listen(const ServerOptions& options, grpc::ServerBuilder* builder, std::vector<int>* ports);
  absl::Status AddServices(const ServerOptions& options, grpc::ServerBuilder* builder);
  // Fails where the disk has too little room for another job or blob.
  std::function<absl::Status()> Room() const {
    return [reported = serving.get()] { return reported->Room(); };
  }
};

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}
Server::~Server() { Shutdown(absl::Seconds(1)); }
const std::vector<std::string>& Server::addresses() const { return state_->addresses; }
int Server::metrics_port() const { return state_->metrics_port; }
Metrics& Server::metrics() { return *state_->metrics; }

// Takes the folder. From then on what the log says about a job is also kept with it.
absl::Status Server::State::OpenFolder(ServerOptions* options) {
  ASSIGN_OR_RETURN(lock, StateFolderLock::Take(options->state_folder, options->allow_network_fs));
  ASSIGN_OR_RETURN(logs, JobLogs::Open(absl::StrCat(options->state_folder, "/logs")));
  options->log = logs->Tee(options->log);
  return absl::OkStatus();
}

// Opens the database and its files, and restores the tasks that are in them.
absl::Status Server::State::OpenStores(const ServerOptions& options) {
  metrics->Set(Metric::kBuildInfo, 1, {{"version", kServerVersion}});
  SqliteStoreOptions database;
  database.on_commit = [counted = metrics.get()](double seconds, int) {
    counted->Observe(Metric::kDbCommitDuration, seconds);
  };
  database.on_failed_sync = options.on_failed_sync;
  // Damage that the start meets makes it fail.
  database.on_damage = [this](const absl::Status& damage) {
    if (starting) damage_at_start = damage;
    if (serving != nullptr) serving->Damaged(damage);
  };
  database.on_stored = [this](const absl::Status& stored) {
    if (serving != nullptr) serving->Stored(stored);
  };
  ASSIGN_OR_RETURN(store, OpenSqliteStore(absl::StrCat(options.state_folder, "/fusion.db"), std::move(database)));
  ASSIGN_OR_RETURN(artifacts, ArtifactStore::Open(absl::StrCat(options.state_folder, "/blobs"), store.get()));
  artifacts->OnFailedSync(options.on_failed_sync);
  artifacts->OnFailedWrite([this](const absl::Status& error) {
    if (serving != nullptr) serving->FailedToWrite(error);
  });
  retention = std::make_unique<Retention>(store.get(), artifacts.get(), options.retention, options.log);
  retention->AlsoExpire([kept = logs.get()](int64_t before_ms) { kept->Expire(before_ms); });
  farm = std::make_unique<Farm>(
      store.get(), artifacts.get(), metrics.get(),
      [files = artifacts.get()](const TaskRow& task, const std::string& payload, const std::string& result,
                                const AttachedWorker& worker) {
        return AcceptTaskResult(*files, task, payload, result, worker);
      },
      options.scheduler, options.log);
  return farm->Restore();
}

// Makes what compiles, and what reports whether there is room for it.
void Server::State::MakeJobs(const ServerOptions& options, const CompilerFunctions& compiler) {
  const std::function<int64_t()> free_bytes =
      options.free_bytes ? options.free_bytes : [files = artifacts.get()] { return files->FreeBytes(); };
  serving = std::make_unique<Serving>(
      options.least_free_bytes, free_bytes, [database = store.get()] { return database->TryToStore(); },
      [files = artifacts.get()] { return files->TryToWrite(); }, options.log);
  retention->OnDamage([reported = serving.get()](const absl::Status& damage) { reported->Damaged(damage); });
  farm->SetObserver([reported = serving.get(),
                     watch = CertificateWatch{options.tls.certificate, metrics.get(), tokens.get(), client_roots.get(),
                                              options.log}](const absl::Status& stored) mutable {
    reported->Observe(stored);
    watch.Look();
  });
  JobRunnerOptions job_options{absl::StrCat(options.state_folder, "/work"), options.compile_threads,
                               options.first_worker_grace, nullptr, options.log};
  job_options.max_in_flight = options.jobs_per_caller;
  job_options.logs = logs.get();
  job_options.room = Room();
  if (const LocalDevices* devices = options.local_devices; devices != nullptr) {
    job_options.is_expected = [devices](const std::string& kind) { return devices->IsExpected(kind); };
  }
  jobs = std::make_unique<JobRunner>(job_options, compiler, store.get(), artifacts.get(), farm.get(), metrics.get());
  executor = std::make_unique<DiskExecutor>(kExecutorThreads);
}

// Who calls: tokens, and with TLS the authority of workers' certificates.
absl::Status Server::State::OpenCertificates(const ServerOptions& options) {
  const TokenBook::Clock clock = options.wall_clock ? options.wall_clock : absl::Now;
  ASSIGN_OR_RETURN(tokens, TokenBook::Open(store.get(), clock));
  if (!options.tls.any() || options.insecure) return absl::OkStatus();
  ASSIGN_OR_RETURN(authority, WorkerAuthority::Open(options.state_folder, clock));
  retention->AlsoBackUp(WorkerAuthorityCertificates(options.state_folder));
  if (options.tls.client_ca.empty()) return absl::OkStatus();
  client_roots = std::make_unique<ClientRoots>(options.tls.client_ca, authority->certificates(),
                                               ClientRootsPath(options.state_folder));
  return client_roots->Look();
}

// Adds the addresses to the builder, which sets `ports`, parallel to them, when it starts. Refuses an address where
// strangers could do everything.
absl::Status Server::State::Listen(const ServerOptions& options, grpc::ServerBuilder* builder,
                                   std::vector<int>* ports) {
  const std::shared_ptr<grpc::ServerCredentials> plain = grpc::InsecureServerCredentials();
  std::shared_ptr<grpc::ServerCredentials> tcp = plain;
  if (options.tls.any()) {
    if (options.insecure) {
      return absl::InvalidArgumentError("--insecure is for servers without TLS: leave it out, or --tls-cert");
    }
    ASSIGN_OR_RETURN(tcp, TlsServerCredentialsOf(options.tls, ClientRootsPath(options.state_folder)));
  }
  ports->assign(options.listen.size(), 0);
  for (size_t i = 0; i < options.listen.size(); ++i) {
    const std::string& address = options.listen[i];
    RETURN_IF_ERROR(CheckListenAddress(address));
    if (!IsUnixAddress(address) && !options.tls.any() && !options.insecure) {
      return absl::InvalidArgumentError(
          absl::StrCat("whoever reaches ", address,
                       " could do everything: encrypt it with --tls-cert and --tls-key, so that "
                       "callers need tokens, or say --insecure"));
    }
    if (options.insecure) {
      options.log({LogLevel::kWarning,
                   "--insecure: whoever reaches this address may do everything, unencrypted",
                   {{"address", address}}});
    } else if (IsUnixAddress(address)) {
      RETURN_IF_ERROR(CheckSocketIsPrivate(address));
    }
    builder->AddListeningPort(address, IsUnixAddress(address) ? plain : tcp, &(*ports)[i]);
  }
  return absl::OkStatus();
}

// Makes the services behind their guard, and gives them to the builder.
absl::Status Server::State::AddServices(const ServerOptions& options, grpc::ServerBuilder* builder) {
  retention->AlsoExpire([book = tokens.get(), log = options.log](int64_t before_ms) {
    if (const absl::Status removed = book->RemoveOld(before_ms); !removed.ok()) {
      log({LogLevel::kError, "cannot remove old tokens", {{"error", removed.ToString()}}});
    }
  });
  guard = std::make_unique<Guard>(options.identify ? options.identify : IdentifyBy(tokens.get(), authority.get()),
                                  options.log);
  expiry = std::make_unique<ExpiryWatch>(tokens.get(), guard.get());
  streams = std::make_unique<StreamPlaces>(kMaxStreams, options.streams_per_caller, kLongestPauseOfStream);
  uploads = std::make_unique<ByteBudget>(options.upload_bytes_per_caller);
  services.push_back(MakeAdminService(guard.get(), retention.get()));
  services.push_back(
      MakeAuthService(guard.get(), tokens.get(), authority.get(), options.worker_certificate_lifetime, options.log));
  services.push_back(MakeCompileService(guard.get(), jobs.get(), store.get(), farm.get(), executor.get(),
                                        options.local_devices, logs.get(), options.compilation_limits));
  services.push_back(
      MakeBlobService(guard.get(), artifacts.get(), metrics.get(), streams.get(), uploads.get(), Room()));
  ASSIGN_OR_RETURN(signer, BundleSigner::Open(options.sign_with));
  services.push_back(MakeSignatureService(guard.get(), store.get(), artifacts.get(), signer.get(), options.log));
  services.push_back(MakeWorkerService(guard.get(), farm.get(), artifacts.get(), executor.get(), logs.get()));
  services.push_back(MakeWorkerAdminService(guard.get(), farm.get(), tokens.get()));
  services.push_back(MakeProfileService(guard.get(), store.get(), jobs.get(), farm.get(), streams.get()));
  for (auto& service : services) builder->RegisterService(service.get());
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> interceptors;
  interceptors.push_back(MakeRpcMetrics(metrics.get()));
  builder->experimental().SetInterceptorCreators(std::move(interceptors));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& given, const CompilerFunctions& compiler) {
  auto state = std::make_unique<State>();
  ServerOptions options = given;
  RETURN_IF_ERROR(state->OpenFolder(&options));
  // The words of damage say what to do about it; those of the statement that met it do not.
  const auto told = [&](const absl::Status& status) {
    return status.ok() || state->damage_at_start.ok() ? status : state->damage_at_start;
  };
  RETURN_IF_ERROR(told(state->OpenStores(options)));
  RETURN_IF_ERROR(state->OpenCertificates(options));
  state->MakeJobs(options, compiler);
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  Configure(&builder);
  std::vector<int> ports;
  RETURN_IF_ERROR(state->Listen(options, &builder, &ports));
  RETURN_IF_ERROR(state->AddServices(options, &builder));
  if (!options.metrics_address.empty()) {
    ASSIGN_OR_RETURN(state->metrics_port, state->metrics->Serve(options.metrics_address));
  }
  RETURN_IF_ERROR(told(state->jobs->Restore()));
  state->starting = false;
  state->farm->Start();
  state->grpc = builder.BuildAndStart();
  std::unique_ptr<Server> server(new Server(std::move(state)));
  State& started = *server->state_;
  for (size_t i = 0; i < options.listen.size(); ++i) {
    if (started.grpc == nullptr || ports[i] == 0) {
      return absl::UnavailableError(
          absl::StrCat("cannot listen on ", options.listen[i], ": the address is in use or not ours"));
    }
    started.addresses.push_back(WithPort(options.listen[i], ports[i]));
  }
  if (started.grpc == nullptr) return absl::InternalError("gRPC did not start");
  started.serving->Begin(started.grpc->GetHealthCheckService());
  started.jobs->Start();
  started.retention->Start(kCollectEvery);
  return server;
}

void Server::Shutdown(absl::Duration grace) {
  if (state_->stopped) return;
  state_->stopped = true;
  if (state_->serving != nullptr) state_->serving->End();
  state_->jobs->BeginStop();
  state_->farm->Stop();
  state_->jobs->Stop();
  if (state_->grpc != nullptr) {
    state_->grpc->Shutdown(absl::ToChronoTime(absl::Now() + grace));
    state_->grpc->Wait();
  }
  state_->executor.reset();
}

}  // namespace fusion
