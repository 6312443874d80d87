#include "runtime/bundle/bundle_reader.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status_macros.h"
#include "runtime/bundle/safetensors.h"
#include "runtime/bundle/zip_format.h"

namespace fusion {
namespace {

constexpr const char* kManifest = "manifest.json";
constexpr const char* kWeights = "weights.safetensors";

}  // namespace

absl::StatusOr<std::shared_ptr<const BundleReader>> BundleReader::Open(const std::string& path) {
  ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  auto bundle = Check(std::move(file));
  if (!bundle.ok()) return Annotate(bundle.status(), absl::StrCat("'", path, "'"));
  return bundle;
}

absl::StatusOr<std::shared_ptr<const BundleReader>> BundleReader::FromBytes(absl::string_view bytes) {
  ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file, MappedFile::FromBytes(bytes));
  return Check(std::move(file));
}

absl::StatusOr<std::shared_ptr<const BundleReader>> BundleReader::Check(std::shared_ptr<const MappedFile> file) {
  std::shared_ptr<BundleReader> bundle(new BundleReader());
  const absl::string_view bytes = file->bytes();
  bundle->file_ = std::move(file);
  ASSIGN_OR_RETURN(const std::vector<ZipEntry> entries, ParseZip(bytes));
  for (const ZipEntry& entry : entries) {
    bundle->entries_[entry.name] = bytes.substr(entry.header_offset + ZipLocalHeader(entry).size(), entry.size_bytes);
  }
  // The manifest holds the digests of all other entries; the container's CRC protects the manifest itself. Because the
  // manifest is the last entry, there are also readable bytes (the slack) behind the weights.
  if (entries.empty() || entries.back().name != kManifest) {
    return absl::InvalidArgumentError("not a fusion bundle: it does not end with manifest.json");
  }
  const absl::string_view json = bundle->entries_[kManifest];
  if (UpdateCrc32(0, json) != entries.back().crc32) return absl::DataLossError("damaged bundle: manifest.json");
  bundle->manifest_json_ = std::string(json);
  ASSIGN_OR_RETURN(bundle->manifest_, ParseManifest(json));
  const Manifest& manifest = bundle->manifest_;
  for (const ZipEntry& entry : entries) {
    if (entry.name == kManifest) continue;
    const auto digest = manifest.digests.find(entry.name);
    if (digest == manifest.digests.end()) {
      return absl::DataLossError(absl::StrCat("damaged bundle: the manifest does not know entry '", entry.name, "'"));
    }
    if (Sha256Hex(bundle->entries_[entry.name]) != digest->second) {
      return absl::DataLossError(absl::StrCat("damaged bundle: entry '", entry.name, "' does not match its digest"));
    }
  }
  if (manifest.digests.size() != entries.size() - 1) {
    return absl::DataLossError("damaged bundle: the manifest lists an entry that is missing");
  }
  const auto weights = bundle->entries_.find(kWeights);
  if (weights != bundle->entries_.end()) {
    ASSIGN_OR_RETURN(bundle->weights_, SafetensorsData(weights->second));
  }
  RETURN_IF_ERROR(ValidateManifest(manifest, bundle->weights_.size()));
  return std::shared_ptr<const BundleReader>(std::move(bundle));
}

std::map<std::string, int64_t> BundleReader::EntrySizes() const {
  std::map<std::string, int64_t> sizes;
  for (const auto& [name, bytes] : entries_) sizes[name] = bytes.size();
  return sizes;
}

absl::StatusOr<absl::string_view> BundleReader::Entry(const std::string& name) const {
  const auto it = entries_.find(name);
  if (it == entries_.end()) return absl::NotFoundError(absl::StrCat("the bundle has no entry '", name, "'"));
  return it->second;
}

}  // namespace fusion
