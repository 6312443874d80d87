// RoiAlign and MaxRoiPool bring regions of an image, whose corners are known at run time, to one size.
#include <algorithm>
#include <functional>
#include <limits>

#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/def_parts.h"
#include "compiler/ops/registry/op_list.h"
#include "compiler/ops/shared/elementwise.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using te::Call;
using te::Imm;
using te::Index;
using te::Op;
using te::Scalar;
using Idx = te::Builder::Idx;
using Types = std::vector<ecg::ValueType>;

absl::StatusOr<Types> InferRoiAlign(const OpContext& context, int) {
  const Shape& x = context.ShapeOf(0);
  const Shape& rois = context.ShapeOf(1);
  const int64_t height = context.attrs.Int("output_height", 1), width = context.attrs.Int("output_width", 1);
  if (x.size() != 4 || rois.size() != 2 || rois[1] != 4 || context.ShapeOf(2) != Shape{rois[0]} ||
      NumElements(x) == 0 || !IsFloat(context.Type(0).dtype) || context.Type(1).dtype != context.Type(0).dtype) {
    return context.Error(absl::StrCat("x ", ShapeToString(x), ", rois ", ShapeToString(rois), " and batch_indices ",
                                      ShapeToString(context.ShapeOf(2)), " must be [N, C, H, W], [R, 4] and [R]"));
  }
  RETURN_IF_ERROR(ExpectInteger(context, 2, "batch_indices"));
  if (height < 1 || width < 1) return context.Error("output_height and output_width must be positive");
  const int64_t samples = context.attrs.Int("sampling_ratio");
  if (samples < 0 || samples > 1024) return context.Error(absl::StrCat("sampling_ratio=", samples, " is out of range"));
  const std::string mode = context.attrs.String("mode", "avg");
  if (samples == 0 && mode == "max") {
    return context.Unsupported("mode=max with sampling_ratio=0 makes the work depend on the data; give the ratio");
  }
  if (mode != "avg" && mode != "max") return context.Error(absl::StrCat("mode '", mode, "' is neither avg nor max"));
  return Types{{context.Type(0).dtype, {rois[0], x[1], height, width}}};
}

// Along one axis: where region r begins, and the length of one of its bins.
struct Bins {
  Scalar first, length;
};

Bins BinsOf(const LowerContext& context, int begin, int64_t bins, const Index& r) {
  const te::Builder& b = *context.builder;
  const DType acc = ComputeType(context.Type(1).dtype);
  const bool half = context.attrs.String("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  const auto corner = [&](int k) {
    const Scalar scaled =
        LoadCompute(b, context.in[1], {r, Index(k)}) * Imm(acc, context.attrs.Float("spatial_scale", 1));
    return half ? scaled - Imm(acc, 0.5) : scaled;
  };
  const Scalar first = corner(begin);
  Scalar length = corner(begin + 2) - first;
  if (!half) length = te::Max(length, Imm(acc, 1));
  return {first, length / Imm(acc, static_cast<double>(bins))};
}

// Returns whether a sample lies more than one pixel outside the image. Such samples are 0; nearer ones take the
// border's value.
Scalar Outside(const Scalar& x, int64_t extent) {
  return Call(Op::kOr,
              {Call(Op::kLt, {x, Imm(x->dtype, -1)}), Call(Op::kGt, {x, Imm(x->dtype, static_cast<double>(extent))})});
}
Scalar Clamped(const Scalar& x, int64_t extent) {
  return te::Min(te::Max(x, Imm(x->dtype, 0)), Imm(x->dtype, static_cast<double>(extent - 1)));
}

struct Tables {
  te::TensorId index, weight;
};

// Returns [R, bins, samples, 2]: the two inputs around each sample point along one axis, and their weights.
Tables RoiTables(LowerContext& context, int begin, int64_t bins, int64_t extent) {
  te::Builder& b = *context.builder;
  const DType acc = ComputeType(context.Type(1).dtype);
  const int64_t rois = context.ShapeOf(1)[0];
  const int64_t samples = context.attrs.Int("sampling_ratio");
  const te::TensorId coordinate = b.Map("coordinate", acc, {rois, bins, samples}, [&](const Idx& i) {
    const Bins bin = BinsOf(context, begin, bins, i[0]);
    const Scalar sample = te::Cast(acc, te::FromIndex(i[2])) + Imm(acc, 0.5);
    return bin.first + te::Cast(acc, te::FromIndex(i[1])) * bin.length +
           sample * bin.length / Imm(acc, static_cast<double>(samples));
  });
  const auto given = [&](const Idx& i) { return b.At(coordinate, {i[0], i[1], i[2]}); };
  Tables tables;
  tables.index = b.Map("index", DType::kI64, {rois, bins, samples, 2}, [&](const Idx& i) {
    return ClampedIndex(Call(Op::kFloor, {Clamped(given(i), extent)}) + te::Cast(acc, te::FromIndex(i[3])), extent);
  });
  tables.weight = b.Map("weight", acc, {rois, bins, samples, 2}, [&](const Idx& i) {
    const Scalar x = Clamped(given(i), extent);
    const Scalar high = x - Call(Op::kFloor, {x});
    const Scalar first = Call(Op::kEq, {te::FromIndex(i[3]), te::ImmInt(DType::kI64, 0)});
    return te::Select(Outside(given(i), extent), Imm(acc, 0), te::Select(first, Imm(acc, 1) - high, high));
  });
  return tables;
}

// sampling_ratio=0 takes as many samples as a bin has pixels. Their mean is linear and separable, so that
// [R, bins, extent] holds the weight of each input along one axis; a bin of length 0 has no samples. Only samples on
// the image are visited; samples lie at least half a pixel apart, which bounds their number.
te::TensorId AdaptiveWeights(LowerContext& context, int begin, int64_t bins, int64_t extent) {
  te::Builder& b = *context.builder;
  const DType acc = ComputeType(context.Type(1).dtype);
  const auto imm = [acc](double v) { return Imm(acc, v); };
  // For each bin: the number of samples, their distance, the position of the first one, and how many lie before the
  // image.
  const Shape places{context.ShapeOf(1)[0], bins};
  const auto count_of = [&](const Idx& i) { return Call(Op::kCeil, {BinsOf(context, begin, bins, i[0]).length}); };
  const auto step_of = [&](const Idx& i) {
    return BinsOf(context, begin, bins, i[0]).length / te::Max(count_of(i), imm(1));
  };
  const auto start_of = [&](const Idx& i) {  // of sample 0
    const Bins bin = BinsOf(context, begin, bins, i[0]);
    return bin.first + te::Cast(acc, te::FromIndex(i[1])) * bin.length + imm(0.5) * step_of(i);
  };
  const te::TensorId count = b.Map("count", acc, places, count_of);
  const te::TensorId step = b.Map("step", acc, places, step_of);
  const te::TensorId start = b.Map("start", acc, places, start_of);
  const te::TensorId skipped = b.Map("skipped", acc, places, [&](const Idx& i) {
    const Scalar before = Call(Op::kCeil, {(imm(-1) - b.At(start, i)) / b.At(step, i)});
    return te::Select(Call(Op::kGt, {b.At(step, i), imm(0)}), te::Max(before, imm(0)), imm(0));
  });
  return b.Reduce(
      "weight", te::ReductionKind::kSum, acc, acc, {places[0], bins, extent}, {2 * extent + 4},
      [&](const Idx& i, const Idx& r) {
        const Idx place{i[0], i[1]};
        const Scalar sample = b.At(skipped, place) + te::Cast(acc, te::FromIndex(r[0]));
        const Scalar x = b.At(start, place) + sample * b.At(step, place);
        const Scalar distance = Call(Op::kAbs, {Clamped(x, extent) - te::Cast(acc, te::FromIndex(i[2]))});
        const Scalar missing = Call(Op::kOr, {Outside(x, extent), Call(Op::kGe, {sample, b.At(count, place)})});
        return te::Select(missing, imm(0), te::Max(imm(1) - distance, imm(0)));
      },
      [&](const Idx& i, const Scalar& sum) {
        return sum / te::Max(b.At(count, {i[0], i[1]}), imm(1));
      });
}

// Returns the batch entry of each region, clamped: [R].
te::TensorId BatchOf(LowerContext& context, const std::function<Scalar(const Index& r)>& given) {
  const int64_t last = context.ShapeOf(0)[0] - 1;
  return context.builder->Map("batch", DType::kI64, {context.ShapeOf(1)[0]}, [&](const Idx& i) {
    return te::Max(te::Min(te::Cast(DType::kI64, given(i[0])), te::ImmInt(DType::kI64, last)),
                   te::ImmInt(DType::kI64, 0));
  });
}

absl::Status LowerRoiAlign(LowerContext& context) {
  const ecg::ValueType& type = context.output_types[0];
  const Shape& x = context.ShapeOf(0);
  te::Builder& b = *context.builder;
  if (NumElements(type.shape) == 0) {
    DefineMap(context, 0, [](const Idx&) { return Scalar(); });
    return absl::OkStatus();
  }
  const DType acc = ComputeType(type.dtype);
  const int64_t samples = context.attrs.Int("sampling_ratio");
  const bool max = context.attrs.String("mode", "avg") == "max";
  const te::TensorId batch = BatchOf(context, [&](const Index& r) { return b.At(context.in[2], {r}); });
  if (samples == 0) {
    const te::TensorId row_weight = AdaptiveWeights(context, 1, type.shape[2], x[2]);
    const te::TensorId column_weight = AdaptiveWeights(context, 0, type.shape[3], x[3]);
    const te::TensorId rows =
        b.Reduce("rows", te::ReductionKind::kSum, acc, acc, {type.shape[0], x[1], type.shape[2], x[3]}, {x[2]},
                 [&](const Idx& i, const Idx& r) {
                   return b.At(row_weight, {i[0], i[2], r[0]}) *
                          LoadCompute(b, context.in[0], {Index::Load(batch, {i[0]}, {0, x[0] - 1}), i[1], r[0], i[3]});
                 });
    context.out = {b.Reduce("roi_align", te::ReductionKind::kSum, type.dtype, acc, type.shape, {x[3]},
                            [&](const Idx& i, const Idx& r) {
                              return b.At(column_weight, {i[0], i[3], r[0]}) * b.At(rows, {i[0], i[1], i[2], r[0]});
                            })};
    return absl::OkStatus();
  }
  const Tables rows = RoiTables(context, 1, type.shape[2], x[2]);
  const Tables columns = RoiTables(context, 0, type.shape[3], x[3]);
  // The taps are (row sample, column sample, row corner, column corner). The maximum is taken over weighted corners, as
  // in ONNX.
  context.out = {b.Reduce(
      "roi_align", max ? te::ReductionKind::kMax : te::ReductionKind::kSum, type.dtype, acc, type.shape,
      {samples, samples, 2, 2},
      [&](const Idx& i, const Idx& r) {
        const Idx row = {i[0], i[2], r[0], r[2]}, column = {i[0], i[3], r[1], r[3]};
        const Scalar value = b.At(context.in[0], {Index::Load(batch, {i[0]}, {0, x[0] - 1}), i[1],
                                                  Index::Load(rows.index, row, {0, x[2] - 1}),
                                                  Index::Load(columns.index, column, {0, x[3] - 1})});
        return b.At(rows.weight, row) * b.At(columns.weight, column) * te::Cast(acc, value);
      },
      [&](const Idx&, const Scalar& sum) {
        return max ? sum : sum * Imm(acc, 1.0 / static_cast<double>(samples * samples));
      })};
  return absl::OkStatus();
}

// RoiAlign-10 has no half-pixel offset.
absl::Status NormalizeRoiAlign(ImportContext& import) {
  if (import.opset() < 16) {
    import.node().attrs.Set("coordinate_transformation_mode", std::string("output_half_pixel"));
  }
  return absl::OkStatus();
}

// --- MaxRoiPool. x: [N, C, H, W], rois: [R, 5] = (batch, x1, y1, x2, y2), y: [R, C, h, w]
absl::StatusOr<Types> InferMaxRoiPool(const OpContext& context, int) {
  RETURN_IF_ERROR(CheckDomain(context, 0, Domain::kFloat));
  RETURN_IF_ERROR(CheckSameType(context, 0, 2));
  const Shape &x = context.ShapeOf(0), &rois = context.ShapeOf(1);
  const std::vector<int64_t> pooled = context.attrs.Ints("pooled_shape");
  if (x.size() != 4 || rois.size() != 2 || rois[1] != 5 || NumElements(x) == 0) {
    return context.Error(
        absl::StrCat("X ", ShapeToString(x), " and rois ", ShapeToString(rois), " must be [N, C, H, W] and [R, 5]"));
  }
  if (pooled.size() != 2 || pooled[0] < 1 || pooled[1] < 1) {
    return context.Error(absl::StrCat("pooled_shape ", ShapeToString(pooled), " must be two positive extents"));
  }
  return Types{{context.Type(0).dtype, {rois[0], x[1], pooled[0], pooled[1]}}};
}

// [R, bins]: the first index of each bin, and the index behind its last.
struct Ranges {
  te::TensorId begin, end;
};

Ranges RangesOf(LowerContext& context, int column, int64_t bins, int64_t extent) {
  te::Builder& b = *context.builder;
  const DType acc = ComputeType(context.Type(1).dtype);
  const auto corner = [&](const Index& r, int k) {  // rounds half away from zero
    const Scalar x = LoadCompute(b, context.in[1], {r, Index(k)}) * Imm(acc, context.attrs.Float("spatial_scale", 1));
    return Call(Op::kSign, {x}) * Call(Op::kFloor, {Call(Op::kAbs, {x}) + Imm(acc, 0.5)});
  };
  const auto edge = [&](const Idx& i, int64_t offset, Op round) {
    const Scalar first = corner(i[0], column);
    const Scalar length = te::Max(corner(i[0], column + 2) - first + Imm(acc, 1), Imm(acc, 1));
    const Scalar bin = length / Imm(acc, static_cast<double>(bins));
    const Scalar at = Call(round, {te::Cast(acc, te::FromIndex(i[1] + Index(offset))) * bin}) + first;
    return ClampedIndex(at, extent + 1);
  };
  const Shape shape{context.ShapeOf(1)[0], bins};
  return {b.Map("begin", DType::kI64, shape, [&](const Idx& i) { return edge(i, 0, Op::kFloor); }),
          b.Map("end", DType::kI64, shape, [&](const Idx& i) { return edge(i, 1, Op::kCeil); })};
}

// Takes maxima over the rows of each bin first, then over its columns.
absl::Status LowerMaxRoiPool(LowerContext& context) {
  te::Builder& b = *context.builder;
  const ecg::ValueType& type = context.output_types[0];
  const Shape& x = context.ShapeOf(0);
  if (NumElements(type.shape) == 0) {
    DefineMap(context, 0, [](const Idx&) { return Scalar(); });
    return absl::OkStatus();
  }
  const Ranges rows = RangesOf(context, 2, type.shape[2], x[2]);
  const Ranges columns = RangesOf(context, 1, type.shape[3], x[3]);
  const te::TensorId batch = BatchOf(context, [&](const Index& r) {
    return te::Max(
        te::Min(LoadCompute(b, context.in[1], {r, Index(0)}), Imm(ComputeType(type.dtype), static_cast<double>(x[0]))),
        Imm(ComputeType(type.dtype), 0));
  });
  const DType acc = ComputeType(type.dtype);
  const Scalar lowest = Imm(acc, -std::numeric_limits<double>::infinity());
  const auto within = [&](const Ranges& ranges, const Idx& bin, const Index& at, const Scalar& value) {
    const Scalar position = te::FromIndex(at);
    return te::Select(Call(Op::kAnd, {Call(Op::kGe, {position, b.At(ranges.begin, bin)}),
                                      Call(Op::kLt, {position, b.At(ranges.end, bin)})}),
                      value, lowest);
  };
  const te::TensorId tall =
      b.Reduce("rows", te::ReductionKind::kMax, acc, acc, {type.shape[0], x[1], type.shape[2], x[3]}, {x[2]},
               [&](const Idx& i, const Idx& r) {
                 const Idx from{Index::Load(batch, {i[0]}, {0, x[0] - 1}), i[1], r[0], i[3]};
                 return within(rows, {i[0], i[2]}, r[0], LoadCompute(b, context.in[0], from));
               });
  context.out = {b.Reduce(
      "max_roi_pool", te::ReductionKind::kMax, type.dtype, acc, type.shape, {x[3]},
      [&](const Idx& i, const Idx& r) {
        return within(columns, {i[0], i[3]}, r[0], b.At(tall, {i[0], i[1], i[2], r[0]}));
      },
      [&](const Idx& i, const Scalar& max) {
        const auto empty = [&](const Ranges& ranges, const Idx& bin) {
          return Call(Op::kGe, {b.At(ranges.begin, bin), b.At(ranges.end, bin)});
        };
        return te::Select(Call(Op::kOr, {empty(rows, {i[0], i[2]}), empty(columns, {i[0], i[3]})}), Imm(acc, 0), max);
      })};
  return absl::OkStatus();
}

}  // namespace

std::vector<OpDef> RoiOps() {
  OpDef roi;
  roi.name = "RoiAlign";
  roi.min_inputs = roi.max_inputs = 3;
  roi.attrs = {{"coordinate_transformation_mode", AttrKind::kString, false, {"half_pixel", "output_half_pixel"}},
               {"mode", AttrKind::kString, false, {"avg", "max"}},
               {"output_height", AttrKind::kInt},
               {"output_width", AttrKind::kInt},
               {"sampling_ratio", AttrKind::kInt},
               {"spatial_scale", AttrKind::kFloat}};
  roi.infer = InferRoiAlign;
  roi.lower = LowerRoiAlign;
  roi.normalize = NormalizeRoiAlign;
  roi.flops = [](const OpContext& context, const std::vector<ecg::ValueType>& outputs) {
    const double samples = static_cast<double>(std::max<int64_t>(context.attrs.Int("sampling_ratio"), 1));
    return 12 * samples * samples * static_cast<double>(NumElements(outputs[0].shape));
  };

  OpDef pool;
  pool.name = "MaxRoiPool";
  pool.min_inputs = pool.max_inputs = 2;
  pool.attrs = {{"pooled_shape", AttrKind::kInts, true}, {"spatial_scale", AttrKind::kFloat}};
  pool.infer = InferMaxRoiPool;
  pool.lower = LowerMaxRoiPool;
  pool.flops = [](const OpContext& context, const std::vector<ecg::ValueType>& outputs) {
    return static_cast<double>(context.ShapeOf(0)[3]) * static_cast<double>(NumElements(outputs[0].shape));
  };

  std::vector<OpDef> defs = {roi, pool};
  for (OpDef& def : defs) def.mapping = Always(MappingType::kManyToMany);
  return defs;
}

}  // namespace fusion::ops
