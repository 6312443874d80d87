#include "compiler/ops/contrib/rotary.h"

#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/op_list.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using ValueId = Compose::ValueId;

// x: [B, S, N·H] or [B, N, S, H]; position_ids: [1] (the first token's) or [B, S]; caches: [positions, rotated/2]
absl::Status RotaryEmbedding(Compose& c) {
  enum { kX, kPositions, kCos, kSin };
  RETURN_IF_ERROR(c.Expect(kCos, "cos_cache", {-1, -1}));
  RETURN_IF_ERROR(c.Expect(kSin, "sin_cache", c.ShapeOf(kCos)));
  const ecg::Attributes& attrs = c.Attributes();
  if (attrs.Int("is_packed_batching") != 0) return c.Unsupported("is_packed_batching is not supported");
  if (attrs.Float("scale", 1) != 1) return c.Unsupported("scale is not supported");
  const Shape given = c.ShapeOf(kX);
  if (given.size() != 3 && given.size() != 4) {
    return c.Error(absl::StrCat("input ", ShapeToString(given), " must be [B, S, N·H] or [B, N, S, H]"));
  }
  const bool heads_first = given.size() == 4;
  RETURN_IF_ERROR(c.ExpectStatic(kX, "input", heads_first ? std::vector<int>{1, 3} : std::vector<int>{2}));
  const int64_t batch = given[0], length = heads_first ? given[2] : given[1];
  const int64_t rotated = 2 * c.ShapeOf(kCos)[1], heads = attrs.Int("num_heads");
  int64_t head_size = rotated;
  if (heads_first) {
    head_size = given[3];
  } else if (attrs.Int("rotary_embedding_dim") != 0) {
    if (heads < 1 || given[2] % heads != 0)
      return c.Error(absl::StrCat("num_heads=", heads, " does not divide the input"));
    head_size = given[2] / heads;
  }
  if (head_size < 1 || rotated > head_size || (!heads_first && given[2] % head_size != 0)) {
    return c.Error(absl::StrCat("caches for ", rotated, " elements of a head do not fit input ", ShapeToString(given)));
  }
  ValueId positions = c.In(kPositions);
  if (c.ShapeOf(kPositions) == Shape{1}) {
    std::vector<int64_t> steps;
    for (int64_t s = 0; s < length; ++s) steps.push_back(s);
    positions = c.Reshape(c.Add(positions, c.Ints(steps)), {1, length});
  } else {
    RETURN_IF_ERROR(c.Expect(kPositions, "position_ids", {batch, length}));
  }
  const auto rows = [&](int cache) {
    return c.Node("Unsqueeze", {c.Node("Gather", {c.In(cache), positions}), c.Ints({heads_first ? 1 : 2})});
  };
  const Shape shape = heads_first ? given : Shape{batch, length, given[2] / head_size, head_size};
  const ValueId x = heads_first ? c.In(kX) : c.Reshape(c.In(kX), shape);
  const ValueId y = Rotate(c, x, shape, rotated, rows(kCos), rows(kSin), attrs.Int("interleaved") != 0);
  return c.Finish({heads_first ? y : c.Reshape(y, given)});
}

// RotaryEmbedding of ONNX. x: [B, S, N·H] or [B, N, S, H]. The caches are [positions, rotated/2] with position_ids
// [B, S], otherwise one row per token, [B, S, rotated/2].
absl::Status RotaryEmbedding23(Compose& c) {
  enum { kX, kCos, kSin, kPositions };
  const ecg::Attributes& attrs = c.Attributes();
  const Shape given = c.ShapeOf(kX);
  if (given.size() != 3 && given.size() != 4) {
    return c.Error(absl::StrCat("input ", ShapeToString(given), " must be [B, S, N·H] or [B, N, S, H]"));
  }
  const bool heads_first = given.size() == 4;
  RETURN_IF_ERROR(c.ExpectStatic(kX, "input", heads_first ? std::vector<int>{1, 3} : std::vector<int>{2}));
  const int64_t batch = given[0], length = heads_first ? given[2] : given[1];
  const int64_t heads = heads_first ? given[1] : attrs.Int("num_heads");
  if (heads < 1 || (!heads_first && given[2] % heads != 0)) {
    return c.Error(absl::StrCat("num_heads=", heads, " does not divide input ", ShapeToString(given)));
  }
  const int64_t head_size = heads_first ? given[3] : given[2] / heads;
  const int64_t partly = attrs.Int("rotary_embedding_dim"), rotated = partly == 0 ? head_size : partly;
  if (rotated < 0 || rotated % 2 != 0 || rotated > head_size) {
    return c.Error(absl::StrCat("cannot rotate ", rotated, " of the ", head_size, " elements of a head"));
  }
  const bool looked_up = c.Has(kPositions);
  const Shape cache = looked_up ? Shape{-1, rotated / 2} : Shape{batch, length, rotated / 2};
  RETURN_IF_ERROR(c.Expect(kCos, "cos_cache", cache));
  RETURN_IF_ERROR(c.Expect(kSin, "sin_cache", cache));
  if (looked_up) RETURN_IF_ERROR(c.Expect(kPositions, "position_ids", {batch, length}));
  const auto rows = [&](int input) {
    const ValueId of_tokens = looked_up ? c.Node("Gather", {c.In(input), c.In(kPositions)}) : c.In(input);
    return c.Node("Unsqueeze", {of_tokens, c.Ints({heads_first ? 1 : 2})});
  };
  const Shape shape = heads_first ? given : Shape{batch, length, heads, head_size};
  const ValueId x = heads_first ? c.In(kX) : c.Reshape(c.In(kX), shape);
  const ValueId y = Rotate(c, x, shape, rotated, rows(kCos), rows(kSin), attrs.Int("interleaved") != 0);
  return c.Finish({heads_first ? y : c.Reshape(y, given)});
}

}  // namespace

ValueId Rotate(Compose& c, ValueId x, const Shape& shape, int64_t rotated, ValueId cos, ValueId sin, bool interleaved) {
  const int64_t axis = static_cast<int64_t>(shape.size()) - 1, half = rotated / 2;
  const ValueId a = interleaved ? c.Slice(x, axis, 0, rotated, 2) : c.Slice(x, axis, 0, half);
  const ValueId b = interleaved ? c.Slice(x, axis, 1, rotated, 2) : c.Slice(x, axis, half, rotated);
  const ValueId real = c.Sub(c.Mul(a, cos), c.Mul(b, sin));
  const ValueId imaginary = c.Add(c.Mul(b, cos), c.Mul(a, sin));
  ValueId turned;
  if (interleaved) {
    Shape pairs = shape;
    pairs.back() = half;
    pairs.push_back(1);
    Shape merged = shape;
    merged.back() = rotated;
    turned = c.Reshape(c.Concat({c.Reshape(real, pairs), c.Reshape(imaginary, pairs)}, axis + 1), merged);
  } else {
    turned = c.Concat({real, imaginary}, axis);
  }
  return rotated == shape.back() ? turned : c.Concat({turned, c.Slice(x, axis, rotated, shape.back())}, axis);
}

std::vector<OpDef> ContribRotaryOps() {
  return {
      DefineComposite("com.microsoft.RotaryEmbedding", 4, 4, 1,
                      {{"interleaved", AttrKind::kInt},
                       {"is_packed_batching", AttrKind::kInt},
                       {"num_heads", AttrKind::kInt},
                       {"rotary_embedding_dim", AttrKind::kInt},
                       {"scale", AttrKind::kFloat}},
                      RotaryEmbedding),
      DefineComposite(
          "RotaryEmbedding", 3, 4, 1,
          {{"interleaved", AttrKind::kInt}, {"num_heads", AttrKind::kInt}, {"rotary_embedding_dim", AttrKind::kInt}},
          RotaryEmbedding23)};
}

}  // namespace fusion::ops
