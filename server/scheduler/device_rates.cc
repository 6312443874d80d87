#include "server/scheduler/device_rates.h"

#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace fusion {

std::string RatesThatDiffer(const DeviceModel& one, const DeviceModel& other) {
  std::vector<std::string> words;
  const auto compare = [&](double a, double b, double unit, const std::string& what) {
    if (a <= 0 || b <= 0 || (a <= b * kSameRate && b <= a * kSameRate)) return;
    words.push_back(absl::StrFormat("%.3g instead of %.3g %s", a / unit, b / unit, what));
  };
  compare(one.fma_f32_flops_per_s, other.fma_f32_flops_per_s, 1e9, "GFLOP/s of a core");
  for (const MemoryLevel& level : one.memory) {
    for (const MemoryLevel& beside : other.memory) {
      if (level.name != beside.name) continue;
      compare(level.bandwidth_bytes_per_s, beside.bandwidth_bytes_per_s, 1e9, "GB/s of " + level.name);
    }
  }
  return absl::StrJoin(words, ", ");
}

}  // namespace fusion
