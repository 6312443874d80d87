// DigestCache remembers a file's digests together with its size, inode and times, and returns them while these stay the
// same. So submitting an unchanged 400 MB model reads none of it.
#ifndef FUSION_CLIENT_API_DIGEST_CACHE_H_
#define FUSION_CLIENT_API_DIGEST_CACHE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace fusion {

struct FileDigests {
  std::string sha256;
  std::vector<std::string> chunks;
};

// It keeps one small text file for each model. If that file is lost, damaged or cannot be written, this costs only
// time.
class DigestCache {
 public:
  DigestCache(std::string folder, int64_t chunk_bytes) : folder_(std::move(folder)), chunk_bytes_(chunk_bytes) {}
  FileDigests Get(const std::string& path, const std::function<FileDigests()>& compute) const;

 private:
  std::string folder_;
  int64_t chunk_bytes_;
};

}  // namespace fusion

#endif  // FUSION_CLIENT_API_DIGEST_CACHE_H_
