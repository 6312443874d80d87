// What the operating system tells of the processor.
#ifndef FUSION_WORKER_MEASURE_HOST_FACTS_H_
#define FUSION_WORKER_MEASURE_HOST_FACTS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace fusion {

struct CacheLevel {
  int level = 0;
  int64_t size_bytes = 0;
  bool shared = false;  // by cores, not only by the threads of one
};

// Data and unified caches from the core outward; usual sizes where the system does not say.
std::vector<CacheLevel> HostCaches();

int64_t LastLevelCacheBytes();

std::string CpuName();  // "AMD EPYC"; the architecture's name where unknown

}  // namespace fusion

#endif  // FUSION_WORKER_MEASURE_HOST_FACTS_H_
