// TokenBook: the tokens that callers come with over the network. A token is "fus_<id>_<secret>": the prefix lets
// scanners of repositories and logs find a lost one, the id is public and names it in lists and logs, the secret has
// 256 random bits. The store keeps only a token's SHA-256; with so much randomness a slow hash would add
// nothing. Certificates of workers are rows of the same book: the authority (worker_authority.h) says that a
// certificate is of this server, and the book what its holder may do, and until when.
#ifndef FUSION_SERVER_AUTH_TOKENS_H_
#define FUSION_SERVER_AUTH_TOKENS_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "db/stores/store.h"
#include "proto/channel/worker_certificate.h"
#include "server/auth/guard.h"
#include "server/auth/roles.h"

namespace fusion {

class TokenBook {
 public:
  using Clock = std::function<absl::Time()>;

  // `store` must outlive the book, and no one else may write its tokens.
  static absl::StatusOr<std::unique_ptr<TokenBook>> Open(Store* store, Clock clock);

  struct Wanted {
    std::string name;
    RoleSet roles;
    bool joins = false;  // may only be exchanged by a worker for a token of its own
    absl::Duration lifetime = absl::InfiniteDuration();
    std::string created_by = {};
    std::string tenant = {};    // "": the default one
    std::string parent = {};    // the id of the join token with which a worker asks
    int64_t most_joins = 0;     // of a join token; 0: kMostJoins
    std::string key_hash = {};  // SHA-256 of the public key for which a certificate is made; "": a token is
  };
  // The workers that a join token may bring, unless it says otherwise.
  static constexpr int64_t kMostJoins = 100;
  struct Created {
    std::string token;  // shown once; "": of a certificate
    TokenRow row;
  };
  // Durable when it returns. Fails with INVALID_ARGUMENT for an empty or long name, for no role, and for a join token
  // with other roles than a worker's; for a tenant that is no word of letters, digits and dashes, or whose
  // token has another role than client; with RESOURCE_EXHAUSTED if there are too many tokens, or as many valid ones of
  // that parent as it may bring; with ALREADY_EXISTS for the name of a valid token of another parent, or of none.
  absl::StatusOr<Created> Create(const Wanted& wanted);
  // Durable when it returns, and from then on Check refuses the token. Waits for a token that is just being stored.
  // NOT_FOUND for an unknown id, and for a token that could not be stored.
  absl::StatusOr<TokenRow> Revoke(const std::string& id);
  // The row of a certificate ends then from now on, unless it ends later already. Durable when it returns. Fails with
  // UNAUTHENTICATED if there is no such valid row.
  absl::StatusOr<TokenRow> Extend(const std::string& id, absl::Time ends);
  // The row of the valid certificate that this join token has brought for a worker with that name and key, if any.
  std::optional<TokenRow> CertificateFor(const std::string& parent, const std::string& name,
                                         const std::string& key_hash) const;
  std::optional<TokenRow> Find(const std::string& id) const;
  absl::Time Now() const { return clock_(); }                               // by which rows end
  std::vector<std::string> ValidChildren(const std::string& parent) const;  // ids
  std::vector<TokenRow> List() const;                                       // the oldest first
  // Removes those that were revoked or have expired before that time (Unix milliseconds); 0: more than thirty days ago,
  // so that they do not fill the book of a server that keeps its jobs for ever.
  absl::Status RemoveOld(int64_t before_ms);
  // The ids of the tokens that have expired since the call before, or since Open.
  std::vector<std::string> TakeExpired();

  // The token's row. Fails with UNAUTHENTICATED if it is unknown, expired or revoked, without telling an unknown id
  // from a wrong secret. Takes the same time whichever character is wrong.
  absl::StatusOr<TokenRow> Check(absl::string_view token) const;

  // Who calls with the header "Bearer TOKEN".
  absl::StatusOr<Principal> Identify(absl::string_view authorization) const;

  // Who calls with a certificate that the authority has made. Fails with UNAUTHENTICATED if its id is unknown, is that
  // of a token or of another key, or if it has expired or was revoked.
  absl::StatusOr<Principal> Identify(const CertificateFacts& certificate) const;
  // When the first of the certificates ends with which somebody has called in the last ten minutes. Infinite: none.
  absl::Time FirstEndInUse() const;

 private:
  absl::Status CheckName(const TokenRow& joining) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<std::string> ValidChildrenOf(const std::string& parent) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  TokenBook(Store* store, Clock clock) : store_(store), clock_(std::move(clock)) {}

  Store* const store_;
  const Clock clock_;
  mutable absl::Mutex mutex_;
  std::map<std::string, TokenRow> tokens_ ABSL_GUARDED_BY(mutex_);  // by id
  // Those that count already and have no row yet, whose holders do not know them yet.
  std::set<std::string> being_stored_ ABSL_GUARDED_BY(mutex_);
  int64_t looked_ms_ ABSL_GUARDED_BY(mutex_) = 0;                   // when TakeExpired looked last
  struct Use {
    absl::Time at, ends;  // of the certificate
  };
  mutable std::map<std::string, Use> uses_ ABSL_GUARDED_BY(mutex_);  // the latest of each certificate, by id
};

}  // namespace fusion

#endif  // FUSION_SERVER_AUTH_TOKENS_H_
