#include "compiler/cost/port_model.h"

#include <algorithm>

namespace fusion {

double TileCycles(const PortModel& ports, int64_t rows, int64_t vectors, bool has_broadcast, bool has_shared) {
  const double fma = static_cast<double>(rows * vectors) / ports.fmas_per_cycle;
  const double row_loads = static_cast<double>(has_broadcast ? rows : rows * vectors);
  const double load = (row_loads + static_cast<double>(has_shared ? vectors : 0)) / ports.loads_per_cycle;
  const double stream = has_shared ? ports.stream_cycles * static_cast<double>(vectors) : 0;
  return std::max({fma, load, ports.step_cycles, stream});
}

}  // namespace fusion
