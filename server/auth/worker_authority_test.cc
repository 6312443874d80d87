#include "server/auth/worker_authority.h"

#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/channel/endpoint.h"
#include "proto/channel/openssl_owned.h"
#include "proto/channel/testing/made_certificate.h"
#include "runtime/base/atomic_file.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

class WorkerAuthorityTest : public ::testing::Test {
 protected:
  WorkerAuthorityTest() : folder_(absl::StrCat(::testing::TempDir(), "authority_", getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~WorkerAuthorityTest() override { std::filesystem::remove_all(folder_); }

  absl::StatusOr<std::unique_ptr<WorkerAuthority>> TryOpen() {
    return WorkerAuthority::Open(folder_, [this] { return now_; });
  }
  std::unique_ptr<WorkerAuthority> Open() {
    auto authority = TryOpen();
    EXPECT_TRUE(authority.ok()) << authority.status();
    return *std::move(authority);
  }
  std::string Issue(const WorkerAuthority& authority, const std::string& id = "4c7k") {
    const auto made = authority.Issue(id, public_key_, now_ + absl::Hours(24 * 30));
    EXPECT_TRUE(made.ok()) << made.status();
    return made.value_or("");
  }
  static openssl::Owned<X509> Parsed(const std::string& pem) {
    return openssl::Owned<X509>(PEM_read_bio_X509(openssl::Reads(pem).get(), nullptr, nullptr, nullptr));
  }

  const std::string folder_, key_ = NewPrivateKey().value();
  const std::string public_key_ = PublicKeyOfRequest(CertificateRequest(key_).value()).value();
  absl::Time now_ = absl::Now();
};

TEST_F(WorkerAuthorityTest, IsMadeAtTheFirstStartAndKept) {
  auto authority = Open();
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(WorkerAuthorityKey(folder_)).permissions(), perms::owner_read | perms::owner_write);
  EXPECT_THAT(ReadSecretFile(WorkerAuthorityKey(folder_)).value(), HasSubstr("PRIVATE KEY"));
  const std::string certificate = Issue(*authority), certificates = authority->certificates();
  EXPECT_THAT(certificates, ::testing::Not(HasSubstr("PRIVATE")));
  for (int round = 0; round < 2; ++round) {
    const auto facts = authority->FactsOf(certificate);
    ASSERT_TRUE(facts.has_value());
    EXPECT_EQ(facts->name, "4c7k");
    EXPECT_EQ(facts->public_key, public_key_);
    EXPECT_EQ(facts->ends, absl::FromUnixSeconds(absl::ToUnixSeconds(now_ + absl::Hours(24 * 30))));
    authority = Open();
    EXPECT_EQ(authority->certificates(), certificates);
  }
  EXPECT_TRUE(IsCertificateOfKey(certificate, key_));
}

TEST_F(WorkerAuthorityTest, AnotherAuthorityOfTheSameNameIsNotIt) {
  const auto authority = Open();
  const std::string name = ReadCertificateFacts(authority->certificates())->name;
  testing::CertificateWish same_name{name};
  same_name.authority = true;
  const testing::MadeCertificate impostor = testing::Make(same_name);
  testing::CertificateWish worker{"4c7k", &impostor};
  worker.key = key_;
  EXPECT_FALSE(authority->FactsOf(testing::Make(worker).certificate).has_value());
  worker.issuer = nullptr;
  EXPECT_FALSE(authority->FactsOf(testing::Make(worker).certificate).has_value()) << "signed by itself";
  EXPECT_FALSE(authority->FactsOf(authority->certificates()).has_value()) << "an authority is no worker";
  for (const char* text : {"", "x", "-----BEGIN CERTIFICATE-----\n"})
    EXPECT_FALSE(authority->FactsOf(text).has_value());
  EXPECT_TRUE(authority->FactsOf(Issue(*authority)).has_value());
}

TEST_F(WorkerAuthorityTest, ANewKeyLeavesTheWorkersOfTheOneBefore) {
  auto authority = Open();
  const std::string before = Issue(*authority), certificates = authority->certificates();
  std::filesystem::remove(WorkerAuthorityKey(folder_));  // as in a backup
  authority = Open();
  const std::string after = Issue(*authority);
  EXPECT_THAT(authority->certificates(), ::testing::EndsWith(certificates));
  EXPECT_NE(authority->certificates(), certificates);
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(authority->FactsOf(before).has_value());
    EXPECT_TRUE(authority->FactsOf(after).has_value());
    authority = Open();
  }
  // A year before its end an authority makes way for another one.
  const std::string old = authority->certificates();
  now_ += WorkerAuthority::kLifetime - WorkerAuthority::kLastTime - absl::Hours(1);
  EXPECT_EQ(Open()->certificates(), old);
  now_ += absl::Hours(2);
  authority = Open();
  EXPECT_THAT(authority->certificates(), ::testing::EndsWith(old));
  EXPECT_NE(authority->certificates(), old);
  now_ += WorkerAuthority::kLastTime;
  EXPECT_FALSE(Open()->FactsOf(after).has_value()) << "those that have ended are gone";
}

// gRPC checks the chain itself where callers need a certificate.
TEST_F(WorkerAuthorityTest, ItsCertificatesAreOfClientsAlone) {
  const auto authority = Open();
  const openssl::Owned<X509> worker = Parsed(Issue(*authority)), root = Parsed(authority->certificates());
  const auto verifies = [&](int purpose, X509* certificate) {
    X509_STORE* const store = X509_STORE_new();
    X509_STORE_CTX* const context = X509_STORE_CTX_new();
    X509_STORE_add_cert(store, root.get());
    X509_STORE_CTX_init(context, store, certificate, nullptr);
    X509_STORE_CTX_set_purpose(context, purpose);
    const bool verified = X509_verify_cert(context) == 1;
    X509_STORE_CTX_free(context);
    X509_STORE_free(store);
    return verified;
  };
  EXPECT_TRUE(verifies(X509_PURPOSE_SSL_CLIENT, worker.get()));
  EXPECT_FALSE(verifies(X509_PURPOSE_SSL_SERVER, worker.get()));
  // A worker that plays the authority.
  const testing::MadeCertificate holder{Issue(*authority), key_};
  const openssl::Owned<X509> made = Parsed(testing::Make({"another", &holder}).certificate);
  EXPECT_FALSE(verifies(X509_PURPOSE_SSL_CLIENT, made.get()));
}

TEST_F(WorkerAuthorityTest, FilesThatDoNotFitAreNamed) {
  Open();
  std::filesystem::permissions(WorkerAuthorityKey(folder_), std::filesystem::perms::group_read,
                               std::filesystem::perm_options::add);
  EXPECT_THAT(std::string(TryOpen().status().message()), HasSubstr("chmod 600"));
  ASSERT_TRUE(WriteFileAtomically(WorkerAuthorityKey(folder_), "no key", 0600).ok());
  EXPECT_THAT(std::string(TryOpen().status().message()), HasSubstr("holds no key"));
  ASSERT_TRUE(WriteFileAtomically(WorkerAuthorityCertificates(folder_), "none").ok());
  EXPECT_THAT(std::string(TryOpen().status().message()), HasSubstr("holds no certificate"));
}

}  // namespace
}  // namespace fusion
