// Join: a worker's first call. It exchanges a join token, which many workers share and which expires soon, for a token
// of its own, which an administrator can revoke alone.
#ifndef FUSION_WORKER_LEASE_JOIN_H_
#define FUSION_WORKER_LEASE_JOIN_H_

#include <string>

#include "absl/status/statusor.h"
#include "proto/channel/endpoint.h"

namespace fusion {

// Returns `server` with the file that holds this worker's token: one in `state_folder`, by the server's address. If it
// is not there, the server is asked for a token with that in `join_token_file`. Tries for a minute if the server does
// not answer. Fails with the server's words if it refuses.
absl::StatusOr<Endpoint> Join(const Endpoint& server, const std::string& join_token_file,
                              const std::string& state_folder, const std::string& worker_name);

}  // namespace fusion

#endif  // FUSION_WORKER_LEASE_JOIN_H_
