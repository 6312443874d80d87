// oneDNN's convolutions and matrix products behind a C interface, one primitive per layer; written for oneDNN 2
// (Debian's libdnnl-dev). Activations and weights lie in the layouts that oneDNN chooses, and are converted before
// anything is timed. Functions that return a pointer or a status return NULL or nonzero on failure; onednn_error() has
// the message. Only one thread at a time may use this interface.
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <dnnl.hpp>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace {

using dnnl::memory;
using dims = memory::dims;

std::string error_text;  // NOLINT: of the most recent failure

const dnnl::engine& Cpu() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::stream& Stream() {
  static dnnl::stream stream(Cpu());
  return stream;
}

dims RowMajor(const dims& shape) {
  dims strides(shape.size(), 1);
  for (size_t d = shape.size() - 1; d > 0; --d) strides[d - 1] = strides[d] * std::max<int64_t>(1, shape[d]);
  return strides;
}

memory::desc Plain(const dims& shape) { return {shape, memory::data_type::f32, RowMajor(shape)}; }
memory::desc AnyLayout(const dims& shape) { return {shape, memory::data_type::f32, memory::format_tag::any}; }

void Convert(memory from, memory to) {
  dnnl::reorder(from, to).execute(Stream(), from, to);
  Stream().wait();
}

memory Filled(const memory::desc& layout, const dims& shape, const float* values) {
  memory result(layout, Cpu());
  Convert(memory(Plain(shape), Cpu(), const_cast<float*>(values)), result);
  return result;
}

// The operations after the sum: y = activation(scale * sum + bias + residual).
struct Epilogue {
  float scale;
  int residual;    // y holds the residual before each run
  int activation;  // 0 none, 1 ReLU, 2 GELU by erf, 3 tanh
};

dnnl::primitive_attr Attributes(const Epilogue& epilogue) {
  dnnl::post_ops after;
  if (epilogue.residual) after.append_sum(1.0f);
  if (epilogue.activation == 1) after.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0, 0);
  if (epilogue.activation == 2) after.append_eltwise(1.0f, dnnl::algorithm::eltwise_gelu_erf, 0, 0);
  if (epilogue.activation == 3) after.append_eltwise(1.0f, dnnl::algorithm::eltwise_tanh, 0, 0);
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(after);
  if (epilogue.scale != 1.0f) attributes.set_output_scales(0, {epilogue.scale});
  return attributes;
}

template <typename Body>
auto Guarded(Body&& body, decltype(body()) failed) -> decltype(body()) {
  try {
    return body();
  } catch (const std::exception& error) {
    error_text = error.what();
    return failed;
  }
}

}  // namespace

struct onednn_layer {
  dnnl::primitive primitive;
  std::unordered_map<int, memory> arguments;
  dims shapes[3];  // of x, of the second operand, of y
  std::string implementation;
};

namespace {

memory& Argument(onednn_layer& layer, int which) {
  constexpr int kArguments[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
  return layer.arguments.at(kArguments[which]);
}

template <typename Primitive, typename Descriptor>
std::unique_ptr<onednn_layer> Make(const Descriptor& chosen, const dims& x, const dims& weights, const dims& y) {
  auto layer = std::make_unique<onednn_layer>();
  layer->primitive = Primitive(chosen);
  layer->implementation = chosen.impl_info_str();
  layer->arguments = {{DNNL_ARG_SRC, memory(chosen.src_desc(), Cpu())},
                      {DNNL_ARG_DST, memory(chosen.dst_desc(), Cpu())}};
  layer->shapes[0] = x;
  layer->shapes[1] = weights;
  layer->shapes[2] = y;
  return layer;
}

}  // namespace

extern "C" {

const char* onednn_error() { return error_text.c_str(); }

// Returns major * 10000 + minor * 100 + patch.
int onednn_version() {
  const dnnl_version_t* version = dnnl_version();
  return version->major * 10000 + version->minor * 100 + version->patch;
}

void onednn_threads(int threads) { omp_set_num_threads(threads); }

// x: [N, C, H, W]; weights: [O, C / groups, KH, KW]; y: [N, O, OH, OW]; pads: top, left, bottom, right. With
// row_major_input x stays row-major, as a network's input does, instead of the layout that oneDNN wants. algorithm: 0
// direct, 1 Winograd (fails if oneDNN has none).
onednn_layer* onednn_convolution(const int64_t* x, const int64_t* weights, const int64_t* y, const int64_t* strides,
                                 const int64_t* pads, const int64_t* dilations, int64_t groups, const float* values,
                                 const float* bias, float scale, int residual, int activation, int row_major_input,
                                 int algorithm) {
  return Guarded(
      [&] {
        const dims in(x, x + 4), out(y, y + 4);
        dims kernel(weights, weights + 4);
        if (groups > 1) kernel = {groups, weights[0] / groups, weights[1], weights[2], weights[3]};
        const auto kind = algorithm ? dnnl::algorithm::convolution_winograd : dnnl::algorithm::convolution_direct;
        const dnnl::convolution_forward::desc wanted(dnnl::prop_kind::forward_inference, kind, AnyLayout(in),
                                                     AnyLayout(kernel), Plain({weights[0]}), AnyLayout(out),
                                                     {strides[0], strides[1]}, {dilations[0] - 1, dilations[1] - 1},
                                                     {pads[0], pads[1]}, {pads[2], pads[3]});
        const dnnl::convolution_forward::primitive_desc chosen(wanted, Attributes({scale, residual, activation}),
                                                               Cpu());
        auto layer = Make<dnnl::convolution_forward>(chosen, in, kernel, out);
        layer->arguments.emplace(DNNL_ARG_WEIGHTS, Filled(chosen.weights_desc(), kernel, values));
        layer->arguments.emplace(DNNL_ARG_BIAS, Filled(chosen.bias_desc(), {weights[0]}, bias));
        return layer.release();
      },
      static_cast<onednn_layer*>(nullptr));
}

// y = a b. Shapes have `rank` extents, batches first; the strides of each operand are in elements. If b holds weights,
// `values` holds them row-major and oneDNN packs them; if b is an activation, `values` is NULL. bias: as many values as
// y has columns, or NULL.
onednn_layer* onednn_matmul(int rank, const int64_t* a, const int64_t* a_strides, const int64_t* b,
                            const int64_t* b_strides, const int64_t* y, const int64_t* y_strides, const float* values,
                            const float* bias, float scale, int residual, int activation) {
  return Guarded(
      [&] {
        const dims left(a, a + rank), right(b, b + rank), out(y, y + rank);
        dims row(rank, 1);
        row[rank - 1] = out[rank - 1];
        const auto strided = [&](const dims& shape, const int64_t* strides) {
          return memory::desc(shape, memory::data_type::f32, dims(strides, strides + rank));
        };
        const memory::desc from = strided(left, a_strides), to = strided(out, y_strides);
        const memory::desc second = values ? AnyLayout(right) : strided(right, b_strides);
        const dnnl::matmul::desc wanted =
            bias ? dnnl::matmul::desc(from, second, Plain(row), to) : dnnl::matmul::desc(from, second, to);
        const dnnl::matmul::primitive_desc chosen(wanted, Attributes({scale, residual, activation}), Cpu());
        auto layer = Make<dnnl::matmul>(chosen, left, right, out);
        layer->arguments.emplace(DNNL_ARG_WEIGHTS, values ? Filled(chosen.weights_desc(), right, values)
                                                          : memory(chosen.weights_desc(), Cpu()));
        if (bias) layer->arguments.emplace(DNNL_ARG_BIAS, Filled(Plain(row), row, bias));
        return layer.release();
      },
      static_cast<onednn_layer*>(nullptr));
}

// Does the same for y: [M, N], a: [M, K], weights: [K, N], all row-major, with oneDNN's inner product primitive.
onednn_layer* onednn_inner_product(int64_t m, int64_t k, int64_t n, const float* values, const float* bias, float scale,
                                   int residual, int activation) {
  return Guarded(
      [&] {
        const dnnl::inner_product_forward::desc wanted(dnnl::prop_kind::forward_inference, Plain({m, k}),
                                                       AnyLayout({n, k}), Plain({n}), Plain({m, n}));
        const dnnl::inner_product_forward::primitive_desc chosen(wanted, Attributes({scale, residual, activation}),
                                                                 Cpu());
        auto layer = Make<dnnl::inner_product_forward>(chosen, dims{m, k}, dims{n, k}, dims{m, n});
        memory weights(chosen.weights_desc(), Cpu());
        Convert(memory({{n, k}, memory::data_type::f32, dims{1, n}}, Cpu(), const_cast<float*>(values)), weights);
        layer->arguments.emplace(DNNL_ARG_WEIGHTS, weights);
        layer->arguments.emplace(DNNL_ARG_BIAS, Filled(Plain({n}), {n}, bias));
        return layer.release();
      },
      static_cast<onednn_layer*>(nullptr));
}

void onednn_close(onednn_layer* layer) { delete layer; }

const char* onednn_implementation(const onednn_layer* layer) { return layer->implementation.c_str(); }

// which: 0 the first operand, 1 the second, 2 the result. `values` are row-major.
int onednn_write(onednn_layer* layer, int which, const float* values) {
  return Guarded(
      [&] {
        Convert(memory(Plain(layer->shapes[which]), Cpu(), const_cast<float*>(values)), Argument(*layer, which));
        return 0;
      },
      1);
}

int onednn_read(onednn_layer* layer, int which, float* values) {
  return Guarded(
      [&] {
        Convert(Argument(*layer, which), memory(Plain(layer->shapes[which]), Cpu(), values));
        return 0;
      },
      1);
}

// Writes the nanoseconds of each of `runs` runs.
int onednn_time(onednn_layer* layer, int runs, int64_t* latencies_ns) {
  return Guarded(
      [&] {
        for (int run = 0; run < runs; ++run) {
          const auto start = std::chrono::steady_clock::now();
          layer->primitive.execute(Stream(), layer->arguments);
          Stream().wait();
          latencies_ns[run] =
              std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start).count();
        }
        return 0;
      },
      1);
}

}  // extern "C"
