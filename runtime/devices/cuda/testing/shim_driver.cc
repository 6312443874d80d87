// A CUDA driver that runs on the CPU. It has the functions that the runtime's device calls; its modules are shared
// objects of text that was compiled with cuda_shim.h. Device memory is host memory. Each call does its work at once;
// while a stream is captured, the work is done when the graph is launched.
// Environment variables let a test provoke errors:
// - FUSION_CUDA_SHIM_NO_GRAPHS=1: graphs are captured but not instantiated; =2: capturing fails, too.
// - FUSION_CUDA_SHIM_NO_COOPERATION=1: there are no cooperative launches.
#include "runtime/devices/cuda/testing/shim_driver.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace {

constexpr int kOk = 0, kInvalidValue = 1, kOutOfMemory = 2, kInvalidImage = 200, kNotFound = 500, kTooLarge = 720,
              kNotSupported = 801;
constexpr size_t kMostMemory = size_t{16} << 30;
constexpr int kMultiprocessors = 2, kBlocksEach = 2;

using Phase = void (*)(void* const* args, void* scratch, int64_t begin, int64_t end);

std::mutex running;  // kernels keep their state in globals

struct Graph {
  std::vector<std::function<void()>> steps;
};
struct Stream {
  Graph* capture = nullptr;
  void Do(std::function<void()> step) { capture != nullptr ? capture->steps.push_back(std::move(step)) : step(); }
};
struct Function {
  Phase tasks, together;
  int threads, parameters;
};
struct Module {
  int file;  // stays open as long as the library's path contains its number
  void* library;
  std::vector<Function*> functions;
};
struct Event {
  int64_t at_ns = 0;
};

int64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * int64_t{1000000000} + now.tv_nsec;
}

int MissingGraphs() {
  const char* missing = getenv("FUSION_CUDA_SHIM_NO_GRAPHS");
  return missing != nullptr ? atoi(missing) : 0;
}

bool Cooperates() {
  const char* refused = getenv("FUSION_CUDA_SHIM_NO_COOPERATION");
  return refused == nullptr || atoi(refused) == 0;
}

int the_context = 0;  // its address stands for the one context

}  // namespace

void CudaShimEnqueue(void* stream, std::function<void()> step) { static_cast<Stream*>(stream)->Do(std::move(step)); }

extern "C" {

int cuInit(unsigned) { return kOk; }
int cuDriverGetVersion(int* version) { return *version = 12000, kOk; }
int cuGetErrorName(int code, const char** name) {
  *name = code == kOutOfMemory    ? "CUDA_ERROR_OUT_OF_MEMORY"
          : code == kInvalidImage ? "CUDA_ERROR_INVALID_IMAGE"
          : code == kNotFound     ? "CUDA_ERROR_NOT_FOUND"
          : code == kTooLarge     ? "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"
                                  : "CUDA_ERROR_INVALID_VALUE";
  return kOk;
}
int cuGetErrorString(int, const char** text) { return *text = "from the processor that plays a GPU", kOk; }
int cuDeviceGetCount(int* count) { return *count = 1, kOk; }
int cuDeviceGet(int* device, int ordinal) { return *device = ordinal, ordinal == 0 ? kOk : kInvalidValue; }
int cuDeviceGetName(char* name, int size, int) {
  strncpy(name, "CUDA on the processor", static_cast<size_t>(size));
  return kOk;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  switch (attribute) {
    case 75:  // compute capability
      return *value = 9, kOk;
    case 76:
      return *value = 0, kOk;
    case 13:  // clocks in kHz
    case 36:
      return *value = 1000000, kOk;
    case 16:  // multiprocessors
      return *value = kMultiprocessors, kOk;
    case 95:  // cooperative launches
      return *value = Cooperates() ? 1 : 0, kOk;
    case 37:  // bits of the memory's bus
      return *value = 128, kOk;
    case 38:  // bytes of L2
      return *value = 1 << 20, kOk;
    case 82:  // what a multiprocessor holds: registers, bytes of shared memory, threads, blocks
      return *value = 65536, kOk;
    case 81:
      return *value = 100 << 10, kOk;
    case 39:
      return *value = 1536, kOk;
    case 106:
      return *value = 24, kOk;
    case 111:  // bytes of shared memory that a block takes besides its own
      return *value = 1024, kOk;
    default:
      return kInvalidValue;
  }
}
int cuDevicePrimaryCtxRetain(void** context, int) { return *context = &the_context, kOk; }
int cuDevicePrimaryCtxRelease_v2(int) { return kOk; }
int cuCtxPushCurrent_v2(void*) { return kOk; }
int cuCtxPopCurrent_v2(void** context) { return *context = &the_context, kOk; }

int cuModuleLoadData(void** module, const void* image) {
  Elf64_Ehdr head;
  memcpy(&head, image, sizeof head);
  if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_type != ET_DYN) return kInvalidImage;
  // The section table is the end of the file.
  const size_t size = head.e_shoff + size_t{head.e_shnum} * head.e_shentsize;
  const int file = memfd_create("cuda_shim", 0);
  void* library = nullptr;
  if (file >= 0 && write(file, image, size) == static_cast<ssize_t>(size)) {
    library = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (library == nullptr) {
    if (file >= 0) close(file);
    return kInvalidImage;
  }
  *module = new Module{file, library, {}};
  return kOk;
}
int cuModuleUnload(void* handle) {
  auto* module = static_cast<Module*>(handle);
  for (const Function* function : module->functions) delete function;
  dlclose(module->library);
  close(module->file);
  delete module;
  return kOk;
}
int cuModuleGetFunction(void** function, void* handle, const char* name) {
  auto* module = static_cast<Module*>(handle);
  const auto tasks = reinterpret_cast<Phase>(dlsym(module->library, (std::string(name) + "_tasks").c_str()));
  const auto together = reinterpret_cast<Phase>(dlsym(module->library, (std::string(name) + "_together").c_str()));
  const auto* threads = static_cast<const int*>(dlsym(module->library, (std::string(name) + "_threads").c_str()));
  const auto* parameters = static_cast<const int*>(dlsym(module->library, (std::string(name) + "_parameters").c_str()));
  if (tasks == nullptr || threads == nullptr || parameters == nullptr) return kNotFound;
  module->functions.push_back(new Function{tasks, together, *threads, *parameters});
  *function = module->functions.back();
  return kOk;
}
int cuFuncGetAttribute(int* value, int attribute, void* function) {
  if (attribute != 0) return kInvalidValue;
  *value = static_cast<Function*>(function)->threads;
  return kOk;
}

int cuMemAlloc_v2(unsigned long long* memory, size_t size_bytes) {
  void* data = nullptr;
  if (size_bytes > kMostMemory || posix_memalign(&data, 256, size_bytes) != 0) return kOutOfMemory;
  memset(data, 0xff, size_bytes);  // unwritten memory reads as NaN
  *memory = reinterpret_cast<unsigned long long>(data);
  return kOk;
}
int cuMemHostRegister_v2(void*, size_t, unsigned) { return kOk; }
int cuMemHostUnregister(void*) { return kOk; }

int cuMemFree_v2(unsigned long long memory) {
  free(reinterpret_cast<void*>(memory));
  return kOk;
}
int cuMemsetD8_v2(unsigned long long memory, unsigned char value, size_t size_bytes) {
  memset(reinterpret_cast<void*>(memory), value, size_bytes);
  return kOk;
}
int cuMemcpyHtoD_v2(unsigned long long to, const void* from, size_t size_bytes) {
  memcpy(reinterpret_cast<void*>(to), from, size_bytes);
  return kOk;
}
int cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, size_t size_bytes, void* stream) {
  static_cast<Stream*>(stream)->Do([=] { memcpy(reinterpret_cast<void*>(to), from, size_bytes); });
  return kOk;
}
int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, size_t size_bytes, void* stream) {
  static_cast<Stream*>(stream)->Do([=] { memcpy(to, reinterpret_cast<const void*>(from), size_bytes); });
  return kOk;
}

int cuStreamCreate(void** stream, unsigned) { return *stream = new Stream, kOk; }
int cuStreamDestroy_v2(void* stream) {
  delete static_cast<Stream*>(stream);
  return kOk;
}
int cuStreamSynchronize(void*) { return kOk; }

int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void*, int, size_t) { return *blocks = kBlocksEach, kOk; }

}  // extern "C"

namespace {

int LaunchFunction(void* handle, unsigned blocks, unsigned threads, void* stream, void** parameters, bool together) {
  const Function function = *static_cast<Function*>(handle);
  if (blocks == 0 || threads != static_cast<unsigned>(function.threads)) return kInvalidValue;
  if (together && !Cooperates()) return kNotSupported;
  if (together && blocks > kMultiprocessors * kBlocksEach) return kTooLarge;
  std::vector<void*> args;  // read now, as a driver does
  for (int i = 0; i < function.parameters; ++i) args.push_back(*static_cast<void**>(parameters[i]));
  static_cast<Stream*>(stream)->Do([=] {
    const std::lock_guard<std::mutex> lock(running);
    (together ? function.together : function.tasks)(args.data(), nullptr, 0, blocks);
  });
  return kOk;
}

}  // namespace

extern "C" {

int cuLaunchKernel(void* handle, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                   unsigned block_z, unsigned, void* stream, void** parameters, void**) {
  if (grid_y * grid_z * block_y * block_z != 1) return kInvalidValue;
  return LaunchFunction(handle, grid_x, block_x, stream, parameters, false);
}
int cuLaunchCooperativeKernel(void* handle, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                              unsigned block_y, unsigned block_z, unsigned, void* stream, void** parameters) {
  if (grid_y * grid_z * block_y * block_z != 1) return kInvalidValue;
  return LaunchFunction(handle, grid_x, block_x, stream, parameters, true);
}

int cuEventCreate(void** event, unsigned) { return *event = new Event, kOk; }
int cuEventDestroy_v2(void* event) {
  delete static_cast<Event*>(event);
  return kOk;
}
int cuEventRecord(void* event, void* stream) {
  static_cast<Stream*>(stream)->Do([=] { static_cast<Event*>(event)->at_ns = NowNs(); });
  return kOk;
}
int cuEventElapsedTime(float* milliseconds, void* start, void* end) {
  *milliseconds = 1e-6f * static_cast<float>(static_cast<Event*>(end)->at_ns - static_cast<Event*>(start)->at_ns);
  return kOk;
}

int cuStreamBeginCapture_v2(void* stream, int) {
  if (MissingGraphs() == 2) return kNotSupported;
  static_cast<Stream*>(stream)->capture = new Graph;
  return kOk;
}
int cuStreamEndCapture(void* stream, void** graph) {
  *graph = static_cast<Stream*>(stream)->capture;
  static_cast<Stream*>(stream)->capture = nullptr;
  return *graph != nullptr ? kOk : kInvalidValue;
}
int cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
  if (MissingGraphs() == 1) return kNotSupported;
  *executable = new Graph(*static_cast<Graph*>(graph));
  return kOk;
}
int cuGraphLaunch(void* executable, void*) {
  for (const auto& step : static_cast<Graph*>(executable)->steps) step();
  return kOk;
}
int cuGraphExecDestroy(void* executable) {
  delete static_cast<Graph*>(executable);
  return kOk;
}
int cuGraphDestroy(void* graph) {
  delete static_cast<Graph*>(graph);
  return kOk;
}

}  // extern "C"
