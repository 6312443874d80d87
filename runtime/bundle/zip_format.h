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
  int64_t header_offset = 0;  // of the local header; the data begins at header_offset + ZipLocalHeader().size()
};

// Accepts components of [a-z0-9_.-] joined by '/', none of them empty, "." or "..", at most 200 bytes together.
bool IsEntryName(absl::string_view name);

// Returns the local header, padded so that data right behind it is 64-byte aligned in the file.
std::string ZipLocalHeader(const ZipEntry& entry);

// Returns the central directory and the end records of a file whose entries end at `offset`.
std::string ZipDirectory(const std::vector<ZipEntry>& entries, int64_t offset);

// Returns the entries of a canonical file. Fails with INVALID_ARGUMENT if `file` is no zip or was not written by this
// project, DATA_LOSS if it looks like one of this project's files and some byte of its headers is wrong. On success all
// headers equal those that the functions above print, entries lie back to back, and names are unique. The contents of
// entries are not checked.
absl::StatusOr<std::vector<ZipEntry>> ParseZip(absl::string_view file);

// CRC-32 as zip defines it. Start with 0; feed pieces in order.
uint32_t UpdateCrc32(uint32_t crc, absl::string_view bytes);

}  // namespace fusion

#endif  // FUSION_RUNTIME_BUNDLE_ZIP_FORMAT_H_
