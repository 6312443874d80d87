// Det: Gaussian elimination with partial pivoting, one elimination step after another. Each step removes the row with
// the largest first element, so that the remaining matrix is smaller by one row and one column.
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

constexpr int64_t kMaxSize = 64;  // every step is code of its own

absl::StatusOr<Types> Infer(const OpContext& context, int) {
  RETURN_IF_ERROR(CheckDomain(context, 0, Domain::kFloat));
  const Shape& x = context.ShapeOf(0);
  const size_t rank = x.size();
  if (rank < 2 || x[rank - 1] != x[rank - 2]) {
    return context.Error(absl::StrCat("input ", ShapeToString(x), " must be square matrices [*, M, M]"));
  }
  if (x.back() > kMaxSize) {
    return context.Unsupported(absl::StrCat("matrices of ", x.back(), " rows; at most ", kMaxSize));
  }
  return Types{{context.Type(0).dtype, {x.begin(), x.end() - 2}}};
}

Idx At(Idx batch, const Index& row, const Index& column) {
  batch.push_back(row);
  batch.push_back(column);
  return batch;
}

absl::Status Lower(LowerContext& context) {
  te::Builder& b = *context.builder;
  const ecg::ValueType& type = context.output_types[0];
  const Shape& batch = type.shape;
  const DType acc = ComputeType(type.dtype);
  int64_t size = context.ShapeOf(0).back();
  if (size == 0 || NumElements(batch) == 0) {
    DefineMap(context, 0, [&](const Idx&) { return Imm(type.dtype, 1); });
    return absl::OkStatus();
  }
  te::TensorId matrix = context.in[0];
  te::TensorId product = -1;  // product of the pivots so far, with the sign of the row exchanges
  for (; size > 1; --size) {
    const Scalar none = te::ImmInt(DType::kI64, 0);
    const te::TensorId row = b.GeneralReduction(
        "pivot", {DType::kI64}, batch, {size}, {Imm(acc, -1), none},
        [&](const Idx& i, const Idx& r, const std::vector<Scalar>& best) {
          const Scalar magnitude = Call(Op::kAbs, {LoadCompute(b, matrix, At(i, r[0], Index(0)))});
          const Scalar better = Call(Op::kGt, {magnitude, best[0]});
          return std::vector<Scalar>{te::Select(better, magnitude, best[0]),
                                     te::Select(better, te::FromIndex(r[0]), best[1])};
        },
        [](const Idx&, const std::vector<Scalar>& best) { return std::vector<Scalar>{best[1]}; })[0];
    const auto pivot_row = [&](const Idx& i) { return Index::Load(row, i, {0, size - 1}); };
    const auto pivot = [&](const Idx& i) { return LoadCompute(b, matrix, At(i, pivot_row(i), Index(0))); };

    product = b.Map("product", acc, batch, [&, before = product](const Idx& i) {
      const Scalar odd = Call(Op::kEq, {te::FromIndex(te::Mod(pivot_row(i), 2)), te::ImmInt(DType::kI64, 1)});
      const Scalar signed_pivot = te::Select(odd, Call(Op::kNeg, {pivot(i)}), pivot(i));
      return before < 0 ? signed_pivot : b.At(before, i) * signed_pivot;
    });
    Shape smaller = batch;
    smaller.insert(smaller.end(), {size - 1, size - 1});
    matrix = b.Map("eliminated", acc, smaller, [&, before = matrix](const Idx& at) {
      const Idx i(at.begin(), at.end() - 2);
      const Index& r = at[at.size() - 2];
      const Index column = at.back() + Index(1);
      const auto load = [&](const Index& from, const Index& c) { return LoadCompute(b, before, At(i, from, c)); };
      // The remaining rows keep their order; rows behind the pivot's row move up by one.
      const auto remaining = [&](const Index& c) {
        return te::If({{r, te::Cmp::kLt, pivot_row(i)}}, load(r, c), load(r + Index(1), c));
      };
      const Scalar head = load(pivot_row(i), Index(0));
      // In a column of zeros the product is 0 already; the factor 0 keeps the remaining elements finite.
      const Scalar factor = te::Select(Call(Op::kEq, {head, Imm(acc, 0)}), Imm(acc, 0), remaining(Index(0)) / head);
      return remaining(column) - factor * load(pivot_row(i), column);
    });
  }
  DefineMap(context, 0, [&](const Idx& i) {
    const Scalar last = LoadCompute(b, matrix, At(i, Index(0), Index(0)));
    return te::Cast(type.dtype, product < 0 ? last : b.At(product, i) * last);
  });
  return absl::OkStatus();
}

}  // namespace

std::vector<OpDef> DeterminantOps() {
  OpDef det;
  det.name = "Det";
  det.infer = Infer;
  det.lower = Lower;
  det.mapping = Always(MappingType::kManyToMany);
  det.flops = [](const OpContext& context, const Types& outputs) {
    const double n = static_cast<double>(context.ShapeOf(0).back());
    return 2.0 / 3 * n * n * n * static_cast<double>(NumElements(outputs[0].shape));
  };
  return {det};
}

}  // namespace fusion::ops
