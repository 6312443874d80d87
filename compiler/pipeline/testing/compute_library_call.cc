#include "compiler/pipeline/testing/compute_library_call.h"

#include <variant>

namespace fusion::testing {
namespace {

void Compute(const LibraryProduct& p, const std::vector<void*>& args) {
  const auto* a = static_cast<const float*>(args[p.a]);
  const auto* b = static_cast<const float*>(args[p.b]);
  const auto* bias = p.bias >= 0 ? static_cast<const float*>(args[p.bias]) : nullptr;
  auto* d = static_cast<float*>(args[p.d]);
  for (int64_t batch = 0; batch < p.batches; ++batch, a += p.a_batch, b += p.b_batch, d += p.d_batch) {
    for (int64_t j = 0; j < p.n; ++j) {
      for (int64_t i = 0; i < p.m; ++i) {
        float sum = 0;
        for (int64_t k = 0; k < p.depth; ++k) {
          sum += a[p.a_along_depth ? i * p.a_pitch + k : k * p.a_pitch + i] *
                 b[p.b_along_depth ? j * p.b_pitch + k : k * p.b_pitch + j];
        }
        d[j * p.d_pitch + i] = sum + (bias != nullptr ? bias[i] : 0);
      }
    }
  }
}

float ConvolutionAt(const LibraryConvolution& c, const float* x, const float* w, int64_t n, int64_t k, int64_t p,
                    int64_t q) {
  const int64_t channels = c.channels / c.groups;
  const int64_t first = k / (c.results / c.groups) * channels;
  float sum = 0;
  for (int64_t i = 0; i < channels; ++i) {
    for (int64_t r = 0; r < c.taps[0]; ++r) {
      for (int64_t s = 0; s < c.taps[1]; ++s) {
        const int64_t h = p * c.stride[0] + r * c.dilation[0] - c.pad[0];
        const int64_t v = q * c.stride[1] + s * c.dilation[1] - c.pad[1];
        const bool inside = h >= 0 && h < c.in[0] && v >= 0 && v < c.in[1];
        const int64_t from = n * c.x_pitch[0] + (first + i) * c.x_pitch[1] + h * c.x_pitch[2] + v * c.x_pitch[3];
        const int64_t weight = c.channels_last ? ((k * c.taps[0] + r) * c.taps[1] + s) * channels + i
                                               : ((k * channels + i) * c.taps[0] + r) * c.taps[1] + s;
        sum += (inside ? x[from] : 0) * w[weight];
      }
    }
  }
  return sum;
}

void Compute(const LibraryConvolution& c, const std::vector<void*>& args) {
  const auto* x = static_cast<const float*>(args[c.x]);
  const auto* w = static_cast<const float*>(args[c.w]);
  auto* y = static_cast<float*>(args[c.y]);
  for (int64_t n = 0; n < c.images; ++n) {
    for (int64_t k = 0; k < c.results; ++k) {
      for (int64_t p = 0; p < c.out[0]; ++p) {
        for (int64_t q = 0; q < c.out[1]; ++q) {
          y[n * c.y_pitch[0] + k * c.y_pitch[1] + p * c.y_pitch[2] + q * c.y_pitch[3]] =
              ConvolutionAt(c, x, w, n, k, p, q);
        }
      }
    }
  }
}

}  // namespace

void ComputeLibraryCall(const LibraryCall& call, const std::vector<void*>& args) {
  std::visit([&](const auto& one) { Compute(one, args); }, call);
}

}  // namespace fusion::testing
