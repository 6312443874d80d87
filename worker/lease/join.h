// Join: a worker's first call. It exchanges a join token, which many workers share and which expires soon, for a
// certificate of its own (of an older server: a token), which an administrator can revoke alone.
#ifndef FUSION_WORKER_LEASE_JOIN_H_
#define FUSION_WORKER_LEASE_JOIN_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/channel/endpoint.h"
#include "runtime/log/log.h"

namespace fusion {

struct Joined {
  Endpoint server;           // with the files that hold this worker's certificate and key, or its token
  bool certificate = false;  // it came with a certificate, which ends and has to be renewed
};

// The files lie in `state_folder`, by the server's address, with mode 0600. If there is no certificate that is valid at
// `now`, and no token, the server is asked for one with the token in `join_token_file`; the key does not leave the
// folder. Tries for a minute if the server does not answer. Fails with the server's words if it refuses. Without a join
// token a certificate that has expired is used all the same: the server says what to do.
absl::StatusOr<Joined> Join(const Endpoint& server, const std::string& join_token_file, const std::string& state_folder,
                            const std::string& worker_name, absl::Time now, const Log& log);

}  // namespace fusion

#endif  // FUSION_WORKER_LEASE_JOIN_H_
