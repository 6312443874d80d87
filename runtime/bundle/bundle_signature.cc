#include "runtime/bundle/bundle_signature.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kAlgorithm[] = "ed25519";
constexpr int kFormat = 1;

struct Entry {
  std::string key;        // Ed25519PublicKey::Id
  std::string signature;  // 64 bytes
};

// Signs the manifest alone: it holds the digest of every other entry, which the reader has checked, and the same
// entries have one container only.
std::string MessageOf(const BundleReader& bundle) {
  return absl::StrCat("fusion bundle\n", Sha256Hex(bundle.manifest_json()), "\n");
}

absl::StatusOr<std::vector<Entry>> Parse(absl::string_view text) {
  std::vector<Entry> entries;
  if (text.empty()) return entries;
  const auto refuse = [](const char* why) { return absl::InvalidArgumentError(absl::StrCat("no signatures: ", why)); };
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return refuse("it is not a JSON object");
  const auto format = json.find("format"), list = json.find("signatures");
  if (format == json.end() || *format != kFormat) return refuse("its format is not 1");
  if (list == json.end() || !list->is_array()) return refuse("it has no list of signatures");
  for (const Json& one : *list) {
    if (!one.is_object()) return refuse("one of them is no object");
    const auto text_of = [&](const char* name) {
      const auto field = one.find(name);
      return field != one.end() && field->is_string() ? field->get<std::string>() : "";
    };
    if (text_of("algorithm") != kAlgorithm) continue;  // of a later version
    Entry entry{text_of("key"), ""};
    if (!absl::Base64Unescape(text_of("signature"), &entry.signature) || entry.key.empty()) {
      return refuse("one of them lacks its key or its bytes");
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace

std::string SignaturesPath(const std::string& bundle_path) { return bundle_path + ".sig"; }

absl::StatusOr<std::string> AddSignature(const BundleReader& bundle, absl::string_view private_pem,
                                         absl::string_view signatures) {
  ASSIGN_OR_RETURN(std::vector<Entry> entries, Parse(signatures));
  ASSIGN_OR_RETURN(const Ed25519Signature signature, Ed25519Sign(private_pem, MessageOf(bundle)));
  const std::string id = signature.key.Id();
  std::erase_if(entries, [&](const Entry& entry) { return entry.key == id; });
  entries.push_back({id, signature.bytes});
  Json list = Json::array();
  for (const Entry& entry : entries) {
    list.push_back({{"algorithm", kAlgorithm}, {"key", entry.key}, {"signature", absl::Base64Escape(entry.signature)}});
  }
  const Json json = {{"format", kFormat}, {"signatures", std::move(list)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::StatusOr<std::vector<std::string>> CheckSignatures(const BundleReader& bundle, absl::string_view signatures,
                                                         absl::Span<const Ed25519PublicKey> keys) {
  ASSIGN_OR_RETURN(const std::vector<Entry> entries, Parse(signatures));
  const std::string message = MessageOf(bundle);
  std::vector<std::string> signers;
  bool known = false;
  for (const Ed25519PublicKey& key : keys) {
    const auto entry =
        std::find_if(entries.begin(), entries.end(), [&](const Entry& one) { return one.key == key.Id(); });
    if (entry == entries.end()) continue;
    known = true;
    if (Ed25519Verify(key, message, entry->signature)) signers.push_back(entry->key);
  }
  if (!signers.empty()) return signers;
  if (known) return absl::PermissionDeniedError("the signature is of another bundle, or was changed");
  return absl::PermissionDeniedError(
      absl::StrCat("not signed by a trusted key; signed by: ",
                   entries.empty() ? "nobody" : absl::StrJoin(entries, ", ", [](std::string* out, const Entry& entry) {
                     absl::StrAppend(out, entry.key.substr(0, 16));
                   })));
}

absl::StatusOr<std::vector<std::string>> CheckSignatureFiles(const BundleReader& bundle, const std::string& bundle_path,
                                                             const std::string& keys_path) {
  ASSIGN_OR_RETURN(const auto keys_file, MappedFile::Open(keys_path));
  const absl::StatusOr<std::vector<Ed25519PublicKey>> keys = Ed25519PublicKeys(keys_file->bytes());
  if (!keys.ok()) return Annotate(keys.status(), absl::StrCat("'", keys_path, "'"));
  const std::string path = SignaturesPath(bundle_path);
  const auto signatures = MappedFile::Open(path);
  if (absl::IsNotFound(signatures.status())) {
    return absl::PermissionDeniedError(
        absl::StrCat("'", bundle_path, "' is not signed: there is no '", path, "'; `fusionctl bundle sign` makes it"));
  }
  RETURN_IF_ERROR(signatures.status());
  absl::StatusOr<std::vector<std::string>> signers = CheckSignatures(bundle, (*signatures)->bytes(), *keys);
  if (!signers.ok()) return Annotate(signers.status(), absl::StrCat("'", path, "'"));
  return signers;
}

}  // namespace fusion
