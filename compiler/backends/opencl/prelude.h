// The text every generated OpenCL file begins with: the names of kernel text (compiler/backends/text) in OpenCL C 1.2,
// without extensions but double where the device has it.
#ifndef FUSION_COMPILER_BACKENDS_OPENCL_PRELUDE_H_
#define FUSION_COMPILER_BACKENDS_OPENCL_PRELUDE_H_

#include <string>

namespace fusion::opencl {

// `lanes`: elements of a vector: 2, 4, 8 or 16. `groups`: work-items share tasks.
std::string Prelude(int lanes, bool groups);

}  // namespace fusion::opencl

#endif  // FUSION_COMPILER_BACKENDS_OPENCL_PRELUDE_H_
