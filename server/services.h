// The gRPC services, each in a translation unit of its own because gRPC's headers are heavy. What they are given
// outlives them.
#ifndef FUSION_SERVER_SERVICES_H_
#define FUSION_SERVER_SERVICES_H_

#include <memory>
#include <string>

namespace grpc {
class Service;
}

namespace fusion {

class ArtifactStore;
class Executor;
class Farm;
class JobRunner;
class LocalDevices;
class Metrics;
class Store;

extern const char kServerVersion[];  // that of the project, in CMakeLists.txt

// `devices` may be null.
std::unique_ptr<grpc::Service> MakeCompileService(JobRunner* jobs, Store* store, Farm* farm, Executor* executor,
                                                  const LocalDevices* devices);
std::unique_ptr<grpc::Service> MakeBlobService(ArtifactStore* artifacts, Metrics* metrics);
std::unique_ptr<grpc::Service> MakeWorkerService(Farm* farm, ArtifactStore* artifacts, Executor* executor);
std::unique_ptr<grpc::Service> MakeWorkerAdminService(Farm* farm);
std::unique_ptr<grpc::Service> MakeProfileService(Store* store, JobRunner* jobs);

}  // namespace fusion

#endif  // FUSION_SERVER_SERVICES_H_
