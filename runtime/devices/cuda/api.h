// The functions of the CUDA driver. They come from the library that the driver of this machine's GPU installs, if there
// is one. They are declared here so that building needs no toolkit; names and types are those of cuda.h since CUDA
// 11.4.
#ifndef FUSION_RUNTIME_DEVICES_CUDA_API_H_
#define FUSION_RUNTIME_DEVICES_CUDA_API_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace fusion::cuda {

using Result = int;  // CUresult
using DeviceNumber = int;
using DevicePointer = unsigned long long;  // CUdeviceptr
using ContextHandle = struct CUctx_st*;
using ModuleHandle = struct CUmod_st*;
using FunctionHandle = struct CUfunc_st*;
using StreamHandle = struct CUstream_st*;
using EventHandle = struct CUevent_st*;
using GraphHandle = struct CUgraph_st*;
using GraphExecHandle = struct CUgraphExec_st*;

inline constexpr Result kSuccess = 0, kOutOfMemory = 2;
// The values of CUdevice_attribute, CUfunction_attribute and flags that are used.
inline constexpr int kClockKhz = 13, kMultiprocessors = 16, kMemoryClockKhz = 36, kMemoryBusBits = 37, kL2Bytes = 38,
                     kUnitThreads = 39, kComputeMajor = 75, kComputeMinor = 76, kUnitSharedBytes = 81,
                     kUnitRegisters = 82, kCooperativeLaunch = 95, kUnitBlocks = 106, kReservedSharedBytes = 111;
inline constexpr int kFunctionMaxThreads = 0;
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr int kCaptureThreadLocal = 1;

// F(name, symbol, parameters)
#define FUSION_CUDA_FUNCTIONS(F)                                                                                     \
  F(Init, cuInit, (unsigned flags))                                                                                  \
  F(DriverGetVersion, cuDriverGetVersion, (int* version))                                                            \
  F(GetErrorName, cuGetErrorName, (Result code, const char** name))                                                  \
  F(GetErrorString, cuGetErrorString, (Result code, const char** text))                                              \
  F(DeviceGetCount, cuDeviceGetCount, (int* count))                                                                  \
  F(DeviceGet, cuDeviceGet, (DeviceNumber * device, int ordinal))                                                    \
  F(DeviceGetName, cuDeviceGetName, (char* name, int size, DeviceNumber device))                                     \
  F(DeviceGetAttribute, cuDeviceGetAttribute, (int* value, int attribute, DeviceNumber device))                      \
  F(PrimaryCtxRetain, cuDevicePrimaryCtxRetain, (ContextHandle * context, DeviceNumber device))                      \
  F(PrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (DeviceNumber device))                                          \
  F(CtxPushCurrent, cuCtxPushCurrent_v2, (ContextHandle context))                                                    \
  F(CtxPopCurrent, cuCtxPopCurrent_v2, (ContextHandle * context))                                                    \
  F(ModuleLoadData, cuModuleLoadData, (ModuleHandle * module, const void* image))                                    \
  F(ModuleUnload, cuModuleUnload, (ModuleHandle module))                                                             \
  F(ModuleGetFunction, cuModuleGetFunction, (FunctionHandle * function, ModuleHandle module, const char* name))      \
  F(FuncGetAttribute, cuFuncGetAttribute, (int* value, int attribute, FunctionHandle function))                      \
  F(MemAlloc, cuMemAlloc_v2, (DevicePointer * memory, size_t size_bytes))                                            \
  F(MemFree, cuMemFree_v2, (DevicePointer memory))                                                                   \
  F(MemHostRegister, cuMemHostRegister_v2, (void* memory, size_t size_bytes, unsigned flags))                        \
  F(MemHostUnregister, cuMemHostUnregister, (void* memory))                                                          \
  F(MemsetD8, cuMemsetD8_v2, (DevicePointer memory, unsigned char value, size_t size_bytes))                         \
  F(MemcpyHtoD, cuMemcpyHtoD_v2, (DevicePointer to, const void* from, size_t size_bytes))                            \
  F(MemcpyHtoDAsync, cuMemcpyHtoDAsync_v2,                                                                           \
    (DevicePointer to, const void* from, size_t size_bytes, StreamHandle stream))                                    \
  F(MemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, (void* to, DevicePointer from, size_t size_bytes, StreamHandle stream))   \
  F(StreamCreate, cuStreamCreate, (StreamHandle * stream, unsigned flags))                                           \
  F(StreamDestroy, cuStreamDestroy_v2, (StreamHandle stream))                                                        \
  F(StreamSynchronize, cuStreamSynchronize, (StreamHandle stream))                                                   \
  F(LaunchKernel, cuLaunchKernel,                                                                                    \
    (FunctionHandle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
     unsigned block_z, unsigned shared_bytes, StreamHandle stream, void** parameters, void** extra))                 \
  F(LaunchCooperativeKernel, cuLaunchCooperativeKernel,                                                              \
    (FunctionHandle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
     unsigned block_z, unsigned shared_bytes, StreamHandle stream, void** parameters))                               \
  F(OccupancyMaxActiveBlocksPerMultiprocessor, cuOccupancyMaxActiveBlocksPerMultiprocessor,                          \
    (int* blocks, FunctionHandle function, int block_threads, size_t shared_bytes))                                  \
  F(EventCreate, cuEventCreate, (EventHandle * event, unsigned flags))                                               \
  F(EventDestroy, cuEventDestroy_v2, (EventHandle event))                                                            \
  F(EventRecord, cuEventRecord, (EventHandle event, StreamHandle stream))                                            \
  F(EventElapsedTime, cuEventElapsedTime, (float* milliseconds, EventHandle start, EventHandle end))                 \
  F(StreamBeginCapture, cuStreamBeginCapture_v2, (StreamHandle stream, int mode))                                    \
  F(StreamEndCapture, cuStreamEndCapture, (StreamHandle stream, GraphHandle * graph))                                \
  F(GraphInstantiate, cuGraphInstantiateWithFlags,                                                                   \
    (GraphExecHandle * executable, GraphHandle graph, unsigned long long flags))                                     \
  F(GraphLaunch, cuGraphLaunch, (GraphExecHandle executable, StreamHandle stream))                                   \
  F(GraphExecDestroy, cuGraphExecDestroy, (GraphExecHandle executable))                                              \
  F(GraphDestroy, cuGraphDestroy, (GraphHandle graph))

struct Api {
#define FUSION_CUDA_MEMBER(name, symbol, parameters) Result(*name) parameters = nullptr;
  FUSION_CUDA_FUNCTIONS(FUSION_CUDA_MEMBER)
#undef FUSION_CUDA_MEMBER
};

// Opens the driver at the first call, calls cuInit and keeps the library open. Fails with FAILED_PRECONDITION, saying
// what is missing, if there is no driver.
absl::StatusOr<const Api*> LoadApi();

// Returns OK for kSuccess, RESOURCE_EXHAUSTED if memory is missing, else INTERNAL. The message holds `what` and the
// driver's words.
absl::Status ToStatus(const Api& api, Result code, const std::string& what);

}  // namespace fusion::cuda

#endif  // FUSION_RUNTIME_DEVICES_CUDA_API_H_
