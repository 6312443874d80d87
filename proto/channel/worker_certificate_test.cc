#include "proto/channel/worker_certificate.h"

#include <openssl/pem.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/channel/openssl_owned.h"
#include "proto/channel/testing/made_certificate.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

std::string PemOf(EVP_PKEY* key) {
  const openssl::Owned<BIO> text = openssl::Writes();
  PEM_write_bio_PrivateKey(text.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
  return openssl::TextOf(text.get());
}

TEST(WorkerCertificateTest, ARequestHoldsThePublicKeyAndNotThePrivateOne) {
  const std::string key = NewPrivateKey().value(), other = NewPrivateKey().value();
  EXPECT_NE(key, other);
  const std::string request = CertificateRequest(key).value();
  const auto public_key = PublicKeyOfRequest(request);
  ASSERT_TRUE(public_key.ok()) << public_key.status();
  EXPECT_EQ(*public_key, PublicKeyOfRequest(CertificateRequest(key).value()).value()) << "of one key";
  EXPECT_NE(*public_key, PublicKeyOfRequest(CertificateRequest(other).value()).value());
  EXPECT_THAT(request, ::testing::Not(HasSubstr("PRIVATE")));
  EXPECT_EQ(CertificateRequest("none").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(WorkerCertificateTest, ARequestThatItsKeyHasNotSignedIsRefused) {
  const auto refused = [](const std::string& request, const char* words) {
    const absl::Status status = PublicKeyOfRequest(request).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  };
  const std::string request = CertificateRequest(NewPrivateKey().value()).value();
  refused("", "no certificate request");
  refused(request.substr(0, request.size() / 2), "no certificate request");
  refused(std::string(1 << 20, 'x'), "16 KiB");

  // The key of another, under a signature of one's own.
  const auto parsed = [](const std::string& pem) {
    return openssl::Owned<X509_REQ>(PEM_read_bio_X509_REQ(openssl::Reads(pem).get(), nullptr, nullptr, nullptr));
  };
  const openssl::Owned<X509_REQ> stolen = parsed(request);
  const openssl::Owned<EVP_PKEY> mine(EVP_EC_gen("P-256")), large(EVP_RSA_gen(2048)), longer(EVP_EC_gen("P-384"));
  const auto written = [](X509_REQ* one) {
    const openssl::Owned<BIO> text = openssl::Writes();
    PEM_write_bio_X509_REQ(text.get(), one);
    return openssl::TextOf(text.get());
  };
  ASSERT_GT(X509_REQ_sign(stolen.get(), mine.get(), EVP_sha256()), 0);
  refused(written(stolen.get()), "has not signed");
  for (EVP_PKEY* key : {large.get(), longer.get()}) {
    refused(CertificateRequest(PemOf(key)).value(), "another key than one of P-256");
  }
}

TEST(WorkerCertificateTest, TheFactsOfACertificateAreRead) {
  const absl::Time begins = absl::FromUnixSeconds(1'800'000'000), ends = begins + absl::Hours(24 * 30);
  testing::CertificateWish wish{"4c7k"};
  wish.key = NewPrivateKey().value();
  wish.begins = begins;
  wish.ends = ends;
  const testing::MadeCertificate made = testing::Make(wish);
  const auto facts = ReadCertificateFacts(made.certificate);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->name, "4c7k");
  EXPECT_EQ(facts->begins, begins);
  EXPECT_EQ(facts->ends, ends);
  EXPECT_EQ(facts->public_key, PublicKeyOfRequest(CertificateRequest(wish.key).value()).value());
  EXPECT_TRUE(IsCertificateOfKey(made.certificate, wish.key));
  EXPECT_FALSE(IsCertificateOfKey(made.certificate, NewPrivateKey().value()));
}

TEST(WorkerCertificateTest, NoCertificateIsSaidToBeOne) {
  EXPECT_EQ(ReadCertificateFacts("").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadCertificateFacts(NewPrivateKey().value()).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(IsCertificateOfKey("", NewPrivateKey().value()));
}

}  // namespace
}  // namespace fusion
