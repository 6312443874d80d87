// The text at the beginning of every generated OpenCL file: the names of kernel text (compiler/backends/text) in OpenCL
// C 1.2, without required extensions except double where the device has it.
#ifndef FUSION_COMPILER_BACKENDS_OPENCL_PRELUDE_H_
#define FUSION_COMPILER_BACKENDS_OPENCL_PRELUDE_H_

#include <string>

namespace fusion::opencl {

// `lanes`: elements of a vector (2, 4, 8 or 16). `groups`: do work-items share tasks?
std::string Prelude(int lanes, bool groups);

}  // namespace fusion::opencl

#endif  // FUSION_COMPILER_BACKENDS_OPENCL_PRELUDE_H_
