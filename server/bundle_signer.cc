#include "server/bundle_signer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/ed25519.h"
#include "runtime/base/status_macros.h"
#include "runtime/bundle/bundle_reader.h"
#include "runtime/bundle/bundle_signature.h"
#include "server/auth/secret_file.h"

namespace fusion {
namespace {

// The text of a key file.
absl::StatusOr<std::string> ReadKey(const std::string& path) {
  ASSIGN_OR_RETURN(const OpenedFile file, OpenSecretFileOf("--sign-with", path));
  std::string text;
  char part[4096];
  while (const size_t read = std::fread(part, 1, sizeof part, file.get())) text.append(part, read);
  return text;
}

}  // namespace

absl::StatusOr<std::unique_ptr<BundleSigner>> BundleSigner::Open(std::vector<std::string> key_files) {
  for (const std::string& path : key_files) {
    ASSIGN_OR_RETURN(const std::string key, ReadKey(path));
    if (const auto signs = Ed25519Sign(key, "a text"); !signs.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--sign-with: '", path, "': ", std::string(signs.status().message())));
    }
  }
  return std::unique_ptr<BundleSigner>(new BundleSigner(std::move(key_files)));
}

absl::StatusOr<std::string> BundleSigner::Sign(const std::string& bundle_path) const {
  std::string signatures;
  if (key_files_.empty()) return signatures;
  ASSIGN_OR_RETURN(const auto bundle, BundleReader::Open(bundle_path));
  for (const std::string& path : key_files_) {
    ASSIGN_OR_RETURN(const std::string key, ReadKey(path));
    ASSIGN_OR_RETURN(signatures, AddSignature(*bundle, key, signatures));
  }
  return signatures;
}

}  // namespace fusion
