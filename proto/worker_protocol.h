// The version of worker.proto's conversation: raised when old and new would misunderstand each other. A server serves
// workers of its own version and of the one before; these get no task that they would misunderstand:
//   2  knows no whole models: MeasurePayload.model and .plans
//   3  the present one
#ifndef FUSION_PROTO_WORKER_PROTOCOL_H_
#define FUSION_PROTO_WORKER_PROTOCOL_H_

namespace fusion {

inline constexpr int kWorkerProtocol = 3;
inline constexpr int kOldestWorkerProtocol = kWorkerProtocol - 1;
inline constexpr int kFirstProtocolOfModels = 3;

// A worker that cannot reach its server calls again at least this often. The server keeps leases over a restart for
// longer than that (server/scheduler/scheduler.h); workers of 0.1.0 pause up to 22.5 s.
inline constexpr int kLongestReconnectPauseMs = 15000;

// How long a worker asks the server to hold its call while it is idle. A server takes a worker for lost that has not
// called for two leases, a minute; one whose connection breaks, or answers no ping, at once.
inline constexpr int kIdlePollMs = 40000;

}  // namespace fusion

#endif  // FUSION_PROTO_WORKER_PROTOCOL_H_
