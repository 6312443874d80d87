#include "compiler/plan/scope.h"

namespace fusion {

const char* ScopeName(Scope scope) {
  switch (scope) {
    case Scope::kLane:
      return "lane";
    case Scope::kWarp:
      return "warp";
    case Scope::kBlock:
      return "block";
    case Scope::kDevice:
      return "device";
    case Scope::kKernel:
      return "kernel";
  }
  return "?";
}

}  // namespace fusion
