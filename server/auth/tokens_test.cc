#include "server/auth/tokens.h"

#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status_macros.h"
#include "server/testing/forwarding_store.h"
#include "server/testing/temporary_state.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class TokensTest : public ::testing::Test {
 protected:
  std::unique_ptr<TokenBook> Open() {
    auto book = TokenBook::Open(&state_.store(), [this] { return now_; });
    EXPECT_TRUE(book.ok()) << book.status();
    return std::move(book).value();
  }
  static void Refused(const TokenBook& book, const std::string& token, const std::string& words) {
    const auto row = book.Check(token);
    EXPECT_EQ(row.status().code(), absl::StatusCode::kUnauthenticated) << token;
    EXPECT_THAT(row.status().message(), HasSubstr(words));
    EXPECT_THAT(row.status().message(), HasSubstr("fusionctl auth token create"));
    if (token.size() > 40) EXPECT_THAT(row.status().message(), Not(HasSubstr(token.substr(15))));
  }

  testing::TemporaryState state_;
  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
};

TEST_F(TokensTest, ATokenSaysWhoCallsAndOutlivesTheServer) {
  auto book = Open();
  const auto created = book->Create({"ci", {Role::kClient}});
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_TRUE(absl::StartsWith(created->token, absl::StrCat("fus_", created->row.id, "_")));
  EXPECT_EQ(created->token.size(), 4 + 10 + 1 + 52u);
  for (int round = 0; round < 2; ++round) {
    const auto principal = book->Identify("Bearer " + created->token);
    ASSERT_TRUE(principal.ok()) << principal.status();
    EXPECT_EQ(principal->name, absl::StrCat("token ", created->row.id, " ('ci')"));
    EXPECT_EQ(principal->roles, RoleSet({Role::kClient}));
    EXPECT_EQ(principal->token_id, created->row.id);
    book = Open();
  }
  for (const char* header : {"", "bearer x", "Basic x", "Bearer", "Bearer "}) {
    EXPECT_EQ(book->Identify(header).status().code(), absl::StatusCode::kUnauthenticated) << header;
  }
  EXPECT_FALSE(book->Identify(created->token).ok()) << "without the word Bearer";
  EXPECT_FALSE(book->Identify(absl::StrCat("Bearer ", created->token, " ")).ok());
}

TEST_F(TokensTest, OldTokensThatNobodyCanUseAreRemoved) {
  auto book = Open();
  const std::string expires = book->Create({"expires", {Role::kClient}, false, absl::Hours(1)})->row.id;
  const std::string revoked = book->Create({"revoked", {Role::kClient}})->row.id;
  const std::string stays = book->Create({"stays", {Role::kClient}})->row.id;
  ASSERT_TRUE(book->Revoke(revoked).ok());
  ASSERT_TRUE(book->RemoveOld(absl::ToUnixMillis(now_)).ok());
  EXPECT_EQ(book->List().size(), 3u) << "not before that moment";
  ASSERT_TRUE(book->RemoveOld(absl::ToUnixMillis(now_) + 1).ok());
  EXPECT_EQ(book->List().size(), 2u);
  ASSERT_TRUE(book->RemoveOld(absl::ToUnixMillis(now_ + absl::Hours(2))).ok());
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(book->List().size(), 1u);
    EXPECT_EQ(book->List()[0].id, stays);
    book = Open();
  }
  ASSERT_TRUE(book->Revoke(stays).ok());
  now_ += absl::Hours(24 * 30);
  ASSERT_TRUE(book->RemoveOld(0).ok());
  EXPECT_EQ(book->List().size(), 1u) << "jobs are kept for ever, tokens for thirty days";
  now_ += absl::Milliseconds(1);
  ASSERT_TRUE(book->RemoveOld(0).ok());
  EXPECT_TRUE(book->List().empty());
}

TEST_F(TokensTest, EachWrongCharacterIsRefusedWithTheSameWords) {
  auto book = Open();
  const auto created = book->Create({"ci", {Role::kClient}});
  const std::string unknown = absl::StrCat("fus_", std::string(10, '0'), "_", std::string(52, '0'));
  const std::string words(book->Check(unknown).status().message());
  for (size_t i = 0; i < created->token.size(); ++i) {
    std::string wrong = created->token;
    wrong[i] = wrong[i] == 'x' ? 'y' : 'x';
    Refused(*book, wrong, "does not know this token");
    EXPECT_EQ(book->Check(wrong).status().message(), words) << "an id that exists is not told from one that does not";
    Refused(*book, created->token.substr(0, i), "does not know");
  }
  Refused(*book, created->token + "0", "does not know");
  Refused(*book, created->row.hash, "does not know");
  Refused(*book, std::string(1 << 16, 'f'), "does not know");
  Refused(*book, std::string("fus_\0\0", 6), "does not know");
}

TEST_F(TokensTest, TheStoreHoldsNoToken) {
  auto book = Open();
  std::set<std::string> secrets;
  for (int i = 0; i < 20; ++i) secrets.insert(book->Create({absl::StrCat("n", i), {Role::kAdmin}})->token.substr(15));
  EXPECT_EQ(secrets.size(), 20u);
  std::string files;
  for (const char* suffix : {"", "-wal"}) {
    std::ifstream file(absl::StrCat(state_.folder(), "/fusion.db", suffix));
    std::stringstream bytes;
    bytes << file.rdbuf();
    files += bytes.str();
  }
  EXPECT_THAT(files, HasSubstr("n19")) << "this test looks into the wrong files";
  for (const std::string& secret : secrets) EXPECT_THAT(files, Not(HasSubstr(secret)));
}

TEST_F(TokensTest, TokensExpireAndAreRevoked) {
  auto book = Open();
  const auto created = book->Create({"brief", {Role::kClient}, false, absl::Hours(1)});
  EXPECT_EQ(created->row.expires_ms, absl::ToUnixMillis(now_ + absl::Hours(1)));
  now_ += absl::Hours(1) - absl::Milliseconds(1);
  EXPECT_TRUE(book->Check(created->token).ok());
  EXPECT_THAT(book->TakeExpired(), ::testing::IsEmpty());
  now_ += absl::Milliseconds(1);
  EXPECT_THAT(book->TakeExpired(), ::testing::ElementsAre(created->row.id));
  EXPECT_THAT(book->TakeExpired(), ::testing::IsEmpty()) << "each once";
  EXPECT_THAT(Open()->TakeExpired(), ::testing::IsEmpty()) << "no call has lasted since before the start";
  Refused(*book, created->token, "expired on 2027-01-15 09:00 UTC");

  const auto other = book->Create({"stolen", {Role::kClient, Role::kAdmin}});
  EXPECT_TRUE(book->Check(other->token).ok());
  const auto revoked = book->Revoke(other->row.id);
  ASSERT_TRUE(revoked.ok());
  EXPECT_EQ(revoked->revoked_ms, absl::ToUnixMillis(now_));
  Refused(*book, other->token, "('stolen') was revoked on");
  now_ += absl::Hours(1);
  EXPECT_EQ(book->Revoke(other->row.id)->revoked_ms, revoked->revoked_ms);
  Refused(*Open(), other->token, "was revoked");
  EXPECT_EQ(book->Revoke("nobody").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(book->List().size(), 2u);
}

TEST_F(TokensTest, WhatMakesNoSenseIsRefused) {
  auto book = Open();
  const RoleSet client = {Role::kClient};
  EXPECT_EQ(book->Create({"", client}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(book->Create({std::string(129, 'n'), client}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(book->Create({"n", {}}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(book->Create({"n", client, true}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(book->Create({"n", {Role::kBuild, Role::kAdmin}, true}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(book->Create({"n", client, false, absl::ZeroDuration()}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(book->List().empty());
}

TEST_F(TokensTest, ATokenNamesItsTenantAndIsThenOfAClientAlone) {
  auto book = Open();
  const RoleSet client = {Role::kClient};
  const auto wanted = [&](const std::string& tenant, RoleSet roles, bool joins = false) {
    return book->Create({"ci", roles, joins, absl::InfiniteDuration(), "me", tenant});
  };
  const auto acme = wanted("acme", client);
  ASSERT_TRUE(acme.ok()) << acme.status();
  const auto plain = wanted("", client);
  const auto principal = Open()->Identify("Bearer " + acme->token).value();
  EXPECT_EQ(principal.tenant, "acme");
  EXPECT_NE(principal.OwnerName(), Open()->Identify("Bearer " + plain->token)->OwnerName()) << "of one name";
  for (const std::string& tenant : {std::string("a b"), std::string("a/b"), std::string(33, 'a'), std::string("ä")}) {
    EXPECT_EQ(wanted(tenant, client).status().code(), absl::StatusCode::kInvalidArgument) << tenant;
  }
  EXPECT_FALSE(wanted("acme", {Role::kClient, Role::kAdmin}).ok());
  EXPECT_FALSE(wanted("acme", {Role::kMeasure}).ok());
  EXPECT_FALSE(wanted("acme", {Role::kMeasure}, true).ok());
}

TEST_F(TokensTest, AJoinTokenJoinsAndDoesNothingElse) {
  auto book = Open();
  const auto join = book->Create({"rack 7", {Role::kBuild, Role::kMeasure}, true});
  ASSERT_TRUE(join.ok()) << join.status();
  EXPECT_EQ(book->Identify("Bearer " + join->token)->roles, RoleSet({Role::kJoin}));
}

TEST_F(TokensTest, ACertificateIsOfItsIdAndItsKey) {
  auto book = Open();
  TokenBook::Wanted wanted{"worker one", {Role::kMeasure}};
  wanted.lifetime = absl::Hours(24 * 30);
  wanted.key_hash = Sha256Hex("key");
  wanted.parent = book->Create({"rack 7", {Role::kMeasure}, true})->row.id;
  const auto created = book->Create(wanted);
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_EQ(created->token, "");
  EXPECT_TRUE(created->row.certificate);
  const std::string id = created->row.id;
  const absl::Time first_end = now_ + absl::Hours(24 * 30);
  const CertificateFacts first{id, "key", now_, first_end};
  EXPECT_EQ(book->FirstEndInUse(), absl::InfiniteFuture());
  for (int round = 0; round < 2; ++round) {
    const auto principal = book->Identify(first);
    ASSERT_TRUE(principal.ok()) << principal.status();
    EXPECT_EQ(principal->name, absl::StrCat("certificate ", id, " ('worker one')"));
    EXPECT_EQ(principal->roles, RoleSet({Role::kMeasure}));
    EXPECT_EQ(principal->token_id, id);
    EXPECT_EQ(principal->OwnerName(), "token worker one") << "the source that it was with a token";
    EXPECT_EQ(book->FirstEndInUse(), first_end);
    book = Open();
  }
  const auto refused = [&](const CertificateFacts& facts, const char* words) {
    const absl::Status status = book->Identify(facts).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated) << words;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
    EXPECT_THAT(std::string(status.message()), HasSubstr("--join-token-file"));
  };
  refused({id, "another key", now_, first_end}, "does not know");
  refused({"0000000000", "key", now_, first_end}, "does not know");
  refused({wanted.parent, "key", now_, first_end}, "does not know");
  Refused(*book, absl::StrCat("fus_", id, "_", std::string(52, '0')), "does not know this token");

  // A worker that asks again with the same key, because the answer was lost, is the same one.
  EXPECT_EQ(book->CertificateFor(wanted.parent, "worker one", wanted.key_hash)->id, id);
  EXPECT_FALSE(book->CertificateFor(wanted.parent, "worker two", wanted.key_hash).has_value());
  EXPECT_FALSE(book->CertificateFor("", "worker one", wanted.key_hash).has_value());

  // A renewed row lives on, and the certificate of before does not.
  now_ += absl::Hours(24 * 20);
  ASSERT_TRUE(book->Extend(id, now_ + absl::Hours(24 * 30)).ok());
  EXPECT_EQ(book->Extend(wanted.parent, now_).status().code(), absl::StatusCode::kUnauthenticated);
  const CertificateFacts second{id, "key", now_, now_ + absl::Hours(24 * 30)};
  now_ = first_end;
  refused(first, "expired on 2027-02-14 08:00 UTC");
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(book->Identify(second).ok());
    book = Open();
  }
  ASSERT_TRUE(book->Revoke(id).ok());
  refused(second, "was revoked on");
  EXPECT_EQ(book->FirstEndInUse(), absl::InfiniteFuture());
  EXPECT_EQ(book->Extend(id, now_ + absl::Hours(1)).status().code(), absl::StatusCode::kUnauthenticated);
  refused(second, "was revoked on");
}

TEST_F(TokensTest, AJoinTokenBringsSoManyWorkersAndTakesThemAlong) {
  auto book = Open();
  const RoleSet build = {Role::kBuild};
  TokenBook::Wanted wanted{"rack 7", build, true};
  EXPECT_EQ(book->Create(wanted)->row.most_joins, TokenBook::kMostJoins);
  wanted.most_joins = 2;
  const std::string parent = book->Create(wanted)->row.id;
  const auto join = [&](const std::string& name) {
    TokenBook::Wanted worker{name, build};
    worker.parent = parent;
    worker.lifetime = absl::Hours(1);
    return book->Create(worker);
  };
  const std::string first = join("worker 1")->row.id;
  ASSERT_TRUE(join("worker 2").ok());
  const absl::Status third = join("worker 3").status();
  EXPECT_EQ(third.code(), absl::StatusCode::kResourceExhausted) << third;
  EXPECT_THAT(std::string(third.message()), HasSubstr("has brought 2 workers"));
  book = Open();
  EXPECT_FALSE(join("worker 3").ok()) << "a restart forgets none of them";
  EXPECT_EQ(book->ValidChildren(parent).size(), 2u);
  ASSERT_TRUE(book->Revoke(first).ok());
  EXPECT_TRUE(join("worker 3").ok()) << "one has gone";
  ASSERT_TRUE(book->Revoke(book->ValidChildren(parent)[0]).ok());
  ASSERT_TRUE(book->Create({"worker of another", build}).ok());
  EXPECT_EQ(join("worker of another").status().code(), absl::StatusCode::kAlreadyExists);
  now_ += absl::Hours(2);
  EXPECT_TRUE(book->ValidChildren(parent).empty()) << "they have expired";
  EXPECT_TRUE(join("worker 4").ok());
  ASSERT_TRUE(book->Revoke(parent).ok());
  EXPECT_EQ(join("worker 5").status().code(), absl::StatusCode::kUnauthenticated)
      << "a call that was let in just before the token was revoked";
}

// A store in which something happens between the decision to insert a token and its row.
class StoreWithAMoment : public testing::ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  absl::Status InsertToken(const TokenRow& token) override {
    if (moment) RETURN_IF_ERROR(std::exchange(moment, nullptr)(token.id));
    return ForwardingStore::InsertToken(token);
  }
  absl::Status RevokeToken(const std::string& id, int64_t now_ms) override {
    const absl::Status revoked = ForwardingStore::RevokeToken(id, now_ms);
    if (on_revoked) on_revoked(id);
    return revoked;
  }
  std::function<absl::Status(const std::string& id)> moment;
  std::function<void(const std::string& id)> on_revoked;
};

TEST_F(TokensTest, ATokenThatIsRevokedWhileItIsStoredStaysRevoked) {
  for (const bool fails : {false, true}) {
    StoreWithAMoment store(&state_.store());
    auto book = TokenBook::Open(&store, [this] { return now_; }).value();
    const std::string parent = book->Create({"rack", {Role::kBuild}, true})->row.id;
    TokenBook::Wanted worker{"worker", {Role::kBuild}};
    worker.parent = parent;
    absl::Notification listed, early;  // early: the revocation did not wait for the row
    absl::Status revoked;
    std::thread administrator;
    store.on_revoked = [&](const std::string& id) {
      if (id != parent) early.Notify();
    };
    store.moment = [&](const std::string&) {
      administrator = std::thread([&] {
        ASSERT_TRUE(book->Revoke(parent).ok());
        const std::vector<std::string> children = book->ValidChildren(parent);
        listed.Notify();
        ASSERT_EQ(children.size(), 1u);
        revoked = book->Revoke(children[0]).status();
      });
      listed.WaitForNotification();
      EXPECT_FALSE(early.WaitForNotificationWithTimeout(absl::Milliseconds(200)));
      return fails ? absl::UnavailableError("the disk is full") : absl::OkStatus();
    };
    const auto created = book->Create(worker);
    administrator.join();
    EXPECT_EQ(created.ok(), !fails);
    EXPECT_EQ(revoked.code(), fails ? absl::StatusCode::kNotFound : absl::StatusCode::kOk) << revoked;
    if (fails) continue;
    Refused(*book, created->token, "was revoked");
    Refused(*Open(), created->token, "was revoked");  // after a restart
  }
}

}  // namespace
}  // namespace fusion
