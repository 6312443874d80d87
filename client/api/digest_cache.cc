#include "client/api/digest_cache.h"

#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/sha256.h"

namespace fusion {
namespace {

constexpr int64_t kWorthwhileBytes = 1 << 20;  // smaller files are hashed faster than the cache is read

bool IsDigest(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

FileDigests DigestCache::Get(const std::string& path, const std::function<FileDigests()>& compute) const {
  struct stat facts;
  if (folder_.empty() || stat(path.c_str(), &facts) != 0 || facts.st_size < kWorthwhileBytes) return compute();
  // The time stamp proves nothing yet for a file written within the last two seconds, which may change again.
  const bool settled = time(nullptr) - std::max(facts.st_mtime, facts.st_ctime) > 2;
  const std::string identity =
      absl::StrCat("digests 1 ", facts.st_dev, " ", facts.st_ino, " ", facts.st_size, " ", facts.st_mtim.tv_sec, ".",
                   facts.st_mtim.tv_nsec, " ", facts.st_ctim.tv_sec, ".", facts.st_ctim.tv_nsec, " ", chunk_bytes_);
  std::error_code error;
  const std::string file =
      absl::StrCat(folder_, "/digests/", Sha256Hex(std::filesystem::absolute(path, error).string()).substr(0, 32));
  if (settled) {
    std::ifstream in(file);
    std::string first;
    FileDigests digests;
    if (std::getline(in, first) && first == identity && std::getline(in, digests.sha256)) {
      bool good = IsDigest(digests.sha256);
      for (std::string line; good && std::getline(in, line);) {
        good = IsDigest(line);
        digests.chunks.push_back(line);
      }
      const int64_t expected = (facts.st_size + chunk_bytes_ - 1) / chunk_bytes_;
      if (good && static_cast<int64_t>(digests.chunks.size()) == expected) return digests;
    }
  }
  FileDigests digests = compute();
  if (settled) {
    std::string text = absl::StrCat(identity, "\n", digests.sha256, "\n");
    for (const std::string& chunk : digests.chunks) absl::StrAppend(&text, chunk, "\n");
    std::filesystem::create_directories(folder_ + "/digests", error);
    WriteFileAtomically(file, text).IgnoreError();
  }
  return digests;
}

}  // namespace fusion
