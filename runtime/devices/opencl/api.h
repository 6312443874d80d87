// OpenCL's functions, from this machine's installable client driver loader, if it has one.
#ifndef FUSION_RUNTIME_DEVICES_OPENCL_API_H_
#define FUSION_RUNTIME_DEVICES_OPENCL_API_H_

#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

#include <string>

#include "absl/status/statusor.h"

namespace fusion::opencl {

#define FUSION_OPENCL_FUNCTIONS(F)                                                                                   \
  F(clGetPlatformIDs)                                                                                                \
  F(clGetPlatformInfo)                                                                                               \
  F(clGetDeviceIDs) F(clGetDeviceInfo) F(clCreateContext) F(clReleaseContext) F(clCreateCommandQueue)                \
      F(clReleaseCommandQueue) F(clCreateBuffer) F(clReleaseMemObject) F(clCreateProgramWithSource)                  \
          F(clCreateProgramWithBinary) F(clBuildProgram) F(clGetProgramBuildInfo) F(clGetProgramInfo)                \
              F(clReleaseProgram) F(clCreateKernel) F(clReleaseKernel) F(clGetKernelInfo) F(clSetKernelArg) F(clGetKernelWorkGroupInfo) \
                  F(clEnqueueNDRangeKernel) F(clEnqueueReadBuffer) F(clEnqueueWriteBuffer) F(clEnqueueFillBuffer)    \
                      F(clFinish) F(clGetEventProfilingInfo) F(clReleaseEvent)

struct Api {
#define FUSION_OPENCL_MEMBER(name) decltype(&::name) name = nullptr;
  FUSION_OPENCL_FUNCTIONS(FUSION_OPENCL_MEMBER)
#undef FUSION_OPENCL_MEMBER
};

// Opens the loader at the first call and keeps it open. Fails with FAILED_PRECONDITION, saying what to install, if
// there is no loader.
absl::StatusOr<const Api*> LoadApi();

// Returns OK for CL_SUCCESS, RESOURCE_EXHAUSTED if memory is missing, else INTERNAL. The message holds `what` and the
// name of the code.
absl::Status ToStatus(cl_int code, const std::string& what);

}  // namespace fusion::opencl

#endif  // FUSION_RUNTIME_DEVICES_OPENCL_API_H_
