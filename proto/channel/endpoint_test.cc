#include "proto/channel/endpoint.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kSecret[] = "fus_AAAA_secretsecretsecret";

class EndpointTest : public testing::Test {
 protected:
  EndpointTest() : folder_(absl::StrCat("/tmp/fusion-endpoint-test-", getpid())) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ + "/config/fusion");
    for (const char* name : kVariables) unsetenv(name);
    setenv("XDG_CONFIG_HOME", (folder_ + "/config").c_str(), 1);
  }
  ~EndpointTest() override {
    for (const char* name : kVariables) unsetenv(name);
    std::filesystem::remove_all(folder_);
  }
  std::string Write(const std::string& name, const std::string& text, mode_t mode = 0600) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << text;
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
  }
  void Configure(const std::string& text, mode_t mode = 0600) { Write("config/fusion/client.json", text, mode); }
  static absl::StatusOr<Endpoint> Resolve(const ConnectFlags& flags = {}) { return ResolveEndpoint(flags, "/state"); }

  static constexpr const char* kVariables[] = {"FUSION_SERVER",   "FUSION_TOKEN",    "FUSION_TOKEN_FILE",
                                               "FUSION_TLS_CA",   "FUSION_TLS_CERT", "FUSION_TLS_KEY",
                                               "XDG_CONFIG_HOME", "FUSION_INSECURE"};
  const std::string folder_;
};

TEST_F(EndpointTest, TheLocalSocketNeedsNothing) {
  const auto endpoint = Resolve();
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  EXPECT_EQ(endpoint->address, "unix:/state/fusion.sock");
  EXPECT_FALSE(endpoint->tls);
  setenv("FUSION_TOKEN", kSecret, 1);
  EXPECT_TRUE(Resolve()->token.empty()) << "a socket takes no token";
}

TEST_F(EndpointTest, FlagsGoBeforeTheEnvironmentBeforeTheConfiguration) {
  const std::string a = Write("a", "A\n"), b = Write("b", "B\n"), c = Write("c", "C\n");
  Configure(absl::StrCat(R"({"server": "farm:1", "servers": {"farm:1": {"tls_ca": ")", c, R"(", "token_file": ")", c,
                         R"("}, "other:2": {"token": "T2", "tls_ca": ")", b, R"("}}})"));
  auto endpoint = Resolve();
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  EXPECT_EQ(endpoint->address, "farm:1");
  EXPECT_EQ(endpoint->ca_file, c);
  EXPECT_EQ(endpoint->token_file, c);
  EXPECT_TRUE(endpoint->tls);

  setenv("FUSION_TLS_CA", b.c_str(), 1);
  setenv("FUSION_TOKEN", kSecret, 1);
  endpoint = Resolve();
  EXPECT_EQ(endpoint->ca_file, b);
  EXPECT_EQ(endpoint->token, kSecret);
  EXPECT_EQ(endpoint->token_file, "");

  setenv("FUSION_TOKEN", kSecret, 1);
  setenv("FUSION_SERVER", "env:3", 1);
  ConnectFlags flags;
  flags.tls_ca = a;
  flags.token_file = a;
  endpoint = Resolve(flags);
  EXPECT_EQ(endpoint->address, "env:3");
  EXPECT_EQ(endpoint->ca_file, a);
  EXPECT_EQ(endpoint->token_file, a);
  EXPECT_EQ(endpoint->token, "");
  flags.server = "flag:4";
  EXPECT_EQ(Resolve(flags)->address, "flag:4");

  // Nothing of the server in use goes to another one.
  endpoint = EndpointOf("other:2");
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  EXPECT_EQ(endpoint->token, "T2");
  EXPECT_EQ(endpoint->ca_file, b);
  EXPECT_EQ(EndpointOf("stranger:5")->token, "");
  EXPECT_EQ(EndpointOf("stranger:5")->token_file, "");
}

TEST_F(EndpointTest, ATokenInTheEnvironmentIsErased) {
  setenv("FUSION_TOKEN", kSecret, 1);
  ConnectFlags flags;
  flags.server = "farm:1";
  EXPECT_EQ(Resolve(flags)->token, kSecret);
  EXPECT_EQ(getenv("FUSION_TOKEN"), nullptr);
  EXPECT_EQ(Resolve(flags)->token, "");
}

TEST_F(EndpointTest, InsecureSendsNoToken) {
  ConnectFlags flags;
  flags.server = "farm:1";
  EXPECT_TRUE(Resolve(flags)->tls);
  EXPECT_TRUE(EndpointOf("farm:1")->tls);
  setenv("FUSION_INSECURE", "1", 1);
  EXPECT_FALSE(Resolve(flags)->tls);
  EXPECT_TRUE(EndpointOf("farm:1")->tls) << "the variable is about the server in use";
  unsetenv("FUSION_INSECURE");
  flags.token_file = Write("token", kSecret);
  EXPECT_TRUE(Resolve(flags)->tls);
  flags.insecure = true;
  const auto endpoint = Resolve(flags);
  EXPECT_FALSE(endpoint->tls);
  EXPECT_EQ(endpoint->token_file, "");
}

TEST_F(EndpointTest, FilesThatOthersMayReadAreRefused) {
  for (const mode_t mode : {0640, 0604, 0644, 0660, 0666}) {
    const auto token = ReadTokenFile(Write("token", kSecret, mode));
    EXPECT_EQ(token.status().code(), absl::StatusCode::kPermissionDenied) << mode;
    EXPECT_THAT(token.status().message(), HasSubstr(absl::StrCat("chmod 600 ", folder_, "/token")));
    EXPECT_THAT(token.status().message(), Not(HasSubstr("secretsecret")));
    Configure(R"({"server": "farm:1"})", mode);
    EXPECT_EQ(Resolve().status().code(), absl::StatusCode::kPermissionDenied) << mode;
    EXPECT_EQ(EndpointOf("farm:1").status().code(), absl::StatusCode::kPermissionDenied) << mode;
  }
  EXPECT_EQ(*ReadTokenFile(Write("token", std::string(kSecret) + "\n", 0400)), kSecret);
}

TEST_F(EndpointTest, WhatCannotBeUsedIsNamedAndNeverShown) {
  for (const std::string text :
       {"", "[]", "{", "fus_AAAA_secretsecretsecret", R"({"sever": "a:1"})",
        R"({"servers": {"a:1": {"tokn": "secretsecret"}}})", R"({"servers": {"a:1": {"token": {"secretsecret": 1}}}})",
        R"({"servers": {"a:1": 3}})", R"({"servers": {"a:1": {"insecure": "yes"}}})"}) {
    Configure(text);
    const auto endpoint = Resolve();
    EXPECT_EQ(endpoint.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(endpoint.status().message(), HasSubstr("client.json"));
    EXPECT_THAT(endpoint.status().message(), Not(HasSubstr("secretsecret")));
  }
  EXPECT_EQ(ReadTokenFile(folder_ + "/missing").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadTokenFile(folder_).status().code(), absl::StatusCode::kInvalidArgument);
  for (const std::string text : {"", "\n", "two words", "fus_\x01"}) {
    EXPECT_EQ(ReadTokenFile(Write("token", text)).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  Configure("{}");
  ConnectFlags flags;
  flags.server = "farm:1";
  flags.tls_cert = Write("cert", "");
  EXPECT_EQ(Resolve(flags).status().code(), absl::StatusCode::kInvalidArgument) << "no key";
  flags.tls_key = Write("key", "", 0644);
  EXPECT_EQ(Resolve(flags).status().code(), absl::StatusCode::kPermissionDenied);
  flags.tls_key = Write("key", "", 0600);
  EXPECT_TRUE(Resolve(flags).ok());
  flags.tls_ca = folder_ + "/missing";
  EXPECT_EQ(Resolve(flags).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace fusion
