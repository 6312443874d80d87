#include "runtime/bundle/bundle_writer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status_macros.h"
#include "runtime/bundle/safetensors.h"
#include "runtime/bundle/zip_format.h"

namespace fusion {

struct BundleWriter::State {
  std::unique_ptr<AtomicFile> file;
  std::vector<ZipEntry> entries;
  std::map<std::string, std::string> digests;

  // The entry being written.
  ZipEntry entry;
  std::unique_ptr<Sha256> hash;
  int64_t entry_bytes = 0;

  // While weights are open: the current tensor, and how many of its bytes are written.
  bool weights_open = false;
  SafetensorsLayout layout;
  size_t weight = 0;
  int64_t weight_bytes = 0;
};

BundleWriter::BundleWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
BundleWriter::~BundleWriter() = default;

absl::StatusOr<std::unique_ptr<BundleWriter>> BundleWriter::Create(const std::string& path) {
  auto state = std::make_unique<State>();
  ASSIGN_OR_RETURN(state->file, AtomicFile::Create(path));
  return std::unique_ptr<BundleWriter>(new BundleWriter(std::move(state)));
}

absl::Status BundleWriter::BeginEntry(absl::string_view name, int64_t size_bytes) {
  State& s = *state_;
  if (s.weights_open) return absl::InternalError(absl::StrCat("entry '", name, "' begun amid the weights"));
  if (!IsEntryName(name)) return absl::InternalError(absl::StrCat("'", name, "' is no name for a bundle's entry"));
  for (const ZipEntry& entry : s.entries) {
    if (entry.name == name) return absl::InternalError(absl::StrCat("two entries '", name, "'"));
  }
  s.entry = {std::string(name), 0, size_bytes, s.file->size_bytes()};
  s.hash = std::make_unique<Sha256>();
  s.entry_bytes = 0;
  return s.file->Append(ZipLocalHeader(s.entry));
}

absl::Status BundleWriter::AppendToEntry(absl::string_view bytes) {
  state_->entry.crc32 = UpdateCrc32(state_->entry.crc32, bytes);
  state_->hash->Update(bytes);
  state_->entry_bytes += bytes.size();
  return state_->file->Append(bytes);
}

absl::Status BundleWriter::EndEntry() {
  State& s = *state_;
  if (s.entry_bytes != s.entry.size_bytes) return absl::InternalError("entry shorter or longer than announced");
  // The header was written before the checksum was known, so it is written again; its length does not depend on the
  // checksum.
  RETURN_IF_ERROR(s.file->WriteAt(s.entry.header_offset, ZipLocalHeader(s.entry)));
  s.digests[s.entry.name] = s.hash->FinishHex();
  s.entries.push_back(s.entry);
  return absl::OkStatus();
}

absl::Status BundleWriter::AddEntry(absl::string_view name, absl::string_view bytes) {
  RETURN_IF_ERROR(BeginEntry(name, bytes.size()));
  RETURN_IF_ERROR(AppendToEntry(bytes));
  return EndEntry();
}

absl::StatusOr<std::vector<int64_t>> BundleWriter::BeginWeights(absl::Span<const WeightInfo> weights) {
  State& s = *state_;
  constexpr char kName[] = "weights.safetensors";
  ASSIGN_OR_RETURN(s.layout, LayOutSafetensors(weights));
  const auto size_bytes = [&] { return static_cast<int64_t>(s.layout.header.size()) + s.layout.data_bytes; };
  const int64_t offset = s.file->size_bytes();
  s.layout.AlignData(offset + static_cast<int64_t>(ZipLocalHeader({kName, 0, size_bytes(), offset}).size()));
  RETURN_IF_ERROR(BeginEntry(kName, size_bytes()));
  RETURN_IF_ERROR(AppendToEntry(s.layout.header));
  s.weights_open = true;
  RETURN_IF_ERROR(PadWeights());
  return s.layout.offsets;
}

// Moves on past completed tensors and fills the gap before the next one. Ends the entry after the last tensor.
absl::Status BundleWriter::PadWeights() {
  State& s = *state_;
  while (s.weight < s.layout.offsets.size() && s.weight_bytes == s.layout.sizes_bytes[s.weight]) {
    ++s.weight;
    s.weight_bytes = 0;
    const int64_t written = s.entry_bytes - s.layout.header.size();
    if (s.weight < s.layout.offsets.size()) {
      RETURN_IF_ERROR(AppendToEntry(std::string(s.layout.offsets[s.weight] - written, '\0')));
    }
  }
  if (s.weight < s.layout.offsets.size()) return absl::OkStatus();
  s.weights_open = false;
  return EndEntry();
}

absl::Status BundleWriter::AppendWeights(absl::string_view bytes) {
  State& s = *state_;
  while (!bytes.empty()) {
    if (!s.weights_open) return absl::InternalError("more weights than announced");
    const size_t count = std::min<size_t>(bytes.size(), s.layout.sizes_bytes[s.weight] - s.weight_bytes);
    RETURN_IF_ERROR(AppendToEntry(bytes.substr(0, count)));
    s.weight_bytes += count;
    bytes.remove_prefix(count);
    RETURN_IF_ERROR(PadWeights());
  }
  return absl::OkStatus();
}

absl::Status BundleWriter::Finish(Manifest manifest, bool durable) {
  State& s = *state_;
  if (s.weights_open) return absl::InternalError("fewer weights than announced");
  manifest.digests = s.digests;
  const absl::Status valid = ValidateManifest(manifest, s.layout.data_bytes);
  if (!valid.ok()) return absl::InternalError(valid.message());
  RETURN_IF_ERROR(AddEntry("manifest.json", SerializeManifest(manifest)));
  RETURN_IF_ERROR(s.file->Append(ZipDirectory(s.entries, s.file->size_bytes())));
  return s.file->Commit(durable);
}

}  // namespace fusion
