#include "runtime/bundle/bundle_signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_replace.h"
#include "runtime/base/atomic_file.h"
#include "runtime/bundle/bundle_writer.h"
#include "runtime/bundle/testing/small_manifest.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// `openssl genpkey -algorithm ed25519`, twice.
constexpr char kPrivate[] =
    "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIFudwkA3/nyPp+LH4r4sVXnl7nBzXVQLf80Dt8SP+9Xc\n"
    "-----END PRIVATE KEY-----\n";
constexpr char kPublic[] =
    "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAdLc8nRVkqv/+Lx0KUIEFH3Pb5cyv+A4ytHfSHceJR9k=\n"
    "-----END PUBLIC KEY-----\n";
constexpr char kOtherPrivate[] =
    "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIK8DwCsM2gbDf3LZb4iSRP5sIM0XjpcX6yseqcP7WbgG\n"
    "-----END PRIVATE KEY-----\n";

class BundleSignatureTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "/bundle_signature_test_" + std::to_string(getpid());
    std::filesystem::create_directories(folder_);
    path_ = folder_ + "/small.fusion";
    bundle_ = Write("machine code", path_);
    other_ = Write("other machine code", folder_ + "/other.fusion");
    keys_ = Ed25519PublicKeys(kPublic).value();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::shared_ptr<const BundleReader> Write(const std::string& code, const std::string& path) {
    const auto writer = BundleWriter::Create(path).value();
    EXPECT_TRUE(writer->AddEntry("kernels/cpu.so", code).ok());
    EXPECT_TRUE(writer->AddEntry("src/k0.cc", "void k0();").ok());
    const auto offsets =
        writer->BeginWeights({{"w", DType::kF32, {3}}, {"empty", DType::kF32, {0}}, {"v", DType::kI64, {2}}}).value();
    EXPECT_TRUE(writer->AppendWeights(std::string(28, 0)).ok());
    EXPECT_TRUE(writer->Finish(testing::SmallManifest(offsets)).ok());
    return BundleReader::Open(path).value();
  }
  static absl::Status CheckWith(const BundleReader& bundle, const std::string& signatures,
                                absl::Span<const Ed25519PublicKey> keys) {
    return CheckSignatures(bundle, signatures, keys).status();
  }

  std::string folder_, path_;
  std::shared_ptr<const BundleReader> bundle_, other_;
  std::vector<Ed25519PublicKey> keys_;
};

TEST_F(BundleSignatureTest, ASignatureIsOfOneBundleByOneKey) {
  const std::string signatures = AddSignature(*bundle_, kPrivate, "").value();
  EXPECT_THAT(CheckSignatures(*bundle_, signatures, keys_).value(), ElementsAre(keys_[0].Id()));
  EXPECT_THAT(CheckWith(*other_, signatures, keys_).message(), HasSubstr("is of another bundle"));
  EXPECT_TRUE(absl::IsPermissionDenied(CheckWith(*other_, signatures, keys_)));

  const std::string by_other = AddSignature(*bundle_, kOtherPrivate, "").value();
  EXPECT_THAT(CheckWith(*bundle_, by_other, keys_).message(), HasSubstr("not signed by a trusted key; signed by: "));
  // A signature under another key's name is none of that key.
  const std::string renamed =
      absl::StrReplaceAll(by_other, {{Ed25519Sign(kOtherPrivate, "").value().key.Id(), keys_[0].Id()}});
  EXPECT_THAT(CheckWith(*bundle_, renamed, keys_).message(), HasSubstr("is of another bundle, or was changed"));
}

TEST_F(BundleSignatureTest, KeysAreRotatedBySigningAgain) {
  const std::string both = AddSignature(*bundle_, kOtherPrivate, AddSignature(*bundle_, kPrivate, "").value()).value();
  EXPECT_THAT(CheckSignatures(*bundle_, both, keys_).value(), ElementsAre(keys_[0].Id()));
  const std::vector<Ed25519PublicKey> all = {Ed25519Sign(kOtherPrivate, "").value().key, keys_[0]};
  EXPECT_THAT(CheckSignatures(*bundle_, both, all).value(), ElementsAre(all[0].Id(), all[1].Id()));
  EXPECT_EQ(AddSignature(*bundle_, kOtherPrivate, both).value(), both) << "one signature a key, the same each time";
}

TEST_F(BundleSignatureTest, WhatIsNoListOfSignaturesIsNamed) {
  for (const char* text :
       {"x", "[]", "{}", R"({"format": 2, "signatures": []})", R"({"format": 1})",
        R"({"format": 1, "signatures": [1]})", R"({"format": 1, "signatures": [{"algorithm": "ed25519"}]})",
        R"({"format": 1, "signatures": [{"algorithm": "ed25519", "key": "k", "signature": "?"}]})"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckWith(*bundle_, text, keys_))) << text;
    EXPECT_TRUE(absl::IsInvalidArgument(AddSignature(*bundle_, kPrivate, text).status())) << text;
  }
  const std::string later = R"({"format": 1, "signatures": [{"algorithm": "of later", "key": 5}]})";
  EXPECT_THAT(CheckWith(*bundle_, later, keys_).message(), HasSubstr("signed by: nobody"));
}

TEST_F(BundleSignatureTest, FilesLieBesideTheBundle) {
  const std::string keys_path = folder_ + "/keys.pem";
  ASSERT_TRUE(WriteFileAtomically(keys_path, kPublic).ok());
  EXPECT_THAT(CheckSignatureFiles(*bundle_, path_, keys_path).status().message(),
              HasSubstr("small.fusion' is not signed"));
  ASSERT_TRUE(WriteFileAtomically(SignaturesPath(path_), AddSignature(*bundle_, kPrivate, "").value()).ok());
  EXPECT_TRUE(CheckSignatureFiles(*bundle_, path_, keys_path).ok());
  EXPECT_TRUE(absl::IsNotFound(CheckSignatureFiles(*bundle_, path_, folder_ + "/none.pem").status()));
}

}  // namespace
}  // namespace fusion
