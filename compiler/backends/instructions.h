// Which of a device's instructions a kernel needs. A kernel that runs without an extension is built without it, so that
// its bundle also loads on devices that lack the extension.
#ifndef FUSION_COMPILER_BACKENDS_INSTRUCTIONS_H_
#define FUSION_COMPILER_BACKENDS_INSTRUCTIONS_H_

#include <string>

namespace fusion {

struct Instructions {
  std::string isa, march;  // as in DeviceModel
  bool operator==(const Instructions&) const = default;
};

}  // namespace fusion

#endif  // FUSION_COMPILER_BACKENDS_INSTRUCTIONS_H_
