#include "tests/conformance/modes.h"

#include <utility>

namespace fusion::conformance {

std::vector<Mode> AllModes() {
  std::vector<Mode> modes = InterpreterModes();
  for (Mode& mode : CompiledModes()) modes.push_back(std::move(mode));
  return modes;
}

}  // namespace fusion::conformance
