// The zip container of a bundle: one canonical byte form per list of entries (FORMAT.md, "Container").
#ifndef FUSION_RUNTIME_BUNDLE_ZIP_FORMAT_H_
#define FUSION_RUNTIME_BUNDLE_ZIP_FORMAT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fusion {

struct ZipEntry {
  std::string name;
  uint32_t crc32 = 0;
  int64_t size_bytes = 0;
  int64_t header_offset = 0;  // of the local header; its data begins at header_offset + ZipLocalHeader().size()
};

// Names the container accepts: components of [a-z0-9_.-], joined by '/', none empty, "." or "..", at most 200 bytes.
bool IsEntryName(absl::string_view name);

// The local header, padded so that data placed right behind it is 64-byte aligned in the file.
std::string ZipLocalHeader(const ZipEntry& entry);

// Central directory and end records for a file whose entries end at `offset`.
std::string ZipDirectory(const std::vector<ZipEntry>& entries, int64_t offset);

// The entries of a canonical file: INVALID_ARGUMENT if `file` is no zip or not one of ours, DATA_LOSS if it looks like
// one of ours and some byte of its headers is wrong. On success, all headers equal what the functions above print,
// entries lie one behind the other without gaps, and names are unique. Contents are not looked at.
absl::StatusOr<std::vector<ZipEntry>> ParseZip(absl::string_view file);

// CRC-32 as zip defines it. Start with 0; feed pieces in order.
uint32_t UpdateCrc32(uint32_t crc, absl::string_view bytes);

}  // namespace fusion

#endif  // FUSION_RUNTIME_BUNDLE_ZIP_FORMAT_H_
