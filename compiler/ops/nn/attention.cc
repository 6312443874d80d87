// Attention: softmax(scale · Q · Kᵀ + bias) · V per head, written with other operators (opset 23; since 24 with a cache
// that the caller keeps, since 25 with windows). Shapes: B batch, S queries, T keys (past and new), N query heads, G
// heads of keys and values (G divides N), H elements of a query's or key's head, Hv of a value's head.
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "compiler/ops/contrib/compose.h"
#include "compiler/ops/registry/onnx_dtype.h"
#include "compiler/ops/registry/op_list.h"
#include "compiler/ops/shared/elementwise.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using ValueId = Compose::ValueId;

enum { kQuery, kKey, kValue, kMask, kPastKey, kPastValue, kLengths };

struct Sizes {
  DType dtype = DType::kF32, wide = DType::kF32;  // of the inputs; `wide` is that of scores and softmax, at least f32
  bool heads_first = false;                       // inputs are [B, N, S, H] rather than [B, S, N·H]
  int64_t batch = 0, queries = 0, fresh = 0, past = 0, heads = 0, groups = 0, head = 0, value_head = 0;
  int64_t keys() const { return past + fresh; }
};

absl::StatusOr<Sizes> ReadSizes(const Compose& c) {
  const ecg::Attributes& attrs = c.Attributes();
  const Shape q = c.ShapeOf(kQuery), k = c.ShapeOf(kKey), v = c.ShapeOf(kValue);
  if ((q.size() != 3 && q.size() != 4) || k.size() != q.size() || v.size() != q.size()) {
    return c.Error(absl::StrCat("Q ", ShapeToString(q), ", K ", ShapeToString(k), " and V ", ShapeToString(v),
                                " must all be [B, S, N·H] or all [B, N, S, H]"));
  }
  // Which elements are a head's is a matter of numbers.
  const std::vector<int> within = q.size() == 4 ? std::vector<int>{1, 3} : std::vector<int>{2};
  RETURN_IF_ERROR(c.ExpectStatic(kQuery, "Q", within));
  RETURN_IF_ERROR(c.ExpectStatic(kKey, "K", within));
  RETURN_IF_ERROR(c.ExpectStatic(kValue, "V", within));
  RETURN_IF_ERROR(c.ExpectStatic(kPastKey, "past_key", {1, 3}));
  RETURN_IF_ERROR(c.ExpectStatic(kPastValue, "past_value", {1, 3}));
  Sizes z;
  z.dtype = c.Type(kQuery).dtype;
  z.wide = ComputeType(z.dtype);
  z.heads_first = q.size() == 4;
  z.batch = q[0];
  z.heads = z.heads_first ? q[1] : attrs.Int("q_num_heads");
  z.groups = z.heads_first ? k[1] : attrs.Int("kv_num_heads");
  if (z.heads < 1 || z.groups < 1 || z.heads % z.groups != 0) {
    return c.Error(absl::StrCat("has ", z.heads, " heads of queries and ", z.groups,
                                " of keys; the second number must divide the first"));
  }
  if (z.heads_first) {
    z.queries = q[2], z.fresh = k[2], z.head = q[3], z.value_head = v[3];
    RETURN_IF_ERROR(c.Expect(kKey, "K", {z.batch, z.groups, z.fresh, z.head}));
    RETURN_IF_ERROR(c.Expect(kValue, "V", {z.batch, z.groups, z.fresh, z.value_head}));
  } else {
    if (q[2] % z.heads != 0 || v[2] % z.groups != 0) {
      return c.Error(absl::StrCat("q_num_heads=", z.heads, " must divide the ", q[2],
                                  " columns of Q and kv_num_heads=", z.groups, " the ", v[2], " of V"));
    }
    z.queries = q[1], z.fresh = k[1], z.head = q[2] / z.heads, z.value_head = v[2] / z.groups;
    RETURN_IF_ERROR(c.Expect(kKey, "K", {z.batch, z.fresh, z.groups * z.head}));
    RETURN_IF_ERROR(c.Expect(kValue, "V", {z.batch, z.fresh, z.groups * z.value_head}));
  }
  if (c.Has(kPastKey) != c.Has(kPastValue)) return c.Error("past_key and past_value come together");
  if (c.Has(kPastKey)) {
    if (c.Has(kLengths)) return c.Error("nonpad_kv_seqlen and past_key exclude each other");
    RETURN_IF_ERROR(c.Expect(kPastKey, "past_key", {z.batch, z.groups, -1, z.head}));
    z.past = c.ShapeOf(kPastKey)[2];
    RETURN_IF_ERROR(c.Expect(kPastValue, "past_value", {z.batch, z.groups, z.past, z.value_head}));
  }
  if (c.Has(kLengths)) RETURN_IF_ERROR(c.Expect(kLengths, "nonpad_kv_seqlen", {z.batch}));
  return z;
}

// Queries [B, N, S, H], keys [B, G, T, H] and values [B, G, T, Hv]. Extents may depend on data.
struct Operands {
  ValueId q = ecg::kNone, k = ecg::kNone, v = ecg::kNone;
};

// The term that is added to the scores, broadcast to [B, N, S, T]: minus infinity where a query does not see a key.
struct Bias {
  ValueId value = ecg::kNone;  // kNone: every query sees every key
  bool may_hide_all = false;  // some query may see no key at all
};

// The keys that the attributes and nonpad_kv_seqlen leave visible, as bool.
struct Seen {
  ValueId value = ecg::kNone;
  bool may_hide_all = false;
};

absl::StatusOr<Seen> SeenKeys(Compose& c, const Sizes& z, const Operands& x) {
  const ecg::Attributes& attrs = c.Attributes();
  const int64_t left = attrs.Int("left_window_size", -1), right = attrs.Int("right_window_size", -1);
  if (left < -1 || right < -1) return c.Error("left_window_size and right_window_size must be -1 or more");
  const bool causal = attrs.Int("is_causal") != 0;
  Seen seen;
  const auto also = [&](ValueId condition) {
    seen.value = seen.value == ecg::kNone ? condition : c.Node("And", {seen.value, condition});
  };
  const ValueId keys = c.Positions(x.k, 2);
  ValueId lengths = ecg::kNone;  // [B, 1, 1, 1]
  if (c.Has(kLengths)) {
    lengths = c.Reshape(c.Cast(c.In(kLengths), DType::kI64), {-1, 1, 1, 1});
    also(c.Node("Less", {keys, lengths}));
    seen.may_hide_all = true;
  }
  if (!causal && left < 0 && right < 0) return seen;
  // The position of each query among the keys. Queries follow the past; with nonpad_kv_seqlen they are the last of the
  // keys that are not padding.
  ValueId place = c.Node("Unsqueeze", {c.Positions(x.q, 2), c.Ints({1})});  // [S, 1]
  if (z.past > 0) place = c.Add(place, c.Extent(c.In(kPastKey), 2));
  if (lengths != ecg::kNone) place = c.Add(place, c.Sub(lengths, c.Extent(x.q, 2)));
  if (causal || right >= 0) {
    const int64_t reach = causal ? 0 : right;
    also(c.Node("LessOrEqual", {keys, reach == 0 ? place : c.Add(place, c.Ints({reach}))}));
  }
  if (left >= 0) {
    also(c.Node("GreaterOrEqual", {keys, c.Sub(place, c.Ints({left}))}));
    // The last query sees no key if its window begins behind the last key; with extents that depend on data that is
    // possible.
    const bool known = !c.IsDynamic(x.q, 2) && !c.IsDynamic(x.k, 2);
    seen.may_hide_all = seen.may_hide_all || !known || z.past + z.queries - 1 - left >= z.keys();
  }
  return seen;
}

absl::StatusOr<Bias> ScoreBias(Compose& c, const Sizes& z, const Operands& x) {
  ASSIGN_OR_RETURN(const Seen seen, SeenKeys(c, z, x));
  Bias bias{ecg::kNone, seen.may_hide_all};
  const ValueId zero = c.Number(z.wide, 0), hidden = c.Number(z.wide, -std::numeric_limits<double>::infinity());
  if (seen.value != ecg::kNone) bias.value = c.Node("Where", {seen.value, zero, hidden});
  if (!c.Has(kMask)) return bias;
  bias.may_hide_all = true;
  const Shape& shape = c.ShapeOf(kMask);
  const Shape whole{z.batch, z.heads, z.queries, z.keys()};
  bool fits = shape.size() >= 1 && shape.size() <= 4 && shape.back() <= z.keys();
  for (size_t d = 1; fits && d < shape.size(); ++d) {
    const int64_t extent = shape[shape.size() - 1 - d];
    fits = extent == 1 || extent == whole[3 - d];
  }
  if (!fits) {
    return c.Error(absl::StrCat("attn_mask ", ShapeToString(shape), " does not broadcast to ", ShapeToString(whole)));
  }
  const bool selects = c.Type(kMask).dtype == DType::kBool;
  ValueId mask = selects ? c.Node("Where", {c.In(kMask), zero, hidden}) : c.Cast(c.In(kMask), z.wide);
  // A mask with fewer columns than there are keys hides the remaining keys. This holds for a mask of one column, too.
  if (const int64_t missing = z.keys() - shape.back(); missing > 0) {
    std::vector<int64_t> pads(2 * shape.size(), 0);
    pads.back() = missing;
    mask = c.Node("Pad", {mask, c.Ints(pads), hidden});
  }
  bias.value = bias.value == ecg::kNone ? mask : c.Add(bias.value, mask);
  return bias;
}

// [B, L, n·h] or [B, n, L, h] → [B, n, L, h]
ValueId Heads(Compose& c, int input, const Sizes& z, int64_t heads, int64_t head) {
  if (z.heads_first) return c.In(input);
  return c.Transpose(c.Reshape(c.In(input), {0, 0, heads, head}), {0, 2, 1, 3});
}

absl::Status Attention(Compose& c) {
  ASSIGN_OR_RETURN(const Sizes z, ReadSizes(c));
  const ecg::Attributes& attrs = c.Attributes();
  const int64_t mode = attrs.Int("qk_matmul_output_mode");
  if (mode < 0 || mode > 3) return c.Error(absl::StrCat("qk_matmul_output_mode=", mode, " must be 0, 1, 2 or 3"));
  Operands x{Heads(c, kQuery, z, z.heads, z.head), Heads(c, kKey, z, z.groups, z.head),
             Heads(c, kValue, z, z.groups, z.value_head)};
  if (c.Has(kPastKey)) {
    x.k = c.Concat({c.In(kPastKey), x.k}, 2);
    x.v = c.Concat({c.In(kPastValue), x.v}, 2);
  }
  x.v = c.WithExtentOf(x.v, 2, x.k);
  ASSIGN_OR_RETURN(const Bias bias, ScoreBias(c, z, x));
  const double scale = attrs.Has("scale") ? attrs.Float("scale") : 1 / std::sqrt(static_cast<double>(z.head));
  ValueId q = x.q, factor = x.k;
  // 16-bit inputs are widened first, so that nothing is rounded between the inputs and the result, and the scores are
  // scaled. For other types the scale is applied before the first product, where ONNX defines it, but in one factor on
  // the queries, which are few.
  const bool narrow = z.wide != z.dtype;
  if (narrow) q = c.Cast(q, z.wide), factor = c.Cast(factor, z.wide);
  const auto scaled = [&](ValueId x) { return c.Mul(x, c.Number(z.wide, scale)); };

  // Query heads that share keys and values become further rows of one product, so that keys and values are not
  // repeated. This needs a static number of queries: otherwise the rows of one head would not follow those of the head
  // before, and keys and values are repeated.
  const bool repeats = z.heads != z.groups && c.IsDynamic(x.q, 2), groups = z.heads != z.groups && !repeats;
  const auto repeated = [&](ValueId y, int64_t width) {
    if (!repeats) return y;
    const int64_t share = z.heads / z.groups;
    const ValueId wide = c.Node("Expand", {c.Node("Unsqueeze", {y, c.Ints({2})}), c.Ints({1, 1, share, 1, 1})});
    return c.WithExtentOf(c.Reshape(wide, {0, z.heads, -1, width}), 2, y);
  };
  const auto grouped = [&](ValueId y) { return groups ? c.Reshape(y, {0, z.groups, -1, 0}) : y; };
  const auto ungrouped = [&](ValueId y) { return groups ? c.Reshape(y, {0, z.heads, -1, 0}) : y; };
  factor = c.Transpose(repeated(factor, z.head), {0, 1, 3, 2});
  ValueId s = ungrouped(c.Node("MatMul", {grouped(narrow ? q : scaled(q)), factor}));
  if (narrow) s = scaled(s);
  ValueId shown = s;  // the optional output qk_matmul_output
  if (const double cap = attrs.Float("softcap", 0); cap > 0) {
    const ValueId limit = c.Number(z.wide, cap);
    s = c.Mul(c.Node("Tanh", {c.Node("Div", {s, limit})}), limit);
  }
  if (mode == 1) shown = s;
  if (bias.value != ecg::kNone) s = c.Add(s, bias.value);
  if (mode == 2) shown = s;
  DType precise = z.wide;
  if (attrs.Has("softmax_precision")) {
    const auto named = DTypeFromOnnx(attrs.Int("softmax_precision"));
    if (!named || !IsFloat(*named)) return c.Unsupported("softmax_precision names no float type");
    precise = *named;
  }
  if (precise != z.wide) s = c.Cast(s, precise);
  ValueId p = c.Node("Softmax", {s}, {{"axis", int64_t{-1}}});
  if (precise != z.wide) p = c.Cast(p, z.wide);
  const ValueId weighed = c.Type(kValue).dtype == z.wide ? x.v : c.Cast(x.v, z.wide);
  ValueId y = ungrouped(c.Node("MatMul", {grouped(p), repeated(weighed, z.value_head)}));
  if (bias.may_hide_all) {
    // The result of a query that sees no key is zeros, whatever its scores are.
    const ValueId most = c.Node("ReduceMax", {bias.value, c.Ints({-1})});
    const ValueId blind = c.Node("Equal", {most, c.Number(z.wide, -std::numeric_limits<double>::infinity())});
    const ValueId zero = c.Number(z.wide, 0);
    y = c.Node("Where", {blind, zero, y});
    if (mode == 3) p = c.Node("Where", {blind, zero, p});
  }
  if (mode == 3) shown = p;
  if (narrow) y = c.Cast(y, z.dtype), shown = c.Cast(shown, z.dtype);
  if (!z.heads_first) y = c.Reshape(c.Transpose(y, {0, 2, 1, 3}), {0, 0, z.heads * z.value_head});
  return c.Finish({y, x.k, x.v, shown});
}

}  // namespace

std::vector<OpDef> AttentionOps() {
  return {DefineComposite("Attention", 3, 7, 4,
                          {{"is_causal", AttrKind::kInt},
                           {"kv_num_heads", AttrKind::kInt},
                           {"left_window_size", AttrKind::kInt},
                           {"q_num_heads", AttrKind::kInt},
                           {"qk_matmul_output_mode", AttrKind::kInt},
                           {"right_window_size", AttrKind::kInt},
                           {"scale", AttrKind::kFloat},
                           {"softcap", AttrKind::kFloat},
                           {"softmax_precision", AttrKind::kInt}},
                          Attention)};
}

}  // namespace fusion::ops
