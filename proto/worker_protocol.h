// The version of worker.proto's conversation, which both sides must share: raised when old and new would misunderstand
// each other.
#ifndef FUSION_PROTO_WORKER_PROTOCOL_H_
#define FUSION_PROTO_WORKER_PROTOCOL_H_

namespace fusion {

inline constexpr int kWorkerProtocol = 3;

// A worker that cannot reach its server calls again at least this often. The server keeps leases over a restart for
// longer than that (server/scheduler/scheduler.h); workers of 0.1.0 pause up to 22.5 s.
inline constexpr int kLongestReconnectPauseMs = 15000;

}  // namespace fusion

#endif  // FUSION_PROTO_WORKER_PROTOCOL_H_
