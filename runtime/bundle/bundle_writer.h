// BundleWriter: writes a bundle file (FORMAT.md) entry by entry. Weights are streamed, so they never have to lie in
// memory together.
#ifndef FUSION_RUNTIME_BUNDLE_BUNDLE_WRITER_H_
#define FUSION_RUNTIME_BUNDLE_BUNDLE_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/bundle/manifest.h"
#include "runtime/bundle/weight_info.h"

namespace fusion {

// One thread writes one bundle. The same calls write the same bytes. Nothing appears at the path before Finish
// succeeds, and nothing stays behind if it fails. A full disk is RESOURCE_EXHAUSTED; misuse is INTERNAL.
//
//   writer = BundleWriter::Create(path)
//   writer->AddEntry("kernels/cpu.so", bytes) ...
//   offsets = writer->BeginWeights(infos);  writer->AppendWeights(bytes) ...   // at most once
//   writer->Finish(manifest)
class BundleWriter {
 public:
  static absl::StatusOr<std::unique_ptr<BundleWriter>> Create(const std::string& path);
  ~BundleWriter();

  // `name` consists of path components of [a-z0-9_.-] joined by '/' (FORMAT.md). Must not be called between
  // BeginWeights and the last byte of the weights.
  absl::Status AddEntry(absl::string_view name, absl::string_view bytes);

  // Opens `weights.safetensors` and returns each tensor's offset, which becomes its Buffer::offset. The caller then
  // appends exactly the announced bytes, tensor after tensor without gaps, in pieces of any length; the writer inserts
  // the alignment.
  absl::StatusOr<std::vector<int64_t>> BeginWeights(absl::Span<const WeightInfo> weights);
  absl::Status AppendWeights(absl::string_view bytes);

  // Fills `manifest.digests`, validates the manifest, writes manifest.json and the directory, syncs if `durable`, and
  // renames.
  absl::Status Finish(Manifest manifest, bool durable = true);

 private:
  struct State;
  explicit BundleWriter(std::unique_ptr<State> state);
  absl::Status BeginEntry(absl::string_view name, int64_t size_bytes);
  absl::Status AppendToEntry(absl::string_view bytes);
  absl::Status PadWeights();
  absl::Status EndEntry();

  std::unique_ptr<State> state_;
};

}  // namespace fusion

#endif  // FUSION_RUNTIME_BUNDLE_BUNDLE_WRITER_H_
