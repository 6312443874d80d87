#include "runtime/bundle/zip_format.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zip.h>

#include "runtime/base/mapped_file.h"

namespace fusion {
namespace {

TEST(ZipFormatTest, Crc32KnownAnswer) {
  EXPECT_EQ(UpdateCrc32(0, "123456789"), 0xcbf43926u);
  EXPECT_EQ(UpdateCrc32(UpdateCrc32(0, "12345678901"), "234567890"), UpdateCrc32(0, "12345678901234567890"));
}

TEST(ZipFormatTest, EntryNames) {
  for (const char* name : {"a", "manifest.json", "src/k_0-1.cc"}) EXPECT_TRUE(IsEntryName(name)) << name;
  for (const char* name : {"", "/a", "a/", "../a", "a/../b", "./a", "a//b", "A", "a b", "a\\b", "\xc3\xa9"}) {
    EXPECT_FALSE(IsEntryName(name)) << name;
  }
  EXPECT_FALSE(IsEntryName(std::string(201, 'a')));
}

TEST(ZipFormatTest, DataIsAlignedAtEveryOffset) {
  for (int64_t offset = 0; offset < 200; ++offset) {
    EXPECT_EQ((offset + ZipLocalHeader({"name", 0, 5, offset}).size()) % 64, 0);
  }
}

// Writes a sparse file with an entry past 4 GiB. Other readers must see the same sizes and offsets.
TEST(ZipFormatTest, LargeEntriesUseZip64) {
  const std::string path = ::testing::TempDir() + "/zip64_" + std::to_string(getpid());
  std::vector<ZipEntry> entries = {{"large", 0, (int64_t{1} << 32) + 100, 0}, {"after", 0, 3, 0}};
  FILE* file = fopen(path.c_str(), "w");
  int64_t offset = 0;
  for (ZipEntry& entry : entries) {
    entry.header_offset = offset;
    const std::string header = ZipLocalHeader(entry);
    ASSERT_EQ(fseeko(file, offset, SEEK_SET), 0);
    fwrite(header.data(), 1, header.size(), file);
    offset += header.size() + entry.size_bytes;
  }
  const std::string directory = ZipDirectory(entries, offset);
  fseeko(file, offset, SEEK_SET);
  ASSERT_EQ(fwrite(directory.data(), 1, directory.size(), file), directory.size());
  ASSERT_EQ(fclose(file), 0);

  {
    const auto mapped = MappedFile::Open(path);
    ASSERT_TRUE(mapped.ok());
    const auto parsed = ParseZip((*mapped)->bytes());
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    ASSERT_EQ(parsed->size(), 2u);
    EXPECT_EQ((*parsed)[0].size_bytes, entries[0].size_bytes);
    EXPECT_EQ((*parsed)[1].header_offset, entries[1].header_offset);
  }
  int error = 0;
  zip_t* archive = zip_open(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &error);
  ASSERT_NE(archive, nullptr) << error;
  zip_stat_t stat;
  ASSERT_EQ(zip_stat(archive, "large", 0, &stat), 0);
  EXPECT_EQ(stat.size, static_cast<uint64_t>(entries[0].size_bytes));
  EXPECT_EQ(zip_stat(archive, "after", 0, &stat), 0);
  zip_discard(archive);
  unlink(path.c_str());
}

}  // namespace
}  // namespace fusion
