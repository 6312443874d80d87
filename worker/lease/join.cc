#include "worker/lease/join.h"

#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/auth.grpc.pb.h"
#include "proto/channel/channel.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(1);

// All or nothing: a worker that is killed meanwhile joins again.
absl::Status KeepToken(const std::string& path, const std::string& token) {
  const std::string temporary = absl::StrCat(path, ".", getpid());
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return absl::InternalError(absl::StrCat("cannot make ", temporary, ": ", std::strerror(errno)));
  bool kept = write(fd, token.data(), token.size()) == static_cast<ssize_t>(token.size()) && fsync(fd) == 0;
  kept = close(fd) == 0 && kept && std::rename(temporary.c_str(), path.c_str()) == 0;
  if (kept) return absl::OkStatus();
  const int error = errno;
  unlink(temporary.c_str());
  return absl::InternalError(absl::StrCat("cannot keep this worker's token in ", path, ": ", std::strerror(error)));
}

}  // namespace

absl::StatusOr<Endpoint> Join(const Endpoint& server, const std::string& join_token_file,
                              const std::string& state_folder, const std::string& worker_name) {
  if (!server.tls) return absl::InvalidArgumentError("a worker joins by TLS only: --tls-ca, and HOST:PORT as --server");
  Endpoint own = server;
  own.token.clear();
  own.token_file = absl::StrCat(state_folder, "/token-", Sha256Hex(server.address).substr(0, 16));
  if (access(own.token_file.c_str(), F_OK) == 0) {
    RETURN_IF_ERROR(ReadTokenFile(own.token_file).status());
    return own;
  }
  std::error_code error;
  std::filesystem::create_directories(state_folder, error);
  Endpoint joining = server;
  ASSIGN_OR_RETURN(joining.token, ReadTokenFile(join_token_file));
  joining.token_file.clear();
  const auto stub = v1::Auth::NewStub(MakeChannel(joining, {}));
  v1::JoinRequest request;
  request.set_name(worker_name);
  v1::CreateTokenResponse response;
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
  const grpc::Status status = stub->Join(&context, request, &response);
  if (!status.ok()) return CallError(joining, status);
  RETURN_IF_ERROR(KeepToken(own.token_file, response.token()));
  return own;
}

}  // namespace fusion
