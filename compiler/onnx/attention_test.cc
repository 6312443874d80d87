// Compares Attention, LinearAttention and related operators, through import and the interpreter, with direct loops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "compiler/onnx/node_run.h"
#include "compiler/ops/registry/op_testing.h"

namespace fusion::onnx_import {
namespace {

using ops::Wave;
using testing::DoubleNear;
using testing::HasSubstr;
using testing::Pointwise;
using Values = std::vector<double>;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr char kOnnx[] = "";  // the default domain

struct Case {
  int64_t heads = 2, groups = 2, queries = 3, fresh = 4, past = 0;
  bool causal = false, flat = false;  // flat: [B, S, N·H]
  int64_t left = -1, right = -1;
  double softcap = 0;
  Tensor mask;                   // bool or f32 [S, at most T]
  std::vector<int64_t> lengths;  // nonpad_kv_seqlen
};
constexpr int64_t kBatch = 2, kHead = 3, kValueHead = 2;

// Returns [B, n, L, h] as [B, L, n·h].
Tensor Flat(const Tensor& x) {
  const Shape& s = x.shape();
  Tensor y(x.dtype(), {s[0], s[2], s[1] * s[3]});
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    const int64_t e = i % s[3], l = i / s[3] % s[2], n = i / (s[3] * s[2]) % s[1], b = i / (s[3] * s[2] * s[1]);
    y.SetDouble(((b * s[2] + l) * s[1] + n) * s[3] + e, x.GetDouble(i));
  }
  return y;
}

struct Operands {
  Tensor q, k, v, past_k, past_v;
};

Operands Draw(const Case& c) {
  return {Wave({kBatch, c.heads, c.queries, kHead}, 0.9), Wave({kBatch, c.groups, c.fresh, kHead}, 0.7),
          Wave({kBatch, c.groups, c.fresh, kValueHead}, 0.43), Wave({kBatch, c.groups, c.past, kHead}, 0.31),
          Wave({kBatch, c.groups, c.past, kValueHead}, 0.27)};
}

// Returns [B, N, S, Hv], computed by the definition.
Tensor Expected(const Case& c, const Operands& x) {
  Tensor y(DType::kF32, {kBatch, c.heads, c.queries, kValueHead});
  const int64_t keys = c.past + c.fresh;
  for (int64_t b = 0; b < kBatch; ++b) {
    for (int64_t n = 0; n < c.heads; ++n) {
      const int64_t g = n / (c.heads / c.groups);
      const auto cached = [&](const Tensor& past, const Tensor& fresh, int64_t width, int64_t t, int64_t e) {
        return t < c.past ? past.GetDouble(((b * c.groups + g) * c.past + t) * width + e)
                          : fresh.GetDouble(((b * c.groups + g) * c.fresh + t - c.past) * width + e);
      };
      for (int64_t s = 0; s < c.queries; ++s) {
        const int64_t place = c.lengths.empty() ? c.past + s : c.lengths[b] - c.queries + s;
        Values weights(keys);
        double sum = 0;
        for (int64_t t = 0; t < keys; ++t) {
          bool seen = (c.lengths.empty() || t < c.lengths[b]) && (!c.causal || t <= place) &&
                      (c.left < 0 || t >= place - c.left) && (c.right < 0 || t <= place + c.right);
          double score = 0;
          for (int64_t e = 0; e < kHead; ++e) {
            score += x.q.GetDouble(((b * c.heads + n) * c.queries + s) * kHead + e) *
                     cached(x.past_k, x.k, kHead, t, e) / std::sqrt(double{kHead});
          }
          if (c.softcap > 0) score = c.softcap * std::tanh(score / c.softcap);
          if (c.mask.data() != nullptr) {
            const int64_t columns = c.mask.shape()[1];
            const double mask = t < columns ? c.mask.GetDouble(s * columns + t) : 0;
            seen = seen && t < columns && (c.mask.dtype() == DType::kBool ? mask != 0 : mask != -kInf);
            if (seen && c.mask.dtype() != DType::kBool) score += mask;
          }
          sum += weights[t] = seen ? std::exp(score) : 0;
        }
        for (int64_t e = 0; e < kValueHead; ++e) {
          double value = 0;
          for (int64_t t = 0; t < keys && sum > 0; ++t) {
            value += weights[t] / sum * cached(x.past_v, x.v, kValueHead, t, e);
          }
          y.SetDouble(((b * c.heads + n) * c.queries + s) * kValueHead + e, value);
        }
      }
    }
  }
  return y;
}

void ExpectAttention(const Case& c) {
  const Operands x = Draw(c);
  std::string attributes = IntAttribute("is_causal", c.causal ? 1 : 0) + IntAttribute("left_window_size", c.left) +
                           IntAttribute("right_window_size", c.right) + FloatAttribute("softcap", c.softcap);
  if (c.flat) attributes += IntAttribute("q_num_heads", c.heads) + IntAttribute("kv_num_heads", c.groups);
  const auto laid_out = [&](const Tensor& t) { return c.flat ? Flat(t) : t; };
  std::vector<Tensor> inputs{laid_out(x.q), laid_out(x.k), laid_out(x.v), c.mask};
  if (c.past > 0) inputs.insert(inputs.end(), {x.past_k, x.past_v});
  if (!c.lengths.empty()) {
    inputs.resize(6);
    inputs.push_back(ops::I64({kBatch}, c.lengths));
  }
  const auto y = RunNode("Attention", inputs, attributes, /*outputs=*/3, kOnnx);
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_THAT(ops::Elements((*y)[0]), Pointwise(DoubleNear(2e-6), ops::Elements(laid_out(Expected(c, x)))));
  const Shape keys{kBatch, c.groups, c.past + c.fresh, kHead};
  ASSERT_EQ((*y)[1].shape(), keys);
  EXPECT_EQ((*y)[1].GetDouble(c.past * kHead), x.k.GetDouble(0));
}

TEST(Attention, EveryKindOfMask) {
  const Tensor some = Tensor::From<int64_t>(DType::kBool, {3, 4}, {1, 0, 1, 1, 0, 0, 0, 0, 0, 1, 1, 0});
  const Tensor added = ops::F32({3, 3}, {0, 1, -2, -kInf, 0.5, 3, -kInf, -kInf, -kInf});  // ends before the last key
  ExpectAttention({});
  ExpectAttention({.causal = true});
  ExpectAttention({.heads = 4, .groups = 2, .past = 2, .causal = true});
  ExpectAttention({.heads = 4, .groups = 1, .flat = true, .softcap = 0.5});
  ExpectAttention({.softcap = 0.5, .mask = some});
  ExpectAttention({.heads = 4, .groups = 2, .flat = true, .mask = added});
  ExpectAttention({.past = 3, .causal = true, .mask = some});
  ExpectAttention({.causal = true, .left = 1});
  ExpectAttention({.left = 1, .right = 1});
  ExpectAttention({.queries = 6, .fresh = 3, .left = 1});  // the windows of the last queries begin behind the last key
  ExpectAttention({.heads = 4, .groups = 2, .lengths = {4, 3}});
  ExpectAttention({.causal = true, .lengths = {4, 1}});  // the first queries of the second batch entry see no key
}

TEST(Attention, QueriesThatSeeNothingGiveZerosWhateverTheScoresAre) {
  Tensor q = Wave({1, 1, 2, 2}, 0.9), k = Wave({1, 1, 2, 2}, 0.7);
  k.SetDouble(0, std::numeric_limits<double>::quiet_NaN());
  const Tensor mask = Tensor::From<int64_t>(DType::kBool, {2, 2}, {0, 0, 1, 1});
  const auto y = RunNode("Attention", {q, k, k, mask}, IntAttribute("qk_matmul_output_mode", 3), 4, kOnnx);
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ((*y)[0].GetDouble(0), 0);
  EXPECT_EQ((*y)[3].GetDouble(1), 0);
  EXPECT_TRUE(std::isnan((*y)[0].GetDouble(2)));
}

TEST(Attention, TheFourthOutputIsAStageOfTheScores) {
  const Tensor q = Wave({1, 1, 1, 2}, 0.9), k = Wave({1, 1, 2, 2}, 0.7), mask = ops::F32({1, 2}, {1, 0});
  const double cap = 0.5;
  const auto stage = [&](int64_t mode) {
    return ops::Elements(RunNode("Attention", {q, k, k, mask},
                                 IntAttribute("qk_matmul_output_mode", mode) + FloatAttribute("softcap", cap), 4, kOnnx)
                             .value()[3]);
  };
  Values raw, capped, added, probability;
  for (int t = 0; t < 2; ++t) {
    raw.push_back((q.GetDouble(0) * k.GetDouble(2 * t) + q.GetDouble(1) * k.GetDouble(2 * t + 1)) / std::sqrt(2.0));
    capped.push_back(cap * std::tanh(raw[t] / cap));
    added.push_back(capped[t] + mask.GetDouble(t));
  }
  for (int t = 0; t < 2; ++t) probability.push_back(1 / (1 + std::exp(added[1 - t] - added[t])));
  EXPECT_THAT(stage(0), Pointwise(DoubleNear(1e-6), raw));
  EXPECT_THAT(stage(1), Pointwise(DoubleNear(1e-6), capped));
  EXPECT_THAT(stage(2), Pointwise(DoubleNear(1e-6), added));
  EXPECT_THAT(stage(3), Pointwise(DoubleNear(1e-6), probability));
}

TEST(Attention, ErrorsSayWhatDoesNotFit) {
  const Tensor x = Wave({1, 3, 4, 2}, 0.9);
  const auto message = [&](const std::vector<Tensor>& inputs, const std::string& attributes = "") {
    return std::string(RunNode("Attention", inputs, attributes, 1, kOnnx).status().message());
  };
  EXPECT_THAT(message({x, Wave({1, 2, 4, 2}, 1), Wave({1, 2, 4, 2}, 1)}),
              HasSubstr("3 heads of queries and 2 of keys"));
  EXPECT_THAT(message({x, x, x, Wave({5, 4}, 1)}), HasSubstr("attn_mask [5, 4] does not broadcast to [1, 3, 4, 4]"));
  EXPECT_THAT(message({x, x, x, Tensor(), x}), HasSubstr("past_key and past_value come together"));
  EXPECT_THAT(message({x, x, x}, IntAttribute("left_window_size", -2)), HasSubstr("must be -1 or more"));
}

// Compares one head of two elements and three tokens, with gated_delta, with its recurrence.
TEST(LinearAttention, GatedDeltaIsItsRecurrence) {
  const Tensor q = Wave({1, 3, 2}, 0.9), k = Wave({1, 3, 2}, 0.7), v = Wave({1, 3, 2}, 0.4);
  const Tensor past = Wave({1, 1, 2, 2}, 0.3), decay = Wave({1, 3, 2}, 0.21), beta = Wave({1, 3, 1}, 0.6);
  const auto y = RunNode("LinearAttention", {q, k, v, past, decay, beta},
                         IntAttribute("q_num_heads", 1) + IntAttribute("kv_num_heads", 1), 2, kOnnx);
  ASSERT_TRUE(y.ok()) << y.status();
  double state[2][2];
  for (int i = 0; i < 4; ++i) state[i / 2][i % 2] = past.GetDouble(i);
  for (int t = 0; t < 3; ++t) {
    for (int d = 0; d < 2; ++d) {
      for (double& s : state[d]) s *= std::exp(decay.GetDouble(2 * t + d));
    }
    for (int m = 0; m < 2; ++m) {
      const double read = state[0][m] * k.GetDouble(2 * t) + state[1][m] * k.GetDouble(2 * t + 1);
      const double written = beta.GetDouble(t) * (v.GetDouble(2 * t + m) - read);
      for (int d = 0; d < 2; ++d) state[d][m] += k.GetDouble(2 * t + d) * written;
      const double out = (q.GetDouble(2 * t) * state[0][m] + q.GetDouble(2 * t + 1) * state[1][m]) / std::sqrt(2.0);
      EXPECT_NEAR((*y)[0].GetDouble(2 * t + m), out, 1e-6);
    }
  }
  for (int i = 0; i < 4; ++i) EXPECT_NEAR((*y)[1].GetDouble(i), state[i / 2][i % 2], 1e-6);
  EXPECT_THAT(std::string(RunNode("LinearAttention", {q, k, v},
                                  IntAttribute("q_num_heads", 1) + IntAttribute("kv_num_heads", 1), 1, kOnnx)
                              .status()
                              .message()),
              HasSubstr("update_rule 'gated_delta' needs a decay and a beta"));
}

TEST(CausalConvWithState, ContinuesWhereTheStateEnds) {
  const Tensor x = Wave({1, 2, 4}, 0.9), w = Wave({2, 1, 3}, 0.7), bias = Wave({2}, 0.4);
  const auto whole = RunNode("CausalConvWithState", {x, w, bias}, "", 2, kOnnx);
  ASSERT_TRUE(whole.ok()) << whole.status();
  Tensor first(DType::kF32, {1, 2, 1}), rest(DType::kF32, {1, 2, 3});
  for (int c = 0; c < 2; ++c) {
    for (int t = 0; t < 4; ++t) (t == 0 ? first : rest).SetDouble(t == 0 ? c : c * 3 + t - 1, x.GetDouble(c * 4 + t));
  }
  const auto one = RunNode("CausalConvWithState", {first, w, bias}, "", 2, kOnnx);
  ASSERT_TRUE(one.ok()) << one.status();
  const auto two = RunNode("CausalConvWithState", {rest, w, bias, (*one)[1]}, "", 2, kOnnx);
  ASSERT_TRUE(two.ok()) << two.status();
  for (int c = 0; c < 2; ++c) {
    double last = bias.GetDouble(c);
    for (int tap = 0; tap < 3; ++tap) last += w.GetDouble(c * 3 + tap) * x.GetDouble(c * 4 + 1 + tap);
    EXPECT_NEAR((*whole)[0].GetDouble(c * 4 + 3), last, 1e-6);
    for (int t = 1; t < 4; ++t) EXPECT_EQ((*two)[0].GetDouble(c * 3 + t - 1), (*whole)[0].GetDouble(c * 4 + t));
  }
  EXPECT_EQ(ops::Elements((*two)[1]), ops::Elements((*whole)[1]));
}

TEST(RmsNormalization, ScaleMayHaveAnotherType) {
  const Tensor x = Wave({2, 3}, 0.9), scale = Tensor::From<double>(DType::kF16, {3}, {1, 2, -0.5});
  const auto y = RunNode("RMSNormalization", {x, scale}, FloatAttribute("epsilon", 0.5), 1, kOnnx);
  ASSERT_TRUE(y.ok()) << y.status();
  ASSERT_EQ((*y)[0].dtype(), DType::kF16);
  for (int row = 0; row < 2; ++row) {
    double squares = 0;
    for (int i = 0; i < 3; ++i) squares += x.GetDouble(row * 3 + i) * x.GetDouble(row * 3 + i);
    for (int i = 0; i < 3; ++i) {
      const double expected = x.GetDouble(row * 3 + i) / std::sqrt(squares / 3 + 0.5) * scale.GetDouble(i);
      EXPECT_NEAR((*y)[0].GetDouble(row * 3 + i), expected, 2e-3);
    }
  }
}

TEST(RotaryEmbedding, PartOfAHeadWithAndWithoutPositions) {
  const Tensor x = Wave({1, 2, 6}, 0.9);  // two tokens, two heads of three elements, of which two are rotated
  const Tensor cos = ops::F32({2, 1}, {0.6, 0}), sin = ops::F32({2, 1}, {0.8, 1});
  const std::string attributes = IntAttribute("num_heads", 2) + IntAttribute("rotary_embedding_dim", 2);
  Values expected;
  for (int row = 0; row < 4; ++row) {  // token, head; token t is at position 1 - t
    const int at = 1 - row / 2;
    const double a = x.GetDouble(row * 3), b = x.GetDouble(row * 3 + 1);
    expected.insert(expected.end(), {cos.GetDouble(at) * a - sin.GetDouble(at) * b,
                                     sin.GetDouble(at) * a + cos.GetDouble(at) * b, x.GetDouble(row * 3 + 2)});
  }
  const auto looked_up = RunNode("RotaryEmbedding", {x, cos, sin, ops::I64({1, 2}, {1, 0})}, attributes, 1, kOnnx);
  ASSERT_TRUE(looked_up.ok()) << looked_up.status();
  EXPECT_THAT(ops::Elements((*looked_up)[0]), Pointwise(DoubleNear(1e-6), expected));
  const auto given = RunNode("RotaryEmbedding", {x, ops::F32({1, 2, 1}, {0, 0.6}), ops::F32({1, 2, 1}, {1, 0.8})},
                             attributes, 1, kOnnx);
  ASSERT_TRUE(given.ok()) << given.status();
  EXPECT_THAT(ops::Elements((*given)[0]), Pointwise(DoubleNear(1e-6), expected));
}

TEST(FlexAttention, InlinesItsGraphs) {
  const Tensor q = Wave({1, 2, 1, 2}, 0.9), k = Wave({1, 1, 2, 2}, 0.7);
  const std::string negate =
      "attribute { name: 'score_mod' type: GRAPH g { name: 'g' input { name: 's' } output { name: 't' } " +
      NodeText("Neg", {"s"}, {"t"}) + "} } ";
  const std::string twice =
      "attribute { name: 'prob_mod' type: GRAPH g { name: 'h' input { name: 's' } output { name: 't' } " +
      NodeText("Add", {"s", "s"}, {"t"}) + "} } ";
  const auto y = RunNode("FlexAttention", {q, k, k}, negate + twice + FloatAttribute("scale", 3), 1, "ai.onnx.preview");
  ASSERT_TRUE(y.ok()) << y.status();
  for (int n = 0; n < 2; ++n) {
    double score[2] = {};
    for (int t = 0; t < 2; ++t) {
      for (int e = 0; e < 2; ++e) score[t] -= 3 * q.GetDouble(2 * n + e) * k.GetDouble(2 * t + e);
    }
    const double first = 1 / (1 + std::exp(score[1] - score[0]));
    for (int e = 0; e < 2; ++e) {
      EXPECT_NEAR((*y)[0].GetDouble(2 * n + e), 2 * (first * k.GetDouble(e) + (1 - first) * k.GetDouble(2 + e)), 1e-6);
    }
  }
}

}  // namespace
}  // namespace fusion::onnx_import
