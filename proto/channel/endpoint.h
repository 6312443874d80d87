// Endpoint: the address of a fusiond, whom to trust there, and who calls.
//
// Each fact comes from the command line, else from the environment, else from the user's configuration
// ($XDG_CONFIG_HOME/fusion/client.json), which says of each server what it needs:
//
//   {"server": "farm.example:7070",
//    "servers": {"farm.example:7070": {"token_file": "/home/me/farm.token", "tls_ca": "/home/me/farm-ca.pem"}}}
//
// HOST:PORT is spoken to by TLS unless `insecure` is said. A token goes to the server that it was given for and to no other one, and only by TLS.
#ifndef FUSION_PROTO_CHANNEL_ENDPOINT_H_
#define FUSION_PROTO_CHANNEL_ENDPOINT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fusion {

// The options of the command line; an empty one was not given.
struct ConnectFlags {
  std::string server;             // else $FUSION_SERVER, else "server" of the configuration, else the local socket
  std::string tls_ca;             // else $FUSION_TLS_CA, else "tls_ca"
  std::string tls_cert, tls_key;  // else $FUSION_TLS_CERT and $FUSION_TLS_KEY, else "tls_cert" and "tls_key"
  std::string token_file;         // else $FUSION_TOKEN_FILE, else $FUSION_TOKEN (a token), else "token_file" or "token"
  bool insecure = false;          // or FUSION_INSECURE=1, or "insecure": true
};

struct Endpoint {
  std::string address;  // "unix:/path" or "host:port"
  bool tls = false;
  std::string ca_file;                     // PEM; empty: the system's authorities
  std::string certificate_file, key_file;  // PEM, of the caller; empty: none
  std::string token_file;                  // read at each call, so that a new token needs no restart
  std::string token;                       // where there is no file; empty: none
};

// The endpoint of the server that `flags` and the environment name. `state_folder` holds the local socket. Erases
// $FUSION_TOKEN, so that children of this process do not see it; call it before they start. Fails with
// PERMISSION_DENIED if other users may read a file with a secret, and with INVALID_ARGUMENT or NOT_FOUND for what
// cannot be used.
absl::StatusOr<Endpoint> ResolveEndpoint(const ConnectFlags& flags, const std::string& state_folder);

// The endpoint of another server: only the configuration says what it needs, since flags and environment are about one
// server.
absl::StatusOr<Endpoint> EndpointOf(const std::string& address);

// Reads a file with a secret. Fails with PERMISSION_DENIED if other users may read it, NOT_FOUND if there is none.
absl::StatusOr<std::string> ReadSecretFile(const std::string& path);

// Reads a file that holds a token, without the line break at its end. Fails with PERMISSION_DENIED if other users may
// read it.
absl::StatusOr<std::string> ReadTokenFile(const std::string& path);

}  // namespace fusion

#endif  // FUSION_PROTO_CHANNEL_ENDPOINT_H_
