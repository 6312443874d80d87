#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/auth.grpc.pb.h"
#include "runtime/base/status_macros.h"
#include "server/auth/guard.h"
#include "server/auth/tokens.h"
#include "server/grpc_status.h"
#include "server/list_pages.h"
#include "server/services.h"

namespace fusion {
namespace {

v1::TokenInfo ToProto(const TokenRow& row) {
  v1::TokenInfo info;
  info.set_id(row.id);
  info.set_name(row.name);
  for (const absl::string_view role : absl::StrSplit(row.roles, ',')) info.add_roles(std::string(role));
  info.set_join(row.joins);
  info.set_created_ms(row.created_ms);
  info.set_expires_ms(row.expires_ms);
  info.set_revoked_ms(row.revoked_ms);
  info.set_created_by(row.created_by);
  info.set_tenant(row.tenant);
  info.set_parent(row.parent);
  info.set_most_joins(row.most_joins);
  return info;
}

class AuthService : public v1::Auth::Service {
 public:
  AuthService(Guard* guard, TokenBook* tokens, Log log) : guard_(guard), tokens_(tokens), log_(std::move(log)) {}

  grpc::Status CreateToken(grpc::ServerContext* context, const v1::CreateTokenRequest* request,
                           v1::CreateTokenResponse* response) override {
    const absl::StatusOr<Permit> permit = guard_->Authorize(context, "/fusion.v1.Auth/CreateToken");
    if (!permit.ok()) return ToGrpc(permit.status());
    const absl::StatusOr<RoleSet> roles = ParseRoles({request->roles().begin(), request->roles().end()});
    if (!roles.ok()) return ToGrpc(roles.status());
    if (request->lifetime_ms() < 0)
      return ToGrpc(absl::InvalidArgumentError("a token must not expire before it is made"));
    TokenBook::Wanted wanted{request->name(), *roles, request->join()};
    wanted.tenant = request->tenant();
    if (request->most_joins() < 0) return ToGrpc(absl::InvalidArgumentError("most_joins must not be below 0"));
    wanted.most_joins = request->most_joins();
    if (request->lifetime_ms() > 0) wanted.lifetime = absl::Milliseconds(request->lifetime_ms());
    return Make(std::move(wanted), permit->principal(), response);
  }

  grpc::Status RevokeToken(grpc::ServerContext* context, const v1::RevokeTokenRequest* request,
                           v1::TokenInfo* response) override {
    const absl::StatusOr<Permit> permit = guard_->Authorize(context, "/fusion.v1.Auth/RevokeToken");
    if (!permit.ok()) return ToGrpc(permit.status());
    const absl::StatusOr<TokenRow> row = Revoke(request->id(), permit->principal());
    if (!row.ok()) return ToGrpc(row.status());
    *response = ToProto(*row);
    if (!request->with_joined()) return grpc::Status::OK;
    // The join token brings no more from now on.
    for (const std::string& id : tokens_->ValidChildren(row->id)) {
      const absl::Status child = Revoke(id, permit->principal()).status();
      if (!child.ok() && !absl::IsNotFound(child)) return ToGrpc(child);  // not found: it was never stored
    }
    return grpc::Status::OK;
  }

  grpc::Status ListTokens(grpc::ServerContext* context, const v1::ListTokensRequest* request,
                          v1::ListTokensResponse* response) override {
    const absl::StatusOr<Permit> permit = guard_->Authorize(context, "/fusion.v1.Auth/ListTokens");
    if (!permit.ok()) return ToGrpc(permit.status());
    const absl::StatusOr<ListCursor> cursor = ListCursorOf(request->page_token());
    if (!cursor.ok()) return ToGrpc(cursor.status());
    constexpr int kMost = 1000;
    const int limit = PageLimit(request->limit(), kMost, kMost);
    for (const TokenRow& row : tokens_->List()) {  // by time, then by id
      if (std::tie(row.created_ms, row.id) <= std::tie(cursor->number, cursor->name)) continue;
      if (response->tokens_size() == limit) {
        const v1::TokenInfo& last = response->tokens(limit - 1);
        response->set_next_page_token(PageTokenOf(ListCursor{last.created_ms(), last.id()}));
        break;
      }
      *response->add_tokens() = ToProto(row);
    }
    return grpc::Status::OK;
  }

  grpc::Status Join(grpc::ServerContext* context, const v1::JoinRequest* request,
                    v1::CreateTokenResponse* response) override {
    const absl::StatusOr<Permit> permit = guard_->Authorize(context, "/fusion.v1.Auth/Join");
    if (!permit.ok()) return ToGrpc(permit.status());
    for (const TokenRow& row : tokens_->List()) {
      if (row.id != permit->principal().token_id) continue;
      TokenBook::Wanted wanted{absl::StrCat("worker ", request->name()), RolesOf(row.roles)};
      wanted.parent = row.id;
      return Make(std::move(wanted), permit->principal(), response);
    }
    return ToGrpc(absl::InternalError("the join token is gone"));
  }

 private:
  absl::StatusOr<TokenRow> Revoke(const std::string& id, const Principal& by) {
    ASSIGN_OR_RETURN(const TokenRow row, tokens_->Revoke(id));
    log_({LogLevel::kInfo, "token revoked", {{"token", row.id}, {"name", row.name}, {"by", by.name}}});
    // An administrator who revokes the token of this very call is answered all the same.
    if (row.id != by.token_id) guard_->EndCalls(row.id);
    return row;
  }
  grpc::Status Make(TokenBook::Wanted wanted, const Principal& by, v1::CreateTokenResponse* response) {
    wanted.created_by = by.name;
    const absl::StatusOr<TokenBook::Created> created = tokens_->Create(wanted);
    if (!created.ok()) return ToGrpc(created.status());
    const TokenRow& row = created->row;
    LogLine line{LogLevel::kInfo,
                 "token made",
                 {{"token", row.id},
                  {"name", row.name},
                  {"roles", row.roles},
                  {"join", row.joins ? "yes" : "no"},
                  {"by", by.name}}};
    if (!row.tenant.empty()) line.fields.push_back({"tenant", row.tenant});
    log_(line);
    response->set_token(created->token);
    *response->mutable_info() = ToProto(row);
    return grpc::Status::OK;
  }

  Guard* const guard_;
  TokenBook* const tokens_;
  const Log log_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeAuthService(Guard* guard, TokenBook* tokens, Log log) {
  return std::make_unique<AuthService>(guard, tokens, std::move(log));
}

}  // namespace fusion
