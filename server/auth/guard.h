// Guard: every method of every service begins with its Authorize, because interceptors of gRPC 1.51 cannot refuse a
// call.
#ifndef FUSION_SERVER_AUTH_GUARD_H_
#define FUSION_SERVER_AUTH_GUARD_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "runtime/log/log.h"
#include "server/auth/roles.h"

namespace grpc {
class ServerContextBase;
}

namespace fusion {

// The facts about a caller that its connection shows.
struct Caller {
  std::string peer;           // "unix:", "ipv4:127.0.0.1:40112"
  std::string authorization;  // the call's header of that name; empty: none
  // By TLS, PEM: the peer has shown that it has the key, and nobody has judged who issued it. Empty: none.
  std::string certificate = {};
};

// Who calls.
struct Principal {
  std::string name;  // for logs and people: "local"
  RoleSet roles;
  std::string token_id = {};  // of the token or certificate that says so; empty: none
  // The owner of what it submits: the token's name, so that jobs outlive a token that is replaced. Empty: `name`.
  std::string owner = {};
  std::string tenant = {};  // of what it submits and uploads; "": the default one

  const std::string& OwnerName() const { return owner.empty() ? name : owner; }
};

// Fails with UNAUTHENTICATED, saying what to do. Thread-safe; must not wait for a disk.
using Identify = std::function<absl::StatusOr<Principal>(const Caller& caller)>;

// The certificate with which a call came by TLS (Caller::certificate).
std::string CertificateOf(const grpc::ServerContextBase& context);

// Everyone who reaches a socket is its owner, `local`, with all roles: gRPC does not tell the peer's user.
absl::StatusOr<Principal> LocalPrincipal(const Caller& caller);

class Guard;

// The permission for one call. The call ends early when its token or certificate is revoked while the permit exists.
class Permit {
 public:
  Permit(Permit&& other) noexcept = default;
  Permit& operator=(Permit&& other) = delete;
  ~Permit();
  const Principal& principal() const { return principal_; }

 private:
  friend class Guard;
  struct OpenCall;
  explicit Permit(Principal principal) : principal_(std::move(principal)) {}

  Principal principal_;
  std::shared_ptr<OpenCall> call_;  // shared with the guard, which keeps no call alive; null: nothing can revoke it
};

class Guard {
 public:
  Guard(Identify identify, Log log);
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  // Whether the caller may call `method` (as in MethodTable). Fails with UNAUTHENTICATED if the server does not know
  // the caller, and with PERMISSION_DENIED if the caller has none of the method's roles. The permit must be gone before
  // `context`. Thread-safe.
  absl::StatusOr<Permit> Authorize(const grpc::ServerContextBase* context, absl::string_view method);

  // Cancels the calls in progress that came with this token or certificate. Thread-safe.
  void EndCalls(const std::string& token_id);

 private:
  const Identify identify_;
  const Log log_;
  absl::Mutex mutex_;
  std::multimap<std::string, std::weak_ptr<Permit::OpenCall>> open_calls_ ABSL_GUARDED_BY(mutex_);  // by token
  size_t sweep_at_ ABSL_GUARDED_BY(mutex_) = 64;  // number of entries at which those of ended calls are removed
};

}  // namespace fusion

#endif  // FUSION_SERVER_AUTH_GUARD_H_
