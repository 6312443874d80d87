#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "client/api/connection.h"
#include "client/cli/exit_codes.h"
#include "client/cli/proto_json.h"
#include "client/cli/words.h"
#include "client/verbs/verbs.h"

namespace fusion {
namespace {

absl::StatusOr<absl::Duration> ParseLifetime(const std::string& text) {
  if (text == "never") return absl::ZeroDuration();
  const absl::StatusOr<absl::Duration> age = ParseAge("--expires", text);
  if (!age.ok() || *age == absl::ZeroDuration()) {
    return UsageError(absl::StrCat("--expires is '", text, "'; say 90d, 12h, 30m, 45s or never"));
  }
  return age;
}

// A new file that its owner alone may read.
absl::Status WriteSecret(const std::string& path, const std::string& secret) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return absl::NotFoundError(absl::StrCat("cannot make ", path, ": ", std::strerror(errno)));
  const std::string line = secret + "\n";
  const bool written = write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  if (close(fd) == 0 && written) return absl::OkStatus();
  unlink(path.c_str());
  return absl::UnknownError(absl::StrCat("cannot write ", path, ": ", std::strerror(errno)));
}

std::string TimeOrWord(int64_t ms, const char* word) { return ms == 0 ? word : TimeInWords(ms); }

class TokenCreateVerb : public Verb {
 public:
  std::string name() const override { return "auth token create"; }
  std::string help() const override { return "make a token for somebody, and print it once"; }
  std::vector<Option> Options() override {
    return {{"NAME", "whom it is for", &name_, true},
            {"--role",
             "what its holder may do; repeatable",
             &roles_,
             true,
             {"client", "build", "untrusted-build", "measure", "admin"}},
            {"--expires", "90d, 12h, 30m, 45s or never", &expires_},
            {"--join", "workers exchange it for certificates of their own, and it is good for nothing else", &join_},
            {"--most", "with --join: how many workers it may bring [100]", &most_},
            {"--tenant",
             "of which tenant, which shares models and bundles with no other; its tokens have the role client alone",
             &tenant_},
            {"--to", "new file for the token, mode 0600, instead of stdout", &to_},
            OutputOption(&format_)};
  }
  int Run(const CommonOptions& common) override {
    const absl::StatusOr<absl::Duration> lifetime = ParseLifetime(expires_);
    if (!lifetime.ok()) return Fail(lifetime.status());
    v1::CreateTokenRequest request;
    request.set_name(name_);
    for (const std::string& role : roles_) request.add_roles(role);
    request.set_lifetime_ms(absl::ToInt64Milliseconds(*lifetime));
    request.set_join(join_);
    if (most_ < 0 || (most_ > 0 && !join_)) return Fail(UsageError("--most is for --join, and at least 1"));
    request.set_most_joins(most_);
    request.set_tenant(tenant_);
    auto created = Connection::Open(common.endpoint)->CreateToken(request);
    if (!created.ok()) return Fail(created.status());
    if (!to_.empty()) {
      const absl::Status written = WriteSecret(to_, created->token());
      if (!written.ok()) return FailLocal(written);
      created->clear_token();
    }
    std::fprintf(stderr, "token %s for %s: %s, expires %s\n", created->info().id().c_str(),
                 created->info().name().c_str(), absl::StrJoin(created->info().roles(), ",").c_str(),
                 TimeOrWord(created->info().expires_ms(), "never").c_str());
    if (format_ == "json") {
      std::printf("%s\n", ProtoToJson(*created).c_str());
    } else if (to_.empty()) {
      std::printf("%s\n", created->token().c_str());
    }
    return kExitOk;
  }

 private:
  std::string name_, expires_ = "90d", to_, tenant_, format_ = "table";
  std::vector<std::string> roles_;
  bool join_ = false;
  int64_t most_ = 0;
};

class TokenRevokeVerb : public Verb {
 public:
  std::string name() const override { return "auth token revoke"; }
  std::string help() const override {
    return "refuse a token or certificate from now on, and end the calls that came with it";
  }
  std::vector<Option> Options() override {
    return {{"ID", "the token's id (auth token list)", &id_, true},
            {"--with-joined", "also the certificates and tokens of all workers that this join token has brought",
             &with_joined_}};
  }
  int Run(const CommonOptions& common) override {
    // Whoever has the token at hand need not cut its id out of it, and it must not travel.
    if (id_.rfind("fus_", 0) == 0) id_ = id_.substr(4, id_.find('_', 4) - 4);
    const auto revoked = Connection::Open(common.endpoint)->RevokeToken(id_, with_joined_);
    if (!revoked.ok()) return Fail(revoked.status());
    std::fprintf(stderr, "%s %s (%s) is revoked\n", revoked->certificate() ? "certificate" : "token",
                 revoked->id().c_str(), revoked->name().c_str());
    return kExitOk;
  }

 private:
  std::string id_;
  bool with_joined_ = false;
};

class TokenListVerb : public Verb {
 public:
  std::string name() const override { return "auth token list"; }
  std::string help() const override { return "all tokens and certificates of workers, by the ids that logs show"; }
  std::vector<Option> Options() override {
    return {{"--limit", "how many, the oldest first (0: all)", &limit_}, OutputOption(&format_)};
  }
  int Run(const CommonOptions& common) override {
    const auto listed = Connection::Open(common.endpoint)->ListTokens(RowsOf(limit_));
    if (!listed.ok()) return Fail(listed.status());
    if (format_ == "json") {
      std::printf("%s\n", ProtoToJson(*listed).c_str());
      return kExitOk;
    }
    const int64_t now = absl::ToUnixMillis(absl::Now());
    std::vector<std::vector<std::string>> rows;
    for (const v1::TokenInfo& token : listed->tokens()) {
      const char* state = token.revoked_ms() != 0                                ? "revoked"
                          : token.expires_ms() != 0 && token.expires_ms() <= now ? "expired"
                          : token.join()                                         ? "joins"
                                                                                 : "valid";
      const char* kind = token.certificate() ? "certificate" : token.join() ? "join token" : "token";
      rows.push_back({token.id(), kind, Printable(token.name()), absl::StrJoin(token.roles(), ","), state,
                      TimeInWords(token.created_ms()), TimeOrWord(token.expires_ms(), "never"),
                      token.tenant().empty() ? "-" : token.tenant(), Printable(token.created_by())});
    }
    std::fputs(
        Table({"ID", "KIND", "NAME", "ROLES", "STATE", "CREATED", "EXPIRES", "TENANT", "CREATED BY"}, rows).c_str(),
        stdout);
    return kExitOk;
  }

 private:
  int64_t limit_ = 0;
  std::string format_ = "table";
};

}  // namespace

std::unique_ptr<Verb> MakeTokenCreateVerb() { return std::make_unique<TokenCreateVerb>(); }
std::unique_ptr<Verb> MakeTokenRevokeVerb() { return std::make_unique<TokenRevokeVerb>(); }
std::unique_ptr<Verb> MakeTokenListVerb() { return std::make_unique<TokenListVerb>(); }

}  // namespace fusion
