// A cuDNN that runs on the CPU, for use with the CUDA driver that does (shim_driver.cc). It implements the functions
// that the runtime calls a second time, from the library's reference. It checks what a caller has to guarantee:
// - descriptors exist and are set before they are used;
// - extents, pitches and the filter's order belong together;
// - the stream was given;
// - the algorithm and its workspace are the ones that were queried.
// Its proposals include some that a caller must not take if it wants products summed as they are.
#include <stddef.h>
#include <stdint.h>

#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "runtime/devices/cuda/testing/shim_driver.h"

namespace {

#ifdef __clang__
typedef __fp16 Half;
#else
typedef _Float16 Half;
#endif

constexpr int kOk = 0, kBadParameter = 2000, kNotSupported = 3000, kNotInitialized = 1001;
constexpr int kFloat = 0, kHalf = 2;
constexpr int kDefaultMath = 0, kTensorMath = 1, kConversion = 2, kFmaMath = 3;
constexpr int kImplicit = 0, kPrepared = 1, kFourier = 4, kWinograd = 6;
constexpr size_t kWorkspaceBytes = 4096, kTooManyBytes = size_t{1} << 30;

struct Tensor {
  int type = -1;
  int64_t extents[4] = {}, pitches[4] = {};
};
struct Filter {
  int type = -1, format = -1;
  int64_t extents[4] = {};
};
struct Convolution {
  int64_t pads[2] = {}, strides[2] = {}, dilations[2] = {};
  int groups = 1, math = kDefaultMath;
  bool set = false;
};
struct Handle {
  void* stream = nullptr;
};
struct Performance {
  int algorithm, status;
  float milliseconds;
  size_t workspace_bytes;
  int determinism, math, reserved[3];
};

// The objects that exist, so that a stale or foreign pointer is never read.
std::mutex making;
template <typename T>
std::set<void*>& Made() {
  static std::set<void*> made;
  return made;
}
template <typename T>
int Make(void** place) {
  const std::lock_guard<std::mutex> lock(making);
  *place = new T;
  Made<T>().insert(*place);
  return kOk;
}
template <typename T>
int Destroy(void* made) {
  const std::lock_guard<std::mutex> lock(making);
  if (Made<T>().erase(made) == 0) return kBadParameter;
  delete static_cast<T*>(made);
  return kOk;
}
template <typename T>
T* Get(void* made) {
  const std::lock_guard<std::mutex> lock(making);
  return Made<T>().count(made) > 0 ? static_cast<T*>(made) : nullptr;
}

bool IsType(int type) { return type == kFloat || type == kHalf; }

// Checks that distinct elements lie at distinct offsets, below 2^31.
bool Nested(const Tensor& tensor) {
  std::map<int64_t, int64_t> extents;  // by pitch
  for (int d = 0; d < 4; ++d) {
    if (tensor.extents[d] > 1 && !extents.emplace(tensor.pitches[d], tensor.extents[d]).second) return false;
  }
  int64_t reach = 0;
  for (const auto& [pitch, extent] : extents) {
    if (pitch <= reach) return false;
    reach += pitch * (extent - 1);
  }
  return reach < INT32_MAX;
}

// A copy of all descriptions, because these may change while the convolution waits for its graph to run.
struct Problem {
  Tensor x, y;
  Filter w;
  Convolution convolution;
};
int Describe(void* handle, void* x, void* w, void* convolution, void* y, Problem* problem) {
  const Handle* library = Get<Handle>(handle);
  if (library == nullptr || library->stream == nullptr) return kNotInitialized;
  const Tensor *from = Get<Tensor>(x), *to = Get<Tensor>(y);
  const auto* filter = Get<Filter>(w);
  const auto* how = Get<Convolution>(convolution);
  if (from == nullptr || to == nullptr || filter == nullptr || how == nullptr) return kBadParameter;
  if (from->type < 0 || to->type < 0 || filter->type < 0 || !how->set) return kBadParameter;
  if (from->type != to->type || from->type != filter->type) return kNotSupported;
  if (from->extents[0] != to->extents[0] || filter->extents[0] != to->extents[1] ||
      filter->extents[1] * how->groups != from->extents[1] || filter->extents[0] % how->groups != 0) {
    return kBadParameter;
  }
  for (int d : {0, 1}) {
    const int64_t span = how->dilations[d] * (filter->extents[2 + d] - 1) + 1;
    const int64_t room = from->extents[2 + d] + 2 * how->pads[d] - span;
    if (room < 0 || room / how->strides[d] + 1 != to->extents[2 + d]) return kBadParameter;
  }
  // A filter with channels last requires images with channels last, whose channels are neighbours in memory.
  if (filter->format == 1 &&
      ((from->extents[1] > 1 && from->pitches[1] != 1) || (to->extents[1] > 1 && to->pitches[1] != 1))) {
    return kNotSupported;
  }
  *problem = {*from, *to, *filter, *how};
  return kOk;
}

size_t WorkspaceOf(const Problem& problem, int algorithm) {
  if (algorithm == kImplicit) return 0;
  // The Fourier transform does not fit the caller's workspace; nor do the precomputed indices of large images.
  if (algorithm == kFourier) return kTooManyBytes;
  return algorithm == kPrepared && problem.x.extents[3] >= 64 ? kTooManyBytes : kWorkspaceBytes;
}

template <typename T>
void Convolve(const Problem& p, const T* x, const T* w, T* y) {
  const int64_t channels = p.w.extents[1], rows = p.w.extents[2], columns = p.w.extents[3];
  const int64_t per_group = p.w.extents[0] / p.convolution.groups;
  const bool last = p.w.format == 1;
  const auto place = [](const Tensor& t, int64_t n, int64_t c, int64_t h, int64_t w) {
    return n * t.pitches[0] + c * t.pitches[1] + h * t.pitches[2] + w * t.pitches[3];
  };
  const auto read = [&](int d, int64_t result, int64_t tap) {
    return result * p.convolution.strides[d] + tap * p.convolution.dilations[d] - p.convolution.pads[d];
  };
  for (int64_t n = 0; n < p.y.extents[0]; ++n) {
    for (int64_t k = 0; k < p.y.extents[1]; ++k) {
      for (int64_t i = 0; i < p.y.extents[2]; ++i) {
        for (int64_t j = 0; j < p.y.extents[3]; ++j) {
          float sum = 0;
          for (int64_t c = 0; c < channels; ++c) {
            for (int64_t r = 0; r < rows; ++r) {
              for (int64_t s = 0; s < columns; ++s) {
                const int64_t h = read(0, i, r), v = read(1, j, s);
                const bool inside = h >= 0 && h < p.x.extents[2] && v >= 0 && v < p.x.extents[3];
                const int64_t channel = k / per_group * channels + c;
                const float value = inside ? static_cast<float>(x[place(p.x, n, channel, h, v)]) : 0.0f;
                const int64_t weight = last ? ((k * rows + r) * columns + s) * channels + c
                                            : ((k * channels + c) * rows + r) * columns + s;
                sum += value * static_cast<float>(w[weight]);
              }
            }
          }
          y[place(p.y, n, k, i, j)] = static_cast<T>(sum);
        }
      }
    }
  }
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT size_t cudnnGetVersion() { return 90100; }
EXPORT const char* cudnnGetErrorString(int status) {
  return status == kOk               ? "CUDNN_STATUS_SUCCESS"
         : status == kBadParameter   ? "CUDNN_STATUS_BAD_PARAM"
         : status == kNotSupported   ? "CUDNN_STATUS_NOT_SUPPORTED"
         : status == kNotInitialized ? "CUDNN_STATUS_NOT_INITIALIZED"
                                     : "CUDNN_STATUS_INTERNAL_ERROR";
}
EXPORT int cudnnCreate(void** handle) { return Make<Handle>(handle); }
EXPORT int cudnnDestroy(void* handle) { return Destroy<Handle>(handle); }
EXPORT int cudnnSetStream(void* handle, void* stream) {
  Handle* library = Get<Handle>(handle);
  if (library == nullptr) return kBadParameter;
  library->stream = stream;
  return kOk;
}

EXPORT int cudnnCreateTensorDescriptor(void** tensor) { return Make<Tensor>(tensor); }
EXPORT int cudnnDestroyTensorDescriptor(void* tensor) { return Destroy<Tensor>(tensor); }
EXPORT int cudnnSetTensorNdDescriptor(void* handle, int type, int dimensions, const int* extents, const int* pitches) {
  auto* tensor = Get<Tensor>(handle);
  if (tensor == nullptr || !IsType(type)) return kBadParameter;
  if (dimensions != 4) return kNotSupported;
  Tensor set;
  set.type = type;
  for (int d = 0; d < 4; ++d) {
    if (extents[d] < 1 || pitches[d] < 1) return kBadParameter;
    set.extents[d] = extents[d], set.pitches[d] = pitches[d];
  }
  if (!Nested(set)) return kNotSupported;
  *tensor = set;
  return kOk;
}

EXPORT int cudnnCreateFilterDescriptor(void** filter) { return Make<Filter>(filter); }
EXPORT int cudnnDestroyFilterDescriptor(void* filter) { return Destroy<Filter>(filter); }
EXPORT int cudnnSetFilterNdDescriptor(void* handle, int type, int format, int dimensions, const int* extents) {
  auto* filter = Get<Filter>(handle);
  if (filter == nullptr || !IsType(type) || (format != 0 && format != 1)) return kBadParameter;
  if (dimensions != 4) return kNotSupported;
  for (int d = 0; d < 4; ++d) {
    if (extents[d] < 1) return kBadParameter;
    filter->extents[d] = extents[d];
  }
  filter->type = type, filter->format = format;
  return kOk;
}

EXPORT int cudnnCreateConvolutionDescriptor(void** convolution) { return Make<Convolution>(convolution); }
EXPORT int cudnnDestroyConvolutionDescriptor(void* convolution) { return Destroy<Convolution>(convolution); }
EXPORT int cudnnSetConvolutionNdDescriptor(void* handle, int dimensions, const int* pads, const int* strides,
                                           const int* dilations, int mode, int compute_type) {
  auto* convolution = Get<Convolution>(handle);
  if (convolution == nullptr) return kBadParameter;
  if (dimensions != 2 || mode != 1 || compute_type != kFloat) return kNotSupported;
  for (int d : {0, 1}) {
    if (pads[d] < 0 || strides[d] < 1 || dilations[d] < 1) return kBadParameter;
    convolution->pads[d] = pads[d], convolution->strides[d] = strides[d], convolution->dilations[d] = dilations[d];
  }
  convolution->set = true;
  return kOk;
}
EXPORT int cudnnSetConvolutionGroupCount(void* handle, int groups) {
  auto* convolution = Get<Convolution>(handle);
  if (convolution == nullptr || groups < 1) return kBadParameter;
  convolution->groups = groups;
  return kOk;
}
EXPORT int cudnnSetConvolutionMathType(void* handle, int math) {
  auto* convolution = Get<Convolution>(handle);
  if (convolution == nullptr || math < kDefaultMath || math > kFmaMath) return kBadParameter;
  convolution->math = math;
  return kOk;
}

EXPORT int cudnnGetConvolutionForwardAlgorithm_v7(void* handle, void* x, void* w, void* convolution, void* y,
                                                  int wanted, int* count, Performance* results) {
  Problem problem;
  const int described = Describe(handle, x, w, convolution, y, &problem);
  if (described != kOk) return described;
  *count = 0;
  const int math = problem.convolution.math;
  const auto propose = [&](int algorithm, int status, int with) {
    if (*count == wanted) return;
    results[(*count)++] = {algorithm, status, 0.1f, WorkspaceOf(problem, algorithm), 1, with, {}};
  };
  propose(kWinograd, kOk, math);
  propose(kFourier, kOk, math);
  propose(kImplicit, kNotSupported, math);
  propose(kPrepared, kOk, kConversion);
  if (math == kTensorMath) propose(kPrepared, kOk, kTensorMath);
  propose(kPrepared, kOk, math == kTensorMath ? kDefaultMath : math);
  propose(kImplicit, kOk, math == kTensorMath ? kDefaultMath : math);
  return kOk;
}
EXPORT int cudnnGetConvolutionForwardWorkspaceSize(void* handle, void* x, void* w, void* convolution, void* y,
                                                   int algorithm, size_t* size_bytes) {
  Problem problem;
  const int described = Describe(handle, x, w, convolution, y, &problem);
  if (described != kOk) return described;
  *size_bytes = WorkspaceOf(problem, algorithm);
  return kOk;
}
EXPORT int cudnnConvolutionForward(void* handle, const void* alpha, void* x_description, const void* x,
                                   void* w_description, const void* w, void* convolution, int algorithm,
                                   void* workspace, size_t workspace_bytes, const void* beta, void* y_description,
                                   void* y) {
  Problem problem;
  const int described = Describe(handle, x_description, w_description, convolution, y_description, &problem);
  if (described != kOk) return described;
  if (*static_cast<const float*>(alpha) != 1 || *static_cast<const float*>(beta) != 0) return kNotSupported;
  if (algorithm != kImplicit && algorithm != kPrepared) return kNotSupported;  // callers may take no other algorithm
  if (problem.convolution.math == kConversion) return kNotSupported;
  const size_t needed = WorkspaceOf(problem, algorithm);
  if (workspace_bytes < needed || (needed > 0 && workspace == nullptr)) return kBadParameter;
  for (const void* pointer : {x, w, static_cast<const void*>(y)}) {
    if (reinterpret_cast<uintptr_t>(pointer) % 64 != 0) return kBadParameter;
  }
  CudaShimEnqueue(Get<Handle>(handle)->stream, [=] {
    if (problem.x.type == kHalf) {
      Convolve(problem, static_cast<const Half*>(x), static_cast<const Half*>(w), static_cast<Half*>(y));
    } else {
      Convolve(problem, static_cast<const float*>(x), static_cast<const float*>(w), static_cast<float*>(y));
    }
  });
  return kOk;
}
