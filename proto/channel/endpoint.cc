#include "proto/channel/endpoint.h"

#include <fcntl.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/user_folders.h"

namespace fusion {
namespace {

constexpr size_t kMaxFileBytes = 1 << 20;

std::string FromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Takes a secret out of the environment: from its copy in /proc, too, which children of this user can read.
std::string TakeFromEnvironment(const char* name) {
  char* value = std::getenv(name);
  if (value == nullptr) return "";
  const std::string taken = value;
  explicit_bzero(value, taken.size());
  unsetenv(name);
  return taken;
}

// Reads a file that may hold a secret. Returns nothing if there is none and `optional` is set.
absl::StatusOr<std::optional<std::string>> ReadPrivateFile(const std::string& path, bool optional) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    if (optional && (errno == ENOENT || errno == ENOTDIR)) return std::nullopt;
    return absl::NotFoundError(absl::StrCat("cannot read ", path, ": ", std::strerror(errno)));
  }
  const auto closed = absl::MakeCleanup([fd] { close(fd); });
  struct stat found;
  if (fstat(fd, &found) != 0 || !S_ISREG(found.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is no file"));
  }
  if ((found.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat("other users may open ", path, ", which may hold a secret: chmod 600 ", path));
  }
  if (found.st_uid != geteuid() && found.st_uid != 0) {
    return absl::PermissionDeniedError(absl::StrCat(path, " belongs to another user"));
  }
  std::string bytes;
  char buffer[4096];
  for (ssize_t got; (got = read(fd, buffer, sizeof buffer)) != 0;) {
    if (got < 0) return absl::NotFoundError(absl::StrCat("cannot read ", path, ": ", std::strerror(errno)));
    bytes.append(buffer, static_cast<size_t>(got));
    if (bytes.size() > kMaxFileBytes) return absl::InvalidArgumentError(absl::StrCat(path, " is too long"));
  }
  return bytes;
}

// The user's configuration. Everything is empty if there is no file.
struct Configuration {
  std::string path, server;
  nlohmann::json servers = nlohmann::json::object();
};

absl::StatusOr<Configuration> ReadConfiguration() {
  Configuration configuration;
  configuration.path = absl::StrCat(UserConfigFolder(), "/client.json");
  ASSIGN_OR_RETURN(const std::optional<std::string> text, ReadPrivateFile(configuration.path, /*optional=*/true));
  if (!text.has_value()) return configuration;
  const nlohmann::json json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  const auto bad = [&](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat(configuration.path, ": ", what));
  };
  if (!json.is_object()) return bad("not a JSON object");  // the text may hold a token, so it is not shown
  for (const auto& [name, value] : json.items()) {
    if (name == "server" && value.is_string()) {
      configuration.server = value.get<std::string>();
    } else if (name == "servers" && value.is_object()) {
      configuration.servers = value;
    } else {
      return bad(absl::StrCat("'", name, "' is neither \"server\", an address, nor \"servers\", an object by address"));
    }
  }
  for (const auto& [address, facts] : configuration.servers.items()) {
    if (!facts.is_object()) return bad(absl::StrCat("'", address, "' is no object"));
    for (const auto& [name, value] : facts.items()) {
      const bool text_fact =
          name == "tls_ca" || name == "tls_cert" || name == "tls_key" || name == "token_file" || name == "token";
      if ((text_fact && value.is_string()) || (name == "insecure" && value.is_boolean())) continue;
      return bad(
          absl::StrCat("'", name, "' of '", address,
                       "': use tls_ca, tls_cert, tls_key, token_file or token with a text, or insecure with true"));
    }
  }
  return configuration;
}

// The configuration of one server.
class Facts {
 public:
  Facts(const Configuration& configuration, const std::string& address) {
    if (configuration.servers.contains(address)) facts_ = configuration.servers.at(address);
  }
  std::string Text(const char* name) const { return facts_.value(name, std::string()); }
  bool Insecure() const { return facts_.value("insecure", false); }

 private:
  nlohmann::json facts_ = nlohmann::json::object();
};

std::string FirstOf(const std::string& a, const std::string& b, const std::string& c) {
  return !a.empty() ? a : !b.empty() ? b : c;
}

Endpoint Plain(const std::string& address) {
  Endpoint endpoint;
  endpoint.address = address;
  return endpoint;
}

// Decides about TLS, and holds the facts against each other.
absl::StatusOr<Endpoint> Checked(Endpoint endpoint, bool insecure) {
  if (absl::StartsWith(endpoint.address, "unix:")) {
    // Whoever reaches a socket is its owner: nothing of TLS applies.
    return Plain(endpoint.address);
  }
  if (endpoint.certificate_file.empty() != endpoint.key_file.empty()) {
    return absl::InvalidArgumentError("a certificate needs its key, and a key its certificate: --tls-cert, --tls-key");
  }
  endpoint.tls = !insecure;
  if (!endpoint.tls) return Plain(endpoint.address);  // without TLS no token leaves this machine
  for (const std::string* file : {&endpoint.ca_file, &endpoint.certificate_file, &endpoint.key_file}) {
    if (!file->empty() && access(file->c_str(), R_OK) != 0) {
      return absl::NotFoundError(absl::StrCat("cannot read ", *file, ": ", std::strerror(errno)));
    }
  }
  if (!endpoint.key_file.empty()) {
    RETURN_IF_ERROR(ReadPrivateFile(endpoint.key_file, /*optional=*/false).status());
  }
  if (!endpoint.token_file.empty()) RETURN_IF_ERROR(ReadTokenFile(endpoint.token_file).status());
  return endpoint;
}

}  // namespace

absl::StatusOr<std::string> ReadSecretFile(const std::string& path) {
  ASSIGN_OR_RETURN(std::optional<std::string> text, ReadPrivateFile(path, /*optional=*/false));
  return *std::move(text);
}

absl::StatusOr<std::string> ReadTokenFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadSecretFile(path));
  const std::string token(absl::StripAsciiWhitespace(text));
  if (token.empty()) return absl::InvalidArgumentError(absl::StrCat(path, " holds no token"));
  for (const char c : token) {
    if (absl::ascii_isgraph(static_cast<unsigned char>(c))) continue;
    return absl::InvalidArgumentError(absl::StrCat(path, " holds no token: a token is one word"));
  }
  return token;
}

absl::StatusOr<Endpoint> ResolveEndpoint(const ConnectFlags& flags, const std::string& state_folder) {
  const std::string token = TakeFromEnvironment("FUSION_TOKEN");
  ASSIGN_OR_RETURN(const Configuration configuration, ReadConfiguration());
  Endpoint endpoint;
  endpoint.address = FirstOf(flags.server, FromEnvironment("FUSION_SERVER"), configuration.server);
  if (endpoint.address.empty()) endpoint.address = DefaultServerAddress(state_folder);
  const Facts facts(configuration, endpoint.address);
  endpoint.ca_file = FirstOf(flags.tls_ca, FromEnvironment("FUSION_TLS_CA"), facts.Text("tls_ca"));
  endpoint.certificate_file = FirstOf(flags.tls_cert, FromEnvironment("FUSION_TLS_CERT"), facts.Text("tls_cert"));
  endpoint.key_file = FirstOf(flags.tls_key, FromEnvironment("FUSION_TLS_KEY"), facts.Text("tls_key"));
  endpoint.token_file = FirstOf(flags.token_file, FromEnvironment("FUSION_TOKEN_FILE"), "");
  if (endpoint.token_file.empty()) endpoint.token = token;
  if (endpoint.token_file.empty() && endpoint.token.empty()) {
    endpoint.token_file = facts.Text("token_file");
    if (endpoint.token_file.empty()) endpoint.token = facts.Text("token");
  }
  return Checked(std::move(endpoint), flags.insecure || FromEnvironment("FUSION_INSECURE") == "1" || facts.Insecure());
}

absl::StatusOr<Endpoint> EndpointOf(const std::string& address) {
  ASSIGN_OR_RETURN(const Configuration configuration, ReadConfiguration());
  const Facts facts(configuration, address);
  Endpoint endpoint;
  endpoint.address = address;
  endpoint.ca_file = facts.Text("tls_ca");
  endpoint.certificate_file = facts.Text("tls_cert");
  endpoint.key_file = facts.Text("tls_key");
  endpoint.token_file = facts.Text("token_file");
  if (endpoint.token_file.empty()) endpoint.token = facts.Text("token");
  return Checked(std::move(endpoint), facts.Insecure());
}

}  // namespace fusion
