// Floats of at most 8 bits (runtime/base/narrow_float.h) in kernel text: `from_T(code)` and `to_T(value)` convert
// between a byte and an f32. Few kernels use such floats, so these helpers stand in front of those kernels and not in
// the preludes.
#ifndef FUSION_COMPILER_BACKENDS_TEXT_NARROW_FLOATS_H_
#define FUSION_COMPILER_BACKENDS_TEXT_NARROW_FLOATS_H_

#include <string>

namespace fusion::text {

// Returns the kernel's text behind the helpers that it calls. Several kernels in one source may define the same
// helpers.
std::string WithNarrowFloats(std::string kernel);

}  // namespace fusion::text

#endif  // FUSION_COMPILER_BACKENDS_TEXT_NARROW_FLOATS_H_
