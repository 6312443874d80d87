// A cuBLASLt that runs on the CPU, for use with the CUDA driver that does (shim_driver.cc). It implements the functions
// that the runtime calls a second time, from the library's guide; matrices are stored by columns. It checks what a
// caller has to guarantee: pitches, alignment, the workspace, and that the algorithm is the proposed one.
#include <stdint.h>
#include <string.h>

#include "runtime/devices/cuda/testing/shim_driver.h"

namespace {

#ifdef __clang__
typedef __fp16 Half;
#else
typedef _Float16 Half;
#endif

constexpr int kOk = 0, kInvalidValue = 7, kNotSupported = 15;
constexpr uint64_t kProposed = 0x6675;
constexpr size_t kWorkspaceBytes = 1024;

struct Product {
  int compute_type;
  int32_t transpose[2] = {0, 0};
  uint32_t epilogue = 1;
  const float* bias = nullptr;
};
struct Layout {
  int type;
  uint64_t rows, columns;
  int64_t pitch;
  int32_t batches = 1;
  int64_t batch = 0;
};
struct Preference {
  size_t workspace_bytes = 0;
  uint32_t alignment = 256;
};
struct Algorithm {
  uint64_t data[8];
};
struct Heuristic {
  Algorithm algorithm;
  size_t workspace_bytes;
  int state;
  float waves;
  int reserved[4];
};

template <typename T>
int Set(T* to, const void* value, size_t size_bytes) {
  if (size_bytes != sizeof *to) return kInvalidValue;
  memcpy(to, value, sizeof *to);
  return kOk;
}

float At(const Layout& layout, const void* data, uint64_t row, uint64_t column, int batch) {
  const auto place = static_cast<int64_t>(row) + static_cast<int64_t>(column) * layout.pitch + batch * layout.batch;
  if (layout.type == 2) return static_cast<float>(static_cast<const Half*>(data)[place]);
  return static_cast<const float*>(data)[place];
}

bool Fits(const Product& p, const Layout& a, const Layout& b, const Layout& d) {
  const uint64_t m = p.transpose[0] ? a.columns : a.rows, depth = p.transpose[0] ? a.rows : a.columns;
  const uint64_t n = p.transpose[1] ? b.rows : b.columns, b_depth = p.transpose[1] ? b.columns : b.rows;
  for (const Layout* layout : {&a, &b, &d}) {
    if (layout->pitch < static_cast<int64_t>(layout->rows) || layout->batches != d.batches) return false;
  }
  return m == d.rows && n == d.columns && depth == b_depth && a.type == b.type && (d.type == 0 || d.type == a.type);
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT size_t cublasLtGetVersion() { return 130000; }
EXPORT int cublasLtCreate(void** handle) { return *handle = new int(0), kOk; }
EXPORT int cublasLtDestroy(void* handle) {
  delete static_cast<int*>(handle);
  return kOk;
}
EXPORT int cublasLtMatmulDescCreate(void** product, int compute_type, int scale_type) {
  if ((compute_type != 68 && compute_type != 77) || scale_type != 0) return kNotSupported;
  *product = new Product{compute_type};
  return kOk;
}
EXPORT int cublasLtMatmulDescDestroy(void* product) {
  delete static_cast<Product*>(product);
  return kOk;
}
EXPORT int cublasLtMatmulDescSetAttribute(void* handle, int attribute, const void* value, size_t size_bytes) {
  auto* product = static_cast<Product*>(handle);
  switch (attribute) {
    case 3:
    case 4:
      return Set(&product->transpose[attribute - 3], value, size_bytes);
    case 7:
      return Set(&product->epilogue, value, size_bytes);
    case 8:
      return Set(&product->bias, value, size_bytes);
    default:
      return kInvalidValue;
  }
}
EXPORT int cublasLtMatrixLayoutCreate(void** layout, int type, uint64_t rows, uint64_t columns, int64_t pitch) {
  if (type != 0 && type != 2) return kNotSupported;
  *layout = new Layout{type, rows, columns, pitch};
  return kOk;
}
EXPORT int cublasLtMatrixLayoutDestroy(void* layout) {
  delete static_cast<Layout*>(layout);
  return kOk;
}
EXPORT int cublasLtMatrixLayoutSetAttribute(void* handle, int attribute, const void* value, size_t size_bytes) {
  auto* layout = static_cast<Layout*>(handle);
  if (attribute == 5) return Set(&layout->batches, value, size_bytes);
  return attribute == 6 ? Set(&layout->batch, value, size_bytes) : kInvalidValue;
}
EXPORT int cublasLtMatmulPreferenceCreate(void** preference) { return *preference = new Preference, kOk; }
EXPORT int cublasLtMatmulPreferenceDestroy(void* preference) {
  delete static_cast<Preference*>(preference);
  return kOk;
}
EXPORT int cublasLtMatmulPreferenceSetAttribute(void* handle, int attribute, const void* value, size_t size_bytes) {
  auto* preference = static_cast<Preference*>(handle);
  if (attribute == 1) return Set(&preference->workspace_bytes, value, size_bytes);
  return attribute >= 5 && attribute <= 8 ? Set(&preference->alignment, value, size_bytes) : kInvalidValue;
}
EXPORT int cublasLtMatmulAlgoGetHeuristic(void*, void* product, void* a, void* b, void* c, void* d, void* preference,
                                          int wanted, Heuristic* results, int* count) {
  const auto* wish = static_cast<Preference*>(preference);
  *count = 0;
  if (wanted < 1 || c != d) return kInvalidValue;
  if (!Fits(*static_cast<Product*>(product), *static_cast<Layout*>(a), *static_cast<Layout*>(b),
            *static_cast<Layout*>(d))) {
    return kInvalidValue;
  }
  // Buffers guarantee an alignment of 64 bytes and no more.
  if (wish->workspace_bytes < kWorkspaceBytes || wish->alignment > 64) return kNotSupported;
  *results = {};
  results->algorithm.data[0] = kProposed;
  results->workspace_bytes = kWorkspaceBytes;
  *count = 1;
  return kOk;
}
EXPORT int cublasLtMatmul(void*, void* product, const void* alpha, const void* a, void* a_layout, const void* b,
                          void* b_layout, const void* beta, const void* c, void*, void* d, void* d_layout,
                          const Algorithm* algorithm, void* workspace, size_t workspace_bytes, void* stream) {
  if (*static_cast<const float*>(alpha) != 1 || *static_cast<const float*>(beta) != 0 || c != d) return kNotSupported;
  if (algorithm->data[0] != kProposed || workspace == nullptr || workspace_bytes < kWorkspaceBytes)
    return kInvalidValue;
  for (const void* pointer : {a, b, static_cast<const void*>(d)}) {
    if (reinterpret_cast<uintptr_t>(pointer) % 64 != 0) return kInvalidValue;
  }
  // Descriptions are read now, not when a captured graph runs.
  const Product p = *static_cast<Product*>(product);
  const Layout la = *static_cast<Layout*>(a_layout), lb = *static_cast<Layout*>(b_layout),
               ld = *static_cast<Layout*>(d_layout);
  if (!Fits(p, la, lb, ld) || (p.epilogue != 1 && (p.epilogue != 4 || p.bias == nullptr))) return kInvalidValue;
  CudaShimEnqueue(stream, [=] {
    const uint64_t depth = p.transpose[0] ? la.rows : la.columns;
    for (int batch = 0; batch < ld.batches; ++batch) {
      for (uint64_t j = 0; j < ld.columns; ++j) {
        for (uint64_t i = 0; i < ld.rows; ++i) {
          float sum = 0;
          for (uint64_t k = 0; k < depth; ++k) {
            sum += (p.transpose[0] ? At(la, a, k, i, batch) : At(la, a, i, k, batch)) *
                   (p.transpose[1] ? At(lb, b, j, k, batch) : At(lb, b, k, j, batch));
          }
          if (p.epilogue == 4) sum += p.bias[i];
          const auto place = static_cast<int64_t>(i) + static_cast<int64_t>(j) * ld.pitch + batch * ld.batch;
          if (ld.type == 2) {
            static_cast<Half*>(d)[place] = static_cast<Half>(sum);
          } else {
            static_cast<float*>(d)[place] = sum;
          }
        }
      }
    }
  });
  return kOk;
}
