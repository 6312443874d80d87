// Makes gRPC's channel of an Endpoint, and tells people why it does not connect.
#ifndef FUSION_PROTO_CHANNEL_CHANNEL_H_
#define FUSION_PROTO_CHANNEL_CHANNEL_H_

#include <grpcpp/channel.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/status.h>

#include <memory>

#include "absl/status/status.h"
#include "proto/channel/endpoint.h"

namespace fusion {

// Does not connect yet. With TLS the server's certificate must come from a trusted authority and name the host of the
// address; certificates and authorities are read again when their files change.
std::shared_ptr<grpc::Channel> MakeChannel(const Endpoint& endpoint, const grpc::ChannelArguments& arguments);

// A failed call in words. UNAVAILABLE names the address and the last cause; a server that is not trusted, or that does
// not trust this caller, becomes UNAUTHENTICATED and says what to do. A delay after
// which the server wants to be asked again is kept (proto/retry/retry_info.h).
absl::Status CallError(const Endpoint& endpoint, const grpc::Status& status);

}  // namespace fusion

#endif  // FUSION_PROTO_CHANNEL_CHANNEL_H_
