#include "absl/strings/str_cat.h"
#include "db/stores/sqlite_store.h"
#include "runtime/base/status_macros.h"

namespace fusion {

absl::Status SqliteStore::InsertToken(const TokenRow& token) {
  return writer_->Write([&](Connection& db) {
    return db.Run(
        "INSERT INTO tokens (id, name, hash, roles, joins, created_ms, expires_ms, revoked_ms, created_by, tenant, "
        "parent, most_joins, certificate) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)",
        {token.id, token.name, token.hash, token.roles, int64_t{token.joins}, token.created_ms, token.expires_ms,
         token.revoked_ms, token.created_by, token.tenant, token.parent, token.most_joins, int64_t{token.certificate}});
  });
}

absl::Status SqliteStore::RevokeToken(const std::string& id, int64_t now_ms) {
  return writer_->Write([&](Connection& db) -> absl::Status {
    RETURN_IF_ERROR(db.Run("UPDATE tokens SET revoked_ms = ? WHERE id = ? AND revoked_ms = 0", {now_ms, id}));
    return db.Run("DELETE FROM builds WHERE builder = ? AND builder <> ''", {id});
  });
}

absl::Status SqliteStore::ExtendToken(const std::string& id, int64_t expires_ms) {
  return writer_->Write([&](Connection& db) {
    return db.Run("UPDATE tokens SET expires_ms = ? WHERE id = ?", {expires_ms, id});
  });
}

absl::Status SqliteStore::RemoveTokens(absl::Span<const std::string> ids) {
  return writer_->Write([&](Connection& db) -> absl::Status {
    for (const std::string& id : ids) RETURN_IF_ERROR(db.Run("DELETE FROM tokens WHERE id = ?", {id}));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::vector<TokenRow>> SqliteStore::Tokens() {
  std::vector<TokenRow> tokens;
  const absl::Status read = Read([&](Connection& db) {
    return db.Query(
        "SELECT id, name, hash, roles, joins, created_ms, expires_ms, revoked_ms, created_by, tenant, parent, "
        "most_joins, certificate FROM tokens ORDER BY created_ms, id",
        {}, [&](const SqlRow& row) {
          tokens.push_back({row.Text(0), row.Text(1), row.Text(2), row.Text(3), row.Int(4) != 0, row.Int(5), row.Int(6),
                            row.Int(7), row.Text(8), row.Text(9), row.Text(10), row.Int(11), row.Int(12) != 0});
        });
  });
  if (!read.ok()) return read;
  return tokens;
}

}  // namespace fusion
