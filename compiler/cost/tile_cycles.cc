#include "compiler/cost/tile_cycles.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

namespace fusion {

int64_t ConflictingRows(const PortModel& ports, int64_t line_bytes, int64_t rows, int64_t stride) {
  constexpr int64_t kPageBytes = 4096;
  struct Set {
    std::set<int64_t> lines;
    int64_t rows = 0;
  };
  std::map<int64_t, Set> sets;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t line = row * std::abs(stride) / line_bytes;
    Set& set = sets[line % (kPageBytes / line_bytes)];
    set.lines.insert(line);
    ++set.rows;
  }
  int64_t conflicting = 0;
  for (const auto& [place, set] : sets) {
    if (static_cast<double>(set.lines.size()) > ports.near_ways) conflicting += set.rows;
  }
  return conflicting;
}

double TileCycles(const DeviceModel& device, int64_t rows, int64_t vectors, const TileReads& reads) {
  const PortModel& ports = device.ports;
  const double fma = static_cast<double>(rows * vectors) / ports.fmas_per_cycle;
  const double row_loads = static_cast<double>(reads.broadcast ? rows : rows * vectors);
  const double load = (row_loads + static_cast<double>(reads.shared ? vectors : 0)) / ports.loads_per_cycle;
  const int64_t far_rows = reads.broadcast ? ConflictingRows(ports, device.line_bytes, rows, reads.row_stride) : 0;
  const double stream = ports.stream_cycles * static_cast<double>((reads.shared ? vectors : 0) + far_rows);
  return std::max({fma, load, ports.step_cycles, stream});
}

}  // namespace fusion
