#include "client/verbs/known_by.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion {
namespace {

using ::testing::StartsWith;

v1::WorkerStatus Known(const std::string& by, int64_t until_ms) {
  v1::WorkerStatus worker;
  worker.set_known_by(by);
  if (by == "certificate" || by == "token") worker.set_token_id("4c7k");
  worker.set_known_until_ms(until_ms);
  return worker;
}

TEST(KnownByTest, WordsNameTheKindAndTheEnd) {
  EXPECT_THAT(KnownByInWords(Known("certificate", 1'800'000'000'000)), StartsWith("certificate 4c7k until 2027-01-1"));
  EXPECT_EQ(KnownByInWords(Known("token", 0)), "token 4c7k");
  EXPECT_EQ(KnownByInWords(Known("socket", 0)), "the socket");
  EXPECT_EQ(KnownByInWords(Known("anybody", 0)), "nothing (--insecure)");
  EXPECT_EQ(KnownByInWords(v1::WorkerStatus()), "");
}

TEST(KnownByTest, ACertificateThatWasNotRenewedInTimeIsLate) {
  const absl::Time now = absl::FromUnixSeconds(1'800'000'000);
  const auto in_days = [&](int days) { return absl::ToUnixMillis(now + absl::Hours(24 * days)); };
  EXPECT_FALSE(RenewalIsLate(Known("certificate", in_days(9)), now));
  EXPECT_TRUE(RenewalIsLate(Known("certificate", in_days(4)), now));
  EXPECT_FALSE(RenewalIsLate(Known("token", in_days(4)), now)) << "tokens are not renewed";
  EXPECT_FALSE(RenewalIsLate(Known("socket", 0), now));
}

}  // namespace
}  // namespace fusion
