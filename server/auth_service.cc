#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/auth.grpc.pb.h"
#include "proto/channel/worker_certificate.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status_macros.h"
#include "server/auth/guard.h"
#include "server/auth/tokens.h"
#include "server/auth/worker_authority.h"
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
  info.set_certificate(row.certificate);
  return info;
}

class AuthService : public v1::Auth::Service {
 public:
  AuthService(Guard* guard, TokenBook* tokens, const WorkerAuthority* authority, absl::Duration certificate_lifetime,
              Log log)
      : guard_(guard),
        tokens_(tokens),
        authority_(authority),
        certificate_lifetime_(certificate_lifetime),
        log_(std::move(log)) {}

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
      if (authority_ == nullptr || request->certificate_request().empty()) {
        return Make(std::move(wanted), permit->principal(), response);
      }
      return ToGrpc(MakeCertificate(std::move(wanted), request->certificate_request(), permit->principal(), response));
    }
    return ToGrpc(absl::InternalError("the join token is gone"));
  }

  grpc::Status RenewCertificate(grpc::ServerContext* context, const v1::RenewCertificateRequest*,
                                v1::CreateTokenResponse* response) override {
    const absl::StatusOr<Permit> permit = guard_->Authorize(context, "/fusion.v1.Auth/RenewCertificate");
    if (!permit.ok()) return ToGrpc(permit.status());
    const std::optional<CertificateFacts> facts =
        authority_ == nullptr ? std::nullopt : authority_->FactsOf(CertificateOf(*context));
    if (!facts.has_value() || facts->name != permit->principal().token_id) {
      return ToGrpc(absl::FailedPreconditionError(
          absl::StrCat(permit->principal().name, " came without a certificate of this server's to renew")));
    }
    return ToGrpc(Renew(facts->name, facts->public_key, response));
  }

 private:
  absl::StatusOr<TokenRow> Revoke(const std::string& id, const Principal& by) {
    ASSIGN_OR_RETURN(const TokenRow row, tokens_->Revoke(id));
    log_({LogLevel::kInfo, "token revoked", {{"token", row.id}, {"name", row.name}, {"by", by.name}}});
    // An administrator who revokes the token of this very call is answered all the same.
    if (row.id != by.token_id) guard_->EndCalls(row.id);
    return row;
  }
  // The key says who a worker is, so that one which asks again, because the answer was lost, is the same worker.
  absl::Status MakeCertificate(TokenBook::Wanted wanted, const std::string& request, const Principal& by,
                               v1::CreateTokenResponse* response) {
    ASSIGN_OR_RETURN(const std::string public_key, PublicKeyOfRequest(request));
    wanted.key_hash = Sha256Hex(public_key);
    wanted.lifetime = certificate_lifetime_;
    std::optional<TokenRow> row = tokens_->CertificateFor(wanted.parent, wanted.name, wanted.key_hash);
    if (!row.has_value()) {
      wanted.created_by = by.name;
      ASSIGN_OR_RETURN(TokenBook::Created created, tokens_->Create(wanted));
      row = std::move(created.row);
      LogMade(*row, by);
    }
    return Renew(row->id, public_key, response);
  }
  absl::Status Renew(const std::string& id, const std::string& public_key, v1::CreateTokenResponse* response) {
    const absl::Time ends = tokens_->Now() + certificate_lifetime_;
    ASSIGN_OR_RETURN(const std::string certificate, authority_->Issue(id, public_key, ends));
    ASSIGN_OR_RETURN(const TokenRow row, tokens_->Extend(id, ends));
    log_({LogLevel::kInfo,
          "certificate issued",
          {{"certificate", row.id}, {"name", row.name}, {"until", absl::FormatTime(ends, absl::UTCTimeZone())}}});
    response->set_certificate(certificate);
    *response->mutable_info() = ToProto(row);
    return absl::OkStatus();
  }
  grpc::Status Make(TokenBook::Wanted wanted, const Principal& by, v1::CreateTokenResponse* response) {
    wanted.created_by = by.name;
    const absl::StatusOr<TokenBook::Created> created = tokens_->Create(wanted);
    if (!created.ok()) return ToGrpc(created.status());
    LogMade(created->row, by);
    response->set_token(created->token);
    *response->mutable_info() = ToProto(created->row);
    return grpc::Status::OK;
  }
  void LogMade(const TokenRow& row, const Principal& by) {
    LogLine line{LogLevel::kInfo,
                 row.certificate ? "worker joined" : "token made",
                 {{"token", row.id},
                  {"name", row.name},
                  {"roles", row.roles},
                  {"join", row.joins ? "yes" : "no"},
                  {"by", by.name}}};
    if (!row.tenant.empty()) line.fields.push_back({"tenant", row.tenant});
    log_(line);
  }

  Guard* const guard_;
  TokenBook* const tokens_;
  const WorkerAuthority* const authority_;  // null: workers that join get tokens
  const absl::Duration certificate_lifetime_;
  const Log log_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeAuthService(Guard* guard, TokenBook* tokens, const WorkerAuthority* authority,
                                               absl::Duration certificate_lifetime, Log log) {
  return std::make_unique<AuthService>(guard, tokens, authority, certificate_lifetime, std::move(log));
}

}  // namespace fusion
