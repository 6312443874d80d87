// Counts and times every call with an interceptor, so that services need no code for it.
#ifndef FUSION_SERVER_RPC_METRICS_H_
#define FUSION_SERVER_RPC_METRICS_H_

#include <memory>

#include "server/metrics/metrics.h"

namespace grpc::experimental {
class ServerInterceptorFactoryInterface;
}

namespace fusion {

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeRpcMetrics(Metrics* metrics);

}  // namespace fusion

#endif  // FUSION_SERVER_RPC_METRICS_H_
