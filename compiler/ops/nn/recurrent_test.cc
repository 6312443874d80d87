// Compares LSTM, GRU and RNN with loops over the formulas of the ONNX specification.
#include <algorithm>
#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/one_node_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion::ops {
namespace {

using Numbers = std::vector<double>;

struct Case {
  std::string op;
  int64_t steps = 4, batch = 3, inputs = 5, hidden = 7;
  std::string direction = "forward";
  bool bias = true, lengths = false, initial = false, peepholes = false;
  bool linear_before_reset = false, input_forget = false, batch_first = false;
  double clip = 0;
  std::vector<std::string> activations = {};
  Numbers alphas = {}, betas = {};

  int64_t gates() const { return op == "LSTM" ? 4 : op == "GRU" ? 3 : 1; }
  int64_t directions() const { return direction == "bidirectional" ? 2 : 1; }
};

struct Data {
  Numbers x, w, r, b, h, c, p;  // as the operator lays them out with layout 0
  std::vector<int64_t> lengths;
};

Data RandomData(const Case& k) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> uniform(-1, 1);
  const auto numbers = [&](int64_t count) {
    Numbers v(count);
    for (double& e : v) e = static_cast<float>(uniform(random));
    return v;
  };
  const int64_t rows = k.directions() * k.gates() * k.hidden;
  Data d{numbers(k.steps * k.batch * k.inputs),
         numbers(rows * k.inputs),
         numbers(rows * k.hidden),
         numbers(2 * rows),
         numbers(k.directions() * k.batch * k.hidden),
         numbers(k.directions() * k.batch * k.hidden),
         numbers(k.directions() * 3 * k.hidden),
         {}};
  if (!k.bias) std::fill(d.b.begin(), d.b.end(), 0);
  if (!k.initial) std::fill(d.h.begin(), d.h.end(), 0), std::fill(d.c.begin(), d.c.end(), 0);
  if (!k.peepholes) std::fill(d.p.begin(), d.p.end(), 0);
  for (int64_t b = 0; b < k.batch; ++b) d.lengths.push_back(k.lengths ? (b * 2 + 1) % (k.steps + 1) : k.steps);
  return d;
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Y: [S, D, B, H], then Y_h and Y_c: [D, B, H].
Numbers Reference(const Case& k, const Data& data) {
  const int64_t G = k.gates(), H = k.hidden, D = k.directions();
  const auto clip = [&](double x) { return k.clip > 0 ? std::clamp(x, -k.clip, k.clip) : x; };
  const auto f = [&](double x) { return Sigmoid(clip(x)); };
  const auto g = [&](double x) { return std::tanh(clip(x)); };
  Numbers y(k.steps * D * k.batch * H, 0), last_h, last_c;
  for (int64_t d = 0; d < D; ++d) {
    const bool reverse = k.direction == "reverse" || d == 1;
    for (int64_t b = 0; b < k.batch; ++b) {
      Numbers h(H), c(H);
      for (int64_t j = 0; j < H; ++j)
        h[j] = data.h[(d * k.batch + b) * H + j], c[j] = data.c[(d * k.batch + b) * H + j];
      for (int64_t n = 0; n < data.lengths[b]; ++n) {
        const int64_t t = reverse ? data.lengths[b] - 1 - n : n;
        const auto from_x = [&](int64_t row) {
          double sum = data.b[d * 2 * G * H + row];
          for (int64_t i = 0; i < k.inputs; ++i) {
            sum += data.x[(t * k.batch + b) * k.inputs + i] * data.w[(d * G * H + row) * k.inputs + i];
          }
          return sum;
        };
        const auto from_h = [&](int64_t row, const Numbers& state) {
          double sum = data.b[d * 2 * G * H + G * H + row];
          for (int64_t i = 0; i < H; ++i) sum += state[i] * data.r[(d * G * H + row) * H + i];
          return sum;
        };
        const auto p = [&](int64_t gate, int64_t j) { return data.p[(d * 3 + gate) * H + j]; };
        Numbers next_h(H), next_c(H), reset(H), update(H);
        for (int64_t j = 0; j < H && k.op == "GRU"; ++j) {
          update[j] = f(from_x(j) + from_h(j, h));
          reset[j] = f(from_x(H + j) + from_h(H + j, h));
        }
        Numbers reset_h(H);
        for (int64_t j = 0; j < H; ++j) reset_h[j] = reset[j] * h[j];
        for (int64_t j = 0; j < H; ++j) {
          if (k.op == "RNN") next_h[j] = g(from_x(j) + from_h(j, h));
          if (k.op == "GRU") {
            const int64_t row = 2 * H + j;
            const double candidate =
                g(from_x(row) + (k.linear_before_reset ? reset[j] * from_h(row, h) : from_h(row, reset_h)));
            next_h[j] = (1 - update[j]) * candidate + update[j] * h[j];
          }
          if (k.op == "LSTM") {
            const double i = f(from_x(j) + from_h(j, h) + p(0, j) * c[j]);
            const double forget = k.input_forget ? 1 - i : f(from_x(2 * H + j) + from_h(2 * H + j, h) + p(2, j) * c[j]);
            next_c[j] = forget * c[j] + i * g(from_x(3 * H + j) + from_h(3 * H + j, h));
            next_h[j] = f(from_x(H + j) + from_h(H + j, h) + p(1, j) * next_c[j]) * g(next_c[j]);
          }
        }
        h = next_h, c = next_c;
        for (int64_t j = 0; j < H; ++j) y[((t * D + d) * k.batch + b) * H + j] = h[j];
      }
      last_h.insert(last_h.end(), h.begin(), h.end());
      last_c.insert(last_c.end(), c.begin(), c.end());
    }
  }
  y.insert(y.end(), last_h.begin(), last_h.end());
  if (k.op == "LSTM") y.insert(y.end(), last_c.begin(), last_c.end());
  return y;
}

// Swaps the first two axes of `shape`.
Numbers Swapped(const Numbers& v, const Shape& shape) {
  Numbers result;
  const int64_t rest = NumElements(shape) / shape[0] / shape[1];
  for (int64_t b = 0; b < shape[1]; ++b) {
    for (int64_t a = 0; a < shape[0]; ++a) {
      const auto begin = v.begin() + (a * shape[1] + b) * rest;
      result.insert(result.end(), begin, begin + rest);
    }
  }
  return result;
}

OpCase ToOpCase(const Case& k, const Data& d) {
  const int64_t rows = k.gates() * k.hidden;
  const Shape state = {k.directions(), k.batch, k.hidden};
  const auto maybe = [](bool present, const Tensor& tensor) { return present ? tensor : Absent(); };
  const auto state_tensor = [&](const Numbers& v) {
    return k.batch_first ? F32({k.batch, k.directions(), k.hidden}, Swapped(v, state)) : F32(state, v);
  };
  OpCase c{k.op, {}};
  c.inputs = {k.batch_first ? F32({k.batch, k.steps, k.inputs}, Swapped(d.x, {k.steps, k.batch, k.inputs}))
                            : F32({k.steps, k.batch, k.inputs}, d.x),
              F32({k.directions(), rows, k.inputs}, d.w),
              F32({k.directions(), rows, k.hidden}, d.r),
              maybe(k.bias, F32({k.directions(), 2 * rows}, d.b)),
              maybe(k.lengths, Tensor::From<int64_t>(DType::kI32, {k.batch}, d.lengths)),
              maybe(k.initial, state_tensor(d.h))};
  if (k.op == "LSTM") {
    c.inputs.push_back(maybe(k.initial, state_tensor(d.c)));
    c.inputs.push_back(maybe(k.peepholes, F32({k.directions(), 3 * k.hidden}, d.p)));
  }
  c.num_outputs = k.op == "LSTM" ? 3 : 2;
  c.attrs = {{"hidden_size", k.hidden}, {"direction", k.direction}, {"layout", int64_t{k.batch_first}}};
  if (k.clip > 0) c.attrs.emplace_back("clip", k.clip);
  if (k.linear_before_reset) c.attrs.emplace_back("linear_before_reset", int64_t{1});
  if (k.input_forget) c.attrs.emplace_back("input_forget", int64_t{1});
  if (!k.activations.empty()) c.attrs.emplace_back("activations", k.activations);
  if (!k.alphas.empty()) c.attrs.emplace_back("activation_alpha", k.alphas);
  if (!k.betas.empty()) c.attrs.emplace_back("activation_beta", k.betas);
  return c;
}

Numbers Flat(const absl::StatusOr<std::vector<Tensor>>& outputs) {
  Numbers flat;
  for (const Tensor& tensor : outputs.value()) {
    for (int64_t i = 0; i < tensor.num_elements(); ++i) flat.push_back(tensor.GetDouble(i));
  }
  return flat;
}

void ExpectMatches(const Case& k) {
  SCOPED_TRACE(absl::StrCat(k.op, " ", k.direction, " steps=", k.steps, " batch=", k.batch));
  const Data data = RandomData(k);
  auto outputs = OneNodeModel(ToOpCase(k, data), 14).Run();
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  Numbers expected = Reference(k, data);
  if (k.batch_first) {  // the comparison uses layout 0
    Tensor& y = (*outputs)[0];
    ASSERT_EQ(y.shape(), (Shape{k.batch, k.steps, k.directions(), k.hidden}));
    Numbers values;
    for (int64_t s = 0; s < k.steps; ++s) {
      for (int64_t d = 0; d < k.directions(); ++d) {
        for (int64_t b = 0; b < k.batch; ++b) {
          for (int64_t j = 0; j < k.hidden; ++j) {
            values.push_back(y.GetDouble(((b * k.steps + s) * k.directions() + d) * k.hidden + j));
          }
        }
      }
    }
    y = F32({k.steps, k.directions(), k.batch, k.hidden}, values);
    for (size_t o = 1; o < outputs->size(); ++o) {
      Numbers state;
      for (int64_t i = 0; i < (*outputs)[o].num_elements(); ++i) state.push_back((*outputs)[o].GetDouble(i));
      (*outputs)[o] = F32({k.directions(), k.batch, k.hidden}, Swapped(state, {k.batch, k.directions(), k.hidden}));
    }
  }
  EXPECT_THAT(Flat(outputs), testing::Pointwise(testing::FloatNear(1e-5), expected));
}

TEST(Recurrent, EveryDirectionAndInput) {
  for (const std::string op : {"LSTM", "GRU", "RNN"}) {
    for (const std::string direction : {"forward", "reverse", "bidirectional"}) {
      for (const bool all : {false, true}) {
        Case k{op};
        k.direction = direction;
        k.bias = k.lengths = k.initial = k.peepholes = all;
        ExpectMatches(k);
        k.batch_first = true;
        ExpectMatches(k);
      }
    }
  }
}

TEST(Recurrent, OneOfEverything) {
  for (const std::string op : {"LSTM", "GRU", "RNN"}) {
    Case k{op};
    k.steps = k.batch = k.inputs = k.hidden = 1;
    ExpectMatches(k);
  }
}

TEST(Recurrent, Options) {
  Case gru{"GRU"};
  gru.linear_before_reset = true;
  ExpectMatches(gru);
  gru.initial = gru.lengths = true;
  gru.direction = "bidirectional";
  ExpectMatches(gru);
  Case lstm{"LSTM"};
  lstm.clip = 0.3;
  lstm.initial = true;
  ExpectMatches(lstm);
  lstm.input_forget = true;
  lstm.peepholes = true;
  ExpectMatches(lstm);
}

TEST(Recurrent, FullLengthsThatAreKnownNeedNoMask) {
  Case k{"LSTM"};
  const Data data = RandomData(k);
  OpCase with = ToOpCase(k, data);
  OneNodeModel without(with, 14);
  with.inputs[4] = Tensor::From<int64_t>(DType::kI32, {k.batch}, data.lengths);
  with.constants = {4};
  OneNodeModel full(with, 14);
  EXPECT_EQ(Flat(full.Run()), Flat(without.Run()));
  EXPECT_EQ(full.num_nodes(), without.num_nodes());
}

TEST(Recurrent, ActivationsTakeTheirParametersInOrder) {
  Case k{"RNN"};
  k.steps = 1;
  k.direction = "bidirectional";
  k.activations = {"Affine", "HARDSIGMOID"};
  k.alphas = {2, 0.25};
  k.betas = {0.5, 0.125};
  const Data data = RandomData(k);
  const Numbers y = Flat(OneNodeModel(ToOpCase(k, data), 14).Run());
  k.activations = {"Affine", "Affine"};
  k.alphas = {1, 1};
  k.betas = {0, 0};
  const Numbers x = Flat(OneNodeModel(ToOpCase(k, data), 14).Run());
  const int64_t half = k.batch * k.hidden;
  for (int64_t i = 0; i < half; ++i) {
    EXPECT_NEAR(y[i], 2 * x[i] + 0.5, 1e-5);
    EXPECT_NEAR(y[half + i], std::clamp(0.25 * x[half + i] + 0.125, 0.0, 1.0), 1e-5);
  }
}

TEST(Recurrent, ErrorsNameTheMistake) {
  Case k{"LSTM"};
  const Data data = RandomData(k);
  const auto error = [&](const std::function<void(OpCase&)>& change) {
    OpCase c = ToOpCase(k, data);
    change(c);
    return OneNodeModel(c, 14).Run().status().ToString();
  };
  using testing::HasSubstr;
  EXPECT_THAT(error([](OpCase& c) { c.inputs[1] = F32({1, 2, 2}, {0, 0, 0, 0}); }), HasSubstr("W must have shape"));
  EXPECT_THAT(error([](OpCase& c) { c.attrs.emplace_back("direction", std::string("up")); }),
              HasSubstr("'up' must be"));
  EXPECT_THAT(error([](OpCase& c) { c.attrs.emplace_back("activations", std::vector<std::string>{"Tanh"}); }),
              HasSubstr("has 1 activations"));
  EXPECT_THAT(error([](OpCase& c) {
                c.attrs.emplace_back("activations", std::vector<std::string>{"Tanh", "Sinus", "Tanh"});
              }),
              HasSubstr("'Sinus' is not known"));
  EXPECT_THAT(error([](OpCase& c) { c.attrs.emplace_back("speed", int64_t{1}); }), HasSubstr("unknown attribute"));
}

}  // namespace
}  // namespace fusion::ops
