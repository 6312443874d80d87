// libFuzzer target: reads any bytes as a bundle, and as each part of a bundle, because the digests of a whole bundle
// would reject nearly every mutation of a part.
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
  // A valid manifest must survive being written and read.
  const std::string text = fusion::SerializeManifest(*manifest);
  const auto again = fusion::ParseManifest(text);
  if (!again.ok() || fusion::SerializeManifest(*again) != text) std::abort();
  return 0;
}
