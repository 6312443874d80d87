// The gRPC services. Each has its own translation unit, because gRPC's headers are heavy. Their arguments must outlive
// them.
#ifndef FUSION_SERVER_SERVICES_H_
#define FUSION_SERVER_SERVICES_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/log/log.h"

namespace grpc {
class Service;
}

namespace fusion {

class ArtifactStore;
class BundleSigner;
class ByteBudget;
class DiskExecutor;
class Farm;
class Guard;
class JobLogs;
class JobRunner;
class LocalDevices;
class Metrics;
class Retention;
class Store;
class StreamPlaces;
class TokenBook;
class WorkerAuthority;

extern const char kServerVersion[];  // the project's version, from CMakeLists.txt

// `devices` and `logs` may be null; so may `authority`: workers that join then get tokens. `room` fails with
// RESOURCE_EXHAUSTED if the disk is too full to take uploads.
std::unique_ptr<grpc::Service> MakeAdminService(Guard* guard, Retention* retention);
std::unique_ptr<grpc::Service> MakeAuthService(Guard* guard, TokenBook* tokens, const WorkerAuthority* authority,
                                               absl::Duration certificate_lifetime, Log log);
std::unique_ptr<grpc::Service> MakeCompileService(Guard* guard, JobRunner* jobs, Store* store, Farm* farm,
                                                  DiskExecutor* executor, const LocalDevices* devices, JobLogs* logs,
                                                  const std::string& compilation_limits);
std::unique_ptr<grpc::Service> MakeBlobService(Guard* guard, ArtifactStore* artifacts, Metrics* metrics,
                                               StreamPlaces* streams, ByteBudget* budget,
                                               std::function<absl::Status()> room);
std::unique_ptr<grpc::Service> MakeSignatureService(Guard* guard, Store* store, ArtifactStore* artifacts,
                                                    const BundleSigner* signer, Log log);
std::unique_ptr<grpc::Service> MakeWorkerService(Guard* guard, Farm* farm, ArtifactStore* artifacts,
                                                 DiskExecutor* executor, JobLogs* logs);
std::unique_ptr<grpc::Service> MakeWorkerAdminService(Guard* guard, Farm* farm, const TokenBook* tokens);
std::unique_ptr<grpc::Service> MakeProfileService(Guard* guard, Store* store, JobRunner* jobs, Farm* farm,
                                                  StreamPlaces* streams);

}  // namespace fusion

#endif  // FUSION_SERVER_SERVICES_H_
