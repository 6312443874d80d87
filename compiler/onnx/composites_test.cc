// Compares operators of com.microsoft, through import and the interpreter, with direct loops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "compiler/onnx/node_run.h"
#include "compiler/ops/registry/op_testing.h"

namespace fusion::onnx_import {
namespace {

using ops::Elements;
using ops::Wave;
using testing::DoubleNear;
using testing::HasSubstr;
using testing::Pointwise;
using Values = std::vector<double>;

Values First(const absl::StatusOr<std::vector<Tensor>>& outputs, int k = 0) { return Elements(outputs.value()[k]); }

double Gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }

TEST(Composites, Activations) {
  const Tensor x = Wave({2, 4}, 0.9), bias = Wave({4}, 0.5);
  const auto map = [](const Tensor& t, const std::function<double(int64_t i, double x)>& f) {
    Values values;
    for (int64_t i = 0; i < t.num_elements(); ++i) values.push_back(f(i, t.GetDouble(i)));
    return values;
  };
  EXPECT_THAT(
      First(RunNode("BiasGelu", {x, bias})),
      Pointwise(DoubleNear(1e-6), map(x, [&](int64_t i, double v) { return Gelu(v + bias.GetDouble(i % 4)); })));
  EXPECT_THAT(First(RunNode("QuickGelu", {x}, FloatAttribute("alpha", 1.5))),
              Pointwise(DoubleNear(1e-6), map(x, [](int64_t, double v) { return v / (1 + std::exp(-1.5 * v)); })));
  EXPECT_THAT(First(RunNode("FastGelu", {x})),
              Pointwise(DoubleNear(1e-3), map(x, [](int64_t, double v) { return Gelu(v); })));
}

TEST(Composites, SkipLayerNormReturnsTheSum) {
  const Tensor x = Wave({1, 2, 4}, 0.9), skip = Wave({2, 4}, 0.4), gamma = Wave({4}, 0.3), bias = Wave({4}, 0.7);
  const auto outputs =
      RunNode("SkipLayerNormalization", {x, skip, gamma, Tensor(), bias}, FloatAttribute("epsilon", 0), /*outputs=*/4);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  for (int row = 0; row < 2; ++row) {
    double sum[4], mean = 0, variance = 0;
    for (int k = 0; k < 4; ++k) {
      sum[k] = x.GetDouble(row * 4 + k) + skip.GetDouble(row * 4 + k) + bias.GetDouble(k);
      mean += sum[k] / 4;
    }
    for (double v : sum) variance += (v - mean) * (v - mean) / 4;
    for (int k = 0; k < 4; ++k) {
      EXPECT_NEAR((*outputs)[3].GetDouble(row * 4 + k), sum[k], 1e-6);
      EXPECT_NEAR((*outputs)[0].GetDouble(row * 4 + k), (sum[k] - mean) / std::sqrt(variance) * gamma.GetDouble(k),
                  1e-5);
    }
  }
}

TEST(Composites, FusedMatMulTransposesAndScales) {
  const Tensor a = Wave({3, 2, 4}, 0.9), b = Wave({2, 5, 4}, 0.4);  // a: [M, batch, K]
  const auto y = RunNode("FusedMatMul", {a, b},
                         IntAttribute("transBatchA", 1) + IntAttribute("transB", 1) + FloatAttribute("alpha", 0.5));
  ASSERT_TRUE(y.ok()) << y.status();
  ASSERT_EQ((*y)[0].shape(), (Shape{2, 3, 5}));
  for (int batch = 0; batch < 2; ++batch) {
    for (int m = 0; m < 3; ++m) {
      for (int n = 0; n < 5; ++n) {
        double sum = 0;
        for (int k = 0; k < 4; ++k) sum += a.GetDouble((m * 2 + batch) * 4 + k) * b.GetDouble((batch * 5 + n) * 4 + k);
        EXPECT_NEAR((*y)[0].GetDouble((batch * 3 + m) * 5 + n), 0.5 * sum, 1e-6);
      }
    }
  }
}

TEST(Composites, FusedConvAddsBeforeItsActivation) {
  const Tensor x = Wave({1, 2, 3, 3}, 0.9), w = Wave({2, 2, 1, 1}, 0.4), z = Wave({1, 2, 3, 3}, 0.6);
  const auto y = RunNode("FusedConv", {x, w, Tensor(), z},
                         "attribute { name: 'activation' type: STRING s: 'LeakyRelu' } "
                         "attribute { name: 'activation_params' type: FLOATS floats: 0.25 } ");
  ASSERT_TRUE(y.ok()) << y.status();
  for (int c = 0; c < 2; ++c) {
    for (int p = 0; p < 9; ++p) {
      const double sum =
          x.GetDouble(p) * w.GetDouble(2 * c) + x.GetDouble(9 + p) * w.GetDouble(2 * c + 1) + z.GetDouble(c * 9 + p);
      EXPECT_NEAR((*y)[0].GetDouble(c * 9 + p), sum < 0 ? 0.25 * sum : sum, 1e-6);
    }
  }
}

// Batch 1, 2 heads of 3 elements, 2 new tokens after 2 past ones, of which the first is masked. Each token sees those
// before it.
TEST(Composites, AttentionWithPastAndMask) {
  constexpr int kLength = 2, kPast = 2, kTotal = 4, kHeads = 2, kHead = 3, kWidth = 6;
  const Tensor x = Wave({1, kLength, 4}, 0.9), w = Wave({4, 3 * kWidth}, 0.37), bias = Wave({3 * kWidth}, 0.5);
  const Tensor past = Wave({2, 1, kHeads, kPast, kHead}, 0.21);
  const Tensor mask = Tensor::From<int64_t>(DType::kI32, {1, kTotal}, {0, 1, 1, 1});
  const auto outputs = RunNode("Attention", {x, w, bias, mask, past},
                               IntAttribute("num_heads", kHeads) + IntAttribute("unidirectional", 1), /*outputs=*/2);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  const auto projected = [&](int which, int head, int token, int e) {
    const int column = which * kWidth + head * kHead + e;
    double sum = bias.GetDouble(column);
    for (int i = 0; i < 4; ++i) sum += x.GetDouble(token * 4 + i) * w.GetDouble(i * 3 * kWidth + column);
    return sum;
  };
  const auto cached = [&](int which, int head, int token, int e) {  // `which`: 0 for the key, 1 for the value
    return token < kPast ? past.GetDouble(((which * kHeads + head) * kPast + token) * kHead + e)
                         : projected(which + 1, head, token - kPast, e);
  };
  for (int head = 0; head < kHeads; ++head) {
    for (int which = 0; which < 2; ++which) {
      for (int token = 0; token < kTotal; ++token) {
        EXPECT_NEAR((*outputs)[1].GetDouble(((which * kHeads + head) * kTotal + token) * kHead),
                    cached(which, head, token, 0), 1e-5);
      }
    }
    for (int s = 0; s < kLength; ++s) {
      double weights[kTotal] = {}, sum = 0;
      for (int t = 1; t <= kPast + s; ++t) {
        double score = 0;
        for (int e = 0; e < kHead; ++e) score += projected(0, head, s, e) * cached(0, head, t, e);
        sum += weights[t] = std::exp(score / std::sqrt(3.0));
      }
      for (int e = 0; e < kHead; ++e) {
        double y = 0;
        for (int t = 0; t < kTotal; ++t) y += weights[t] / sum * cached(1, head, t, e);
        EXPECT_NEAR((*outputs)[0].GetDouble(s * kWidth + head * kHead + e), y, 1e-5);
      }
    }
  }
}

TEST(Composites, MultiHeadAttentionIsAttentionOfItsProjections) {
  const Tensor x = Wave({2, 3, 6}, 0.9);
  Tensor w(DType::kF32, {6, 18});  // three unit matrices: query, key and value equal x
  for (int64_t i = 0; i < 6; ++i) {
    for (int64_t part = 0; part < 3; ++part) w.SetDouble(i * 18 + part * 6 + i, 1);
  }
  const Tensor lengths = Tensor::From<int64_t>(DType::kI32, {2}, {2, 3});
  const auto attention = RunNode("Attention", {x, w, Tensor(), lengths}, IntAttribute("num_heads", 2));
  const auto multi = RunNode("MultiHeadAttention", {x, x, x, Tensor(), lengths}, IntAttribute("num_heads", 2));
  ASSERT_TRUE(attention.ok() && multi.ok()) << attention.status() << multi.status();
  EXPECT_THAT(First(multi), Pointwise(DoubleNear(1e-6), First(attention)));
}

TEST(Composites, RotaryTurnsPairs) {
  const Tensor x = Wave({1, 1, 1, 4}, 0.9);  // one head of four elements
  const Tensor cos = Tensor::From<double>(DType::kF32, {1, 2}, {0.6, 0}),
               sin = Tensor::From<double>(DType::kF32, {1, 2}, {0.8, 1});
  const Tensor position(DType::kI32, {1, 1});
  const double a = x.GetDouble(0), b = x.GetDouble(1), c = x.GetDouble(2), d = x.GetDouble(3);
  EXPECT_THAT(First(RunNode("RotaryEmbedding", {x, position, cos, sin})),
              Pointwise(DoubleNear(1e-6), {0.6 * a - 0.8 * c, -d, 0.6 * c + 0.8 * a, b}));
  EXPECT_THAT(First(RunNode("RotaryEmbedding", {x, position, cos, sin}, IntAttribute("interleaved", 1))),
              Pointwise(DoubleNear(1e-6), {0.6 * a - 0.8 * b, 0.6 * b + 0.8 * a, -d, c}));
}

TEST(Composites, ErrorsNameTheNode) {
  const Tensor x = Wave({1, 2, 6}, 0.9);
  EXPECT_THAT(std::string(RunNode("MultiHeadAttention", {x, x, x}, IntAttribute("num_heads", 4)).status().message()),
              HasSubstr("com.microsoft.MultiHeadAttention 'n': num_heads=4 does not divide the query's 6 columns"));
  EXPECT_EQ(RunNode("MultiHeadAttention", {x}, IntAttribute("num_heads", 2)).status().code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(RunNode("Gelu", {x}, IntAttribute("exact", 1)).status().message()),
              HasSubstr("unknown attribute 'exact'"));
  EXPECT_THAT(std::string(RunNode("EmbedLayerNormalization", {x}).status().message()),
              HasSubstr("input_ids is [1, 2, 6]"));
}

TEST(Refusals, NameTheirClass) {
  const auto model =
      ImportText(TensorInfo("input", "x", {"2"}) + TensorInfo("output", "y", {}) + NodeText("Bernoulli", {"x"}, {"a"}) +
                 NodeText("Normalizer", {"a"}, {"b"}, "domain: 'ai.onnx.ml'") + NodeText("Frobnicate", {"b"}, {"y"}));
  const std::string message(model.status().message());
  EXPECT_THAT(message, HasSubstr("\"Bernoulli\" (1×, e.g. node \"a\"): random numbers"));
  EXPECT_THAT(message, HasSubstr("\"ai.onnx.ml.Normalizer\" (1×, e.g. node \"b\"): classical machine learning"));
  EXPECT_THAT(message, HasSubstr("\"Frobnicate\" (1×, e.g. node \"y\")"));
}

}  // namespace
}  // namespace fusion::onnx_import
