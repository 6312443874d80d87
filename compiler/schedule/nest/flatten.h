// Flatten makes a nest over flat buffers from an expression whose axes follow its output's layout.
#ifndef FUSION_COMPILER_SCHEDULE_NEST_FLATTEN_H_
#define FUSION_COMPILER_SCHEDULE_NEST_FLATTEN_H_

#include <functional>
#include <vector>

#include "compiler/schedule/nest/nest.h"

namespace fusion {

// Returns where a logical element of a tensor lies: buffer number and flat element offset.
using AddressOf = std::function<movement::Store(te::TensorId, const std::vector<te::Index>&)>;

// Rewrites loads and stores through `address_of`; padded loads become `if inside then load else pad`.
Nest Flatten(const te::Program& program, const PhysicalTe& physical, const AddressOf& address_of);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_NEST_FLATTEN_H_
