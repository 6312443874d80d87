#include "compiler/cost/tile_cycles.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace fusion {

int64_t ConflictingRows(const PortModel& ports, int64_t line_bytes, int64_t rows, int64_t stride) {
  constexpr int64_t kPageBytes = 4096;
  stride = std::abs(stride);
  // Rows nearer than a line fill sets beside each other.
  if (stride < line_bytes || static_cast<double>(rows) <= ports.near_ways) return 0;
  std::vector<int> rows_of_set(static_cast<size_t>(kPageBytes / line_bytes));
  for (int64_t row = 0; row < rows; ++row) ++rows_of_set[static_cast<size_t>(row * stride % kPageBytes / line_bytes)];
  int64_t conflicting = 0;
  for (const int count : rows_of_set) conflicting += count > ports.near_ways ? count : 0;
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
