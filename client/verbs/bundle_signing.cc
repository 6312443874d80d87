#include <cstdio>

#include "absl/strings/str_cat.h"
#include "client/cli/exit_codes.h"
#include "client/verbs/verbs.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/status_macros.h"
#include "runtime/bundle/bundle_reader.h"
#include "runtime/bundle/bundle_signature.h"

namespace fusion {
namespace {

class BundleSignVerb : public Verb {
 public:
  std::string name() const override { return "bundle sign"; }
  std::string help() const override { return "sign a bundle with an Ed25519 key, into BUNDLE.sig"; }
  bool UsesServer() const override { return false; }
  std::vector<Option> Options() override {
    return {{"BUNDLE", "the .fusion file", &path_, true},
            {"--key", "the private key, in PEM form (`openssl genpkey -algorithm ed25519` makes one)", &key_, true}};
  }
  int Run(const CommonOptions&) override {
    const absl::Status signed_it = Sign();
    if (!signed_it.ok()) return FailLocal(signed_it);
    std::printf("%s\n", SignaturesPath(path_).c_str());
    return kExitOk;
  }

 private:
  absl::Status Sign() const {
    ASSIGN_OR_RETURN(const auto bundle, BundleReader::Open(path_));
    ASSIGN_OR_RETURN(const auto key, MappedFile::Open(key_));
    const std::string signatures_path = SignaturesPath(path_);
    const auto before = MappedFile::Open(signatures_path);
    if (!before.ok() && !absl::IsNotFound(before.status())) return before.status();
    const absl::StatusOr<std::string> signatures =
        AddSignature(*bundle, key->bytes(), before.ok() ? (*before)->bytes() : "");
    if (!signatures.ok()) return Annotate(signatures.status(), absl::StrCat("'", path_, "' with key '", key_, "'"));
    return WriteFileAtomically(signatures_path, *signatures);
  }

  std::string path_, key_;
};

class BundleVerifyVerb : public Verb {
 public:
  std::string name() const override { return "bundle verify"; }
  std::string help() const override { return "is a bundle whole, and signed by one of these keys?"; }
  bool UsesServer() const override { return false; }
  std::vector<Option> Options() override {
    return {{"BUNDLE", "the .fusion file; its signatures lie in BUNDLE.sig", &path_, true},
            {"--key", "file with public keys, in PEM form (`openssl pkey -in KEY.pem -pubout`)", &keys_, true}};
  }
  int Run(const CommonOptions&) override {
    const auto bundle = BundleReader::Open(path_);
    if (!bundle.ok()) return FailLocal(bundle.status());
    const auto signers = CheckSignatureFiles(**bundle, path_, keys_);
    if (absl::IsPermissionDenied(signers.status())) {
      FailLocal(signers.status());
      return kExitVerificationFailed;
    }
    if (!signers.ok()) return FailLocal(signers.status());
    for (const std::string& id : *signers) std::printf("signed by %s\n", id.c_str());
    return kExitOk;
  }

 private:
  std::string path_, keys_;
};

}  // namespace

std::unique_ptr<Verb> MakeBundleSignVerb() { return std::make_unique<BundleSignVerb>(); }
std::unique_ptr<Verb> MakeBundleVerifyVerb() { return std::make_unique<BundleVerifyVerb>(); }

}  // namespace fusion
