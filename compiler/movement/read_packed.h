// ReadPacked: lets a kernel that reads a plain constant read the packed copy that another kernel has of it, so that the
// constant is held once.
#ifndef FUSION_COMPILER_MOVEMENT_READ_PACKED_H_
#define FUSION_COMPILER_MOVEMENT_READ_PACKED_H_

#include <functional>
#include <optional>

#include "compiler/movement/kernel.h"

namespace fusion::movement {

// Says where the element at an address of the plain source lies in the packed box.
using PackedPlace = std::function<te::Index(const te::Index& address)>;

// Counts what the pack holds, which takes time. nullopt where it does not hold each of the source's elements once, or
// where its axes are no plain digits of the address.
std::optional<PackedPlace> PackedPlaceOf(const Pack& pack, int64_t source_elements);
// The same for one address.
std::optional<te::Index> PackedAddress(const Pack& pack, int64_t source_elements, const te::Index& address);

// Returns `kernel` with the unpacked constant buffer `buffer` replaced by its packed copy of `packed_elements`
// elements. nullopt where that is impossible, or where a step that computes on vectors no longer could.
std::optional<Kernel> ReadPacked(const Kernel& kernel, int buffer, const Pack& pack, int64_t packed_elements,
                                 int64_t lanes);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_READ_PACKED_H_
