#include "compiler/schedule/tile/tile_shape.h"

#include <algorithm>
#include <limits>
#include <set>

namespace fusion {
namespace {

// Tile shapes whose times differ by no more than this factor are ordered by their loads.
constexpr double kTie = 1.01;
// Where no element is read twice, shapes whose estimated times differ by no more than this factor are ordered by how they
// walk memory: each row is a stream of its own, and the vectors of a row lie beside each other.
constexpr double kStreamsTie = 1.3;
// A shape that the port model estimates slower than the best by more than this factor is not worth a measurement.
constexpr double kWorthTrying = 1.25;
// The price of a tile of one vector where each row multiplies by a broadcast that is an instruction of its own (AVX-512
// and NEON broadcast an operand as they multiply): it serves one product.
constexpr double kBroadcastOnce = 1.1;
constexpr size_t kMostShapes = 12;
// Rows of a tile, and of one that a single work-item computes: a device of work-groups needs many, whose neighbours
// read and write neighbouring vectors, so that such a tile is one vector wide, and high only where rows share what they
// read.
constexpr int kMostRows = 28, kRowsOfAnItem = 4;

}  // namespace

std::vector<TileShape> RankTileShapes(int64_t rows, int64_t vectors, const TileReads& reads,
                                      const DeviceModel& device) {
  const int registers = device.vector_registers;
  const PortModel& ports = device.ports;
  const auto cycles = [&](int64_t r, int64_t v) {
    const bool once = reads.broadcast && reads.shared && v == 1 && device.isa == "avx2";
    return (once ? kBroadcastOnce : 1) * TileCycles(device, r, v, reads);
  };
  std::vector<TileShape> shapes;
  double least = std::numeric_limits<double>::infinity();
  const int most_vectors = device.WorkItemsAreLanes() ? 1 : kMostTileVectors;
  const int most_rows = !device.WorkItemsAreLanes() ? kMostRows : reads.shared ? kRowsOfAnItem : 1;
  for (int v = 1; v <= std::min<int64_t>(vectors, most_vectors); ++v) {
    for (int r = 1; r <= std::min<int64_t>(rows, most_rows); ++r) {
      // Registers also hold one row of shared vectors, one broadcast, and a spare so that the compiler's scheduling
      // cannot spill.
      if (r * v + (reads.shared ? v : 0) + 2 > registers && r * v > 1) continue;
      const int64_t full = rows / r, rest = rows % r;
      const double per_column = static_cast<double>(full) * cycles(r, v) + (rest > 0 ? cycles(rest, v) : 0);
      const int64_t groups = (vectors + v - 1) / v;
      shapes.push_back({r, v, per_column * static_cast<double>(groups)});
      least = std::min(least, shapes.back().cycles_per_step);
    }
  }
  // Many shapes keep the FMA ports busy on paper; the one of them that loads least has the most slack for the rest.
  TileShape best;
  double best_reuse = -1;
  for (const TileShape& shape : shapes) {
    const double reuse =
        reads.shared ? shape.rows * shape.vectors / (shape.rows + 2 * ports.stream_cycles * shape.vectors) : 0;
    if (shape.cycles_per_step > kTie * least || reuse <= best_reuse) continue;
    best = shape;
    best_reuse = reuse;
  }
  if (!reads.shared && vectors > 1) {
    for (const TileShape& shape : shapes) {
      if (shape.cycles_per_step > kStreamsTie * least || shape.vectors < best.vectors) continue;
      if (shape.vectors > best.vectors || shape.rows < best.rows) best = shape;
    }
  }
  std::vector<TileShape> ranked = {best};
  for (const TileShape& shape : shapes) {
    if (shape.rows == best.rows && shape.vectors == best.vectors) continue;
    if (shape.cycles_per_step <= kWorthTrying * least) ranked.push_back(shape);
  }
  std::stable_sort(ranked.begin() + 1, ranked.end(),
                   [](const TileShape& a, const TileShape& b) { return a.cycles_per_step < b.cycles_per_step; });
  if (ranked.size() > kMostShapes) ranked.resize(kMostShapes);
  return ranked;
}

std::vector<TileShape> RankSlidingShapes(int64_t rows, int64_t taps, int64_t row_stride, int64_t tap_stride,
                                         bool weighted, const DeviceModel& device) {
  // A vector that crosses lines takes two loads, and there are two loads a cycle.
  constexpr double kLoadCycles = 1;
  constexpr double kLatency = 5;  // of a step, which waits for the step before
  const auto cycles = [&](int64_t r) {
    std::set<int64_t> places;
    for (int64_t row = 0; row < r; ++row) {
      for (int64_t tap = 0; tap < taps; ++tap) places.insert(row * row_stride + tap * tap_stride);
    }
    const auto points = static_cast<double>(taps);
    const double loads = kLoadCycles * static_cast<double>(places.size()) + (weighted ? points / 2 : 0);
    return std::max({static_cast<double>(r) * points / 2, kLatency * points, loads});
  };
  std::vector<TileShape> shapes;
  const int64_t most_rows = device.WorkItemsAreLanes() ? kRowsOfAnItem : kMostRows;
  for (int64_t r = 1; r <= std::min<int64_t>(rows, most_rows); ++r) {
    if (r + (weighted ? taps : 0) + 2 > device.vector_registers) break;
    const int64_t full = rows / r, rest = rows % r;
    shapes.push_back({static_cast<int>(r), 1, static_cast<double>(full) * cycles(r) + (rest > 0 ? cycles(rest) : 0)});
  }
  // The larger of two equally fast shapes loads less.
  std::stable_sort(shapes.begin(), shapes.end(), [](const TileShape& a, const TileShape& b) {
    return a.cycles_per_step != b.cycles_per_step ? a.cycles_per_step < b.cycles_per_step : a.rows > b.rows;
  });
  std::erase_if(shapes,
                [&](const TileShape& s) { return s.cycles_per_step > kWorthTrying * shapes[0].cycles_per_step; });
  if (shapes.size() > kMostShapes) shapes.resize(kMostShapes);
  return shapes;
}

std::vector<TileShape> WholeTileShapes(int64_t rows, int64_t vectors, const TileReads& reads,
                                       const DeviceModel& device) {
  std::vector<TileShape> whole;
  for (int64_t divisor = 1; divisor <= vectors; ++divisor) {
    if (vectors % divisor != 0) continue;
    for (TileShape shape : RankTileShapes(rows, divisor, reads, device)) {
      if (shape.vectors != divisor) continue;
      shape.cycles_per_step *= static_cast<double>(vectors) / static_cast<double>(divisor);
      whole.push_back(shape);
    }
  }
  std::stable_sort(whole.begin(), whole.end(),
                   [](const TileShape& a, const TileShape& b) { return a.cycles_per_step < b.cycles_per_step; });
  std::erase_if(whole, [&](const TileShape& s) { return s.cycles_per_step > kWorthTrying * whole[0].cycles_per_step; });
  if (whole.size() > kMostShapes) whole.resize(kMostShapes);
  return whole;
}

TileShape ChooseTileShape(int64_t rows, int64_t vectors, const TileReads& reads, const DeviceModel& device) {
  return RankTileShapes(rows, vectors, reads, device).front();
}

}  // namespace fusion
