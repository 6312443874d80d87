#include "worker/measure/host_facts.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Turns "32768K" into bytes; returns 0 for any other text.
int64_t ParseSize(std::string text) {
  int64_t unit = 1;
  if (!text.empty() && text.back() == 'K') unit = 1 << 10;
  if (!text.empty() && text.back() == 'M') unit = 1 << 20;
  if (unit > 1) text.pop_back();
  int64_t value = 0;
  return absl::SimpleAtoi(text, &value) ? value * unit : 0;
}

}  // namespace

std::vector<CacheLevel> HostCaches() {
  // Reads sysfs first, because under some hypervisors sysconf reports the sum over a socket that the guest does not
  // have.
  const std::string root = "/sys/devices/system/cpu/cpu0/";
  const std::string siblings = FirstLine(root + "topology/thread_siblings_list");
  std::vector<CacheLevel> levels;
  for (int i = 0; i < 8; ++i) {
    const std::string folder = absl::StrCat(root, "cache/index", i, "/");
    const std::string type = FirstLine(folder + "type");
    if (type != "Data" && type != "Unified") continue;
    CacheLevel level;
    level.size_bytes = ParseSize(FirstLine(folder + "size"));
    level.shared = FirstLine(folder + "shared_cpu_list") != siblings;
    if (int line = 0; absl::SimpleAtoi(FirstLine(folder + "coherency_line_size"), &line) && line > 0) {
      level.line_bytes = line;
    }
    if (absl::SimpleAtoi(FirstLine(folder + "level"), &level.level) && level.size_bytes > 0) levels.push_back(level);
  }
  if (levels.empty()) {
    const int names[] = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE};
    const int64_t usual[] = {32 << 10, 512 << 10, 8 << 20};
    for (int i = 0; i < 3; ++i) {
      const int64_t size = sysconf(names[i]);
      levels.push_back({.level = i + 1, .size_bytes = size > 0 ? size : usual[i], .shared = i == 2});
    }
  }
  std::sort(levels.begin(), levels.end(), [](const CacheLevel& a, const CacheLevel& b) { return a.level < b.level; });
  return levels;
}

int64_t LastLevelCacheBytes() { return HostCaches().back().size_bytes; }

std::string CpuName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!absl::StartsWith(line, "model name")) continue;
    const size_t colon = line.find(':');
    if (colon != std::string::npos) return std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
  }
#if defined(__aarch64__)
  return "aarch64";
#else
  return "x86-64";
#endif
}

}  // namespace fusion
