#include "runtime/base/ed25519.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

// RFC 8032 §7.1, test 3; a key of 32 bytes stands behind a header of constant bytes (RFC 8410).
constexpr char kSecret[] = "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7";
constexpr char kPublic[] = "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025";
constexpr char kSignature[] =
    "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
    "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a";

std::string Bytes(const std::string& hex) { return absl::HexStringToBytes(hex); }
std::string Pem(const std::string& what, const std::string& der) {
  return absl::StrCat("-----BEGIN ", what, " KEY-----\n", absl::Base64Escape(der), "\n-----END ", what, " KEY-----\n");
}
std::string PrivatePem() { return Pem("PRIVATE", Bytes(absl::StrCat("302e020100300506032b657004220420", kSecret))); }
std::string PublicPem() { return Pem("PUBLIC", Bytes(absl::StrCat("302a300506032b6570032100", kPublic))); }

TEST(Ed25519Test, SignsAndVerifiesAsTheRfcSays) {
  const std::string message = Bytes("af82");
  const Ed25519Signature signature = Ed25519Sign(PrivatePem(), message).value();
  EXPECT_EQ(absl::BytesToHexString(signature.bytes), kSignature);
  EXPECT_EQ(absl::BytesToHexString(signature.key.bytes), kPublic);
  const std::vector<Ed25519PublicKey> keys = Ed25519PublicKeys(PublicPem() + "a comment\n" + PublicPem()).value();
  ASSERT_EQ(keys.size(), 2u);
  EXPECT_EQ(keys[1].Id(), signature.key.Id());
  EXPECT_TRUE(Ed25519Verify(keys[0], message, signature.bytes));
}

TEST(Ed25519Test, AnyOtherBitIsRefused) {
  const std::string message = Bytes("af82"), signature = Bytes(kSignature);
  const Ed25519PublicKey key{Bytes(kPublic)};
  for (size_t bit = 0; bit < 8 * signature.size(); ++bit) {
    std::string other = signature;
    other[bit / 8] = static_cast<char>(other[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(Ed25519Verify(key, message, other)) << bit;
  }
  EXPECT_FALSE(Ed25519Verify(key, message + "x", signature));
  EXPECT_FALSE(Ed25519Verify(key, message, signature.substr(0, 63)));
  EXPECT_FALSE(Ed25519Verify(key, message, signature + "x"));
  EXPECT_FALSE(Ed25519Verify({key.bytes.substr(1)}, message, signature));
  EXPECT_FALSE(Ed25519Verify({std::string(32, 0)}, message, signature));
}

TEST(Ed25519Test, WhatIsNoKeyOfThisKindIsNamed) {
  const auto words = [](const auto& result) { return std::string(result.status().message()); };
  EXPECT_THAT(words(Ed25519PublicKeys("")), HasSubstr("no public key in PEM form"));
  EXPECT_THAT(words(Ed25519PublicKeys(PrivatePem())), HasSubstr("no public key in PEM form"));
  EXPECT_THAT(words(Ed25519PublicKeys(PublicPem() + Pem("PUBLIC", "not a key"))), HasSubstr("does not parse"));
  // The same bytes as a key of X25519, which signs nothing.
  EXPECT_THAT(words(Ed25519PublicKeys(Pem("PUBLIC", Bytes(absl::StrCat("302a300506032b656e032100", kPublic))))),
              HasSubstr("another kind"));
  EXPECT_THAT(words(Ed25519Sign(PublicPem(), "m")), HasSubstr("no private key in PEM form"));
  EXPECT_THAT(words(Ed25519Sign(Pem("ENCRYPTED PRIVATE", "x"), "m")), HasSubstr("without a passphrase"));
}

}  // namespace
}  // namespace fusion
