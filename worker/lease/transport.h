// Transport: the worker's side of the wire. One implementation uses gRPC; tests have their own.
#ifndef FUSION_WORKER_LEASE_TRANSPORT_H_
#define FUSION_WORKER_LEASE_TRANSPORT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/channel/endpoint.h"
#include "proto/worker.pb.h"
#include "worker/lease/certificate_renewal.h"

namespace fusion {

class Transport {
 public:
  virtual ~Transport() = default;
  virtual absl::StatusOr<v1::SynchronizeResponse> Synchronize(const v1::SynchronizeRequest& request,
                                                              absl::Duration timeout) = 0;
  // Makes a Synchronize in flight return CANCELLED soon, and every later one until `Resume` is called. Any thread may
  // call.
  virtual void Interrupt() = 0;
  virtual void Resume() = 0;

  virtual absl::StatusOr<std::string> ReadBlob(const std::string& digest, int64_t size_bytes) = 0;
  virtual absl::Status WriteBlob(const std::string& digest, const std::string& bytes) = 0;
};

// `renewal`, where given, is of the certificate of `server`, which is looked at before each Synchronize.
std::unique_ptr<Transport> MakeGrpcTransport(const Endpoint& server,
                                             std::unique_ptr<CertificateRenewal> renewal = nullptr);

}  // namespace fusion

#endif  // FUSION_WORKER_LEASE_TRANSPORT_H_
