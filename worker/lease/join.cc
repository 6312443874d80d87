#include "worker/lease/join.h"

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/auth.grpc.pb.h"
#include "proto/channel/channel.h"
#include "proto/channel/worker_certificate.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(1);

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

// The key of this worker, made if there is none. It is kept before the server hears of it: a worker that is killed
// meanwhile asks again with the same key, and is the same worker.
absl::StatusOr<std::string> OwnKey(const std::string& path) {
  if (Exists(path)) return ReadSecretFile(path);
  ASSIGN_OR_RETURN(const std::string key, NewPrivateKey());
  RETURN_IF_ERROR(WriteFileAtomically(path, key, 0600));
  return key;
}

absl::StatusOr<v1::CreateTokenResponse> Ask(const Endpoint& server, const std::string& name,
                                            const std::string& certificate_request) {
  const auto stub = v1::Auth::NewStub(MakeChannel(server, {}));
  v1::JoinRequest request;
  request.set_name(name);
  request.set_certificate_request(certificate_request);
  v1::CreateTokenResponse response;
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
  const grpc::Status status = stub->Join(&context, request, &response);
  if (!status.ok()) return CallError(server, status);
  return response;
}

}  // namespace

absl::StatusOr<Joined> Join(const Endpoint& server, const std::string& join_token_file, const std::string& state_folder,
                            const std::string& worker_name, absl::Time now, const Log& log) {
  if (!server.tls) return absl::InvalidArgumentError("a worker joins by TLS only: --tls-ca, and HOST:PORT as --server");
  const std::string by_address = Sha256Hex(server.address).substr(0, 16);
  Joined with_certificate{server, true}, with_token{server, false};
  with_certificate.server.token.clear();
  with_certificate.server.token_file.clear();
  with_certificate.server.certificate_file = absl::StrCat(state_folder, "/worker-", by_address, ".pem");
  with_certificate.server.key_file = absl::StrCat(state_folder, "/worker-", by_address, ".key");
  with_token.server.token.clear();
  with_token.server.token_file = absl::StrCat(state_folder, "/token-", by_address);

  const std::string& certificate_file = with_certificate.server.certificate_file;
  if (Exists(certificate_file)) {
    ASSIGN_OR_RETURN(const std::string pem, ReadSecretFile(certificate_file));
    const absl::StatusOr<CertificateFacts> facts = ReadCertificateFacts(pem);
    if (!facts.ok()) return absl::InvalidArgumentError(absl::StrCat(certificate_file, ": ", facts.status().message()));
    RETURN_IF_ERROR(ReadSecretFile(with_certificate.server.key_file).status());
    if (now < facts->ends) return with_certificate;
    if (!Exists(join_token_file)) {
      log({LogLevel::kWarning, "this worker's certificate has expired, and there is no join token", {}});
      return with_certificate;
    }
  } else if (Exists(with_token.server.token_file)) {
    RETURN_IF_ERROR(ReadTokenFile(with_token.server.token_file).status());
    return with_token;
  }
  std::error_code error;
  std::filesystem::create_directories(state_folder, error);
  Endpoint joining = server;
  ASSIGN_OR_RETURN(joining.token, ReadTokenFile(join_token_file));
  joining.token_file.clear();
  ASSIGN_OR_RETURN(const std::string key, OwnKey(with_certificate.server.key_file));
  ASSIGN_OR_RETURN(const std::string request, CertificateRequest(key));
  ASSIGN_OR_RETURN(const v1::CreateTokenResponse response, Ask(joining, worker_name, request));
  if (response.certificate().empty()) {
    RETURN_IF_ERROR(WriteFileAtomically(with_token.server.token_file, response.token(), 0600));
    return with_token;
  }
  if (!IsCertificateOfKey(response.certificate(), key)) {
    return absl::InternalError("the server's certificate is for another key than this worker's");
  }
  RETURN_IF_ERROR(WriteFileAtomically(certificate_file, response.certificate(), 0600));
  return with_certificate;
}

}  // namespace fusion
