#include "server/auth/guard.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/server_context.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

Caller CallerOf(const grpc::ServerContextBase& context) {
  Caller caller;
  caller.peer = context.peer();
  const auto header = context.client_metadata().find("authorization");
  if (header != context.client_metadata().end()) {
    caller.authorization.assign(header->second.data(), header->second.size());
  }
  caller.certificate = CertificateOf(context);
  return caller;
}

}  // namespace

std::string CertificateOf(const grpc::ServerContextBase& context) {
  const std::shared_ptr<const grpc::AuthContext> connection = context.auth_context();
  if (connection == nullptr) return "";
  const std::vector<grpc::string_ref> found = connection->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  return found.empty() ? "" : std::string(found.front().data(), found.front().size());
}

// Cancelling may end the call on the same thread, and with it the permit: hence the recursive mutex. It keeps the
// permit, and therefore the context, in existence while another thread cancels.
struct Permit::OpenCall {
  explicit OpenCall(const grpc::ServerContextBase* context) : context(context) {}
  void Cancel() {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    if (context != nullptr) context->TryCancel();
  }
  void Close() {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    context = nullptr;
  }
  std::recursive_mutex mutex;
  const grpc::ServerContextBase* context;
};

absl::StatusOr<Principal> LocalPrincipal(const Caller&) { return Principal{"local", RoleSet::All()}; }

Permit::~Permit() {
  if (call_ != nullptr) call_->Close();
}

Guard::Guard(Identify identify, Log log) : identify_(std::move(identify)), log_(std::move(log)) {}
Guard::~Guard() = default;

absl::StatusOr<Permit> Guard::Authorize(const grpc::ServerContextBase* context, absl::string_view method) {
  const Caller caller = CallerOf(*context);
  ASSIGN_OR_RETURN(Principal principal, identify_(caller));
  const RoleSet needed = RolesFor(method);
  const std::string call(method.substr(method.rfind('.') + 1));
  if (!principal.roles.HasAnyOf(needed)) {
    log_({LogLevel::kWarning,
          "refused",
          {{"call", call}, {"caller", principal.name}, {"peer", caller.peer}, {"roles", NamesOf(principal.roles)}}});
    return absl::PermissionDeniedError(absl::StrCat(principal.name, " has the roles ", NamesOf(principal.roles), "; ",
                                                    call, " needs ", NamesInWords(needed),
                                                    ": an administrator makes tokens with other roles "
                                                    "(fusionctl auth token create)"));
  }
  if (IsAudited(method)) {
    log_({LogLevel::kInfo, "audit", {{"call", call}, {"by", principal.name}, {"peer", caller.peer}}});
  }
  Permit permit(std::move(principal));
  const std::string& token_id = permit.principal().token_id;
  if (token_id.empty()) return permit;
  permit.call_ = std::make_shared<Permit::OpenCall>(context);
  {
    absl::MutexLock lock(&mutex_);
    if (open_calls_.size() >= sweep_at_) {
      for (auto it = open_calls_.begin(); it != open_calls_.end();) {
        it = it->second.expired() ? open_calls_.erase(it) : std::next(it);
      }
      sweep_at_ = std::max<size_t>(64, 2 * open_calls_.size());
    }
    open_calls_.emplace(token_id, permit.call_);
  }
  // The token may have been revoked, and its calls ended, before this one was among them.
  RETURN_IF_ERROR(identify_(caller).status());
  return permit;
}

void Guard::EndCalls(const std::string& token_id) {
  std::vector<std::shared_ptr<Permit::OpenCall>> calls;
  {
    absl::MutexLock lock(&mutex_);
    const auto [begin, end] = open_calls_.equal_range(token_id);
    for (auto it = begin; it != end; ++it) {
      if (auto call = it->second.lock()) calls.push_back(std::move(call));
    }
    open_calls_.erase(begin, end);
  }
  for (const auto& call : calls) call->Cancel();
}

}  // namespace fusion
