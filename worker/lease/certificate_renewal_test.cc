#include "worker/lease/certificate_renewal.h"

#include <unistd.h>

#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/channel/endpoint.h"
#include "proto/channel/testing/made_certificate.h"
#include "runtime/base/atomic_file.h"

namespace fusion {
namespace {

class CertificateRenewalTest : public ::testing::Test {
 protected:
  CertificateRenewalTest() : folder_(absl::StrCat(::testing::TempDir(), "renewal_", getpid())) {
    std::filesystem::create_directories(folder_);
    EXPECT_TRUE(WriteFileAtomically(Key(), key_, 0600).ok());
    EXPECT_TRUE(WriteFileAtomically(Certificate(), Issue(begins_), 0600).ok());
  }
  ~CertificateRenewalTest() override { std::filesystem::remove_all(folder_); }

  std::string Certificate() const { return folder_ + "/worker.pem"; }
  std::string Key() const { return folder_ + "/worker.key"; }
  // For 30 days.
  std::string Issue(absl::Time begins, const std::string& key = "") const {
    testing::CertificateWish wish{"4c7k"};
    wish.key = key.empty() ? key_ : key;
    wish.begins = begins;
    wish.ends = begins + absl::Hours(24 * 30);
    return testing::Make(wish).certificate;
  }
  CertificateRenewal Renewal() {
    return CertificateRenewal(
        Certificate(), Key(), [this] { return now_; }, [this](const LogLine& line) { said_.push_back(line.message); });
  }
  CertificateRenewal::Ask Answer(const absl::StatusOr<std::string>& answer) {
    return [this, answer] {
      ++asked_;
      return answer;
    };
  }

  const std::string folder_, key_ = NewPrivateKey().value();
  const absl::Time begins_ = absl::FromUnixSeconds(1'800'000'000);
  absl::Time now_ = begins_;
  int asked_ = 0;
  std::vector<std::string> said_;
};

TEST_F(CertificateRenewalTest, FromTwoThirdsOfItsLifeOn) {
  CertificateRenewal renewal = Renewal();
  now_ = begins_ + absl::Hours(24 * 20) - absl::Seconds(1);
  EXPECT_FALSE(renewal.RenewIfDue(Answer(Issue(now_))));
  EXPECT_EQ(asked_, 0);
  now_ += absl::Seconds(1);
  const std::string renewed = Issue(now_);
  EXPECT_TRUE(renewal.RenewIfDue(Answer(renewed)));
  EXPECT_EQ(ReadSecretFile(Certificate()).value(), renewed) << "kept, and no other user reads it";
  EXPECT_FALSE(renewal.RenewIfDue(Answer(renewed)));
  now_ += absl::Hours(24 * 20);
  EXPECT_TRUE(renewal.RenewIfDue(Answer(Issue(now_)))) << "again and again";
  EXPECT_EQ(asked_, 2);
}

TEST_F(CertificateRenewalTest, AFailureIsTriedAgainAndTheCertificateStays) {
  CertificateRenewal renewal = Renewal();
  now_ = begins_ + absl::Hours(24 * 21);
  EXPECT_FALSE(renewal.RenewIfDue(Answer(absl::UnavailableError("gone"))));
  EXPECT_FALSE(renewal.RenewIfDue(Answer(Issue(now_)))) << "not at once";
  EXPECT_EQ(asked_, 1);
  EXPECT_THAT(said_, ::testing::ElementsAre("this worker's certificate is not renewed yet"));
  now_ += absl::Hours(1);
  EXPECT_TRUE(renewal.RenewIfDue(Answer(Issue(now_))));
}

TEST_F(CertificateRenewalTest, AnAnswerThatDoesNotFitIsNotKept) {
  CertificateRenewal renewal = Renewal();
  const std::string before = ReadSecretFile(Certificate()).value();
  now_ = begins_ + absl::Hours(24 * 20);
  for (const std::string& answer :
       {std::string("nothing"), Issue(now_, NewPrivateKey().value()), Issue(begins_ - absl::Hours(1))}) {
    EXPECT_FALSE(renewal.RenewIfDue(Answer(answer)));
    now_ += absl::Hours(1);
  }
  EXPECT_EQ(asked_, 3);
  EXPECT_EQ(ReadSecretFile(Certificate()).value(), before);
}

}  // namespace
}  // namespace fusion
