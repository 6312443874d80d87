#include "compiler/cost/port_model.h"

#include <algorithm>

namespace fusion {
namespace {

// FMA latency × issue width is 8 on every core that we target; a little more, because issue is not perfect.
constexpr double kMinAccumulators = 10;

}  // namespace

double TileCycles(int64_t rows, int64_t vectors, bool has_broadcast, bool has_shared) {
  const double fma = static_cast<double>(rows * vectors) / 2;
  const double row_loads = static_cast<double>(has_broadcast ? rows : rows * vectors);
  const double load = (row_loads + static_cast<double>(has_shared ? vectors : 0)) / 2;
  const double latency = kMinAccumulators / 2;
  const double stream = has_shared ? kStreamCycles * static_cast<double>(vectors) : 0;
  return std::max({fma, load, latency, stream});
}

}  // namespace fusion
