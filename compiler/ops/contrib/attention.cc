// Attention, MultiHeadAttention and GroupQueryAttention: softmax(scale · Q · Kᵀ + mask) · V per head.
// B batch, S new tokens, T all tokens (past and new), N heads, H elements of a head.
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "compiler/ops/contrib/compose.h"
#include "compiler/ops/contrib/rotary.h"
#include "compiler/ops/registry/op_list.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using ValueId = Compose::ValueId;

struct Sizes {
  DType dtype = DType::kF32;
  int64_t batch = 0, length = 0, total = 0, heads = 0, head = 0, value_head = 0;
  int64_t past() const { return total - length; }
};

// [B, L, N·H] → [B, N, L, H]
ValueId SplitHeads(Compose& c, ValueId x, int64_t batch, int64_t length, int64_t heads, int64_t head) {
  return c.Transpose(c.Reshape(x, {batch, length, heads, head}), {0, 2, 1, 3});
}

ValueId MergeHeads(Compose& c, ValueId x, int64_t batch, int64_t length, int64_t width) {
  return c.Reshape(c.Transpose(x, {0, 2, 1, 3}), {batch, length, width});
}

Tensor TokenNumbers(int64_t total) {
  std::vector<int64_t> numbers;
  for (int64_t t = 0; t < total; ++t) numbers.push_back(t);
  return Tensor::From(DType::kI64, {1, total}, numbers);
}

// Returns a bool table [S, T]: whether token `past + s` may see token t.
Tensor Causal(const Sizes& z) {
  Tensor causal(DType::kBool, {z.length, z.total});
  for (int64_t s = 0; s < z.length; ++s) {
    for (int64_t t = 0; t < z.total; ++t) causal.SetInt(s * z.total + t, t <= z.past() + s ? 1 : 0);
  }
  return causal;
}

// Returns a mask input as bool, broadcast to [B, N, S, T] and true where a token is attended; kNone where there is no
// mask. The forms are [B] lengths, [2B] ends followed by begins, [B, T] and [B, S, T] with 0 for masked.
absl::StatusOr<ValueId> AllowedTokens(Compose& c, int input, const Sizes& z) {
  if (!c.Has(input)) return ecg::kNone;
  const Shape& shape = c.ShapeOf(input);
  const DType dtype = c.Type(input).dtype;
  if (shape == Shape{z.batch, z.total} || shape == Shape{z.batch, z.length, z.total}) {
    const ValueId open = c.Node("Greater", {c.In(input), c.Number(dtype, 0)});
    return c.Reshape(open, {z.batch, 1, shape.size() == 2 ? 1 : z.length, z.total});
  }
  const bool begins = shape == Shape{2 * z.batch};
  if (!begins && shape != Shape{z.batch}) {
    return c.Unsupported(absl::StrCat("a mask of shape ", ShapeToString(shape), " is not supported"));
  }
  const ValueId tokens = c.Constant(TokenNumbers(z.total));
  const auto limit = [&](int64_t part) {
    const ValueId values = begins ? c.Slice(c.In(input), 0, part * z.batch, (part + 1) * z.batch) : c.In(input);
    return c.Reshape(c.Cast(values, DType::kI64), {z.batch, 1});
  };
  ValueId open = c.Node("Less", {tokens, limit(0)});
  if (begins) open = c.Node("And", {open, c.Node("GreaterOrEqual", {tokens, limit(1)})});
  return c.Reshape(open, {z.batch, 1, 1, z.total});
}

struct Scores {
  double scale = 0;        // 0 stands for 1/√H
  double masked = -10000;  // added where `allowed` is false
  ValueId allowed = ecg::kNone;
  ValueId bias = ecg::kNone;  // added, broadcast to [B, N, S, T]
  bool causal = false;
};

// q: [B, N, S, H], k: [B, N, T, H], v: [B, N, T, Hv] → [B, S, N·Hv]
ValueId Attend(Compose& c, const Sizes& z, ValueId q, ValueId k, ValueId v, const Scores& scores) {
  const double scale = scores.scale != 0 ? scores.scale : 1 / std::sqrt(static_cast<double>(z.head));
  ValueId s = c.Mul(c.Node("MatMul", {q, c.Transpose(k, {0, 1, 3, 2})}), c.Number(z.dtype, scale));
  if (scores.allowed != ecg::kNone) {
    s = c.Add(s, c.Node("Where", {scores.allowed, c.Number(z.dtype, 0), c.Number(z.dtype, scores.masked)}));
  }
  if (scores.bias != ecg::kNone) s = c.Add(s, scores.bias);
  if (scores.causal && z.length > 1) {
    const double lowest = z.dtype == DType::kF16 ? -65504.0 : static_cast<double>(std::numeric_limits<float>::lowest());
    s = c.Node("Where", {c.Constant(Causal(z)), s, c.Number(z.dtype, lowest)});
  }
  const ValueId p = c.Node("Softmax", {s}, {{"axis", int64_t{-1}}});
  return MergeHeads(c, c.Node("MatMul", {p, v}), z.batch, z.length, z.heads * z.value_head);
}

absl::Status CheckBias(const Compose& c, int input, const Sizes& z) {
  if (!c.Has(input)) return absl::OkStatus();
  const Shape& s = c.ShapeOf(input);
  if (s.size() == 4 && (s[0] == z.batch || s[0] == 1) && (s[1] == z.heads || s[1] == 1) && s[2] == z.length &&
      s[3] == z.total) {
    return absl::OkStatus();
  }
  return c.Error(
      absl::StrCat("attention_bias ", ShapeToString(s), " must be [B or 1, N or 1, ", z.length, ", ", z.total, "]"));
}

// input: [B, S, I], weights: [I, N·H + N·H + N·Hv], past and present: [2, B, N, .., H]
absl::Status Attention(Compose& c) {
  enum { kInput, kWeights, kBias, kMask, kPast, kScoreBias, kPastLength };
  const ecg::Attributes& attrs = c.Attributes();
  if (attrs.Int("do_rotary") != 0) return c.Unsupported("do_rotary is not supported");
  if (attrs.Int("past_present_share_buffer") != 0 || c.Has(kPastLength)) {
    return c.Unsupported("past and present in one buffer are not supported");
  }
  RETURN_IF_ERROR(c.Expect(kInput, "input", {-1, -1, -1}));
  RETURN_IF_ERROR(c.Expect(kWeights, "weights", {c.ShapeOf(kInput)[2], -1}));
  RETURN_IF_ERROR(c.ExpectStatic(kInput, "input", {2}));
  RETURN_IF_ERROR(c.ExpectStatic(kWeights, "weights", {1}));
  Sizes z{c.Type(kInput).dtype, c.ShapeOf(kInput)[0], c.ShapeOf(kInput)[1]};
  z.heads = attrs.Int("num_heads");
  const int64_t width = c.ShapeOf(kWeights)[1];
  std::vector<int64_t> widths = attrs.Ints("qkv_hidden_sizes");
  if (widths.empty()) widths = {width / 3, width / 3, width / 3};
  if (z.heads < 1 || widths.size() != 3 || widths[0] != widths[1] || widths[0] + widths[1] + widths[2] != width ||
      widths[0] % z.heads != 0 || widths[2] % z.heads != 0 || widths[0] < 1) {
    return c.Error(
        absl::StrCat("num_heads=", z.heads, " and qkv_hidden_sizes do not fit weights of ", width, " columns"));
  }
  z.head = widths[0] / z.heads;
  z.value_head = widths[2] / z.heads;
  z.total = z.length;
  if (c.Has(kPast)) {
    RETURN_IF_ERROR(c.Expect(kPast, "past", {2, z.batch, z.heads, -1, z.head}));
    if (z.value_head != z.head) return c.Error("past needs equally wide keys and values");
    z.total += c.ShapeOf(kPast)[3];
  }
  RETURN_IF_ERROR(CheckBias(c, kScoreBias, z));
  Scores scores{attrs.Float("scale", 0), attrs.Float("mask_filter_value", -10000)};
  ASSIGN_OR_RETURN(scores.allowed, AllowedTokens(c, kMask, z));
  scores.bias = c.In(kScoreBias);
  scores.causal = attrs.Int("unidirectional") != 0;

  ValueId qkv = c.Node("MatMul", {c.In(kInput), c.In(kWeights)});
  if (c.Has(kBias)) qkv = c.Add(qkv, c.In(kBias));
  const auto part = [&](int which, int64_t head) {
    const int64_t begin = which * widths[0];
    return SplitHeads(c, c.Slice(qkv, 2, begin, begin + widths[which]), z.batch, z.length, z.heads, head);
  };
  const ValueId q = part(0, z.head);
  ValueId k = part(1, z.head), v = part(2, z.value_head);
  if (c.Has(kPast)) {
    const auto past = [&](int64_t which) {
      return c.Reshape(c.Slice(c.In(kPast), 0, which, which + 1), {z.batch, z.heads, z.past(), z.head});
    };
    k = c.Concat({past(0), k}, 2);
    v = c.Concat({past(1), v}, 2);
  }
  const ValueId y = Attend(c, z, q, k, v, scores);
  if (c.Outputs() < 2) return c.Finish({y});
  if (z.value_head != z.head) return c.Error("present needs equally wide keys and values");
  const Shape one{1, z.batch, z.heads, z.total, z.head};
  return c.Finish({y, c.Concat({c.Reshape(k, one), c.Reshape(v, one)}, 0)});
}

// query: [B, S, N·H], key: [B, L, N·H], value: [B, L, N·Hv], or key and value as cached heads [B, N, L, H]
absl::Status MultiHeadAttention(Compose& c) {
  enum { kQuery, kKey, kValue, kBias, kMask, kScoreBias, kPastKey, kPastValue, kPastLength, kIndirection };
  const ecg::Attributes& attrs = c.Attributes();
  if (c.Has(kPastLength) || c.Has(kIndirection)) {
    return c.Unsupported("past and present in one buffer are not supported");
  }
  if (!c.Has(kKey) || !c.Has(kValue)) return c.Unsupported("packed query, key and value are not supported");
  RETURN_IF_ERROR(c.Expect(kQuery, "query", {-1, -1, -1}));
  const Shape query = c.ShapeOf(kQuery), key = c.ShapeOf(kKey);
  const std::vector<int> within = key.size() == 4 ? std::vector<int>{1, 3} : std::vector<int>{2};
  RETURN_IF_ERROR(c.ExpectStatic(kQuery, "query", {2}));
  RETURN_IF_ERROR(c.ExpectStatic(kKey, "key", within));
  RETURN_IF_ERROR(c.ExpectStatic(kValue, "value", within));
  Sizes z{c.Type(kQuery).dtype, query[0], query[1]};
  z.heads = attrs.Int("num_heads");
  if (z.heads < 1 || query[2] % z.heads != 0) {
    return c.Error(absl::StrCat("num_heads=", z.heads, " does not divide the query's ", query[2], " columns"));
  }
  z.head = query[2] / z.heads;
  const bool cached = key.size() == 4;
  int64_t length = 0;  // of key and value
  if (cached) {
    RETURN_IF_ERROR(c.Expect(kKey, "key", {z.batch, z.heads, -1, z.head}));
    RETURN_IF_ERROR(c.Expect(kValue, "value", {z.batch, z.heads, key[2], -1}));
    length = key[2];
    z.value_head = c.ShapeOf(kValue)[3];
  } else {
    RETURN_IF_ERROR(c.Expect(kKey, "key", {z.batch, -1, query[2]}));
    RETURN_IF_ERROR(c.Expect(kValue, "value", {z.batch, key[1], -1}));
    length = key[1];
    if (c.ShapeOf(kValue)[2] % z.heads != 0) return c.Error("num_heads does not divide the value's columns");
    z.value_head = c.ShapeOf(kValue)[2] / z.heads;
  }
  z.total = length;
  if (c.Has(kPastKey) != c.Has(kPastValue)) return c.Error("past_key and past_value come together");
  if (c.Has(kPastKey)) {
    RETURN_IF_ERROR(c.Expect(kPastKey, "past_key", {z.batch, z.heads, -1, z.head}));
    RETURN_IF_ERROR(c.Expect(kPastValue, "past_value", {z.batch, z.heads, c.ShapeOf(kPastKey)[2], z.value_head}));
    z.total += c.ShapeOf(kPastKey)[2];
  }
  RETURN_IF_ERROR(CheckBias(c, kScoreBias, z));
  Scores scores{attrs.Float("scale", 0), attrs.Float("mask_filter_value", -10000)};
  ASSIGN_OR_RETURN(scores.allowed, AllowedTokens(c, kMask, z));
  scores.bias = c.In(kScoreBias);
  scores.causal = attrs.Int("unidirectional") != 0;

  const int64_t widths[] = {query[2], query[2], z.heads * z.value_head};
  if (c.Has(kBias)) RETURN_IF_ERROR(c.Expect(kBias, "bias", {widths[0] + widths[1] + widths[2]}));
  const auto heads = [&](int input, int64_t tokens, int64_t head) {
    ValueId x = c.In(input);
    if (c.Has(kBias)) {
      const int64_t begin = input * widths[0];
      x = c.Add(x, c.Slice(c.In(kBias), 0, begin, begin + widths[input]));
    }
    return SplitHeads(c, x, z.batch, tokens, z.heads, head);
  };
  const ValueId q = heads(kQuery, z.length, z.head);
  ValueId k = cached ? c.In(kKey) : heads(kKey, length, z.head);
  ValueId v = cached ? c.In(kValue) : heads(kValue, length, z.value_head);
  if (c.Has(kPastKey)) {
    k = c.Concat({c.In(kPastKey), k}, 2);
    v = c.Concat({c.In(kPastValue), v}, 2);
  }
  return c.Finish({Attend(c, z, q, k, v, scores), k, v});
}

// query: [B, S, N·H], or query, key and value packed in this order; key, value: [B, S, M·H], where M divides N. A past
// is not supported, because the position of new tokens in a cache depends on data.
absl::Status GroupQueryAttention(Compose& c) {
  enum { kQuery, kKey, kValue, kPastKey, kPastValue, kLengths, kTotal, kCos, kSin, kPositions, kScoreBias, kFirstRare };
  const ecg::Attributes& attrs = c.Attributes();
  const bool past = (c.Has(kPastKey) && NumElements(c.ShapeOf(kPastKey)) > 0) ||
                    (c.Has(kPastValue) && NumElements(c.ShapeOf(kPastValue)) > 0);
  if (past) return c.Unsupported("a past is not supported");
  for (int i = kFirstRare; i < 16; ++i) {
    if (c.Has(i)) return c.Unsupported(absl::StrCat("input ", i, " is not supported"));
  }
  for (const char* name : {"softcap", "qk_output", "kv_cache_bit_width", "sliding_window_cache"}) {
    if (attrs.Float(name) != 0 || attrs.Int(name) != 0) return c.Unsupported(absl::StrCat(name, " is not supported"));
  }
  if (attrs.Int("local_window_size", -1) > 0) return c.Unsupported("local_window_size is not supported");
  if (attrs.Int("smooth_softmax", -1) > 0) return c.Unsupported("smooth_softmax is not supported");
  RETURN_IF_ERROR(c.Expect(kQuery, "query", {-1, -1, -1}));
  RETURN_IF_ERROR(c.ExpectStatic(kQuery, "query", {2}));
  RETURN_IF_ERROR(c.ExpectStatic(kKey, "key", {2}));
  RETURN_IF_ERROR(c.ExpectStatic(kValue, "value", {2}));
  const Shape query = c.ShapeOf(kQuery);
  Sizes z{c.Type(kQuery).dtype, query[0], query[1], query[1]};
  z.heads = attrs.Int("num_heads");
  const int64_t groups = attrs.Int("kv_num_heads");
  const bool packed = !c.Has(kKey);
  const int64_t parts = packed ? z.heads + 2 * groups : z.heads;
  if (z.heads < 1 || groups < 1 || z.heads % groups != 0 || query[2] % parts != 0) {
    return c.Error(
        absl::StrCat("num_heads=", z.heads, " and kv_num_heads=", groups, " do not fit query ", ShapeToString(query)));
  }
  z.head = z.value_head = query[2] / parts;
  ValueId q = c.In(kQuery), k = c.In(kKey), v = c.In(kValue);
  if (packed) {
    const int64_t key = z.heads * z.head, value = key + groups * z.head;
    k = c.Slice(q, 2, key, value);
    v = c.Slice(q, 2, value, query[2]);
    q = c.Slice(q, 2, 0, key);
  } else {
    RETURN_IF_ERROR(c.Expect(kKey, "key", {z.batch, z.length, groups * z.head}));
    RETURN_IF_ERROR(c.Expect(kValue, "value", {z.batch, z.length, groups * z.head}));
  }
  q = SplitHeads(c, q, z.batch, z.length, z.heads, z.head);
  k = SplitHeads(c, k, z.batch, z.length, groups, z.head);
  v = SplitHeads(c, v, z.batch, z.length, groups, z.head);
  if (attrs.Int("do_rotary") != 0) {
    if (c.Has(kPositions)) return c.Unsupported("position_ids are not supported");
    RETURN_IF_ERROR(c.Expect(kCos, "cos_cache", {-1, -1}));
    RETURN_IF_ERROR(c.Expect(kSin, "sin_cache", c.ShapeOf(kCos)));
    const int64_t rotated = 2 * c.ShapeOf(kCos)[1];
    if (rotated > z.head || c.ShapeOf(kCos)[0] < z.length) return c.Error("cos_cache and sin_cache do not fit");
    const ValueId cos = c.Slice(c.In(kCos), 0, 0, z.length), sin = c.Slice(c.In(kSin), 0, 0, z.length);
    const bool interleaved = attrs.Int("rotary_interleaved") != 0;
    q = Rotate(c, q, {z.batch, z.heads, z.length, z.head}, rotated, cos, sin, interleaved);
    k = Rotate(c, k, {z.batch, groups, z.length, z.head}, rotated, cos, sin, interleaved);
  }
  RETURN_IF_ERROR(CheckBias(c, kScoreBias, z));
  Scores scores{attrs.Float("scale", 0)};
  scores.bias = c.In(kScoreBias);
  // Without a past, tokens from seqlens_k + 1 on are padding. Causal rows before them do not see them.
  if (attrs.Int("causal", 1) == 0) return c.Unsupported("causal=0 is not supported");
  scores.causal = true;
  const int64_t share = z.heads / groups;
  const auto spread = [&](ValueId x) {
    if (share == 1) return x;
    const ValueId wide = c.Node("Expand", {c.Reshape(x, {z.batch, groups, 1, z.length, z.head}),
                                           c.Ints({z.batch, groups, share, z.length, z.head})});
    return c.Reshape(wide, {z.batch, z.heads, z.length, z.head});
  };
  return c.Finish({Attend(c, z, q, spread(k), spread(v), scores), k, v});
}

}  // namespace

std::vector<OpDef> ContribAttentionOps() {
  const AttrSpec heads{"num_heads", AttrKind::kInt, true}, scale{"scale", AttrKind::kFloat},
      masked{"mask_filter_value", AttrKind::kFloat}, unidirectional{"unidirectional", AttrKind::kInt};
  return {DefineComposite("com.microsoft.Attention", 2, 7, 2,
                          {heads,
                           scale,
                           masked,
                           unidirectional,
                           {"do_rotary", AttrKind::kInt},
                           {"past_present_share_buffer", AttrKind::kInt},
                           {"qkv_hidden_sizes", AttrKind::kInts},
                           {"rotary_embedding_dim", AttrKind::kInt}},
                          Attention),
          DefineComposite("com.microsoft.MultiHeadAttention", 1, 10, 4, {heads, scale, masked, unidirectional},
                          MultiHeadAttention),
          DefineComposite("com.microsoft.GroupQueryAttention", 1, 16, 4,
                          {heads,
                           scale,
                           {"causal", AttrKind::kInt},
                           {"do_rotary", AttrKind::kInt},
                           {"kv_cache_bit_width", AttrKind::kInt},
                           {"kv_num_heads", AttrKind::kInt, true},
                           {"local_window_size", AttrKind::kInt},
                           {"qk_norm_epsilon", AttrKind::kFloat},
                           {"qk_output", AttrKind::kInt},
                           {"k_quant_type", AttrKind::kString},
                           {"rotary_interleaved", AttrKind::kInt},
                           {"sliding_window_cache", AttrKind::kInt},
                           {"smooth_softmax", AttrKind::kInt},
                           {"softcap", AttrKind::kFloat},
                           {"v_quant_type", AttrKind::kString}},
                          GroupQueryAttention)};
}

}  // namespace fusion::ops
