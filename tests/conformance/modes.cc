#include "tests/conformance/modes.h"

namespace fusion::conformance {

std::vector<Mode> AllModes() { return InterpreterModes(); }

}  // namespace fusion::conformance
