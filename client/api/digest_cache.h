// DigestCache: what a file's digests were when its size, inode and times were the same as now. A submission of an
// unchanged 400 MB model then reads nothing of it.
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

// One small text file a model. Losing, damaging or being unable to write one costs time only.
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
