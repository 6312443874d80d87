// ReadPacked: a kernel that reads a plain constant reads the packed copy instead that another kernel has of it, so that
// it is held once.
#ifndef FUSION_COMPILER_MOVEMENT_READ_PACKED_H_
#define FUSION_COMPILER_MOVEMENT_READ_PACKED_H_

#include <optional>

#include "compiler/movement/kernel.h"

namespace fusion::movement {

// Where in the packed box the element of this address in the plain source lies; nullopt where the pack does not hold
// each of the source's elements once, or does not say so by plain digits of the address.
std::optional<te::Index> PackedAddress(const Pack& pack, int64_t source_elements, const te::Index& address);

// `kernel` with the constant buffer `buffer`, which is not packed, replaced by its packed copy, of which there are
// `packed_elements`. nullopt where that cannot be, or where a step that computes on vectors no longer could.
std::optional<Kernel> ReadPacked(const Kernel& kernel, int buffer, const Pack& pack, int64_t packed_elements,
                                 int64_t lanes);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_READ_PACKED_H_
