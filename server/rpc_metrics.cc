#include "server/rpc_metrics.h"

#include <grpcpp/support/server_interceptor.h>

#include <atomic>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/steady_clock.h"

namespace fusion {
namespace {

class RpcMeter : public grpc::experimental::Interceptor {
 public:
  RpcMeter(Metrics* metrics, std::atomic<int>* in_flight, std::string method)
      : metrics_(metrics), in_flight_(in_flight), method_(std::move(method)), start_(SteadyNow()) {
    metrics_->Set(Metric::kRpcInFlight, ++*in_flight_);
  }
  ~RpcMeter() override {
    metrics_->Set(Metric::kRpcInFlight, --*in_flight_);
    metrics_->Count(Metric::kRpcRequests, {{"method", method_}, {"code", code_}});
    metrics_->Observe(Metric::kRpcDuration, absl::ToDoubleSeconds(SteadyNow() - start_), {{"method", method_}});
  }
  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(grpc::experimental::InterceptionHookPoints::PRE_SEND_STATUS)) {
      code_ = absl::StatusCodeToString(static_cast<absl::StatusCode>(methods->GetSendStatus().error_code()));
    }
    methods->Proceed();
  }

 private:
  Metrics* const metrics_;
  std::atomic<int>* const in_flight_;
  const std::string method_;
  const absl::Time start_;
  std::string code_ = "CANCELLED";  // of a call that ends without a status
};

class RpcMeterFactory : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit RpcMeterFactory(Metrics* metrics) : metrics_(metrics) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(grpc::experimental::ServerRpcInfo* info) override {
    return new RpcMeter(metrics_, &in_flight_, info->method());
  }

 private:
  Metrics* const metrics_;
  std::atomic<int> in_flight_{0};
};

}  // namespace

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeRpcMetrics(Metrics* metrics) {
  return std::make_unique<RpcMeterFactory>(metrics);
}

}  // namespace fusion
