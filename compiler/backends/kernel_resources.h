// KernelResources: what a built function takes of a device, as its toolchain allotted it.
#ifndef FUSION_COMPILER_BACKENDS_KERNEL_RESOURCES_H_
#define FUSION_COMPILER_BACKENDS_KERNEL_RESOURCES_H_

#include <cstdint>
#include <map>
#include <string>

namespace fusion {

struct KernelResources {
  int registers = 0;         // of 32 bits, of a work-item
  int64_t frame_bytes = 0;   // of a work-item: what it addresses at run time, and values that found no register
  int64_t shared_bytes = 0;  // of a work-group

  bool operator==(const KernelResources&) const = default;
};

using ResourcesBySymbol = std::map<std::string, KernelResources>;

}  // namespace fusion

#endif  // FUSION_COMPILER_BACKENDS_KERNEL_RESOURCES_H_
