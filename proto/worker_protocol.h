// The version of worker.proto's conversation, which both sides must share: raised when old and new would misunderstand
// each other.
#ifndef FUSION_PROTO_WORKER_PROTOCOL_H_
#define FUSION_PROTO_WORKER_PROTOCOL_H_

namespace fusion {

inline constexpr int kWorkerProtocol = 3;

}  // namespace fusion

#endif  // FUSION_PROTO_WORKER_PROTOCOL_H_
