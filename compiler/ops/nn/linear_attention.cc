// LinearAttention and CausalConvWithState, the operators with which state-space and gated-delta networks carry a state
// from token to token, written with other operators.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/ops/contrib/compose.h"
#include "compiler/ops/registry/op_list.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using ValueId = Compose::ValueId;

// B batch, T tokens, G heads of keys and values, R query heads per group, K elements of a key, V elements of a value.
struct Sizes {
  int64_t batch = 0, tokens = 0, groups = 0, share = 0, key = 0, value = 0;
};

// One recurrence over the tokens, unrolled. In each step the state S [B, G, K, V] decays, is corrected and takes the
// outer product of key and value; then the query reads it. Everything is computed in f32, whatever the types outside.
class Recurrence {
 public:
  enum Input { kQuery, kKey, kValue, kPast, kDecay, kBeta };

  explicit Recurrence(Compose& c) : c_(c), attrs_(c.Attributes()) {}

  absl::Status Run() {
    RETURN_IF_ERROR(Read());
    const Sizes& z = sizes_;
    const std::vector<ValueId> q = Tokens(kQuery, {z.batch, z.groups, z.share, z.key});
    const std::vector<ValueId> columns = Tokens(kKey, {z.batch, z.groups, z.key, 1});
    const std::vector<ValueId> rows = Tokens(kKey, {z.batch, z.groups, 1, z.key});
    const std::vector<ValueId> v = Tokens(kValue, {z.batch, z.groups, 1, z.value});
    std::vector<ValueId> gates, rates;
    if (decays_) gates = Tokens(kDecay, {z.batch, z.groups, c_.ShapeOf(kDecay)[2] / z.groups, 1});
    if (corrects_) rates = Tokens(kBeta, {z.batch, c_.ShapeOf(kBeta)[2], 1, 1});
    ValueId state = c_.Has(kPast) ? c_.Cast(c_.In(kPast), DType::kF32)
                                  : c_.Constant(Tensor(DType::kF32, {z.batch, z.groups, z.key, z.value}));
    std::vector<ValueId> outputs;
    for (int64_t t = 0; t < z.tokens; ++t) {
      if (decays_) state = c_.Mul(state, c_.Node("Exp", {gates[t]}));
      ValueId written = v[t];
      if (corrects_) written = c_.Mul(rates[t], c_.Sub(v[t], c_.Node("MatMul", {rows[t], state})));
      state = c_.Add(state, c_.Mul(columns[t], written));
      const ValueId read = c_.Node("MatMul", {q[t], state});  // [B, G, R, V]
      outputs.push_back(c_.Reshape(read, {z.batch, 1, z.groups * z.share * z.value}));
    }
    const ValueId joined = outputs.size() == 1 ? outputs[0] : c_.Concat(std::move(outputs), 1);
    const DType dtype = c_.Type(kQuery).dtype;
    return c_.Finish({c_.Cast(joined, dtype), c_.Cast(state, c_.Has(kPast) ? c_.Type(kPast).dtype : dtype)});
  }

 private:
  absl::Status Read() {
    for (int input : {kQuery, kKey, kValue}) {
      if (!c_.Has(input) || c_.ShapeOf(input).size() != 3) return c_.Error("query, key and value must be [B, T, H·D]");
    }
    // Tokens are written out one by one.
    for (int input : {kQuery, kKey, kValue}) RETURN_IF_ERROR(c_.ExpectStatic(input, "query, key or value", {1, 2}));
    const Shape &q = c_.ShapeOf(kQuery), &k = c_.ShapeOf(kKey), &v = c_.ShapeOf(kValue);
    const int64_t heads = attrs_.Int("q_num_heads"), groups = attrs_.Int("kv_num_heads");
    if (heads < 1 || groups < 1 || heads % groups != 0 || q[2] % heads != 0 || k[2] % groups != 0 ||
        v[2] % groups != 0 || q[2] / heads != k[2] / groups) {
      return c_.Error(absl::StrCat("q_num_heads=", heads, " and kv_num_heads=", groups, " do not fit query ",
                                   ShapeToString(q), ", key ", ShapeToString(k), " and value ", ShapeToString(v)));
    }
    sizes_ = {q[0], q[1], groups, heads / groups, q[2] / heads, v[2] / groups};
    const Sizes& z = sizes_;
    if (z.tokens < 1) return c_.Unsupported("a sequence of no tokens is not supported");
    RETURN_IF_ERROR(c_.Expect(kKey, "key", {z.batch, z.tokens, -1}));
    RETURN_IF_ERROR(c_.Expect(kValue, "value", {z.batch, z.tokens, -1}));
    if (c_.Has(kPast)) RETURN_IF_ERROR(c_.Expect(kPast, "past_state", {z.batch, z.groups, z.key, z.value}));
    const std::string rule = attrs_.String("update_rule", "gated_delta");
    decays_ = rule == "gated" || rule == "gated_delta";
    corrects_ = rule == "delta" || rule == "gated_delta";
    if (c_.Has(kDecay) != decays_ || c_.Has(kBeta) != corrects_) {
      return c_.Error(absl::StrCat("update_rule '", rule, "' needs ", decays_ ? "a" : "no", " decay and ",
                                   corrects_ ? "a" : "no", " beta"));
    }
    if (decays_) {
      const bool by_head = c_.ShapeOf(kDecay) == Shape{z.batch, z.tokens, z.groups};
      if (!by_head) RETURN_IF_ERROR(c_.Expect(kDecay, "decay", {z.batch, z.tokens, z.groups * z.key}));
    }
    if (corrects_) {
      const bool one = c_.ShapeOf(kBeta) == Shape{z.batch, z.tokens, 1};
      if (!one) RETURN_IF_ERROR(c_.Expect(kBeta, "beta", {z.batch, z.tokens, z.groups}));
    }
    return absl::OkStatus();
  }

  // Returns the input token by token, each with shape `shape`; queries are multiplied by the scale.
  std::vector<ValueId> Tokens(Input input, const Shape& shape) {
    const Sizes& z = sizes_;
    ValueId x = c_.In(input);
    if (c_.Type(input).dtype != DType::kF32) x = c_.Cast(x, DType::kF32);
    if (input == kQuery) {
      const double scale = attrs_.Float("scale", 0);
      x = c_.Mul(x, c_.Number(DType::kF32, scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(z.key))));
    }
    std::vector<ValueId> parts{x};
    if (z.tokens > 1) parts = c_.Nodes("Split", {x}, {{"axis", int64_t{1}}}, static_cast<int>(z.tokens));
    for (ValueId& part : parts) part = c_.Reshape(part, shape);
    return parts;
  }

  Compose& c_;
  const ecg::Attributes attrs_;
  Sizes sizes_;
  bool decays_ = false, corrects_ = false;
};

absl::Status LinearAttention(Compose& c) { return Recurrence(c).Run(); }

// x: [B, C, L], weight: [C, 1, k], bias: [C], past_state: [B, C, k - 1], the elements before x
absl::Status CausalConvWithState(Compose& c) {
  enum { kX, kWeight, kBias, kPast };
  const ecg::Attributes& attrs = c.Attributes();
  RETURN_IF_ERROR(c.Expect(kX, "input", {-1, -1, -1}));
  RETURN_IF_ERROR(c.ExpectStatic(kX, "input", {1, 2}));
  const int64_t batch = c.ShapeOf(kX)[0], channels = c.ShapeOf(kX)[1], length = c.ShapeOf(kX)[2];
  RETURN_IF_ERROR(c.Expect(kWeight, "weight", {channels, 1, -1}));
  const int64_t before = c.ShapeOf(kWeight)[2] - 1;
  if (before < 0) return c.Error("weight has no taps");
  if (c.Has(kBias)) RETURN_IF_ERROR(c.Expect(kBias, "bias", {channels}));
  if (c.Has(kPast)) RETURN_IF_ERROR(c.Expect(kPast, "past_state", {batch, channels, before}));
  ValueId whole = c.In(kX);
  if (before > 0) {
    whole = c.Has(kPast) ? c.Concat({c.In(kPast), whole}, 2) : c.Node("Pad", {whole, c.Ints({0, 0, before, 0, 0, 0})});
  }
  std::vector<ValueId> operands{whole, c.In(kWeight)};
  if (c.Has(kBias)) operands.push_back(c.In(kBias));
  ValueId y = c.Node("Conv", std::move(operands), {{"group", channels}});
  if (attrs.String("activation", "none") != "none") y = c.Node("Swish", {y});
  return c.Finish({y, c.Slice(whole, 2, length, length + before)});
}

}  // namespace

std::vector<OpDef> LinearAttentionOps() {
  return {DefineComposite("LinearAttention", 3, 6, 2,
                          {{"chunk_size", AttrKind::kInt},
                           {"kv_num_heads", AttrKind::kInt, true},
                           {"q_num_heads", AttrKind::kInt, true},
                           {"scale", AttrKind::kFloat},
                           {"update_rule", AttrKind::kString, false, {"linear", "gated", "delta", "gated_delta"}}},
                          LinearAttention),
          DefineComposite("CausalConvWithState", 2, 4, 2,
                          {{"activation", AttrKind::kString, false, {"none", "silu", "swish"}}}, CausalConvWithState)};
}

}  // namespace fusion::ops
