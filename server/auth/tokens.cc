#include "server/auth/tokens.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

constexpr absl::string_view kPrefix = "fus_";
constexpr size_t kIdCharacters = 10, kSecretCharacters = 52;  // of 5 bits each
constexpr size_t kMostNameCharacters = 128, kMostTokens = 10000;
constexpr size_t kMostTenantCharacters = 32;
constexpr absl::Duration kLongestKept = absl::Hours(24 * 30);
constexpr char kAdvice[] =
    "an administrator makes tokens (fusionctl auth token create); name a file that holds one with --token-file or "
    "FUSION_TOKEN_FILE";
constexpr char kAdviceForWorkers[] =
    "start the worker with a join token (fusion-worker --join-token-file FILE), which an administrator makes "
    "(fusionctl auth token create --join)";
constexpr absl::Duration kInUse = absl::Minutes(10);  // an idle worker calls every 40 s

// Crockford's letters, which nobody mistakes for each other.
absl::StatusOr<std::string> RandomCharacters(size_t count) {
  std::vector<unsigned char> bytes(count);
  if (RAND_bytes(bytes.data(), static_cast<int>(count)) != 1) return absl::InternalError("no random bytes");
  std::string text;
  for (const unsigned char byte : bytes) text += "0123456789abcdefghjkmnpqrstvwxyz"[byte & 31];
  return text;
}

bool SameInConstantTime(const std::string& a, const std::string& b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string InWords(const TokenRow& row) {
  return absl::StrCat(row.certificate ? "certificate " : "token ", row.id, " ('", row.name, "')");
}

std::string Day(int64_t ms) {
  return absl::FormatTime("%Y-%m-%d %H:%M UTC", absl::FromUnixMillis(ms), absl::UTCTimeZone());
}

absl::Status CheckJoins(const TokenRow& parent, size_t children) {
  if (parent.revoked_ms != 0) return absl::UnauthenticatedError(absl::StrCat(InWords(parent), " was revoked"));
  if (parent.most_joins == 0 || static_cast<int64_t>(children) < parent.most_joins) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(InWords(parent), " has brought ", children,
                   " workers whose tokens or certificates are valid, as many as it may: make another one (fusionctl "
                   "auth token create --join --most N), or revoke those of workers that are gone"));
}

// A worker that changes its token for a certificate stays one source of measurements, quarantined or not.
Principal PrincipalOf(const TokenRow& row) {
  return Principal{InWords(row), row.joins ? RoleSet{Role::kJoin} : RolesOf(row.roles), row.id,
                   absl::StrCat(row.tenant.empty() ? "" : absl::StrCat("tenant ", row.tenant, " "), "token ", row.name),
                   row.tenant};
}

bool IsValidAt(const TokenRow& row, int64_t now_ms) {
  return row.revoked_ms == 0 && (row.expires_ms == 0 || now_ms < row.expires_ms);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TokenBook>> TokenBook::Open(Store* store, Clock clock) {
  std::unique_ptr<TokenBook> book(new TokenBook(store, std::move(clock)));
  ASSIGN_OR_RETURN(std::vector<TokenRow> rows, store->Tokens());
  absl::MutexLock lock(&book->mutex_);
  for (TokenRow& row : rows) book->tokens_.emplace(row.id, row);
  book->looked_ms_ = absl::ToUnixMillis(book->clock_());
  return book;
}

absl::StatusOr<TokenBook::Created> TokenBook::Create(const Wanted& wanted) {
  if (wanted.name.empty() || wanted.name.size() > kMostNameCharacters) {
    return absl::InvalidArgumentError(
        absl::StrCat("a token needs a name of 1 to ", kMostNameCharacters, " characters"));
  }
  if (wanted.roles.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("a token needs a role: ", NamesInWords(RoleSet::All())));
  }
  if (wanted.joins && (wanted.roles.Has(Role::kClient) || wanted.roles.Has(Role::kAdmin))) {
    return absl::InvalidArgumentError("workers join, with the roles build, untrusted-build and measure only");
  }
  if (!wanted.tenant.empty()) {
    const bool word = wanted.tenant.size() <= kMostTenantCharacters &&
                      std::all_of(wanted.tenant.begin(), wanted.tenant.end(),
                                  [](char c) { return absl::ascii_isalnum(c) || c == '-'; });
    if (!word) {
      return absl::InvalidArgumentError(
          absl::StrCat("a tenant's name has at most ", kMostTenantCharacters, " letters, digits and dashes"));
    }
    // Workers and administrators serve all tenants, so that their tokens would open every one's blobs.
    if (wanted.joins || !(wanted.roles == RoleSet{Role::kClient})) {
      return absl::InvalidArgumentError("the tokens of a tenant have the role client alone");
    }
  }
  if (wanted.lifetime <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("a token must not expire before it is made");
  }
  {
    absl::MutexLock lock(&mutex_);
    if (tokens_.size() >= kMostTokens) {
      return absl::ResourceExhaustedError(absl::StrCat("there are ", tokens_.size(), " tokens, as many as are kept"));
    }
  }
  ASSIGN_OR_RETURN(const std::string id, RandomCharacters(kIdCharacters));
  ASSIGN_OR_RETURN(const std::string secret, RandomCharacters(kSecretCharacters));
  Created created;
  if (wanted.key_hash.empty()) created.token = absl::StrCat(kPrefix, id, "_", secret);
  TokenRow& row = created.row;
  row.id = id;
  row.name = wanted.name;
  row.certificate = !wanted.key_hash.empty();
  row.hash = row.certificate ? wanted.key_hash : Sha256Hex(created.token);
  row.roles = NamesOf(wanted.roles);
  row.joins = wanted.joins;
  const absl::Time now = clock_();
  row.created_ms = absl::ToUnixMillis(now);
  row.expires_ms = wanted.lifetime == absl::InfiniteDuration() ? 0 : absl::ToUnixMillis(now + wanted.lifetime);
  row.created_by = wanted.created_by;
  row.tenant = wanted.tenant;
  row.parent = wanted.parent;
  if (wanted.joins) row.most_joins = wanted.most_joins > 0 ? wanted.most_joins : kMostJoins;
  {
    // Counted before it is stored, so that several at once cannot all pass.
    absl::MutexLock lock(&mutex_);
    const auto parent = tokens_.find(wanted.parent);
    if (parent != tokens_.end()) {
      RETURN_IF_ERROR(CheckJoins(parent->second, ValidChildrenOf(wanted.parent).size()));
      RETURN_IF_ERROR(CheckName(row));
    }
    tokens_[row.id] = row;
    being_stored_.insert(row.id);
  }
  const absl::Status stored = store_->InsertToken(row);
  absl::MutexLock lock(&mutex_);
  being_stored_.erase(row.id);
  if (!stored.ok()) {
    tokens_.erase(row.id);
    return stored;
  }
  return created;
}

absl::StatusOr<TokenRow> TokenBook::Revoke(const std::string& id) {
  const int64_t now_ms = absl::ToUnixMillis(clock_());
  {
    absl::MutexLock lock(&mutex_);
    // The row could otherwise be stored afterwards, and not be revoked.
    const auto is_stored = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return being_stored_.count(id) == 0; };
    mutex_.Await(absl::Condition(&is_stored));
    if (tokens_.count(id) == 0) {
      return absl::NotFoundError(absl::StrCat("no token '", id, "': fusionctl auth token list has the ids"));
    }
  }
  RETURN_IF_ERROR(store_->RevokeToken(id, now_ms));
  absl::MutexLock lock(&mutex_);
  TokenRow& row = tokens_.at(id);
  if (row.revoked_ms == 0) row.revoked_ms = now_ms;
  return row;
}

absl::StatusOr<TokenRow> TokenBook::Extend(const std::string& id, absl::Time ends) {
  const absl::Status unknown =
      absl::UnauthenticatedError(absl::StrCat("certificate ", id, " is not valid any more: ", kAdviceForWorkers));
  int64_t expires_ms = absl::ToUnixMillis(ends);
  {
    absl::MutexLock lock(&mutex_);
    const auto found = tokens_.find(id);
    if (found == tokens_.end() || !found->second.certificate) return unknown;
    if (!IsValidAt(found->second, absl::ToUnixMillis(clock_()))) return unknown;
    expires_ms = std::max(expires_ms, found->second.expires_ms);
  }
  RETURN_IF_ERROR(store_->ExtendToken(id, expires_ms));
  absl::MutexLock lock(&mutex_);
  const auto found = tokens_.find(id);
  if (found == tokens_.end()) return unknown;
  found->second.expires_ms = std::max(expires_ms, found->second.expires_ms);
  return found->second;
}

std::optional<TokenRow> TokenBook::CertificateFor(const std::string& parent, const std::string& name,
                                                  const std::string& key_hash) const {
  const int64_t now_ms = absl::ToUnixMillis(clock_());
  absl::MutexLock lock(&mutex_);
  for (const auto& [id, row] : tokens_) {
    const bool same = row.certificate && row.parent == parent && row.name == name && row.hash == key_hash;
    if (same && IsValidAt(row, now_ms)) return row;
  }
  return std::nullopt;
}

std::optional<TokenRow> TokenBook::Find(const std::string& id) const {
  absl::MutexLock lock(&mutex_);
  const auto found = tokens_.find(id);
  if (found == tokens_.end()) return std::nullopt;
  return found->second;
}

std::vector<std::string> TokenBook::ValidChildrenOf(const std::string& parent) const {
  const int64_t now_ms = absl::ToUnixMillis(clock_());
  std::vector<std::string> ids;
  for (const auto& [id, row] : tokens_) {
    if (!parent.empty() && row.parent == parent && IsValidAt(row, now_ms)) ids.push_back(id);
  }
  return ids;
}

// Measurements of workers stand under the names of their tokens.
absl::Status TokenBook::CheckName(const TokenRow& joining) const {
  const int64_t now_ms = absl::ToUnixMillis(clock_());
  for (const auto& [id, row] : tokens_) {
    if (row.name != joining.name || row.parent == joining.parent || !IsValidAt(row, now_ms)) continue;
    return absl::AlreadyExistsError(absl::StrCat(InWords(row), " has that name, and was not made for this join token: ",
                                                 "give the worker another one (--name), or revoke that token"));
  }
  return absl::OkStatus();
}

std::vector<std::string> TokenBook::ValidChildren(const std::string& parent) const {
  absl::MutexLock lock(&mutex_);
  return ValidChildrenOf(parent);
}

std::vector<TokenRow> TokenBook::List() const {
  std::vector<TokenRow> rows;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [id, row] : tokens_) rows.push_back(row);
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const TokenRow& a, const TokenRow& b) { return a.created_ms < b.created_ms; });
  return rows;
}

absl::Status TokenBook::RemoveOld(int64_t before_ms) {
  if (before_ms == 0) before_ms = absl::ToUnixMillis(clock_() - kLongestKept);
  std::vector<std::string> old;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [id, row] : tokens_) {
      const bool revoked = row.revoked_ms != 0 && row.revoked_ms < before_ms;
      const bool expired = row.expires_ms != 0 && row.expires_ms < before_ms;
      if (revoked || expired) old.push_back(id);
    }
  }
  if (old.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(store_->RemoveTokens(old));
  absl::MutexLock lock(&mutex_);
  for (const std::string& id : old) {
    tokens_.erase(id);
    uses_.erase(id);
  }
  return absl::OkStatus();
}

std::vector<std::string> TokenBook::TakeExpired() {
  const int64_t now_ms = absl::ToUnixMillis(clock_());
  std::vector<std::string> expired;
  absl::MutexLock lock(&mutex_);
  for (const auto& [id, row] : tokens_) {
    if (row.expires_ms > looked_ms_ && row.expires_ms <= now_ms) expired.push_back(id);
  }
  looked_ms_ = now_ms;
  return expired;
}

absl::StatusOr<TokenRow> TokenBook::Check(absl::string_view token) const {
  TokenRow row;
  absl::string_view rest = token;
  if (absl::ConsumePrefix(&rest, kPrefix) && rest.size() == kIdCharacters + 1 + kSecretCharacters) {
    absl::MutexLock lock(&mutex_);
    const auto found = tokens_.find(std::string(rest.substr(0, kIdCharacters)));
    if (found != tokens_.end()) row = found->second;
  }
  if (row.certificate || !SameInConstantTime(Sha256Hex(token), row.hash)) {
    return absl::UnauthenticatedError(absl::StrCat("the server does not know this token: ", kAdvice));
  }
  if (row.revoked_ms != 0) {
    return absl::UnauthenticatedError(
        absl::StrCat(InWords(row), " was revoked on ", Day(row.revoked_ms), ": ", kAdvice));
  }
  if (row.expires_ms != 0 && absl::ToUnixMillis(clock_()) >= row.expires_ms) {
    return absl::UnauthenticatedError(absl::StrCat(InWords(row), " expired on ", Day(row.expires_ms), ": ", kAdvice));
  }
  return row;
}

absl::StatusOr<Principal> TokenBook::Identify(absl::string_view authorization) const {
  if (authorization.empty()) {
    return absl::UnauthenticatedError(absl::StrCat("this server wants a token with each call: ", kAdvice));
  }
  if (!absl::ConsumePrefix(&authorization, "Bearer ")) {
    return absl::UnauthenticatedError(absl::StrCat("the authorization header is no 'Bearer TOKEN': ", kAdvice));
  }
  ASSIGN_OR_RETURN(const TokenRow row, Check(authorization));
  return PrincipalOf(row);
}

absl::StatusOr<Principal> TokenBook::Identify(const CertificateFacts& certificate) const {
  const absl::Time now = clock_();
  absl::MutexLock lock(&mutex_);
  const auto found = tokens_.find(certificate.name);
  if (found == tokens_.end() || !found->second.certificate || found->second.hash != Sha256Hex(certificate.public_key)) {
    return absl::UnauthenticatedError(
        absl::StrCat("the server does not know this worker's certificate: ", kAdviceForWorkers));
  }
  const TokenRow& row = found->second;
  if (row.revoked_ms != 0) {
    return absl::UnauthenticatedError(
        absl::StrCat(InWords(row), " was revoked on ", Day(row.revoked_ms), ": ", kAdviceForWorkers));
  }
  // The row ends with the latest certificate for the key, this one may be an earlier one.
  const absl::Time ends = std::min(certificate.ends, absl::FromUnixMillis(row.expires_ms));
  if (now >= ends) {
    return absl::UnauthenticatedError(
        absl::StrCat(InWords(row), " expired on ", Day(absl::ToUnixMillis(ends)), ": ", kAdviceForWorkers));
  }
  uses_[row.id] = {now, ends};
  return PrincipalOf(row);
}

absl::Time TokenBook::FirstEndInUse() const {
  const absl::Time now = clock_();
  absl::Time first = absl::InfiniteFuture();
  absl::MutexLock lock(&mutex_);
  for (const auto& [id, use] : uses_) {
    const auto found = tokens_.find(id);
    if (found == tokens_.end() || found->second.revoked_ms != 0 || use.at + kInUse < now) continue;
    first = std::min(first, use.ends);
  }
  return first;
}

}  // namespace fusion
