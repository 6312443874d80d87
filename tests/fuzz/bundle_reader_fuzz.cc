// libFuzzer: any bytes as a bundle, and as each of the parts that a bundle's digests would otherwise keep from
// mutation.
#include <cstdlib>

#include "runtime/bundle/bundle_reader.h"
#include "runtime/bundle/safetensors.h"
#include "runtime/bundle/zip_format.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  (void)fusion::BundleReader::FromBytes(bytes);
  (void)fusion::ParseZip(bytes);
  const auto weights = fusion::SafetensorsData(bytes);
  if (weights.ok() && weights->size() > size) std::abort();
  auto manifest = fusion::ParseManifest(bytes);
  if (!manifest.ok() || !fusion::ValidateManifest(*manifest, 4096).ok()) return 0;
  // What is valid survives being written and read.
  const std::string text = fusion::SerializeManifest(*manifest);
  const auto again = fusion::ParseManifest(text);
  if (!again.ok() || fusion::SerializeManifest(*again) != text) std::abort();
  return 0;
}
