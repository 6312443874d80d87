#include "compiler/backends/backend.h"

#include "absl/strings/str_cat.h"

namespace fusion {

std::string PhaseSymbol(const std::string& symbol, int phase) { return absl::StrCat(symbol, "_p", phase); }

std::set<std::string> RoutinesOf(const movement::Kernel& kernel) {
  std::set<std::string> names;
  for (const movement::Phase& phase : kernel.phases) {
    for (const movement::Step& step : phase.steps) {
      if (const auto* routine = step.As<movement::RoutineCall>()) names.insert(routine->name);
    }
  }
  return names;
}

}  // namespace fusion
