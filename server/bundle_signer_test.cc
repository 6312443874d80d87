#include "server/bundle_signer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The first of RFC 8032's test vectors, as openssl writes it.
constexpr char kKey[] =
    "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n"
    "-----END PRIVATE KEY-----\n";

std::string KeyFile(const std::string& name, const std::string& text, mode_t mode) {
  const std::string path = absl::StrCat(::testing::TempDir(), name, "-", getpid());
  std::ofstream(path) << text;
  EXPECT_EQ(chmod(path.c_str(), mode), 0);
  return path;
}

TEST(BundleSigner, AKeyIsASecretFile) {
  EXPECT_TRUE(BundleSigner::Open({KeyFile("good.pem", kKey, 0600)}).ok());
  for (const auto& [path, words] : std::vector<std::pair<std::string, std::string>>{
           {KeyFile("open.pem", kKey, 0640), "chmod 600"},
           {KeyFile("none.pem", "no key", 0600), "no private key in PEM form"},
           {::testing::TempDir() + "is-not-there.pem", "cannot read"}}) {
    const absl::Status refused = BundleSigner::Open({path}).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.message()), AllOf(HasSubstr("--sign-with"), HasSubstr(path), HasSubstr(words)));
  }
}

TEST(BundleSigner, SignsBundlesOnlyAndWithoutAKeyNothing) {
  const std::string no_bundle = KeyFile("text", "no bundle", 0600);
  EXPECT_EQ((*BundleSigner::Open({}))->Sign(no_bundle).value(), "");
  EXPECT_FALSE((*BundleSigner::Open({KeyFile("good.pem", kKey, 0600)}))->Sign(no_bundle).ok());
}

}  // namespace
}  // namespace fusion
