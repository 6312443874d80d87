#include "proto/channel/channel.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <map>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/retry/retry_info.h"

namespace fusion {
namespace {

constexpr unsigned kRefreshSeconds = 2;  // how soon a certificate that was replaced is used

// Adds the token to every call. gRPC sends it by TLS only.
class BearerToken : public grpc::MetadataCredentialsPlugin {
 public:
  explicit BearerToken(const Endpoint& endpoint) : file_(endpoint.token_file), token_(endpoint.token) {}
  bool IsBlocking() const override { return false; }  // a small local file
  const char* GetType() const override { return "fusion token"; }
  grpc::Status GetMetadata(grpc::string_ref, grpc::string_ref, const grpc::AuthContext&,
                           std::multimap<grpc::string, grpc::string>* metadata) override {
    std::string token = token_;
    if (!file_.empty()) {
      absl::StatusOr<std::string> read = ReadTokenFile(file_);
      if (!read.ok()) return {grpc::StatusCode::UNAUTHENTICATED, std::string(read.status().message())};
      token = *std::move(read);
    }
    metadata->emplace("authorization", absl::StrCat("Bearer ", token));
    return grpc::Status::OK;
  }
  grpc::string DebugString() override { return "BearerToken"; }

 private:
  const std::string file_, token_;
};

std::shared_ptr<grpc::ChannelCredentials> CredentialsOf(const Endpoint& endpoint) {
  if (!endpoint.tls) return grpc::InsecureChannelCredentials();
  grpc::experimental::TlsChannelCredentialsOptions options;
  if (!endpoint.ca_file.empty() || !endpoint.certificate_file.empty()) {
    options.set_certificate_provider(std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
        endpoint.key_file, endpoint.certificate_file, endpoint.ca_file, kRefreshSeconds));
    if (!endpoint.ca_file.empty()) options.watch_root_certs();
    if (!endpoint.certificate_file.empty()) options.watch_identity_key_cert_pairs();
  }
  options.set_certificate_verifier(std::make_shared<grpc::experimental::HostNameCertificateVerifier>());
  auto credentials = grpc::experimental::TlsCredentials(options);
  if (endpoint.token.empty() && endpoint.token_file.empty()) return credentials;
  return grpc::CompositeChannelCredentials(
      credentials, grpc::MetadataCredentialsFromPlugin(std::make_unique<BearerToken>(endpoint)));
}

}  // namespace

std::shared_ptr<grpc::Channel> MakeChannel(const Endpoint& endpoint, const grpc::ChannelArguments& arguments) {
  return grpc::CreateCustomChannel(endpoint.address, CredentialsOf(endpoint), arguments);
}

absl::Status CallError(const Endpoint& endpoint, const grpc::Status& status) {
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  if (status.ok()) return absl::OkStatus();
  if (code != absl::StatusCode::kUnavailable) {
    absl::Status error(code, status.error_message());
    TakeErrorDetails(status.error_details(), &error);
    return error;
  }
  // gRPC's message lists its attempts; the last one names the cause.
  const std::string& words = status.error_message();
  const size_t last = words.rfind(": ");
  const std::string cause = last == std::string::npos ? words : words.substr(last + 2);
  if (absl::StrContains(words, "certificate verify failed")) {
    return absl::UnauthenticatedError(absl::StrCat(
        "the certificate of the server at ", endpoint.address,
        " is out of date, or of an authority that is not trusted here: --tls-ca FILE names the authority (", cause,
        ")"));
  }
  if (absl::StrContains(words, "Hostname Verification Check failed")) {
    return absl::UnauthenticatedError(absl::StrCat("the certificate of the server at ", endpoint.address,
                                                   " is for another host: use the name or address that it is for"));
  }
  std::string hint;
  if (endpoint.tls && absl::StrContains(words, "wrong version number")) hint = "; it speaks no TLS: --insecure";
  if (absl::StrContains(words, "Socket closed")) {  // all that either side learns of a handshake that failed
    hint = !endpoint.tls                       ? "; the server may want TLS: leave out --insecure"
           : endpoint.certificate_file.empty() ? "; it may want a certificate: --tls-cert, --tls-key"
                                               : "; it may not trust this certificate";
  }
  return absl::UnavailableError(absl::StrCat("no server at ", endpoint.address, " (", cause, ")", hint));
}

}  // namespace fusion
