// Counts and times every call, as an interceptor, so that no service thinks of it.
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
