#include "runtime/bundle/zip_format.h"

#include <zlib.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/status_macros.h"
#include "runtime/bundle/manifest.h"

namespace fusion {
namespace {

constexpr uint32_t kLocalSignature = 0x04034b50, kCentralSignature = 0x02014b50, kEndSignature = 0x06054b50;
constexpr uint32_t kEnd64Signature = 0x06064b50, kLocator64Signature = 0x07064b50;
constexpr int kEndBytes = 22, kLocator64Bytes = 20, kEnd64Bytes = 56, kCentralBytes = 46;
constexpr uint16_t kVersion = 45;           // of the zip specification; 45 has zip64
constexpr uint16_t kMadeBy = 3 << 8 | 45;   // Unix, so that readers believe the mode below
constexpr uint32_t kMode = 0100644u << 16;  // regular file, rw-r--r--
constexpr uint16_t kDate = 1 << 5 | 1;      // 1980-01-01 00:00, the earliest possible date
constexpr uint16_t kZip64Id = 1;
constexpr uint16_t kAlignId = 0xd935;  // as Android's zipalign writes it: u16 alignment, then zeros
constexpr int64_t kLimit32 = 0xffffffff, kLimit16 = 0xffff;

void Put(std::string* out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

uint64_t Get(absl::string_view file, size_t offset, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i)
    value |= static_cast<uint64_t>(static_cast<unsigned char>(file[offset + i])) << (8 * i);
  return value;
}

bool HasLargeSize(const ZipEntry& entry) { return entry.size_bytes >= kLimit32; }

// Writes what local and central headers share: version needed, flags, method (stored), time, date, CRC, sizes.
void PutCommon(std::string* out, const ZipEntry& entry) {
  Put(out, kVersion, 2);
  Put(out, 0, 2);
  Put(out, 0, 2);
  Put(out, 0, 2);
  Put(out, kDate, 2);
  Put(out, entry.crc32, 4);
  const uint64_t size32 = HasLargeSize(entry) ? kLimit32 : entry.size_bytes;
  Put(out, size32, 4);
  Put(out, size32, 4);
  Put(out, entry.name.size(), 2);
}

std::string CentralHeader(const ZipEntry& entry) {
  std::string extra;
  const bool large_offset = entry.header_offset >= kLimit32;
  if (HasLargeSize(entry) || large_offset) {
    Put(&extra, kZip64Id, 2);
    Put(&extra, (HasLargeSize(entry) ? 16 : 0) + (large_offset ? 8 : 0), 2);
    if (HasLargeSize(entry)) {
      Put(&extra, entry.size_bytes, 8);
      Put(&extra, entry.size_bytes, 8);
    }
    if (large_offset) Put(&extra, entry.header_offset, 8);
  }
  std::string out;
  Put(&out, kCentralSignature, 4);
  Put(&out, kMadeBy, 2);
  PutCommon(&out, entry);
  Put(&out, extra.size(), 2);
  Put(&out, 0, 2 + 2 + 2);  // comment, disk, internal attributes
  Put(&out, kMode, 4);
  Put(&out, large_offset ? kLimit32 : entry.header_offset, 4);
  return out + entry.name + extra;
}

absl::Status Foreign(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("not a fusion bundle: ", why));
}
absl::Status Damaged(absl::string_view why) { return absl::DataLossError(absl::StrCat("damaged bundle: ", why)); }

// Where the central directory begins and how many entries it has. Only the bounds are checked here, not the contents.
struct End {
  uint64_t count = 0, directory_bytes = 0, directory_offset = 0;
};

absl::StatusOr<End> FindEnd(absl::string_view file) {
  if (file.size() < kEndBytes || Get(file, 0, 4) != kLocalSignature)
    return Foreign("it does not begin like a zip file");
  const size_t end = file.size() - kEndBytes;
  if (Get(file, end, 4) != kEndSignature) {
    return Damaged("the zip directory at its end is missing (truncated, or something was appended)");
  }
  End result{Get(file, end + 10, 2), Get(file, end + 12, 4), Get(file, end + 16, 4)};
  uint64_t directory_end = end;
  if (end >= kLocator64Bytes + kEnd64Bytes && Get(file, end - kLocator64Bytes, 4) == kLocator64Signature) {
    directory_end = end - kLocator64Bytes - kEnd64Bytes;
    if (Get(file, directory_end, 4) != kEnd64Signature) return Damaged("zip64 end record not found");
    result = {Get(file, directory_end + 32, 8), Get(file, directory_end + 40, 8), Get(file, directory_end + 48, 8)};
  }
  if (result.directory_offset > directory_end || result.directory_bytes != directory_end - result.directory_offset ||
      result.count > result.directory_bytes / kCentralBytes) {
    return Damaged("the zip directory does not fit the file (truncated?)");
  }
  return result;
}

}  // namespace

bool IsEntryName(absl::string_view name) {
  if (name.empty() || name.size() > 200) return false;
  for (const absl::string_view component : absl::StrSplit(name, '/')) {
    if (component.empty() || component == "." || component == "..") return false;
    for (const char c : component) {
      if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-')) return false;
    }
  }
  return true;
}

std::string ZipLocalHeader(const ZipEntry& entry) {
  std::string extra;
  if (HasLargeSize(entry)) {
    Put(&extra, kZip64Id, 2);
    Put(&extra, 16, 2);
    Put(&extra, entry.size_bytes, 8);
    Put(&extra, entry.size_bytes, 8);
  }
  const int64_t unpadded = entry.header_offset + 30 + entry.name.size() + extra.size() + 6;
  const int64_t padding = (kBufferAlignBytes - unpadded % kBufferAlignBytes) % kBufferAlignBytes;
  Put(&extra, kAlignId, 2);
  Put(&extra, 2 + padding, 2);
  Put(&extra, kBufferAlignBytes, 2);
  extra.append(padding, '\0');
  std::string out;
  Put(&out, kLocalSignature, 4);
  PutCommon(&out, entry);
  Put(&out, extra.size(), 2);
  return out + entry.name + extra;
}

std::string ZipDirectory(const std::vector<ZipEntry>& entries, int64_t offset) {
  std::string out;
  for (const ZipEntry& entry : entries) out += CentralHeader(entry);
  const int64_t bytes = out.size();
  const int64_t count = entries.size();
  if (count >= kLimit16 || bytes >= kLimit32 || offset >= kLimit32) {
    const int64_t end64 = offset + bytes;
    Put(&out, kEnd64Signature, 4);
    Put(&out, kEnd64Bytes - 12, 8);
    Put(&out, kMadeBy, 2);
    Put(&out, kVersion, 2);
    Put(&out, 0, 8);  // disks
    Put(&out, count, 8);
    Put(&out, count, 8);
    Put(&out, bytes, 8);
    Put(&out, offset, 8);
    Put(&out, kLocator64Signature, 4);
    Put(&out, 0, 4);
    Put(&out, end64, 8);
    Put(&out, 1, 4);
  }
  Put(&out, kEndSignature, 4);
  Put(&out, 0, 4);  // disks
  Put(&out, std::min(count, kLimit16), 2);
  Put(&out, std::min(count, kLimit16), 2);
  Put(&out, std::min(bytes, kLimit32), 4);
  Put(&out, std::min(offset, kLimit32), 4);
  Put(&out, 0, 2);  // comment
  return out;
}

absl::StatusOr<std::vector<ZipEntry>> ParseZip(absl::string_view file) {
  ASSIGN_OR_RETURN(const End end, FindEnd(file));
  const absl::string_view directory = file.substr(end.directory_offset, end.directory_bytes);
  std::vector<ZipEntry> entries;
  std::set<std::string> names;
  size_t at = 0;
  int64_t expected_offset = 0;
  for (uint64_t i = 0; i < end.count; ++i) {
    if (directory.size() - at < kCentralBytes || Get(directory, at, 4) != kCentralSignature) {
      return Damaged("the zip directory is malformed");
    }
    const size_t name_bytes = Get(directory, at + 28, 2), extra_bytes = Get(directory, at + 30, 2);
    if (directory.size() - at - kCentralBytes < name_bytes + extra_bytes)
      return Damaged("the zip directory is cut off");
    ZipEntry entry;
    entry.name = std::string(directory.substr(at + kCentralBytes, name_bytes));
    if (!IsEntryName(entry.name)) return Foreign("it has an entry with an unusual name");
    if (!names.insert(entry.name).second) return Foreign(absl::StrCat("it has two entries '", entry.name, "'"));
    if (Get(directory, at + 10, 2) != 0) return Foreign(absl::StrCat("entry '", entry.name, "' is compressed"));
    entry.crc32 = static_cast<uint32_t>(Get(directory, at + 16, 4));
    uint64_t size_bytes = Get(directory, at + 24, 4);
    // Zip64 stores the size twice, before any other field.
    if (size_bytes == kLimit32 && extra_bytes >= 12)
      size_bytes = Get(directory, at + kCentralBytes + name_bytes + 4, 8);
    if (size_bytes > file.size()) return Damaged(absl::StrCat("entry '", entry.name, "' is longer than the file"));
    entry.size_bytes = static_cast<int64_t>(size_bytes);
    entry.header_offset = expected_offset;  // entries lie back to back; the directory's own offset is compared below
    const std::string header = ZipLocalHeader(entry);
    const uint64_t room = end.directory_offset - expected_offset;
    if (room < header.size() || room - header.size() < size_bytes) {
      return Damaged(absl::StrCat("entry '", entry.name, "' does not fit the file"));
    }
    if (file.substr(expected_offset, header.size()) != header) {
      return Foreign(absl::StrCat("the header of entry '", entry.name,
                                  "' is not as a bundle's (repacked by another tool, or damaged)"));
    }
    expected_offset += header.size() + size_bytes;
    at += kCentralBytes + name_bytes + extra_bytes;
    entries.push_back(std::move(entry));
  }
  if (static_cast<uint64_t>(expected_offset) != end.directory_offset ||
      file.substr(end.directory_offset) != ZipDirectory(entries, expected_offset)) {
    return Damaged("the zip directory does not match the entries");
  }
  return entries;
}

uint32_t UpdateCrc32(uint32_t crc, absl::string_view bytes) {
  return static_cast<uint32_t>(crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace fusion
