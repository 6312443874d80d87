// How a worker's channel behaves: for its transport, and for programs that stand in for workers.
#ifndef FUSION_WORKER_LEASE_WORKER_CHANNEL_H_
#define FUSION_WORKER_LEASE_WORKER_CHANNEL_H_

#include <grpcpp/support/channel_arguments.h>

namespace fusion {

// A worker finds a restarted server within seconds, and notices within half a minute that its server answers no more.
grpc::ChannelArguments WorkerChannelArguments();

}  // namespace fusion

#endif  // FUSION_WORKER_LEASE_WORKER_CHANNEL_H_
