// Facts about the CPU that the operating system reports.
#ifndef FUSION_WORKER_MEASURE_HOST_FACTS_H_
#define FUSION_WORKER_MEASURE_HOST_FACTS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace fusion {

struct CacheLevel {
  int level = 0;
  int64_t size_bytes = 0;
  bool shared = false;  // by several cores, not only by the threads of one core
  int line_bytes = 64;
};

// Returns data and unified caches, the one nearest to the core first. Assumes usual sizes if the system reports none.
std::vector<CacheLevel> HostCaches();

int64_t LastLevelCacheBytes();

std::string CpuName();  // "AMD EPYC"; the architecture's name if it is unknown

}  // namespace fusion

#endif  // FUSION_WORKER_MEASURE_HOST_FACTS_H_
